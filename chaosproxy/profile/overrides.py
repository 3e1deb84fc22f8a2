"""`--set lost-ack.when.nth=3`: one value of a profile, given from outside.

Takes nodes and texts such as `lost-ack.when.nth=3`; gives new nodes in which the value stands, placed in
that text, or leaves problems. Nodes that an alias shares are left as they are elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaosproxy.core.scalar import closest
from chaosproxy.core.setting import settings_of
from chaosproxy.profile.fields import Head
from chaosproxy.profile.problems import Place, Problems, Text
from chaosproxy.profile.rules import Named
from chaosproxy.profile.yaml_nodes import Entry, Node, compose

#: What messages call the place of an override.
FILE = "--set"


@dataclass(frozen=True, slots=True)
class Override:
    """Where to (the steps of the path, each with its place) and what."""

    steps: tuple[tuple[str, Place], ...]
    node: Node


def read_override(given: str, problems: Problems) -> Override | None:
    """`path=value`, the value as YAML; None if it is not that."""
    text = Text(FILE, given, numbered=False)
    path, equals, _ = given.partition("=")
    names = path.split(".")
    if not equals or not all(names):
        problems.add(text.place(1, 1), "expected PATH=VALUE, such as lost-ack.when.nth=3")
        return None
    steps, column = [], 1
    for name in names:
        steps.append((name, text.place(1, column)))
        column += len(name) + 1
    before = len(problems.found)
    node = compose(text, problems, start=len(path) + 1)
    if len(problems.found) > before:
        return None
    return Override(tuple(steps), node or Node(text.place(1, column), None))


def split_override(given: str) -> tuple[str, object]:
    """Read `path=value` for somebody else to apply: the path, and the value as plain data. Raises `ProfileError`."""
    problems = Problems()
    override = read_override(given, problems)
    problems.raise_if_any()
    assert override is not None  # noqa: S101 - else there was a problem
    return given.partition("=")[0], override.node.plain()


def apply_to_faults(
    overrides: Sequence[Override], named: Sequence[Named], problems: Problems
) -> list[Named]:
    """The faults with the overrides that begin with a fault's name."""
    found = {entry.name: entry for entry in named}
    for override in overrides:
        (name, place), *rest = override.steps
        if not rest and name in settings_of(Head):
            continue
        if not rest and name in found:
            message = f"'{name}' is a fault: name one of its fields, such as {name}.when.nth"
            problems.add(place, message)
        elif not rest:
            _nowhere(name, place, (*settings_of(Head), *found), problems)
        elif name not in found:
            _nowhere(name, place, found, problems)
        else:
            node = _set(found[name].node, rest, override.node, problems)
            found[name] = Named(name, node)
    return [found.get(entry.name, entry) for entry in named]


def apply_to_head(overrides: Sequence[Override], head: Node) -> Node:
    """A profile's own fields (`seed`, `description` …) with the overrides that are about them."""
    fields = dict(head.fields)
    for override in overrides:
        (name, place), *rest = override.steps
        if not rest and name in settings_of(Head):
            fields[name] = Entry(place, override.node)
    return Node(head.at, fields)


def _nowhere(name: str, place: Place, known: Iterable[str], problems: Problems) -> None:
    known = tuple(known)
    near = closest(name, known)
    listed = "" if near or not known else f", expected one of {', '.join(known)}"
    problems.add(place, f"no fault is called '{name}'{listed}", near)


def _set(node: Node, steps: Sequence[tuple[str, Place]], value: Node, problems: Problems) -> Node:
    """`node` with `value` at the end of `steps`; mappings on the way are made where there is nothing."""
    if not steps:
        return value
    (name, place), *rest = steps
    match node.value:
        case dict() | None:
            fields = dict(node.fields)
            old = fields.get(name)
            inner = old.node if old else Node(place, None)
            fields[name] = Entry(place, _set(inner, rest, value, problems))
            # Where an entry begins stays where it is written: that is the line its fault is known by.
            return Node(node.at, fields)
        case list(items) if name.isdecimal() and int(name) < len(items):
            index = int(name)
            changed = _set(items[index], rest, value, problems)
            return Node(node.at, [*items[:index], changed, *items[index + 1 :]])
        case list(items):
            problems.add(place, f"no item {name}, the list has 0 to {len(items) - 1}")
        case _:
            problems.add(place, f"'{name}' leads nowhere: before it stands a value, not a mapping")
    return node
