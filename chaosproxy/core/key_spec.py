"""Where the keys of a command stand, by the server's own key specifications.

Takes the key specs of COMMAND and a command's arguments, gives the indices of the arguments that
are keys (Redis document "Key specifications").
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

Args = Sequence[bytes | None]
"""A command's arguments, name first; None stands for one too large to have been kept."""

_WRITE_FLAGS = frozenset({"RW", "OW", "RM"})


@dataclass(frozen=True, slots=True)
class BeginIndex:
    """The first key stands at a fixed argument index."""

    index: int


@dataclass(frozen=True, slots=True)
class BeginKeyword:
    """The first key follows a keyword, sought from `start_from` on (negative: from the end back)."""

    keyword: bytes
    start_from: int


@dataclass(frozen=True, slots=True)
class FindRange:
    """Keys up to `last` (relative to the first; negative: from the end), every `step`th argument.

    `limit` 2 or more with a negative `last`: only the first 1/limit of what remains (XREAD).
    """

    last: int
    step: int
    limit: int


@dataclass(frozen=True, slots=True)
class FindKeyNum:
    """An argument `index` after the begin says how many keys start `first` after the begin."""

    index: int
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """The server cannot say it by rule (SORT's STORE, BY and GET)."""


Begin = BeginIndex | BeginKeyword | Unknown
Find = FindRange | FindKeyNum | Unknown


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One key specification as COMMAND gives it: `begin_search`, `find_keys` and flags.

    Flags: one of RO RW OW RM; access insert update delete; not_key incomplete variable_flags.
    """

    flags: frozenset[str]
    begin: Begin
    find: Find

    @property
    def writes(self) -> bool:
        """Whether the keys found by this spec may be changed."""
        return not _WRITE_FLAGS.isdisjoint(self.flags) and "not_key" not in self.flags

    @classmethod
    def parse(cls, text: str) -> "KeySpec":
        """Read the one-line form of `str()`, e.g. `RO access; keyword STREAMS 1; range -1 1 2`.

        Raises ValueError on anything else.
        """
        flags, begin, find = (part.split() for part in text.split(";"))
        return cls(frozenset(flags), _parse_begin(begin), _parse_find(find))

    def __str__(self) -> str:
        """Give the one-line form that `parse` reads."""
        match self.begin:
            case BeginIndex(index):
                begin = f"index {index}"
            case BeginKeyword(keyword, start_from):
                begin = f"keyword {keyword.decode()} {start_from}"
            case Unknown():
                begin = "unknown"
            case _:
                assert_never(self.begin)
        match self.find:
            case FindRange(last, step, limit):
                find = f"range {last} {step} {limit}"
            case FindKeyNum(index, first, step):
                find = f"keynum {index} {first} {step}"
            case Unknown():
                find = "unknown"
            case _:
                assert_never(self.find)
        return f"{' '.join(sorted(self.flags))}; {begin}; {find}"


def _parse_begin(words: list[str]) -> Begin:
    match words:
        case ["index", index]:
            return BeginIndex(int(index))
        case ["keyword", keyword, start_from]:
            return BeginKeyword(keyword.encode(), int(start_from))
        case ["unknown"]:
            return Unknown()
        case _:
            msg = f"not a begin_search: {' '.join(words)!r}"
            raise ValueError(msg)


def _parse_find(words: list[str]) -> Find:
    match words:
        case ["range", last, step, limit]:
            return FindRange(int(last), int(step), int(limit))
        case ["keynum", index, first, step]:
            return FindKeyNum(int(index), int(first), int(step))
        case ["unknown"]:
            return Unknown()
        case _:
            msg = f"not a find_keys: {' '.join(words)!r}"
            raise ValueError(msg)


def single_position(specs: Sequence[KeySpec]) -> int:
    """Give the index of the only key when that never depends on the arguments, else 0.

    Most commands are of this kind; knowing it beforehand spares them the interpreter.
    """
    match specs:
        case [KeySpec(flags, BeginIndex(index), FindRange(0, _, _))] if (
            index > 0 and "not_key" not in flags
        ):
            return index
        case _:
            return 0


def positions(specs: Iterable[KeySpec], args: Args) -> Iterator[int]:
    """Yield the index of each argument that is a key, in the order of the specs.

    A spec that does not fit the arguments (a keyword that is not there, a count that is no number
    or promises more than was sent: all syntax errors to the server) yields nothing.
    """
    for spec in specs:
        if "not_key" in spec.flags:
            continue
        begin = _begin(spec.begin, args)
        if not 0 < begin < len(args):
            continue
        first, last, step = _span(spec.find, begin, args)
        if 0 < first <= last < len(args):
            yield from range(first, last + 1, step)


def _begin(rule: Begin, args: Args) -> int:
    """Give the index that a begin_search finds, 0 for none."""
    match rule:
        case BeginIndex(index):
            return index
        case BeginKeyword(keyword, start_from):
            return _after_keyword(keyword, start_from, args)
        case Unknown():
            return 0
        case _:
            assert_never(rule)


def _span(rule: Find, begin: int, args: Args) -> tuple[int, int, int]:
    """Give the first key's index, the last's and the step; the last before the first for none."""
    match rule:
        case FindRange(last, step, limit):
            return begin, _range_end(begin, len(args), last, limit), max(step, 1)
        case FindKeyNum(index, first, step):
            keys = _count_of(args, begin + index)
            return begin + first, begin + first + (keys - 1) * step, max(step, 1)
        case Unknown():
            return begin, 0, 1
        case _:
            assert_never(rule)


def _after_keyword(keyword: bytes, start_from: int, args: Args) -> int:
    """Give the index after the keyword, 0 when it is not there."""
    count = len(args)
    # The last argument can be no keyword, nothing would follow it.
    forwards = start_from >= 0
    where = range(start_from, count - 1) if forwards else range(count + start_from, 0, -1)
    for index in where:
        arg = args[index]
        if arg is not None and arg.upper() == keyword:
            return index + 1
    return 0


def _range_end(begin: int, count: int, last: int, limit: int) -> int:
    if last >= 0:
        return begin + last
    if limit < 2:
        return count + last
    return begin + (count - begin) // limit + last


def _count_of(args: Args, index: int) -> int:
    """Read a count of arguments; 0 for anything that is none."""
    arg = args[index] if 0 <= index < len(args) else None
    # Longer than any count of arguments: not worth converting, and int() refuses huge ones.
    return int(arg) if arg is not None and arg.isdigit() and len(arg) <= 10 else 0


def sort_positions(args: Args) -> Iterator[int]:
    """Yield the key positions of SORT: its key, and the last STORE's destination."""
    if len(args) < 2:
        return
    yield 1
    takes = {b"LIMIT": 2, b"GET": 1, b"BY": 1}
    destination = 0
    index = 2
    while index < len(args):
        word = (args[index] or b"").upper()
        if word == b"STORE" and index + 1 < len(args):
            destination = index + 1
        index += 1 + takes.get(word, 0)
    if destination:
        yield destination


def migrate_positions(args: Args) -> Iterator[int]:
    """Yield the key positions of MIGRATE: the third argument or, where it is empty, those after KEYS."""
    if len(args) < 4:
        return
    takes = {b"AUTH": 1, b"AUTH2": 2}
    index = 6
    while index < len(args):
        word = (args[index] or b"").upper()
        if word == b"KEYS":
            # With a key in both places the server refuses the command, and with none in either.
            if args[3] == b"" and index + 1 < len(args):
                yield from range(index + 1, len(args))
                return
            break
        index += 1 + takes.get(word, 0)
    yield 3
