"""Times to live in requests: where a command carries one, by its syntax, and how it is changed.

Takes a command's arguments; gives them with another time, with none, or None where there is no time to change. An argument
counts by its place in the command's syntax, never by looking like EX: a value, a key or a field may be called EX.

What the server would refuse (two kinds of time, a number that is none, words too many) is left as it is, for the server to
refuse; so is a time of 0 or less, which is no time to live but an order to delete.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Args = Sequence[bytes]
Unit = Literal["s", "ms"]
#: Takes a time in seconds (from now, or since 1970) and whether it is absolute; gives the new one, likewise.
Change = Callable[[float, bool], float]

#: Options that carry a time: its unit, whether it is absolute, the command that sets such a time.
_OPTIONS: Final[dict[bytes, tuple[Unit, bool, bytes]]] = {
    b"EX": ("s", False, b"EXPIRE"),
    b"PX": ("ms", False, b"PEXPIRE"),
    b"EXAT": ("s", True, b"EXPIREAT"),
    b"PXAT": ("ms", True, b"PEXPIREAT"),
}
_MILLI: Final = {b"EX": b"PX", b"EXAT": b"PXAT"}
#: Options that cannot stand beside a time.
_TIMELESS: Final = frozenset({b"KEEPTTL", b"PERSIST"})
#: Commands whose whole point is a time, their second argument: its unit and whether it is absolute.
_EXPIRES: Final[dict[bytes, tuple[Unit, bool]]] = {
    b"EXPIRE": ("s", False),
    b"PEXPIRE": ("ms", False),
    b"EXPIREAT": ("s", True),
    b"PEXPIREAT": ("ms", True),
    b"HEXPIRE": ("s", False),
    b"HPEXPIRE": ("ms", False),
    b"HEXPIREAT": ("s", True),
    b"HPEXPIREAT": ("ms", True),
}
#: Commands that write a value with a time before it.
_SETS: Final[dict[bytes, Unit]] = {b"SETEX": "s", b"PSETEX": "ms"}
_IN_MILLIS: Final = {
    b"SETEX": b"PSETEX",
    **{
        name: name.replace(b"EXPIRE", b"PEXPIRE")
        for name, (unit, _) in _EXPIRES.items()
        if unit == "s"
    },
}
_RESTORES: Final = frozenset({b"RESTORE", b"RESTORE-ASKING"})
#: By command: where its options begin, and how many arguments follow which of them (FIELDS: so many times its count, and one).
_OPTIONAL: Final[dict[bytes, tuple[int, dict[bytes, int]]]] = {
    b"SET": (3, {b"IFEQ": 1, b"IFNE": 1, b"IFDEQ": 1, b"IFDNE": 1}),
    b"GETEX": (2, {}),
    b"HGETEX": (2, {b"FIELDS": 1}),
    b"HSETEX": (2, {b"FIELDS": 2}),
    b"MSETEX": (2, {}),
    b"RESTORE": (4, {b"IDLETIME": 1, b"FREQ": 1}),
    b"RESTORE-ASKING": (4, {b"IDLETIME": 1, b"FREQ": 1}),
}
_NUMBER: Final = re.compile(rb"[1-9][0-9]{0,18}")
#: Milliseconds beyond which the server's sum of now and a time overflows, give or take some centuries.
_OVERFLOW: Final = 2**63 - 2**44
#: No time is made longer than this many milliseconds (some thousand years): servers refuse what is much longer.
_LONGEST: Final = 2**45


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a command carries its time: `index` of the time, `options` before one (repeated, the last one counts)."""

    index: int
    unit: Unit
    absolute: bool
    options: tuple[int, ...] = ()


def find(args: Args) -> Spot | None:
    """Where this command carries a time; None if it carries none, or more than its syntax allows."""
    name = args[0].upper()
    if name in _EXPIRES:
        return Spot(2, *_EXPIRES[name]) if len(args) > 2 else None
    if name in _SETS:
        return Spot(2, _SETS[name], absolute=False) if len(args) == 4 else None
    words = [(index, args[index].upper()) for index in _option_places(name, args)]
    if name in _RESTORES:
        absolute = any(word == b"ABSTTL" for _, word in words)
        return Spot(2, "ms", absolute) if len(args) > 3 else None
    kinds = {word for _, word in words if word in _OPTIONS or word in _TIMELESS}
    if len(kinds) != 1 or kinds <= _TIMELESS:
        return None
    unit, absolute, _ = _OPTIONS[kinds.pop()]
    options = tuple(index for index, word in words if word in _OPTIONS)
    return Spot(options[-1] + 1, unit, absolute, options) if options[-1] + 1 < len(args) else None


def _option_places(name: bytes, args: Args) -> Iterator[int]:
    """The indices at which a command's options stand, between its keys, values, fields and the options' own arguments."""
    if name not in _OPTIONAL:
        return
    index, takes = _OPTIONAL[name]
    if name == b"MSETEX":
        index += 2 * _count(args, 1)
    while index < len(args):
        word = args[index].upper()
        yield index
        if word in _OPTIONS:
            index += 1
        elif word == b"FIELDS" and word in takes:
            index += 1 + takes[word] * _count(args, index + 1)
        else:
            index += takes.get(word, 0)
        index += 1


def _count(args: Args, index: int) -> int:
    """A count of arguments; more than there are for what is none."""
    text = args[index] if index < len(args) else b""
    return int(text) if re.fullmatch(rb"[0-9]{1,9}", text) else len(args)


