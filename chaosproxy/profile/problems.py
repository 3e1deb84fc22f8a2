"""What is wrong with a profile, and where: messages that point at the place.

Takes the text of profiles and places in it; gives `Problem`s, and `ProfileError`, which carries all of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

# What YAML calls a line break: an editor and the parser must count alike.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_WIDEST = 120
#: So many problems are told; a text that has more is no profile with slips in it.
MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Text:
    """What was read, and what it is called in messages.

    `numbered` is false for what has no lines of its own: one `--set`, a profile's name.
    """

    file: str
    text: str
    numbered: bool = True

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return _BREAK.split(self.text)

    def place(self, line: int, column: int) -> "Place":
        """A place by line and column, both counted from 1."""
        return Place(self, line, column)


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both from 1, in a text."""

    text: Text
    line: int
    column: int

    def __str__(self) -> str:
        if not self.text.numbered:
            return self.text.file
        return f"{self.text.file}:{self.line}:{self.column}"

    @property
    def order(self) -> tuple[int, int]:
        """What to sort by within one text."""
        return self.line, self.column

    def problem(self, message: str, suggestion: str = "") -> "Problem":
        """A problem here."""
        lines = self.text.lines
        return Problem(
            self.text.file,
            self.line if self.text.numbered else 0,
            self.column,
            _printable(message),
            _printable(suggestion),
            lines[self.line - 1] if self.line <= len(lines) else "",
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    `line` and `column` count from 1; line 0: the place is no file. `suggestion` is what was probably
    meant, '' if that is not known. `source_line` is the offending line, '' if there is none.
    """

    file: str
    line: int
    column: int
    message: str
    suggestion: str = ""
    source_line: str = ""

    def render(self) -> str:
        """`file:line:column: message`, then the offending line, then a caret below the place."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        meant = f"; did you mean '{self.suggestion}'?" if self.suggestion else ""
        head = _printable(f"{place}: {self.message}{meant}")
        if not self.source_line.strip():
            return head
        line, column = _window(self.source_line, self.column - 1)
        indent = "".join("\t" if char == "\t" else " " for char in line[:column])
        return f"{head}\n    {line}\n    {indent}^"


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a line that is worth showing, without control characters, and the column in it."""
    if len(line) <= _WIDEST:
        return _printable(line), column
    start = max(0, column - _WIDEST // 2)
    part = _printable(line[start : start + _WIDEST])
    before = "..." if start else ""
    after = "..." if start + _WIDEST < len(line) else ""
    return f"{before}{part}{after}", column - start + len(before)


def _printable(text: str) -> str:
    """Nothing that moves a terminal's cursor, and no lone surrogate, which no stream takes."""
    return "".join(char if char.isprintable() or char == "\t" else "?" for char in text)


class ProfileError(Exception):
    """A profile that cannot be used: every problem it has, in the order of its lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(problem.render() for problem in self.problems))


@dataclass(slots=True)
class Problems:
    """Where everybody who reads a profile leaves what is wrong, so that all is told at once, MOST_PROBLEMS at most."""

    found: list[tuple[int, tuple[int, int], Problem]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def add(self, place: Place, message: str, suggestion: str = "") -> None:
        """Something is wrong at this place. Raises `ProfileError` once there is enough of it."""
        if place.text not in self.texts:
            self.texts.append(place.text)
        number = self.texts.index(place.text)
        self.found.append((number, place.order, place.problem(message, suggestion)))
        if len(self.found) == MOST_PROBLEMS:
            enough = f"{MOST_PROBLEMS} problems: no more are looked for"
            self.found.append((number, place.order, place.problem(enough)))
            self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise `ProfileError` with all of them, by text, line and column."""
        if self.found:
            # An alias brings one place in twice.
            unique = dict.fromkeys(sorted(self.found, key=lambda found: found[:2]))
            raise ProfileError(problem for _, _, problem in unique)
