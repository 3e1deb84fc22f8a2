"""What is wrong with rules that are each well written: matches that can never hold, faults that can never fire.

Takes entries as read, and the command table; leaves problems.
"""

from collections.abc import Sequence

from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.scalar import closest
from chaosproxy.profile.problems import Place, Problems
from chaosproxy.profile.rules import Written

#: What stands for no category of the server's: see `match.commands`.
HANDSHAKE = "@handshake"
_HANDSHAKE_COMMANDS = ("HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "COMMAND")


def check_rules(entries: Sequence[Written], table: CommandTable | None, problems: Problems) -> None:
    """Check every entry by itself, and how they arm each other.

    Without a table the names of commands are not checked.
    """
    for written in entries:
        _check_reply(written, problems)
        _check_when(written, problems)
        if table is not None:
            _check_commands(written, table, problems)
    _check_arming(entries, problems)


def _place(written: Written, *path: str | int, at_key: bool = False) -> Place:
    return written.node.find(path, at_key=at_key)


def _check_reply(written: Written, problems: Problems) -> None:
    if written.match.reply is not None and written.at is Position.BEFORE_FORWARD:
        place = _place(written, "match", "reply", at_key=True)
        problems.add(place, "reply: can never hold, at before_forward there is no reply yet")


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
    words = match.commands
    if words is None:
        return
    specs: list[CommandSpec] = []
    certain = True
    for number, word in enumerate(words):
        meant = _specs_of(word, table)
        specs += meant
        if not meant and not _is_foreign(word, table):
            message, near = _unknown_command(word, table)
            problems.add(_place(written, "match", "commands", number), message, near)
        certain = certain and bool(meant)
    if not certain:
        return
    place = _place(written, "match", "commands")
    if fault and fault.writes_only and not any(spec.is_write for spec in specs):
        message = (
            f"commands: can never hold, fault {fault.type} acts on writes and none of these is one"
        )
        problems.add(place, message)
    given = {
        "keys": match.keys,
        "key_share": match.key_share,
        "slots": match.slots,
    }
    by_key = [field for field, value in given.items() if value is not None]
    if by_key and not any(spec.key_specs for spec in specs):
        message = f"commands: can never hold together with '{by_key[0]}', none of these has a key"
        problems.add(place, message)


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
    if word.startswith("@"):
        groups = ("handshake", *sorted(table.categories | table.flags))
        near = closest(word, [f"@{group}" for group in groups])
        return f"commands: no ACL category or command flag is called {word}", near
    container, bar, _ = word.partition("|")
    if not bar:
        return f"commands: unknown command {word}", closest(word, table.names)
    if container not in table.specs:
        near = closest(container, table.names)
        return f"commands: unknown command {container}", near and f"{near}{word[len(container) :]}"
    below = [name for name in table.names if name.startswith(f"{container}|")]
    if not below:
        return f"commands: {container} has no subcommands", container
    return f"commands: unknown subcommand {word}", closest(word, below)


def _check_arming(entries: Sequence[Written], problems: Problems) -> None:
    names = [written.name for written in entries]
    armed_by = {
        written.name: written.when.armed_by
        for written in entries
        if written.when.armed_by is not None
    }
    for written in entries:
        name, armer = written.name, written.when.armed_by
        place = _place(written, "when", "armed_by")
        if armer is None:
            continue
        if armer not in names:
            near = closest(armer, (other for other in names if other != name))
            problems.add(place, f"armed_by: no fault is called '{armer}'", near)
        elif armer == name:
            problems.add(place, f"armed_by: '{name}' cannot arm itself")
        elif ring := _ring(name, armed_by):
            chain = " waits for ".join(f"'{other}'" for other in ring)
            problems.add(place, f"armed_by: can never fire, {chain}")


def _ring(start: str, armed_by: dict[str, str]) -> list[str]:
    """The faults that wait for each other, from `start` back to it; empty if it is in no ring."""
    ring = [start]
    while (armer := armed_by.get(ring[-1])) is not None:
        ring.append(armer)
        if armer == start:
            return ring
        if armer in ring[:-1]:
            return []
    return []
