"""Toxiproxy's toxics as faults: what each means for a Redis conversation.

Takes a toxic as Toxiproxy's clients send it; gives entries of `faults:` for one listener, or raises ToxicError.

Toxiproxy sees bytes, chaosproxy commands, so a toxic acts on whole exchanges: upstream before Redis sees the command,
downstream once Redis has applied it. Any of chaosproxy's faults is a type too; its attributes are the fault's fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chaosproxy import faults

Entry = dict[str, Any]
#: What every toxic is about: all commands, and those with which a connection begins.
_EVERYTHING: Final[tuple[Entry, ...]] = ({}, {"commands": "@handshake"})


class ToxicError(ValueError):
    """A toxic that is none, or has no counterpart; the text says which part of it."""


@dataclass(frozen=True, slots=True)
class Toxic:
    """One toxic. `toxicity` is the share of exchanges it acts on, `attributes` numbers by name, or a fault's fields."""

    name: str
    type: str
    stream: str
    toxicity: float
    attributes: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As Toxiproxy tells it."""
        return {
            "attributes": dict(self.attributes),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }

    @property
    def up(self) -> bool:
        """Whether it is about requests."""
        return self.stream == "upstream"

    def number(self, name: str) -> int:
        """One of Toxiproxy's attributes."""
        return int(self.attributes[name])


def read_toxic(body: Mapping[str, Any], old: Toxic | None = None) -> Toxic:
    """Read a new toxic, or what an update changes of an old one. Raises ToxicError."""
    if old is None:
        kind, stream = body.get("type", ""), body.get("stream") or "downstream"
        if not isinstance(kind, str) or (kind not in _TOXICS and kind not in faults.names()):
            known = ", ".join((*_TOXICS, *sorted(set(faults.names()) - set(_TOXICS))))
            raise ToxicError(f"invalid toxic type: {kind!r:.60}; there are {known}")
        if stream not in ("upstream", "downstream"):
            raise ToxicError("stream was invalid, can be either upstream or downstream")
        name = body.get("name") or f"{kind}_{stream}"
        if not (isinstance(name, str) and len(name) <= 100):
            raise ToxicError("name: expected up to 100 characters")
        old = Toxic(name, kind, stream, 1.0, _defaults(kind))
    toxicity = body.get("toxicity", old.toxicity)
    if not _is_number(toxicity) or not 0 <= toxicity <= 1:
        raise ToxicError(f"toxicity: expected a number from 0 to 1, got {toxicity!r:.60}")
    given = body.get("attributes") or {}
    if not isinstance(given, dict):
        raise ToxicError("attributes: expected an object")
    toxic = Toxic(old.name, old.type, old.stream, toxicity, {**old.attributes, **given})
    if toxic.type in _TOXICS:
        _check_numbers(toxic)
    return toxic


def faults_of(toxic: Toxic, listener: str, name: str) -> list[Entry]:
    """Give the entries for a listener; `name` begins their names. Raises ToxicError for what has no counterpart."""
    make = _TOXICS.get(toxic.type)
    entries = [_own(toxic)] if make is None else make[1](toxic)
    for number, entry in enumerate(entries):
        entry["name"] = name if not number else f"{name}-{number + 1}"
        match = entry["match"] = _fields_of(entry, "match")
        if entry["fault"] == "admit":
            match.pop("commands", None)
        match["connection"] = {"listener": listener}
        if toxic.toxicity < 1:
            entry["when"] = _fields_of(entry, "when") | {"chance": toxic.toxicity}
    return entries


def _fields_of(entry: Entry, part: str) -> Entry:
    """A fault's `match` or `when`, which are its toxic's attributes."""
    given = entry.get(part) or {}
    if not isinstance(given, dict):
        raise ToxicError(f"{part}: expected an object, got {given!r:.60}")
    return dict(given)


def _own(toxic: Toxic) -> Entry:
    """One of chaosproxy's faults, with its fields as they are."""
    return {**toxic.attributes, "fault": toxic.type}


def _latency(toxic: Toxic) -> list[Entry]:
    """Every request, or every reply, waits."""
    delay, jitter = toxic.number("latency"), toxic.number("jitter")
    if not (delay or jitter):
        return []
    least, most = f"{max(0, delay - jitter)}ms", f"{delay + jitter}ms"
    taken = f"{delay}ms" if not jitter else {"uniform": [least, most]}
    return _each({"fault": "latency", "at": _at(toxic), "delay": taken})