def _given(args: Args, spot: Spot) -> int | None:
    """The time in milliseconds; None for what is no time to live, and what servers refuse."""
    if not _NUMBER.fullmatch(args[spot.index]):
        return None
    millis = int(args[spot.index]) * (1000 if spot.unit == "s" else 1)
    return millis if millis < _OVERFLOW else None


def left(args: Args, now: float) -> float | None:
    """How long this command lets something live, in seconds; None if it sets no time, or one that is over.

    `now` is seconds since 1970.
    """
    spot = find(args)
    millis = None if spot is None else _given(args, spot)
    if spot is None or millis is None:
        return None
    seconds = millis / 1000 - (now if spot.absolute else 0.0)
    return seconds if seconds > 0 else None


def changed(args: Args, change: Change) -> tuple[bytes, ...] | None:
    """The request with another time, in milliseconds where that is finer; None if it carries none that can be changed.

    A time never becomes 0 or less: that would be another command's meaning (an error, or a deletion).
    """
    spot = find(args)
    given = None if spot is None else _given(args, spot)
    if spot is None or given is None:
        return None
    seconds = change(given / 1000, spot.absolute)
    if seconds == given / 1000:
        return tuple(args)
    millis = min(max(1, round(seconds * 1000)), max(given, _LONGEST))
    new = list(args)
    fine = spot.unit == "s" and millis % 1000 != 0
    new[spot.index] = b"%d" % (millis // 1000 if spot.unit == "s" and not fine else millis)
    if fine and spot.options:
        new[spot.options[-1]] = _MILLI[args[spot.options[-1]].upper()]
    elif fine:
        new[0] = _IN_MILLIS[args[0].upper()]
    return _without(new, spot.options[:-1])


def _without(args: Sequence[bytes], options: Sequence[int]) -> tuple[bytes, ...]:
    """The request without these options and their times."""
    gone = {place for index in options for place in (index, index + 1)}
    return tuple(arg for index, arg in enumerate(args) if index not in gone)


def stripped(args: Args) -> tuple[bytes, ...] | None:
    """The request without its time or its KEEPTTL, so that the key lives for ever; None if there is nothing to strip.

    Not for EXPIRE and its family: without a time nothing of them is left.
    """
    name = args[0].upper()
    places = [
        index
        for index in _option_places(name, args)
        if args[index].upper() in _OPTIONS or args[index].upper() in _TIMELESS
    ]
    if places and {args[index].upper() for index in places} == {b"KEEPTTL"}:
        return tuple(arg for index, arg in enumerate(args) if index not in places)
    spot = find(args)
    if spot is None or name in _EXPIRES or _given(args, spot) is None:
        return None
    if name in _SETS:
        return (b"SET", args[1], args[3])
    if name in _RESTORES:
        words = [index for index in _option_places(name, args) if args[index].upper() == b"ABSTTL"]
        kept = (arg for index, arg in enumerate(args) if index > 2 and index not in words)
        return (*args[:2], b"0", *kept)
    return _without(args, spot.options)


def may_carry(name: bytes, *, absolute: bool = False) -> bool:
    """Whether a command of this name can carry a time at all, or an absolute one: never where its syntax has no place for it."""
    if name in _OPTIONAL:
        return True
    if name in _SETS:
        return not absolute
    return name in _EXPIRES and (_EXPIRES[name][1] or not absolute)


def may_renew(name: bytes) -> bool:
    """Whether a command of this name can make live longer what has a time, and is not one that writes anew."""
    return may_carry(name) and name not in _RESTORES | {b"HSETEX", b"MSETEX"}


def is_expire(args: Args) -> bool:
    """Whether a command does nothing but set a time: EXPIRE and its family, for keys and for a hash's fields."""
    return args[0].upper() in _EXPIRES


def renews_key(args: Args) -> bool:
    """Whether a command sets one key's time beside what else it does: SET and its kin, GETEX."""
    return writes_value(args) or args[0].upper() == b"GETEX"


def writes_value(args: Args) -> bool:
    """Whether a command writes one key's value and its time at once: SET and its kin."""
    return args[0].upper() in (b"SET", *_SETS)


def limited(args: Args, seconds: float) -> tuple[bytes, ...]:
    """A SET, SETEX or PSETEX that has a time, with this one from now instead."""
    millis = b"%d" % max(1, round(seconds * 1000))
    spot = find(args)
    if spot is None or not spot.options:
        return (b"PSETEX", args[1], millis, *args[3:])
    return (*_without(args, spot.options), b"PX", millis)


def never_longer(args: Args) -> tuple[bytes, ...] | None:
    """What of EXPIRE, HEXPIRE and HGETEX makes nothing live longer, as a command of its own; () if nothing of it.

    None where the command lengthens nothing as it is, and for all others. For servers that know LT (7.0). (GETEX has no such
    part: EXPIRE would do it to keys of any type.)
    """
    name = args[0].upper()
    spot = find(args)
    if spot is None:
        return None
    if name == b"HGETEX":
        command = b"H" + _OPTIONS[args[spot.options[-1]].upper()][2]
        return (command, args[1], args[spot.index], b"LT", *_without(args, spot.options)[2:])
    if name not in _EXPIRES:
        return None
    fields = name.startswith(b"H")
    words = {arg.upper() for arg in (args[3:4] if fields else args[3:])}
    if words & {b"NX", b"LT"}:
        return None
    if b"GT" in words or (b"XX" in words and fields):
        return ()
    return (*args[:3], b"LT", *args[3:])
