"""Times to live in requests: where a command carries one, by its syntax, and how it is changed.

Takes a command's arguments; gives them with other times, with none, or None where there is no time to change. An argument counts
by its place in the command's syntax, never by looking like EX: a value, a key or a field may be called EX.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Args = Sequence[bytes]
#: Options of SET and its like that carry a time: seconds or milliseconds, from now or since 1970.
_OPTIONS: Final = {
    b"EX": ("s", "relative"),
    b"PX": ("ms", "relative"),
    b"EXAT": ("s", "absolute"),
    b"PXAT": ("ms", "absolute"),
}
_MILLI: Final = {b"EX": b"PX", b"EXAT": b"PXAT"}
#: Words of SET that stand alone: an option behind them is looked for, anything else ends the syntax.
_SET_WORDS: Final = frozenset({b"NX", b"XX", b"GET", b"KEEPTTL"})
_SET_VALUES: Final = frozenset({b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE"})
#: Commands whose whole point is a time: name -> (index of the time, unit, kind, the same in milliseconds).
_EXPIRES: Final = {
    b"EXPIRE": (2, "s", "relative", b"PEXPIRE"),
    b"PEXPIRE": (2, "ms", "relative", b"PEXPIRE"),
    b"EXPIREAT": (2, "s", "absolute", b"PEXPIREAT"),
    b"PEXPIREAT": (2, "ms", "absolute", b"PEXPIREAT"),
    b"HEXPIRE": (2, "s", "relative", b"HPEXPIRE"),
    b"HPEXPIRE": (2, "ms", "relative", b"HPEXPIRE"),
    b"HEXPIREAT": (2, "s", "absolute", b"HPEXPIREAT"),
    b"HPEXPIREAT": (2, "ms", "absolute", b"HPEXPIREAT"),
}
_SETS: Final = {
    b"SETEX": (2, "s", b"PSETEX"),
    b"PSETEX": (2, "ms", b"PSETEX"),
}

Unit = Literal["s", "ms"]
#: Takes a time in seconds (how long from now, or since 1970) and whether it is absolute; gives the new one, likewise.
Change = Callable[[float, bool], float]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a command carries its time: the index of the time, and of the option before it (-1: the command itself)."""

    index: int
    unit: str
    absolute: bool
    option: int = -1


def renews(name: bytes) -> bool:
    """Whether a command does nothing but set a time: EXPIRE and its family."""
    return name.upper() in _EXPIRES


def find(args: Args) -> Spot | None:
    """Where this command carries a time; None if it carries none."""
    name = args[0].upper()
    if name in _EXPIRES:
        index, unit, kind, _ = _EXPIRES[name]
        return Spot(index, unit, kind == "absolute") if len(args) > index else None
    if name in _SETS:
        index, unit, _ = _SETS[name]
        return Spot(index, unit, absolute=False) if len(args) > 3 else None
    if name == b"RESTORE":
        return _find_restore(args)
    option = _find_option(name, args)
    if option < 0 or option + 1 >= len(args):
        return None
    unit, kind = _OPTIONS[args[option].upper()]
    return Spot(option + 1, unit, kind == "absolute", option)


def _find_restore(args: Args) -> Spot | None:
    """RESTORE key ttl value [REPLACE] [ABSTTL] [IDLETIME n] [FREQ n]; a ttl of 0 is none."""
    if len(args) < 4 or args[2] == b"0":
        return None
    return Spot(2, "ms", absolute=any(word.upper() == b"ABSTTL" for word in args[4:]))


def _find_option(name: bytes, args: Args) -> int:
    """The index of EX, PX, EXAT or PXAT among the options; -1 if there is none."""
    match name:
        case b"SET":
            start, stop = 3, len(args)
        case b"GETEX":
            start, stop = 2, len(args)
        case b"HGETEX" | b"HSETEX":
            # Options come before FIELDS; names and values come behind it.
            fields = [i for i, word in enumerate(args) if i >= 2 and word.upper() == b"FIELDS"]
            start, stop = 2, fields[0] if fields else len(args)
        case b"MSETEX":
            start, stop = 2 + 2 * _count(args, 1), len(args)
        case _:
            return -1
    index = start
    while index < stop:
        word = args[index].upper()
        if word in _OPTIONS:
            return index
        index += 2 if word in _SET_VALUES else 1
    return -1


def _count(args: Args, index: int) -> int:
    try:
        return max(0, int(args[index]))
    except (IndexError, ValueError):
        return len(args)


def changed(args: Args, change: Change) -> tuple[bytes, ...] | None:
    """The request with another time, in milliseconds where that is finer; None if it carries none that is a number.

    A time never becomes 0 or less: that would be another command's meaning (an error, or a delete).
    """
    spot = find(args)
    if spot is None:
        return None
    try:
        given = int(args[spot.index])
    except ValueError:
        return None
    if given <= 0:
        return None
    seconds = change(given / 1000 if spot.unit == "ms" else float(given), spot.absolute)
    new = list(args)
    millis = max(1, round(seconds * 1000))
    if spot.unit == "s" and millis % 1000 == 0:
        new[spot.index] = b"%d" % (millis // 1000)
        return tuple(new)
    new[spot.index] = b"%d" % millis
    if spot.option >= 0:
        word = args[spot.option].upper()
        new[spot.option] = _MILLI.get(word, args[spot.option])
    elif args[0].upper() in _EXPIRES:
        new[0] = _EXPIRES[args[0].upper()][3]
    elif args[0].upper() in _SETS:
        new[0] = _SETS[args[0].upper()][2]
    return tuple(new)


def stripped(args: Args) -> tuple[bytes, ...] | None:
    """The request without its time, so that the key lives for ever; None if there is none to strip.

    Not for EXPIRE and its family: without a time nothing of them is left.
    """
    name = args[0].upper()
    spot = find(args)
    if name == b"SET":
        keep = [i for i in range(3, len(args)) if args[i].upper() == b"KEEPTTL"]
        if spot is None and not keep:
            return None
        gone = {*keep, *((spot.option, spot.index) if spot is not None else ())}
        return tuple(arg for i, arg in enumerate(args) if i not in gone)
    if spot is None or name in _EXPIRES:
        return None
    if name in _SETS:
        return (b"SET", args[1], args[3])
    if name == b"RESTORE":
        return (*args[:2], b"0", *(arg for arg in args[3:] if arg.upper() != b"ABSTTL"))
    return tuple(arg for i, arg in enumerate(args) if i not in (spot.option, spot.index))
