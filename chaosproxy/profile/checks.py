"""What is wrong with rules that are each well written: matches that can never hold, faults that can never fire.

Takes entries as read, and the command table; gives nothing, but leaves problems.
"""

from collections.abc import Iterator, Mapping, Sequence

from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import Fault
from chaosproxy.core.scalar import closest
from chaosproxy.profile.problems import Place, Problems
from chaosproxy.profile.rules import Written

#: What only a command and its reply have.
_OF_EXCHANGES = ("commands", "keys", "key_share", "slots", "arguments", "batch", "after", "reply")
#: What stands for no category of the server's: see `match.commands`.
HANDSHAKE = "@handshake"
_HANDSHAKE_COMMANDS = ("HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "COMMAND")


def check_rules(entries: Sequence[Written], table: CommandTable | None, problems: Problems) -> None:
    """Check every entry by itself, and how they arm each other.

    Without a table the names of commands are not checked.
    """
    for written in entries:
        _check_subject(written, problems)
        _check_reply(written, problems)
        _check_share(written, problems)
        _check_when(written, problems)
        if table is not None:
            _check_commands(written, table, problems)
    _check_names(entries, problems)


def _place(written: Written, *path: str | int, at_key: bool = False) -> Place:
    return written.node.find(path, at_key=at_key)


def _check_reply(written: Written, problems: Problems) -> None:
    if written.match.reply is not None and written.at is Position.BEFORE_FORWARD:
        place = _place(written, "match", "reply", at_key=True)
        problems.add(place, "reply: can never hold, at before_forward there is no reply yet")
    reply = written.match.reply
    if reply is None or reply.error is None:
        return
    if reply.error[:1] in {b"-", b"!"}:
        place = _place(written, "match", "reply", "error")
        text = reply.error[1:].decode("utf-8", "backslashreplace")
        problems.add(place, "reply.error: can never hold, that is no part of an error's text", text)
    if reply.type not in {None, "error"}:
        place = _place(written, "match", "reply", "type")
        problems.add(place, "reply.type: can never hold together with 'error'")


def _check_share(written: Written, problems: Problems) -> None:
    if written.match.key_share == 0:
        place = _place(written, "match", "key_share")
        problems.add(place, "key_share: can never hold, that is a share without a key")


def _check_subject(written: Written, problems: Problems) -> None:
    """Whether a rule about frames nobody asked for, or about new connections, speaks of what those have."""
    fault, match = written.fault, written.match
    if fault is None:
        return

    def never(fields: Sequence[str], why: str) -> None:
        for field in fields:
            if getattr(match, field) is not None:
                place = _place(written, "match", field, at_key=True)
                problems.add(place, f"{field}: can never hold, {why}")

    if fault.subject == "connection":
        never(("push", *_OF_EXCHANGES), f"fault {fault.type} acts on new connections")
        _check_newcomer(written, problems)
    elif match.push is not None and not fault.on_pushes:
        never(("push",), f"fault {fault.type} acts on commands and their replies")
    elif match.push is not None or fault.subject == "push":
        never(_OF_EXCHANGES, "a frame that nobody asked for has none")
        if written.at is Position.BEFORE_FORWARD:
            message = "at: can never hold, a frame that nobody asked for is not forwarded"
            problems.add(_place(written, "at"), message)


def _check_newcomer(written: Written, problems: Problems) -> None:
    """Whether what is said of a new connection is known before it has sent anything."""
    match = written.match

    def never(*path: str) -> None:
        message = f"{'.'.join(path)}: can never hold, a new connection has sent nothing yet"
        problems.add(_place(written, "match", *path, at_key=True), message)

    if match.db is not None:
        never("db")
    if match.clients is not None and match.clients.name is not None:
        never("clients")
    if match.connection is not None and match.connection.state is not None:
        never("connection", "state")


def _check_when(written: Written, problems: Problems) -> None:
    when = written.when

    def never(field: str, why: str) -> None:
        problems.add(_place(written, "when", field), f"{field}: can never hold, {why}")

    if when.until is not None and when.until <= (when.from_ or 0):
        never("until", "it ends before it begins" if when.from_ else "it ends as it begins")
    if when.first is not None and when.every is not None and when.every > when.first:
        never("every", f"the first {when.first} are over before match {when.every}")
    if when.nth is not None:
        if when.first is not None and when.nth[0] > when.first:
            never("nth", f"only the first {when.first} count")
        elif when.every is not None and not any(nth % when.every == 0 for nth in when.nth):
            never("nth", f"none of them is a multiple of {when.every} ('every')")


def _check_commands(written: Written, table: CommandTable, problems: Problems) -> None:
    match, fault = written.match, written.fault
    specs = None
    if match.commands is not None:
        specs = _all_known(written, match.commands, ("commands",), table, problems)
    _check_settings(written, specs, table, problems)
    _check_after(written, specs, table, problems)
    if specs is None:
        return
    place = _place(written, "match", "commands")
    beyond = list(_beyond(fault, specs)) if fault else []
    if written.rule is not None and not beyond and (idle := written.rule.fault.idle_on(specs)):
        beyond = [f"{written.rule.fault.type} {idle}"]
    for why in beyond:
        problems.add(place, f"commands: can never hold, fault {why}")
    given = {"keys": match.keys, "key_share": match.key_share, "slots": match.slots}
    by_key = [field for field, value in given.items() if value is not None]
    if by_key and not any(spec.key_specs for spec in specs):
        message = f"commands: can never hold together with '{by_key[0]}', none of these has a key"
        problems.add(place, message)


def _check_settings(
    written: Written, specs: Sequence[CommandSpec] | None, table: CommandTable, problems: Problems
) -> None:
    """Whether the commands that a fault's settings name are there, and can be on the key of `specs`, those that it acts on."""
    if written.rule is None:
        return
    fault = written.rule.fault
    keyed = fault.same_key_as()
    named: list[CommandSpec] | None = []
    for path, word in fault.names():
        place = _place(written, *path)
        meant = None
        if not _is_handshake(word, path, place, problems):
            meant = _known(word, path, place, table, problems)
        named = [*named, *meant] if named is not None and meant else None
    if keyed is not None:
        rest = "on any key it is same: any"
        _check_same_key(_place(written, *keyed), keyed, (named, specs), rest, problems)


def _check_same_key(
    place: Place,
    path: Sequence[str],
    both: tuple[Sequence[CommandSpec] | None, Sequence[CommandSpec] | None],
    rest: str,
    problems: Problems,
) -> None:
    """Whether commands named at `path`, and those of `match`, have keys at all, as far as they are known."""
    for those, whose in zip(both, ("these", "'commands'"), strict=True):
        if those is not None and not any(spec.key_specs for spec in those):
            why = f"can never hold on the same key, none of {whose} has one"
            problems.add(place, f"{'.'.join(path)}: {why}; {rest}")
            return


def _check_after(
    written: Written, specs: Sequence[CommandSpec] | None, table: CommandTable, problems: Problems
) -> None:
    """Whether the command before can be one on the same key, or be known at all. `specs`: those it comes before, if known."""
    after = written.match.after
    if after is None:
        return
    path = ("after", "command")
    for number, word in enumerate(after.command):
        if _is_handshake(word, path, _place(written, "match", *path, number), problems):
            return
    before = _all_known(written, after.command, path, table, problems)
    if after.same == "connection":
        return
    rest = "on the same connection it is same: connection"
    _check_same_key(_place(written, "match", *path), path, (before, specs), rest, problems)


def _is_handshake(word: str, path: Sequence[str | int], place: Place, problems: Problems) -> bool:
    """Whether a word means all that a connection begins with, where it is asked about commands by their names: a problem."""
    if word != HANDSHAKE:
        return False
    field = ".".join(step for step in path if isinstance(step, str))
    problems.add(
        place, f"{field}: {word} stands in match.commands only; name the commands", "CLIENT"
    )
    return True


def _beyond(fault: type[Fault], specs: Sequence[CommandSpec]) -> Iterator[str]:
    """Why a fault can act on none of these commands."""
    if fault.writes_only and not any(spec.is_write for spec in specs):
        yield f"{fault.type} acts on writes and none of these is one"
    if fault.reads_only and not any("readonly" in spec.flags for spec in specs):
        yield f"{fault.type} acts on reads and none of these is one"
    if fault.keys_only and not any(spec.key_specs for spec in specs):
        yield f"{fault.type} acts on keys and none of these has one"


def _all_known(
    written: Written,
    words: Sequence[str],
    path: tuple[str, ...],
    table: CommandTable,
    problems: Problems,
) -> list[CommandSpec] | None:
    """Every command that the words at `path` of `match` mean; None if that is not known of all of them."""
    specs: list[CommandSpec] = []
    certain = True
    for number, word in enumerate(words):
        meant = _known(word, path, _place(written, "match", *path, number), table, problems)
        specs += meant
        certain = certain and bool(meant)
    return specs if certain else None


def _known(
    word: str, path: Sequence[str | int], place: Place, table: CommandTable, problems: Problems
) -> list[CommandSpec]:
    """Every command that a word means; none: a problem, unless it is a module's."""
    meant = _specs_of(word, table)
    if not meant and not _is_foreign(word, table):
        message, near = _unknown_command(word, table)
        field = ".".join(step for step in path if isinstance(step, str))
        problems.add(place, f"{field}: {message}", near)
    return meant


def _specs_of(word: str, table: CommandTable) -> list[CommandSpec]:
    """Every command that a word of `match.commands` means; none: the table does not know it."""
    if word == HANDSHAKE:
        return [spec for name in _HANDSHAKE_COMMANDS for spec in _specs_of(name, table)]
    if word.startswith("@"):
        group = word[1:]
        specs = table.specs.values()
        return [spec for spec in specs if group in spec.categories or group in spec.flags]
    below = f"{word}|"
    return [spec for name, spec in table.specs.items() if name == word or name.startswith(below)]


def _is_foreign(word: str, table: CommandTable) -> bool:
    """Whether it may be a module's command: JSON.SET, where the table knows nothing that begins with JSON.

    The table that ships cannot know every module, and a profile is checked before there is a server.
    """
    prefix, dot, _ = word.partition(".")
    return bool(dot) and not any(name.startswith(f"{prefix}.") for name in table.names)


def _unknown_command(word: str, table: CommandTable) -> tuple[str, str]:
    """The message, and what was probably meant."""
    if word in {"*", "@all"}:
        return f"unknown command {word}; for all of them 'commands' is left out", ""
    if word.startswith("@"):
        groups = ("handshake", *sorted(table.categories | table.flags))
        near = closest(word, [f"@{group}" for group in groups])
        return f"no ACL category or command flag is called {word}", near
    container, bar, _ = word.partition("|")
    if not bar and "," in word:
        return f"unknown command {word}", f"[{', '.join(filter(None, word.split(',')))}]"
    if not bar:
        group = f"@{word.lower()}"
        near = group if _specs_of(group, table) else closest(word, table.names)
        return f"unknown command {word}", near
    if container not in table.specs:
        return f"unknown command {container}", closest(word, table.names)
    below = [name for name in table.names if name.startswith(f"{container}|")]
    if not below:
        return f"{container} has no subcommands", container
    return f"unknown subcommand {word}", closest(word, below)


def _check_names(entries: Sequence[Written], problems: Problems) -> None:
    """Where a fault speaks of another one there is such a one; and nobody waits for itself."""
    names = [written.name for written in entries]
    waits = {written.name: [name for name, _ in _waits_for(written)] for written in entries}
    for written in entries:
        for name, path in _waits_for(written):
            field, place = ".".join(path[1:]), _place(written, *path)
            if name not in names:
                # Nothing arms itself: of the others one was meant.
                near = closest(name, (other for other in names if other != written.name))
                problems.add(place, f"{field}: no fault is called '{name}'", near)
            elif name == written.name:
                why = "cannot arm itself" if field == "armed_by" else "waits for itself to fire"
                problems.add(place, f"{field}: '{name}' {why}")
            elif ring := _ring(written.name, name, waits):
                chain = " waits for ".join(f"'{other}'" for other in ring)
                problems.add(place, f"{field}: can never fire, {chain}")


def _waits_for(written: Written) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The faults that have to fire before this one can, each with the place that says so."""
    if (connection := written.match.connection) is not None:
        for field in ("opened_before", "opened_after"):
            if (name := getattr(connection, field)) is not None:
                yield name, ("match", "connection", field)
    if written.when.armed_by is not None:
        yield written.when.armed_by, ("when", "armed_by")


def _ring(start: str, second: str, waits: Mapping[str, Sequence[str]]) -> list[str]:
    """The faults that wait for each other, from `start` by way of `second` back to it; empty if it is in no such ring."""
    ways = [[start, second]]
    seen = {second}
    while ways:
        way = ways.pop(0)
        for other in waits.get(way[-1], ()):
            if other == start:
                return [*way, other]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []
