"""The shape of a reply, as the command table says it in one line: its types, in both protocols.

Takes a shape code, gives its nodes: what reply_maker makes a reply from.

A shape code is one case or several, `; ` between them; the first whose condition holds counts:

    GET@3: nil | bulk      the word GET stands among the arguments, from index 3 on (A,B: either)
    3+: …                  there are at least three arguments
    2=0: …                 argument 2 is `0`
    …                      otherwise

and a case is a choice, of which the first is what is made, the others what else is right:

    nil|int                one of them
    OK  none               a simple string       !ERR no such key    an error; {2}, {key}: arguments
    int  0  -2             an integer            int=M               the integer that M measures
    bulk  "text"           a bulk string         bulk=@2             argument 2 given back
    id                     a stream ID           bool  true  false   integer 1 or 0 in RESP2
    score  score=@2        a bulk string in RESP2, a double in RESP3
    nil  nil[]             a null bulk string, a null array in RESP2; one null in RESP3
    any                    whatever: none is made
    [int bulk]  [int...]   an array of just these, of any number of them
    (…)  {…}               a set or map in RESP3, a (flat) array in RESP2
    <bulk score>           a pair: flat in an array in RESP2, an array of two in RESP3; in a map
                           the other way round
    [nil...M]              as many as M measures

M: `keys` the number of keys; `n2` of arguments from index 2 on, `n2/2` half of that; `@2` argument 2 as
a number, `l2` its length; `@FIELDS` the number after that word; `#GET,SET` how many arguments are these
words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from chaosproxy.core.command import Command

_TOKEN = re.compile(r'![^;]*|nil\[\]|"[^"]*"|\.\.\.[^\s\])}>]*|[\[\](){}<>|]|[^\s\[\](){}<>|.]+')
_CONDITION = re.compile(
    r"(?P<words>[A-Z,]+)(?:@(?P<start>\d+))?|(?P<least>\d+)\+|(?P<at>\d+)=(?P<value>\S+)"
)
_MEASURE = re.compile(r"keys|n\d+(/\d+)?|l\d+|@-?\d+|@[A-Z]+|#[A-Z,]+")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value that is no aggregate: its kind (or literal) and where its value comes from."""

    kind: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Many:
    """An aggregate; `repeat` None: just these items, else any number, made as many as it measures."""

    kind: Literal["array", "set", "map", "pair"]
    items: tuple["Leaf | Many | Either", ...]
    repeat: str | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """A choice; the first is what is made."""

    options: tuple["Leaf | Many | Either", ...]


Node = Leaf | Many | Either


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a shape: a condition on the command ('' holds always) and a node."""

    condition: str
    node: Node


def choose(code: str, command: Command) -> Node | None:
    """Give the node of the case that holds for this command; None for an empty code."""
    for case in parse(code) if code else ():
        if _holds(case.condition, command):
            return case.node
    return None


@cache
def parse(code: str) -> tuple[Case, ...]:
    """Read a shape code. Raises ValueError for one that is malformed."""
    cases = []
    for text in code.split("; "):
        condition, colon, choice = text.rpartition(": ")
        if colon and not _CONDITION.fullmatch(condition):
            raise ValueError(f"not a condition: {condition!r}")
        tokens = _TOKEN.findall(choice)
        node = _read_choice(tokens)
        if tokens:
            raise ValueError(f"not a shape: {choice!r}")
        cases.append(Case(condition, node))
    return tuple(cases)


_CLOSING: dict[str, tuple[Literal["array", "set", "map", "pair"], str]] = {
    "[": ("array", "]"),
    "(": ("set", ")"),
    "{": ("map", "}"),
    "<": ("pair", ">"),
}


def _read_choice(tokens: list[str]) -> Node:
    options = [_read_item(tokens)]
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        options.append(_read_item(tokens))
    return options[0] if len(options) == 1 else Either(tuple(options))


def _read_item(tokens: list[str]) -> Leaf | Many:
    word = tokens.pop(0) if tokens else ""
    if word not in _CLOSING:
        if not word or word in "])}>|" or word.startswith("..."):
            raise ValueError(f"not a shape: {word!r}")
        kind, equals, hint = word.partition("=") if word[0] not in '"!' else (word, "", "")
        return Leaf(kind, _read_measure(hint) if equals else "")
    kind, closing = _CLOSING[word]
    items: list[Node] = []
    repeat = None
    while tokens and tokens[0] != closing:
        if tokens[0].startswith("..."):
            text = tokens.pop(0).removeprefix("...")
            repeat = _read_measure(text) if text else ""
        else:
            items.append(_read_choice(tokens))
    if not tokens:
        raise ValueError(f"{closing!r} is missing")
    tokens.pop(0)
    return Many(kind, tuple(items), repeat)


def _read_measure(text: str) -> str:
    if not _MEASURE.fullmatch(text):
        raise ValueError(f"not a measure: {text!r}")
    return text


def _holds(condition: str, command: Command) -> bool:
    found = _CONDITION.fullmatch(condition)
    if found is None:
        return True
    if found["least"]:
        return len(command.args) >= int(found["least"])
    if found["at"]:
        value = argument(command, int(found["at"]))
        return value is not None and value.upper() == found["value"].encode()
    words = {word.encode() for word in found["words"].split(",")}
    return any(word in words for word in words_of(command, int(found["start"] or 2)))


def words_of(command: Command, start: int) -> Iterator[bytes]:
    """Give the arguments from index `start` on in upper case, without those too large to be kept."""
    return (arg.upper() for arg in command.args[start:] if arg is not None)


def argument(command: Command, index: int) -> bytes | None:
    """Give one argument; None where there is none, or one too large to be kept."""
    return command.args[index] if index < len(command.args) else None
