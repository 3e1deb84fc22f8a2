"""What each command is: arity, flags, ACL categories, key specs and the shape of its reply.

Takes a server's decoded COMMAND reply or the table that ships with the package; gives CommandSpecs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from chaosproxy.core import key_spec
from chaosproxy.core.key_spec import BeginIndex, FindRange, KeySpec

__all__ = ["CommandSpec", "CommandTable", "KeySpec"]


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command or subcommand, as COMMAND describes it.

    `name` is upper case, `CONFIG|SET` for a subcommand. `arity` counts the name; negative: at least
    so many. `flags` are COMMAND's (write, readonly, denyoom, blocking …), `categories` the ACL's
    without the @. `reply` is the shape of a write's successful reply and `miss` what the command
    answers for absent keys, both in the code of `reply_shape`; '' where that is not known.
    """

    name: str
    arity: int
    flags: frozenset[str]
    categories: frozenset[str]
    key_specs: tuple[KeySpec, ...]
    reply: str = ""
    miss: str = ""
    single_key: int = field(init=False, repr=False, compare=False)
    is_write: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out once what is asked for every command that passes."""
        object.__setattr__(self, "single_key", key_spec.single_position(self.key_specs))
        # Scripts and functions carry neither flag: what they do to their keys is told only by the
        # key specs. PFCOUNT is read-only and has an RW key all the same.
        object.__setattr__(
            self,
            "is_write",
            "write" in self.flags
            or ("readonly" not in self.flags and any(spec.writes for spec in self.key_specs)),
        )

    def takes(self, count: int) -> bool:
        """Whether the command may have so many arguments, its name counted."""
        return count == self.arity if self.arity > 0 else count >= -self.arity


_T = TypeVar("_T")
_Entry = tuple[CommandSpec, Mapping[bytes, CommandSpec]]

# Their key specs say `unknown` or `incomplete`: the keys depend on words among the arguments.
_BY_CODE = {
    "SORT": key_spec.sort_positions,
    "MIGRATE": key_spec.migrate_positions,
}


#: Modules tell of fewer keys than these have.
_ALL_KEYS = {
    "JSON.MGET": ("RO access; index 1; range -2 1 0",),
    "TDIGEST.MERGE": ("RW access update; index 1; range 0 1 0", "RO access; index 2; keynum 0 1 1"),
    "CMS.MERGE": ("RW access update; index 1; range 0 1 0", "RO access; index 2; keynum 0 1 1"),
}


@dataclass(frozen=True, slots=True)
class CommandTable:
    """All commands a server knows, by upper-case name, `CONFIG|SET` for a subcommand."""

    specs: Mapping[str, CommandSpec]
    categories: frozenset[str] = field(init=False, compare=False, repr=False)
    flags: frozenset[str] = field(init=False, compare=False, repr=False)
    _index: dict[bytes, _Entry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Index the specs by the spellings clients send."""
        specs = self.specs.values()
        object.__setattr__(
            self, "categories", frozenset[str]().union(*(s.categories for s in specs))
        )
        object.__setattr__(self, "flags", frozenset[str]().union(*(s.flags for s in specs)))
        subcommands: dict[str, dict[bytes, CommandSpec]] = {}
        for name, spec in self.specs.items():
            container, bar, subcommand = name.partition("|")
            if bar:
                subcommands.setdefault(container, {}).update(_spellings(subcommand, spec))
        index: dict[bytes, _Entry] = {}
        for name, spec in self.specs.items():
            if "|" not in name:
                index.update(_spellings(name, (spec, subcommands.get(name, {}))))
        object.__setattr__(self, "_index", index)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the table's order: what a misspelt one may have meant."""
        return tuple(self.specs)

    @classmethod
    def bundled(cls) -> "CommandTable":
        """Give the table that ships with the package: the union of what real servers know.

        Read on first use, then kept.
        """
        return _bundled()

    @classmethod
    def from_reply(cls, reply: object, base: "CommandTable") -> "CommandTable":
        """Make a table from a live server's COMMAND reply, decoded to lists, bytes and ints.

        `base` gives what COMMAND does not say: reply shapes and, for a server that tells neither
        key specs nor subcommands (before 7.0), those too. Maps may come as pairs in a list or as
        dicts; null entries (COMMAND INFO of an unknown name) are passed over. Raises ValueError for
        anything that is no COMMAND reply, such as an error in its place.
        """
        if not isinstance(reply, list):
            raise ValueError(f"not a COMMAND reply: {_told(reply)}")  # noqa: TRY004 - the server's
        specs: dict[str, CommandSpec] = {}
        for entry in reply:
            if entry is not None:
                specs.update((spec.name, spec) for spec in _read_entry(entry, base))
        if not specs:
            raise ValueError("not a COMMAND reply: it names no command")
        return cls(MappingProxyType(specs))

    def find(self, args: Sequence[bytes | None]) -> CommandSpec | None:
        """Give the spec of a command by its arguments: its subcommand's where it has one.

        None for a command that is not in the table. Never raises.
        """
        name = args[0] if args else None
        if name is None:
            return None
        entry = self._index.get(name) or self._index.get(name.upper())
        if entry is None:
            return None
        spec, subcommands = entry
        if not subcommands or len(args) < 2:
            return spec
        word = args[1]
        if word is None:
            return spec
        return subcommands.get(word) or subcommands.get(word.upper()) or spec

    def key_positions(self, spec: CommandSpec, args: Sequence[bytes | None]) -> tuple[int, ...]:
        """Give the indices of the arguments that are keys, as COMMAND GETKEYS would.

        Of what the server would refuse as a syntax error, those that can be told. Never raises.
        """
        if spec.single_key:
            return (spec.single_key,) if spec.single_key < len(args) else ()
        if not spec.key_specs:
            return ()
        by_code = _BY_CODE.get(spec.name)
        if by_code is not None:
            return tuple(by_code(args))
        return tuple(key_spec.positions(spec.key_specs, args))


