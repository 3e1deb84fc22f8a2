"""How one scalar of the profile language is read: durations, shares, sizes, counts, words.

Takes plain YAML values; gives seconds, fractions, bytes and strings through `Kind`s, whose JSON
Schema takes exactly what `parse` takes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from chaosproxy.core.setting import Invalid, Kind

# Every pattern below means the same to Python and to ECMA 262 (JSON Schema's): ASCII classes only,
# and an end that no trailing newline slips past.
_END: Final = r"(?!\n)$"
# Enough digits for any test, few enough that no sum of them overflows a float or an event loop.
_DECIMAL: Final = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_NOT_ZERO: Final = r"(?=[0-9.]*[1-9])"
_MOST_SECONDS: Final = 999_999_999
#: No name that is known is longer: what is can be no slip, and comparing takes its length times its length.
_LONGEST_WORD: Final = 100
_NONE: Final[Mapping[str, str]] = {}
#: The largest whole number that every JSON reader keeps exact, less a bit.
MOST: Final = 10**15

_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES: Final = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
_SIZE: Final = rf"(?:[0-9]{{1,15}}B|{_DECIMAL}(?:kB|MB|GB|KiB|MiB|GiB))"


def shown(value: object) -> str:
    """A wrong value as its writer knows it, short enough for one line."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return "a list"
        case dict():
            return "a mapping"
        case str() if len(value) > 60:
            return repr(value[:57] + "...")
        case _:
            return repr(value)


def expected(what: str, value: object, suggestion: str = "") -> Invalid:
    """The complaint about one value, in the words every kind uses."""
    return Invalid(f"expected {what}, got {shown(value)}", suggestion=suggestion)


def closest(word: object, known: Iterable[str], meant: Mapping[str, str] = _NONE) -> str:
    """What a misspelt word probably meant, '' if nothing comes near. Case alone is no difference.

    `meant`: what others call some of those that are known.
    """
    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return ""
    by_folded = {name.casefold(): name for name in known}
    folded = word.casefold()
    if (called := meant.get(folded)) in by_folded:
        return by_folded[called]
    near = get_close_matches(folded, by_folded, n=10, cutoff=0.6)
    # Of those alike the one with the fewest slips: GTE is GET with two letters swapped, not GETEX.
    return by_folded[min(near, key=lambda name: _slips(folded, name))] if near else ""


def _slips(one: str, other: str) -> int:
    """How many letters were left out, added, mistaken or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, meant in enumerate(other, 1):
            slips = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != meant))
            if i > 1 and j > 1 and (letter, meant) == (other[j - 2], one[i - 2]):
                slips = min(slips, last[j - 2] + 1)
            row.append(slips)
    return row[-1]


def is_number(value: object) -> bool:
    """Whether YAML meant a number: True and False are ints to Python only."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def pattern(text: str) -> str:
    """A whole-string JSON Schema pattern."""
    return f"^{text}{_END}"


def _duration(name: str, *, positive: bool) -> Kind:
    text = (_NOT_ZERO if positive else "") + f"({_DECIMAL})(us|ms|s|m|h)"
    regex = re.compile(text)
    what = "a duration such as 800ms or 1.5s" + (", longer than 0" if positive else "")

    def parse(value: object) -> float:
        if isinstance(value, str) and (match := regex.fullmatch(value)):
            return float(match[1]) * _SECONDS[match[2]]
        if isinstance(value, int | float) and is_number(value) and value <= _MOST_SECONDS:
            seconds = float(value)
            if seconds > 0 or (seconds == 0 and not positive):
                return seconds
        raise expected(what, value, _respelt(value))

    def _respelt(value: object) -> str:
        """'5 sec' -> '5s': people spell units in many ways, the language in one."""
        if not isinstance(value, str):
            return ""
        spelling = re.fullmatch(rf"\s*({_DECIMAL})\s*([A-Za-zµ]+)\s*", value)
        unit = _SPELLINGS.get(spelling[2].lower()) if spelling else None
        respelt = f"{spelling[1]}{unit}" if spelling and unit else ""
        return respelt if regex.fullmatch(respelt) else ""

    least = {"exclusiveMinimum": 0} if positive else {"minimum": 0}
    return Kind(
        name,
        parse,
        {
            "anyOf": [
                {"type": "string", "pattern": pattern(text)},
                {"type": "number", **least, "maximum": _MOST_SECONDS},
            ]
        },
        unit="us, ms, s, m, h; a bare number is seconds",
    )


_SPELLINGS: Final = {
    "µs": "us", "us": "us", "usec": "us", "microseconds": "us",
    "ms": "ms", "msec": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "h": "h", "hr": "h", "hour": "h", "hours": "h",
}  # fmt: skip


