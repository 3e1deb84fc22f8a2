"""What stands around an exchange: its connection, its place in a batch, the command before it, a push in its stead.

Takes plain YAML values; gives small test objects as `Kind`s, as `units` does for the fields that look at the command itself.
"""

from dataclasses import dataclass
from typing import Final

from chaosproxy.core.scalar import NAME, choice, expected, whole
from chaosproxy.core.setting import Kind
from chaosproxy.core.units import COMMANDS, GLOBS, one_or_list, record

STATES: Final = ("transaction", "watching", "subscribed", "blocked")
PUSHES: Final = (
    "message", "pmessage", "smessage", "invalidate", "subscribe", "psubscribe", "ssubscribe", "unsubscribe",
    "punsubscribe", "sunsubscribe", "tracking-redir-broken",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """`nth`: counted from 1 since the profile came into force; `opened_before`, `opened_after`: that fault's first firing.

    `listener`: the name of the listener it came in by.
    """

    nth: int | None = None
    opened_before: str | None = None
    opened_after: str | None = None
    state: str | None = None
    listener: str | None = None


@dataclass(frozen=True, slots=True)
class BatchTest:
    """`index`: the place in a pipeline or transaction, counted from 1; -1 is the last."""

    index: int


@dataclass(frozen=True, slots=True)
class AfterTest:
    """`command`: names or @categories of the command before; `same`: on the same key or the same connection."""

    command: tuple[str, ...]
    same: str = "key"


@dataclass(frozen=True, slots=True)
class PushTest:
    """`kind`: the push's first word, or several; `channel`: globs on the channel it came by, or the keys it is about."""

    kind: tuple[str, ...] = ()
    channel: tuple[bytes, ...] | None = None


def _index(value: object) -> int:
    if value == "last":
        return -1
    if isinstance(value, str):
        raise expected("a place in the batch (a whole number from 1) or last", value)
    number: int = _PLACE.parse(value)
    return number


_PLACE: Final = whole("place", "a place in the batch (a whole number from 1) or last", 1)

CONNECTION: Final = record(
    "{nth: n}, {opened_before: fault}, {opened_after: fault}, {state: word}, {listener: name}",
    "{nth: 2}, {opened_before: fault}, {opened_after: fault}, {state: transaction} or {listener: node-1}",
    {
        "nth": whole("number", "a connection's number (a whole number from 1)", 1),
        "opened_before": NAME,
        "opened_after": NAME,
        "state": choice("state", *STATES),
        "listener": NAME,
    },
    ConnectionTest,
)
BATCH: Final = record(
    "{index: n or last}",
    "{index: 2} or {index: last}",
    {"index": Kind("place", _index, {"anyOf": [_PLACE.schema, {"const": "last"}]})},
    BatchTest,
    required=("index",),
)
AFTER: Final = record(
    "{command: name, same: key or connection}",
    "{command: DEL, same: key}",
    {"command": COMMANDS, "same": choice("same", "key", "connection")},
    AfterTest,
    required=("command",),
)
PUSH: Final = record(
    "{kind: word, channel: glob}",
    "{kind: message, channel: 'chat:*'}",
    {"kind": one_or_list("kind or list of them", choice("kind", *PUSHES)), "channel": GLOBS},
    PushTest,
)
