"""YAML as profiles have it: every value knows its place, and nothing means what it does not look like.

Takes a `Text`; gives a `Node`, or leaves problems.

Plain scalars are read as YAML 1.2's core schema reads them, less its rarities: `true` and `false` are
booleans, and `yes`, `on`, `1:30` and `2024-01-01` are text; numbers are decimal, and a whole one that would
not be written back as it stands (`007`, `1_000`, twenty digits) is text. A character may be escaped as JSON does it.
Anchors and aliases work; tags, merge keys and several documents are refused; size, depth and what aliases blow up
are bounded.
"""

import re
from dataclasses import dataclass
from typing import Final

import yaml

from chaosproxy.profile.problems import Place, Problems, Text

#: A profile of a thousand faults is smaller.
MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 24
MAX_NODES: Final = 20_000

Scalar = str | int | float | bool | None

_CONSTANTS: Final[dict[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
# Longer ones are text: no setting takes a number that large.
_INT: Final = re.compile(r"0|-?[1-9][0-9]{0,39}")
_FLOAT: Final = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|[1-9][0-9]*(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of a mapping: where its key stands, and its value."""

    key_at: Place
    node: "Node"


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list or a mapping, and where it begins.

    `size` counts the nodes in it with aliases followed, `height` how deep they lie.
    """

    at: Place
    value: "Scalar | list[Node] | dict[str, Entry]"
    size: int = 1
    height: int = 1

    @property
    def fields(self) -> dict[str, Entry]:
        """A mapping's fields; none for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> object:
        """The value without places: str, int, float, bool, None, list, dict."""
        match self.value:
            case list(items):
                return [item.plain() for item in items]
            case dict(fields):
                return {key: entry.node.plain() for key, entry in fields.items()}
            case scalar:
                return scalar

    def find(self, path: tuple[str | int, ...], *, at_key: bool = False) -> Place:
        """Where the part at `path` (keys and indices) begins, or its key if `at_key`.

        As far as the path leads: a part that is not there is sought where it would stand.
        """
        node, place = self, self.at
        for number, step in enumerate(path, 1):
            match node.value:
                case dict(fields) if step in fields:
                    entry = fields[str(step)]
                    node = entry.node
                    place = entry.key_at if at_key and number == len(path) else node.at
                case list(items) if isinstance(step, int) and 0 <= step < len(items):
                    node = items[step]
                    place = node.at
                case _:
                    break
        return place


def resolve(text: str) -> Scalar:
    """What a plain (unquoted) scalar means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def decode(raw: bytes, file: str, problems: Problems) -> Text | None:
    """The text of a profile; None if it cannot be read (then a problem says why)."""
    if len(raw) > MAX_BYTES:
        message = f"larger than a profile may be ({MAX_BYTES // 1024} KiB)"
        problems.add(Text(file, "").place(1, 1), message)
        return None
    try:
        # Windows' editors put a byte order mark first.
        return Text(file, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as wrong:
        # What the decoder hands back begins behind the mark, as its offset does.
        rest = bytes(wrong.object)
        before = Text(file, rest[: wrong.start].decode("utf-8"))
        place = Text(file, rest.decode("utf-8", "replace")).place(
            len(before.lines), len(before.lines[-1]) + 1
        )
        problems.add(place, f"not UTF-8: byte 0x{rest[wrong.start]:02x}")
        return None


def compose(text: Text, problems: Problems, start: int = 0) -> Node | None:
    """The one document in the text, None if it is empty or cannot be read (then a problem says why).

    What stands before `start` is passed over; places are those in the whole text.
    """
    composer = _Composer(text, problems, start)
    try:
        return composer.document()
    except _StopError as stop:
        problems.add(stop.place, stop.message)
    except yaml.reader.ReaderError as wrong:
        # Its position counts characters from the start of the text.
        before = Text(text.file, text.text[: wrong.position])
        place = text.place(len(before.lines), len(before.lines[-1]) + 1)
        problems.add(place, f"a character that YAML does not allow: U+{wrong.character:04X}")
    except yaml.MarkedYAMLError as wrong:
        problems.add(*_syntax(wrong, text))
    return None


class _StopError(Exception):
    """What makes reading on pointless."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def _syntax(wrong: yaml.MarkedYAMLError, text: Text) -> tuple[Place, str]:
    """Where a syntax error is, and what, in the words of somebody who writes a profile."""

    def place(mark: yaml.Mark | None) -> Place:
        return text.place(mark.line + 1, mark.column + 1) if mark else text.place(1, 1)

    at, began = place(wrong.problem_mark or wrong.context_mark), place(wrong.context_mark)
    problem = wrong.problem or ""
    if wrong.context in {"while scanning an alias", "while scanning an anchor"}:
        sign = "*" if wrong.context.endswith("alias") else "&"
        return began, f"a value that begins with {sign} must be in quotes"
    if wrong.context == "while scanning a quoted scalar" and problem.endswith("end of stream"):
        return began, "not YAML: this quote is never closed"
    if problem == "could not find expected ':'":
        return began, "not YAML: a field's name ends with a colon and a blank"
    if problem.startswith("expected ','"):
        ends = problem.partition(", but")[0]
        return at, f"not YAML: {ends}, for what began at {began.line}:{began.column}"
    if problem.startswith("mapping values"):
        return at, f"not YAML: no field can begin here; {_NO_FIELD}"
    if problem.startswith("expected <block end>"):
        return at, f"not YAML: {_BEHIND if '<scalar>' in problem else _NOT_ALIGNED}"
    return at, _other(wrong)


_NO_FIELD: Final = (
    "a text with ': ' in it must be in quotes; else the field above lacks its ': ', "
    "or this one is indented too far"
)
_BEHIND: Final = (
    "something stands behind a value here; "
    "a text that begins with [, { or a quote must be in quotes as a whole"
)
_NOT_ALIGNED: Final = "this line is indented otherwise than those that it belongs to"


def _other(wrong: yaml.MarkedYAMLError) -> str:
    """What is wrong where it is told."""
    problem = wrong.problem or "cannot be read"
    refused = re.fullmatch(r"found character (.+) that cannot start any token", problem)
    if refused and refused[1] == r"'\t'":
        return "a tab: YAML is indented with spaces"
    if refused:
        return f"a value that begins with {refused[1].strip(chr(39))} must be in quotes"
    context = f"{wrong.context}: " if wrong.context else ""
    return f"not YAML: {context}{problem}"


class _Composer:
    """Nodes from PyYAML's events: its parser holds no recursion and knows nothing of types."""

    def __init__(self, text: Text, problems: Problems, start: int) -> None:
        self.text = text
        self.problems = problems
        # The parser in Python, not libyaml's: messages and marks do not depend on how PyYAML was built.
        stream = " " * start + text.text[start:]
        self.events = yaml.parse(stream, Loader=yaml.SafeLoader)
        self.anchors: dict[str, Node | None] = {}
        self.size = 0

    def document(self) -> Node | None:
        node = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if node is not None:
                    raise _StopError(self.place(event), "a profile is one document: no second ---")
                node = self.node(next(self.events), 1)
        return node

    def place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return self.text.place(mark.line + 1, mark.column + 1) if mark else self.text.place(1, 1)

    def node(self, event: yaml.Event, depth: int) -> Node:
        place = self.place(event)
        if isinstance(event, yaml.AliasEvent):
            node = self.alias(event, place)
            self.bound(place, node.size, depth + node.height - 1)
            return node
        self.bound(place, 1, depth)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)  # noqa: S101
        if event.tag is not None:
            self.problems.add(place, "tags are not part of the profile language")
        anchor = event.anchor
        if anchor is None:
            return self.content(event, place, depth)
        if anchor in self.anchors:
            self.problems.add(place, f"a second anchor &{anchor}")
        self.anchors[anchor] = None
        node = self.content(event, place, depth)
        self.anchors[anchor] = node
        return node

    def bound(self, place: Place, size: int, depth: int) -> None:
        self.size += size
        if self.size > MAX_NODES:
            raise _StopError(place, f"more than {MAX_NODES} values, aliases followed")
        if depth > MAX_DEPTH:
            raise _StopError(place, f"nested deeper than {MAX_DEPTH} levels")

    def alias(self, event: yaml.AliasEvent, place: Place) -> Node:
        if event.anchor not in self.anchors:
            raise _StopError(
                place,
                f"no anchor &{event.anchor} before this alias; "
                "a value that begins with * must be in quotes",
            )
        node = self.anchors[event.anchor]
        if node is None:
            raise _StopError(place, f"*{event.anchor} stands inside what it stands for")
        return node

    def content(self, event: yaml.Event, place: Place, depth: int) -> Node:
        match event:
            case yaml.ScalarEvent():
                plain = event.style is None and event.implicit[0]
                return Node(place, resolve(event.value) if plain else _whole(event.value))
            case yaml.SequenceStartEvent():
                return self.sequence(place, depth)
            case _:
                return self.mapping(place, depth)

    def sequence(self, place: Place, depth: int) -> Node:
        items: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, depth + 1))
        return Node(place, items, *_measure(items))

    def mapping(self, place: Place, depth: int) -> Node:
        fields: dict[str, Entry] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key_at = self.place(event)
            key = self.key(event, depth)
            node = self.node(next(self.events), depth + 1)
            if key is None:
                self.problems.add(key_at, "a field's name is one word, not a list or a mapping")
            elif key == "<<":
                self.problems.add(key_at, "merge keys (<<) are not part of the profile language")
            elif key in fields:
                first = fields[key].key_at
                self.problems.add(
                    key_at, f"duplicate field '{key}', first given at {first.line}:{first.column}"
                )
            else:
                fields[key] = Entry(key_at, node)
        return Node(place, fields, *_measure([entry.node for entry in fields.values()]))

    def key(self, event: yaml.Event, depth: int) -> str | None:
        """A key as it is written: no field is called true, whatever `true:` may be."""
        node = self.node(event, depth + 1)
        if isinstance(node.value, list | dict):
            return None
        return _whole(event.value) if isinstance(event, yaml.ScalarEvent) else str(node.value)


def _whole(text: str) -> str:
    """The text with each pair of surrogates as the one character that JSON escapes with it."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _measure(nodes: list[Node]) -> tuple[int, int]:
    size = 1 + sum(node.size for node in nodes)
    return size, 1 + max((node.height for node in nodes), default=0)