def whole(name: str, what: str, least: int, most: int = MOST) -> Kind:
    """A kind for whole numbers from `least` to `most`; gives int."""

    def parse(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        # JSON knows no difference between 3 and 3.0.
        if isinstance(value, float) and value.is_integer() and least <= value <= most:
            return int(value)
        raise expected(what, value)

    return Kind(name, parse, {"type": "integer", "minimum": least, "maximum": most})


def choice(name: str, *words: str) -> Kind:
    """A kind for one of a closed set of words; gives the word."""
    listed = ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]

    def parse(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        if value is None and "null" in words:
            raise Invalid(f"expected {listed}, got nothing: put null in quotes")
        raise expected(listed, value, closest(value, words))

    return Kind(name, parse, {"enum": list(words)})


def matching(
    name: str, what: str, text: str, read: Callable[[str], Any] = str, unit: str = ""
) -> Kind:
    """A kind for strings that match `text` as a whole; gives what `read` makes of them."""
    regex = re.compile(text)

    def parse(value: object) -> Any:
        if isinstance(value, str) and regex.fullmatch(value):
            return read(value)
        raise expected(what, value)

    return Kind(name, parse, {"type": "string", "pattern": pattern(text)}, unit)


def _share(value: object) -> float:
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return float(value[:-1]) / 100
    if isinstance(value, int | float) and is_number(value) and 0 <= value <= 1:
        return float(value)
    percent = is_number(value) and f"{value}%"
    suggestion = percent if percent and _PERCENT.fullmatch(percent) else ""
    raise expected("a share such as 25% or 0.25", value, suggestion)


_PERCENT: Final = re.compile(r"(?:100(?:\.0{1,9})?|[0-9]{1,2}(?:\.[0-9]{1,9})?)%")


def _bytes(text: str) -> int:
    number, unit = re.match(r"([0-9.]+)(.+)", text).groups()  # type: ignore[union-attr]
    return int(number) if unit == "B" else round(float(number) * _BYTES[unit])


def _size(value: object) -> int:
    if isinstance(value, str):
        return int(_SIZE_TEXT.parse(value))
    try:
        return int(_SIZE_NUMBER.parse(value))
    except Invalid:
        raise expected("a size such as 64KiB, 10kB or 512 (bytes)", value) from None


_SIZE_TEXT: Final = matching("size", "a size such as 64KiB, 10kB or 512B", _SIZE, _bytes)
_SIZE_NUMBER: Final = whole("size", "", 0)


def word(value: object) -> bytes:
    """The bytes of one word of a command, a key or a glob: text, or a whole number as written."""
    if isinstance(value, str):
        # A lone surrogate can come from JSON; it must not crash the loader.
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode()
    if value is None or isinstance(value, bool | float):
        raise Invalid(f"expected text, got {shown(value)}: put it in quotes")
    if isinstance(value, dict) and list(value.values()) == [None]:
        # {key} is a mapping to YAML.
        raise Invalid(f'expected text, got a mapping: put it in quotes, "{{{next(iter(value))}}}"')
    raise expected("text", value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or is_number(value) or isinstance(value, bool):
        raise Invalid(f"expected text, got {shown(value)}: put it in quotes")
    raise expected("text", value)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
    folded = value.casefold() if isinstance(value, str) else ""
    raise expected("true or false", value, meant.get(folded) or closest(value, ("true", "false")))


DURATION: Final = _duration("duration", positive=False)
POSITIVE_DURATION: Final = _duration("duration", positive=True)
SHARE: Final = Kind(
    "share",
    _share,
    {
        "anyOf": [
            {"type": "string", "pattern": pattern(_PERCENT.pattern)},
            {"type": "number", "minimum": 0, "maximum": 1},
        ]
    },
    unit="percent, or a fraction of 1",
)
SIZE: Final = Kind(
    "size", _size, {"anyOf": [_SIZE_TEXT.schema, _SIZE_NUMBER.schema]}, unit="B, kB, KiB, MB, MiB …"
)
RATE: Final = matching(
    "rate",
    "a rate such as 64KiB/s",
    f"{_NOT_ZERO}{_SIZE}/s",
    lambda text: max(1, _bytes(text.removesuffix("/s"))),
    unit="size a second",
)
COUNT: Final = whole("count", "a whole number from 1", 1)
COUNT_OR_ZERO: Final = whole("count", "a whole number from 0", 0)
SIGNED_INT: Final = whole("whole number", "a whole number", -MOST)
DB: Final = whole("database", "a database number from 0", 0, 2**31 - 1)
SEED: Final = whole("seed", f"a whole number from 0 to {MOST}", 0)
NAME: Final = matching(
    "name",
    "a name of letters, digits, - and _ (at most 64)",
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
)
TEXT: Final = Kind("text", _text, {"type": "string"})
WORD: Final = Kind("text", word, {"type": ["string", "integer"]})
FLAG: Final = Kind("flag", _flag, {"type": "boolean"})