def _spellings(name: str, value: _T) -> Iterator[tuple[bytes, _T]]:
    """Pair a value with the two spellings nearly every client sends; others are upper-cased first."""
    yield name.upper().encode(), value
    yield name.lower().encode(), value


@cache
def _bundled() -> CommandTable:
    text = Path(__file__).with_name("commands.json").read_bytes()
    words = cache(lambda line: frozenset(line.split()))
    key = cache(KeySpec.parse)
    return CommandTable(
        MappingProxyType(
            {
                name: CommandSpec(
                    name,
                    entry["arity"],
                    words(entry["flags"]),
                    words(entry["categories"]),
                    tuple(map(key, entry.get("keys", ()))),
                    entry.get("reply", ""),
                    entry.get("miss", ""),
                )
                for name, entry in json.loads(text)["commands"].items()
            }
        )
    )


def _read_entry(entry: object, base: CommandTable) -> Iterator[CommandSpec]:
    """Read one entry of COMMAND and, nested in it, its subcommands'."""
    match entry:
        case [bytes(raw_name), int(arity), flags, int(first), int(last), int(step), cats, *rest]:
            name = raw_name.decode("utf-8", "backslashreplace").upper()
        case _:
            raise ValueError(f"not a COMMAND entry: {_told(entry)}")
    known = base.specs.get(name)
    categories = frozenset(word.removeprefix("@") for word in _words(cats))
    words = set(_words(flags))
    match rest:
        case [_, list(key_specs), list(subcommands), *_]:
            keys = tuple(_read_key_spec(item) for item in key_specs)
        case _:
            keys, subcommands = known.key_specs if known else (), []
            # Servers before 7.0 say `blocking` by category only.
            words |= categories & {"blocking"}
            yield from _subcommands_of(name, base)
    if not keys and first > 0:
        find = FindRange(last - first if last >= 0 else last, step, 0)
        keys = (KeySpec(frozenset(), BeginIndex(first), find),)
    if name in _ALL_KEYS:
        keys = tuple(map(KeySpec.parse, _ALL_KEYS[name]))
    spec = CommandSpec(
        name,
        arity,
        frozenset(words),
        categories,
        keys,
        known.reply if known else "",
        known.miss if known else "",
    )
    # Nearly all are as in the base: they need no place of their own.
    yield known if known is not None and spec == known else spec
    for subcommand in subcommands:
        yield from _read_entry(subcommand, base)


def _subcommands_of(name: str, base: CommandTable) -> Iterable[CommandSpec]:
    return (spec for other, spec in base.specs.items() if other.startswith(f"{name}|"))


def _words(value: object) -> Iterator[str]:
    if not isinstance(value, list | set | frozenset):
        raise ValueError(f"not a list of words: {_told(value)}")  # noqa: TRY004 - the server's
    for word in value:
        if not isinstance(word, bytes):
            raise ValueError(f"not a word: {_told(word)}")  # noqa: TRY004 - the server's
        yield word.decode("utf-8", "backslashreplace")


def _read_key_spec(value: object) -> KeySpec:
    """Read one key spec of COMMAND; what is not known of it makes it `unknown`, not an error."""
    spec = _pairs(value)
    begin, find = _pairs(spec.get(b"begin_search")), _pairs(spec.get(b"find_keys"))
    return KeySpec(
        frozenset(_words(spec.get(b"flags"))),
        _read_begin(begin.get(b"type"), _pairs(begin.get(b"spec"))),
        _read_find(find.get(b"type"), _pairs(find.get(b"spec"))),
    )


def _read_begin(kind: object, spec: Mapping[bytes, object]) -> key_spec.Begin:
    match kind, spec:
        case b"index", {b"index": int(index)}:
            return BeginIndex(index)
        case b"keyword", {b"keyword": bytes(keyword), b"startfrom": int(start_from)}:
            return key_spec.BeginKeyword(keyword.upper(), start_from)
        case _:
            return key_spec.Unknown()


def _read_find(kind: object, spec: Mapping[bytes, object]) -> key_spec.Find:
    match kind, spec:
        case b"range", {b"lastkey": int(last), b"keystep": int(step), b"limit": int(limit)}:
            return FindRange(last, step, limit)
        case b"keynum", {b"keynumidx": int(index), b"firstkey": int(first), b"keystep": int(step)}:
            return key_spec.FindKeyNum(index, first, step)
        case _:
            return key_spec.Unknown()


def _pairs(value: object) -> Mapping[bytes, object]:
    match value:
        case dict():
            return value
        case list() if len(value) % 2 == 0:
            return dict(zip(value[::2], value[1::2], strict=True))
        case _:
            raise ValueError(f"not a map: {_told(value)}")


def _told(value: object) -> str:
    """What a server said, for a message."""
    try:
        return f"{value!r:.80}"
    except RecursionError:
        return "lists in lists"
