"""Durations, shares, sizes, globs: how a value of the profile language is read.

Takes plain YAML values; gives seconds, fractions, bytes and small test objects as `Kind`s, each
with its JSON Schema.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chaosproxy.core.glob import LONGEST
from chaosproxy.core.scalar import (
    COUNT,
    COUNT_OR_ZERO,
    DB,
    DURATION,
    FLAG,
    NAME,
    POSITIVE_DURATION,
    RATE,
    SEED,
    SHARE,
    SIGNED_INT,
    SIZE,
    TEXT,
    WORD,
    choice,
    closest,
    expected,
    matching,
    pattern,
    whole,
)
from chaosproxy.core.setting import Invalid, Kind, parse_each

__all__ = [
    "ARGUMENTS",
    "CLIENTS",
    "COMMANDS",
    "COMMAND_LIST",
    "COUNT",
    "COUNT_OR_ZERO",
    "DB",
    "DURATION",
    "FLAG",
    "GLOBS",
    "NAME",
    "ORDINALS",
    "POSITIVE_DURATION",
    "RATE",
    "REPLY",
    "REPLY_TYPES",
    "SEED",
    "SHARE",
    "SIGNED_INT",
    "SIZE",
    "SLOTS",
    "TEXT",
    "WORD",
    "ArgumentTest",
    "ClientTest",
    "Invalid",
    "Kind",
    "ReplyTest",
    "choice",
    "closest",
    "record",
    "whole",
]


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """`has`: a whole token in any case; `contains`: a byte substring.

    Of any argument that is not a key.
    """

    has: bytes | None = None
    contains: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClientTest:
    """Globs on the client's name (b"" holds for those without one), or on its address (no port)."""

    name: bytes | None = None
    address: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReplyTest:
    """What a reply must be.

    `error`: prefix of an error; `type`: one of REPLY_TYPES; `larger_than`: bytes of the whole
    reply on the wire.
    """

    error: bytes | None = None
    type: str | None = None
    larger_than: int | None = None


#: The types of a reply, in the protocol specification's words; `error` is both of its errors.
REPLY_TYPES: Final = (
    "simple", "error", "integer", "bulk", "array", "null", "boolean", "double", "big_number",
    "verbatim", "map", "set",
)  # fmt: skip


def record(
    name: str,
    what: str,
    fields: Mapping[str, Kind],
    make: Callable[..., Any],
    required: tuple[str, ...] = (),
) -> Kind:
    """A kind for a mapping with these fields: at least one, and all of `required`.

    Gives what `make` makes of the parsed fields, given by name.
    """

    def parse_part(key: str, part: object) -> Any:
        if key not in fields:
            near = closest(key, fields)
            raise Invalid(f"unknown field '{key}', expected {what}", suggestion=near, at_key=True)
        return fields[key].parse(part)

    def parse(value: object) -> Any:
        if not isinstance(value, dict) or not value:
            raise expected(what, value or None)
        parsed = dict(zip(value, parse_each(parse_part, value.items()), strict=True))
        for key in required:
            if key not in parsed:
                raise Invalid(f"'{key}' is missing, expected {what}")
        return make(**parsed)

    return Kind(
        name,
        parse,
        {
            "type": "object",
            "properties": {key: dict(kind.schema) for key, kind in fields.items()},
            "required": list(required),
            "minProperties": 1,
            "additionalProperties": False,
        },
    )


def one_or_list(name: str, item: Kind, make: Callable[[tuple[Any, ...]], Any] = tuple) -> Kind:
    """A kind for one value or a list of at least one; gives what `make` makes of the tuple."""

    def parse(value: object) -> Any:
        if not isinstance(value, list):
            return make((item.parse(value),))
        if not value:
            raise Invalid(f"expected at least one {item.name}, got an empty list")
        return make(tuple(_items(item, value)))

    return Kind(
        name,
        parse,
        {"anyOf": [item.schema, {"type": "array", "items": item.schema, "minItems": 1}]},
        item.unit,
    )


def _items(item: Kind, values: list[object]) -> list[Any]:
    return parse_each(lambda _, value: item.parse(value), enumerate(values))


def _command(value: object) -> str:
    """`config|set` -> `CONFIG|SET`, `@List` -> `@list`."""
    if isinstance(value, str):
        if _COMMAND.fullmatch(value):
            return value.lower() if value.startswith("@") else value.upper()
        words = value.replace(",", " ").split()
        joined = "|".join(words)
        if len(words) == 2 and words[0].upper() in _CONTAINERS and _COMMAND.fullmatch(joined):
            raise expected("a command, CONFIG|SET or @category", value, joined)
        if len(words) > 1 and all(
            re.match(r"[@A-Za-z]", each) and _COMMAND.fullmatch(each) for each in words
        ):
            listed = f"[{', '.join(words)}]"
            raise expected("a command, CONFIG|SET or @category", value, listed)
    raise expected("a command, CONFIG|SET or @category", value)


