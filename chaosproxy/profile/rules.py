"""The entries of `faults:`, named and read into rules.

Takes the nodes of all profiles' faults, in order; gives each its name and its `Rule`, or leaves problems.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from chaosproxy import faults
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.rule import Match, Rule, When
from chaosproxy.core.scalar import NAME, closest, shown
from chaosproxy.core.setting import Invalid, settings_of
from chaosproxy.profile.fields import Shared
from chaosproxy.profile.problems import Problems
from chaosproxy.profile.reader import complain, is_mapping, read_settings, refuse_unknown
from chaosproxy.profile.yaml_nodes import Node

T = TypeVar("T")

#: The fields of every entry; a fault's own settings stand beside them.
FIELDS = ("fault", "name", "match", "when", "at")
#: What other tools, and people, call a fault.
_MEANT = {
    "delay": "latency",
    "timeout": "blackhole",
    "reset": "disconnect",
    "error": "reply",
    "throttle": "bandwidth",
}
_MATCH, _WHEN = tuple(settings_of(Match)), tuple(settings_of(When))


@dataclass(frozen=True, slots=True)
class Named:
    """One entry of `faults:` and the name it goes by."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class Written:
    """One entry as far as it could be read, for the checks that concern several of its parts.

    `rule` is None if anything in it is wrong; `fault` is its class then, if that is known.
    """

    name: str
    node: Node
    fault: type[Fault] | None
    match: Match
    when: When
    at: Position | None
    rule: Rule | None


def name_entries(entries: Iterable[Node], problems: Problems) -> list[Named]:
    """Every entry with its name: its own, else its type, then type-2, type-3 …, passing over those taken.

    What is no mapping leaves a problem, and so does a second fault of one name.
    """
    entries = [entry for entry in entries if _is_entry(entry, problems)]
    own = [_own_name(entry) for entry in entries]
    taken: dict[str, Node] = {}
    for name, entry in zip(own, entries, strict=True):
        if name in taken:
            first = taken[name].find(("name",))
            message = f"two faults are called '{name}', the first at {first}"
            problems.add(entry.find(("name",)), message)
        elif name:
            taken[name] = entry
    named = []
    for name, entry in zip(own, entries, strict=True):
        goes_by = name or _free_name(_type_of(entry), taken)
        taken.setdefault(goes_by, entry)
        named.append(Named(goes_by, entry))
    return named


def _is_entry(entry: Node, problems: Problems) -> bool:
    if isinstance(entry.value, dict):
        return True
    got = shown(entry.plain())
    problems.add(
        entry.at, f"expected a fault, such as `- fault: latency` and its fields, got {got}"
    )
    return False


def _own_name(entry: Node) -> str:
    try:
        return str(NAME.parse(entry.fields["name"].node.plain()))
    except (KeyError, Invalid):
        return ""


def _type_of(entry: Node) -> str:
    field = entry.fields.get("fault")
    return field.node.value if field and isinstance(field.node.value, str) else "fault"


def _free_name(kind: str, taken: Mapping[str, Node]) -> str:
    name, number = kind, 1
    while name in taken:
        number += 1
        name = f"{kind}-{number}"
    return name


def read_rule(entry: Named, problems: Problems) -> Written:
    """The rule of one entry, or its parts with problems."""
    node = entry.node
    before = len(problems.found)
    cls = _fault_class(node, problems)
    read_settings(Shared, node, "a fault", problems)
    homes = {"beside 'fault'": (*FIELDS, *(settings_of(cls) if cls else ()))}
    match = _part(Match, node, "match", {"under 'when'": _WHEN, **homes}, problems)
    when = _part(When, node, "when", {"under 'match'": _MATCH, **homes}, problems)
    if cls is None:
        return Written(entry.name, node, None, match, when, None, None)
    known = (*FIELDS, *settings_of(cls))
    elsewhere = {"under 'match'": _MATCH, "under 'when'": _WHEN}
    refuse_unknown(node, known, f"fault {cls.type}", problems, elsewhere)
    at = _position(cls, node, problems)
    fault, good = read_settings(cls, node, f"fault {cls.type}", problems)
    rule = None
    if fault is not None and at is not None and good:
        _check(fault, at, node, problems)
        if len(problems.found) == before:
            rule = Rule(entry.name, fault, match, when, at, node.at.line)
    return Written(entry.name, node, cls, match, when, at, rule)


def _fault_class(node: Node, problems: Problems) -> type[Fault] | None:
    field = node.fields.get("fault")
    if field is None:
        problems.add(node.at, "an entry needs 'fault', its type, such as `fault: latency`")
        return None
    kind = field.node.plain()
    if isinstance(kind, str):
        faults.register(kind)
    cls = FAULTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        faults.register()
        near = closest(kind, FAULTS, _MEANT)
        known = "" if near else f", expected one of {', '.join(sorted(FAULTS))}"
        problems.add(field.node.at, f"unknown fault {shown(kind)}{known}", near)
    return cls


def _part(
    cls: type[T],
    node: Node,
    name: str,
    homes: Mapping[str, Iterable[str]],
    problems: Problems,
) -> T:
    """`match` or `when`, its defaults for whatever is left out or wrong."""
    field = node.fields.get(name)
    if field is None or not is_mapping(field.node, name, problems):
        return cls()
    refuse_unknown(field.node, settings_of(cls), name, problems, homes)
    part, _ = read_settings(cls, field.node, name, problems)
    return part or cls()


def _position(cls: type[Fault], node: Node, problems: Problems) -> Position | None:
    """Where the fault stands: what `at` says, or the only position that it can have."""
    words = [position.value for position in cls.positions]
    field = node.fields.get("at")
    if field is None and len(words) == 1:
        return cls.positions[0]
    allowed = ", ".join(words)
    if field is None:
        problems.add(node.at, f"fault {cls.type} needs 'at': one of {allowed}")
        return None
    given = field.node.plain()
    if isinstance(given, str) and given in words:
        return Position(given)
    if isinstance(given, str) and given in set(Position):
        only = f"always acts at {words[0]}" if len(words) == 1 else f"can act at {allowed}"
        problems.add(field.node.at, f"at: fault {cls.type} {only}, not at {given}")
    else:
        message = f"at: expected one of {allowed}, got {shown(given)}"
        problems.add(field.node.at, message, closest(given, words))
    return None


def _check(fault: Fault, at: Position, node: Node, problems: Problems) -> None:
    """Whether the fault's settings go together, and with the position."""
    try:
        fault.check(at)
    except Invalid as wrong:
        complain(node, wrong, "", problems)
