"""A profile once it is read: rules made of a fault, a match, a when and a position.

Takes the settings declared here (the loader fills them from YAML); gives frozen data for the engine.
"""

from dataclasses import dataclass

from chaosproxy.core import circumstances, units
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import Fault
from chaosproxy.core.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which exchanges: every field given must hold."""

    commands: tuple[str, ...] | None = setting(
        units.COMMANDS,
        "Command names in any case, CONFIG|SET for a subcommand, @category (@read, @write, @list …), @flag of the "
        "command table (@denyoom, @readonly …), or @handshake (HELLO, AUTH, CLIENT, SELECT, INFO and COMMAND sent before the first "
        "other command). Left out: everything except @handshake.",
        default=None,
    )
    keys: tuple[bytes, ...] | None = setting(
        units.GLOBS,
        "Redis glob or a list of them; holds if any key of the command matches one. Keys are found by the server's key specs.",
        default=None,
    )
    key_share: float | None = setting(
        units.SHARE,
        "A stable share of all keys, chosen by a hash of seed, fault name and key.",
        default=None,
    )
    slots: tuple[tuple[int, int], ...] | None = setting(
        units.SLOTS,
        "Cluster hash slots: 7, 0-4095, or a list; holds if any key of the command is in one.",
        default=None,
    )
    arguments: "units.ArgumentTest | None" = setting(
        units.ARGUMENTS,
        "Of any argument that is not a key: {has: NX} a whole token in any case, {contains: DONE} a byte substring.",
        default=None,
    )
    db: int | None = setting(units.DB, "The connection's selected database.", default=None)
    clients: "units.ClientTest | None" = setting(
        units.CLIENTS,
        "Glob on the name set by CLIENT SETNAME or HELLO SETNAME, or {address: 10.0.0.*}.",
        default=None,
    )
    connection: "circumstances.ConnectionTest | None" = setting(
        circumstances.CONNECTION,
        "{nth: 2} counted from 1 since the profile came into force; {opened_before: fault} or {opened_after: fault}: opened "
        "before or after that fault first fired (never, as long as it has not); {state: transaction | watching | "
        "subscribed | blocked}: what it is in as the command comes, so no WATCH makes its own watching, and blocked is what comes "
        "behind a BLPOP that still waits; {listener: node-1}: it came in by the listener of that name (redis where there is one only).",
        default=None,
    )
    batch: "circumstances.BatchTest | None" = setting(
        circumstances.BATCH,
        "{index: 2} or {index: last}: the place in a transaction (of the commands between MULTI and EXEC) or else in a "
        "pipeline (of the commands sent while an earlier one was unanswered). The last is the one behind which nothing has "
        "arrived yet, or EXEC.",
        default=None,
    )
    after: "circumstances.AfterTest | None" = setting(
        circumstances.AFTER,
        "{command: DEL, same: key}: the command that came before it on the same key (of any connection), or with {same: "
        "connection} on the same connection, was that one.",
        default=None,
    )
    push: "circumstances.PushTest | None" = setting(
        circumstances.PUSH,
        "Frames nobody asked for instead of exchanges: {kind: message} or a list of kinds, {channel: 'chat:*'} (of "
        "invalidations the keys). Matches count those frames; confirmations of (un)subscriptions only if their kind is named.",
        default=None,
    )
    reply: "units.ReplyTest | None" = setting(
        units.REPLY,
        "What the server answered: {error: WRONGTYPE} prefix of an error, {type: array}, {larger_than: 64KiB}. "
        "Only at after_apply and later.",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Which of the matching ones."""

    nth: tuple[int, ...] | None = setting(
        units.ORDINALS, "These matches, counted from 1 (after `skip`): 3 or [1, 4].", default=None
    )
    first: int | None = setting(
        units.COUNT, "Only the first N matches (after `skip`).", default=None
    )
    skip: int = setting(units.COUNT_OR_ZERO, "Ignore the first N matches.", default=0)
    every: int | None = setting(
        units.COUNT, "Every Kth match (after `skip`): the Kth, the 2Kth …", default=None
    )
    limit: int | None = setting(units.COUNT, "Fire at most N times.", default=None)
    per: str = setting(
        units.choice("per", "fault", "key", "connection"),
        "What nth, first, skip, every and limit count over. For a command with several keys `key` is the first that matches.",
        default="fault",
    )
    chance: float | None = setting(
        units.SHARE,
        "Rolled for each match from a stream keyed by seed, fault name, the `per` value and the match number.",
        default=None,
    )
    from_: float | None = setting(
        units.DURATION,
        "Matches earlier than this after the profile came into force do not count.",
        default=None,
        name="from",
    )
    until: float | None = setting(
        units.DURATION,
        "Matches later than this after the profile came into force do not count.",
        default=None,
    )
    armed_by: str | None = setting(
        units.NAME, "Another fault's name: counts start once that one has fired.", default=None
    )
    trigger: str | None = setting(
        units.choice("trigger", "manual"),
        "manual: fires only on request (`chaosproxy trigger`, the control API, the pytest fixture): on its next match, once for "
        "each request. A fault that lasts (admit.for, admit.next) begins at the request instead.",
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `faults:`; `line` is where it stands in its file (from 1, 0: nowhere)."""

    name: str
    fault: Fault
    match: Match
    when: When
    at: Position
    line: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile. `source` is its YAML as read (several joined by `---`), `sha256` the hex digest of that."""

    name: str
    description: str
    healthy: str
    seed: int | None
    rules: tuple[Rule, ...]
    source: str
    sha256: str

    def on_standby(self, *, needed: bool = False) -> list[str]:
        """Give the names of the rules that use a standby, or (`needed`) can do nothing without one."""
        wanted = ("needs",) if needed else ("needs", "uses")
        return [rule.name for rule in self.rules if rule.fault.standby in wanted]