# Modules name their commands as they like; no name can hold a space, and @ and | have a meaning.
_NAME_BYTES: Final = r"[!-?A-{}~]{1,128}"
_COMMAND: Final = re.compile(rf"(?:@[A-Za-z0-9_-]{{1,64}}|{_NAME_BYTES}(?:\|{_NAME_BYTES})?)")

#: Commands of which the second word is a part.
_CONTAINERS: Final = frozenset(
    ("ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB",
     "SCRIPT", "SLOWLOG", "XGROUP", "XINFO")
)  # fmt: skip

_TEXT: Final = Kind(
    "text",
    lambda value: WORD.parse(value) or _refuse_empty("some text"),
    {"type": ["string", "integer"], "minLength": 1},
)


def _glob(text: bytes) -> bytes:
    if len(text) > LONGEST:
        raise Invalid(f"expected a glob of at most {LONGEST} bytes, got {len(text)}")
    return text


_GLOB: Final = Kind(
    "glob",
    lambda value: _glob(WORD.parse(value) or _refuse_empty("a glob such as chat:*")),
    {**_TEXT.schema, "maxLength": LONGEST},
)


def _refuse_empty(what: str) -> bytes:
    raise expected(what, "")


_SLOT: Final = r"(?:16383|1638[0-2]|163[0-7][0-9]|16[0-2][0-9]{2}|1[0-5][0-9]{3}|[0-9]{1,4})"
_SLOT_WHAT: Final = "a hash slot (0 to 16383) or a range such as 0-4095"
_SLOT_RANGE: Final = matching("slots", _SLOT_WHAT, f"{_SLOT}-{_SLOT}")
_SLOT_NUMBER: Final = whole("slots", _SLOT_WHAT, 0, 16383)


def _slot(value: object) -> tuple[int, int]:
    if not isinstance(value, str):
        number = _SLOT_NUMBER.parse(value)
        return number, number
    first, last = (int(end) for end in _SLOT_RANGE.parse(value).split("-"))
    if first > last:
        raise Invalid(f"the range {value} is empty", suggestion=f"{last}-{first}")
    return first, last


def _words(value: object) -> tuple[bytes, ...]:
    if not isinstance(value, list) or not value:
        raise expected("a command as a list of words such as [SCRIPT, FLUSH]", value)
    return tuple(_items(WORD, value))


def _command_list(value: object) -> tuple[tuple[bytes, ...], ...]:
    if not isinstance(value, list) or not value:
        raise expected("a list of commands such as [[SCRIPT, FLUSH]]", value)
    return tuple(_items(Kind("command", _words, {}), value))


COMMANDS: Final = one_or_list(
    "command or list of them",
    Kind("command", _command, {"type": "string", "pattern": pattern(_COMMAND.pattern)}),
)
GLOBS: Final = one_or_list("glob or list of them", _GLOB)
SLOTS: Final = one_or_list(
    "slot, range or list of them",
    Kind("slot", _slot, {"anyOf": [_SLOT_RANGE.schema, _SLOT_NUMBER.schema]}),
)
ORDINALS: Final = one_or_list(
    "match number or list of them",
    whole("match number", "a match number (a whole number from 1)", 1),
    lambda numbers: tuple(sorted(set(numbers))),
)
ARGUMENTS: Final = record(
    "{has: token}, {contains: text}",
    "{has: NX} or {contains: DONE}",
    {
        "has": Kind("token", _TEXT.parse, _TEXT.schema),
        "contains": Kind("text", _TEXT.parse, _TEXT.schema),
    },
    ArgumentTest,
)
#: A client may have no name.
_NAME: Final = Kind(
    WORD.name, lambda value: _glob(WORD.parse(value)), {**WORD.schema, "maxLength": LONGEST}
)
_CLIENT_RECORD: Final = record(
    "client",
    "a glob on the name, or {address: 10.0.0.*}",
    {"name": _NAME, "address": _GLOB},
    ClientTest,
)
CLIENTS: Final = Kind(
    "glob, {address: glob}",
    lambda value: (
        _CLIENT_RECORD.parse(value) if isinstance(value, dict) else ClientTest(_NAME.parse(value))
    ),
    {"anyOf": [_NAME.schema, _CLIENT_RECORD.schema]},
)
REPLY: Final = record(
    "{error: prefix}, {type: word}, {larger_than: size}",
    "{error: WRONGTYPE}, {type: array} or {larger_than: 64KiB}",
    {
        "error": Kind("text", _GLOB.parse, _GLOB.schema),
        "type": choice("type", *REPLY_TYPES),
        "larger_than": SIZE,
    },
    ReplyTest,
)
COMMAND_LIST: Final = Kind(
    "list of commands",
    _command_list,
    {
        "type": "array",
        "minItems": 1,
        "items": {"type": "array", "minItems": 1, "items": WORD.schema},
    },
)