def _bandwidth(toxic: Toxic) -> list[Entry]:
    """So many KB/s; 0: nothing passes."""
    direction = "to_upstream" if toxic.up else "to_client"
    if not toxic.number("rate"):
        return _silence(direction)
    rate = f"{toxic.number('rate') * 1000}B/s"
    return _each({"fault": "bandwidth", "rate": rate, "direction": direction})


def _silence(direction: str) -> list[Entry]:
    entry = {"fault": "blackhole", "what": "connection", "direction": direction}
    return _each(entry | {"at": "before_forward"})


def _timeout(toxic: Toxic) -> list[Entry]:
    """Nothing passes, and after `timeout` ms the connection is closed; 0: it stays open."""
    if not toxic.number("timeout"):
        return _silence("to_upstream" if toxic.up else "to_client")
    return _cut_after(toxic, "close")


def _reset_peer(toxic: Toxic) -> list[Entry]:
    """After `timeout` ms the connection is reset: a new one from when it is made, an old one from its next command."""
    wait = toxic.number("timeout")
    newcomers: Entry = {"fault": "admit", "new_connections": "reset"}
    if wait:
        newcomers["delay"] = f"{wait}ms"
    return [newcomers, *_cut_after(toxic, "reset")]


def _cut_after(toxic: Toxic, how: str) -> list[Entry]:
    wait, at = toxic.number("timeout"), _at(toxic)
    waits = _each({"fault": "latency", "at": at, "delay": f"{wait}ms"}) if wait else []
    return waits + _each({"fault": "disconnect", "at": at, "how": how})


def _slow_close(toxic: Toxic) -> list[Entry]:
    """A Redis connection is closed in order by QUIT: that waits, its request or its reply, and with it the end."""
    if not toxic.number("delay"):
        return []
    entry = {"fault": "latency", "at": _at(toxic), "delay": f"{toxic.number('delay')}ms"}
    return [entry | {"match": {"commands": "QUIT"}}]


def _slicer(toxic: Toxic) -> list[Entry]:
    """Replies come in pieces of `average_size` bytes (none larger or smaller), `delay` µs between them."""
    if toxic.up:
        raise ToxicError("slicer: stream downstream only, requests are not sliced")
    if not toxic.number("average_size"):
        raise ToxicError("average_size: expected a number of bytes")
    gap = f"{toxic.number('delay')}us"
    return _each({"fault": "slice", "size": toxic.number("average_size"), "gap": gap})


def _limit_data(toxic: Toxic) -> list[Entry]:
    """A reply larger than so many bytes is cut there, and the connection closed; each reply counts by itself."""
    if toxic.up:
        raise ToxicError("limit_data: stream downstream only, requests are not cut")
    most = toxic.number("bytes")
    if not most:
        return _each({"fault": "disconnect", "at": "after_apply", "how": "close"})
    entry = {"fault": "disconnect", "at": "mid_reply", "how": "close", "bytes": most}
    return _each(entry, reply={"larger_than": most})


#: Toxiproxy's types: their attributes, and what they are here.
_TOXICS: Final[dict[str, tuple[tuple[str, ...], Callable[[Toxic], list[Entry]]]]] = {
    "latency": (("latency", "jitter"), _latency),
    "bandwidth": (("rate",), _bandwidth),
    "slow_close": (("delay",), _slow_close),
    "timeout": (("timeout",), _timeout),
    "reset_peer": (("timeout",), _reset_peer),
    "slicer": (("average_size", "size_variation", "delay"), _slicer),
    "limit_data": (("bytes",), _limit_data),
}


def _each(entry: Entry, **match: Any) -> list[Entry]:
    return [{**entry, "match": {**part, **match}} for part in _EVERYTHING]


def _at(toxic: Toxic) -> str:
    return "before_forward" if toxic.up else "after_apply"


def _defaults(kind: str) -> dict[str, Any]:
    return dict.fromkeys(_TOXICS[kind][0], 0) if kind in _TOXICS else {}


def _check_numbers(toxic: Toxic) -> None:
    known = _TOXICS[toxic.type][0]
    for name, value in toxic.attributes.items():
        if name not in known:
            raise ToxicError(f"unknown attribute {name!r:.60}: {toxic.type} has {', '.join(known)}")
        if not _is_number(value) or not 0 <= value <= 10**9 or value != int(value):
            raise ToxicError(f"{name}: expected a whole number from 0, got {value!r:.60}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
