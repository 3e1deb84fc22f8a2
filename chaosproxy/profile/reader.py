"""A mapping of YAML read as a dataclass of declared settings.

Takes nodes and the classes that declare settings; gives instances of them, or leaves problems and gives None.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from chaosproxy.core.scalar import closest, shown
from chaosproxy.core.setting import REQUIRED, Invalid, Setting, settings_of
from chaosproxy.profile.problems import Problems
from chaosproxy.profile.yaml_nodes import Node

T = TypeVar("T")

#: What other tools, and people, call a field.
_MEANT = {
    "on": "at",
    "position": "at",
    "probability": "chance",
    "times": "limit",
    "type": "fault",
    "rules": "faults",
}


def read_settings(cls: type[T], node: Node, what: str, problems: Problems) -> tuple[T | None, bool]:
    """An instance of `cls` from the fields of `node` that it declares, and whether all of them are good.

    Other fields are passed over. `what` names the mapping in messages (`match`, `fault latency`). What is wrong
    is left out of the instance, for what else there is to check in the rest; what is wrong or missing
    and has no default leaves none.
    """
    values: dict[str, Any] = {}
    good = whole = True
    for name, (attribute, setting) in settings_of(cls).items():
        entry = node.fields.get(name)
        if entry is not None:
            try:
                values[attribute] = setting.kind.parse(entry.node.plain())
            except Invalid as wrong:
                complain(entry.node, wrong, name, problems)
                good = False
        elif setting.default is REQUIRED:
            problems.add(node.at, f"{what} needs '{name}'{_words_of(setting)}")
            good = False
        if setting.default is REQUIRED and attribute not in values:
            whole = False
    return (cls(**values) if whole else None), good


def complain(node: Node, wrong: Invalid, name: str, problems: Problems) -> None:
    """A value's complaints, each at the part of `node` that it is about, with the way to it from `name`.

    `name` is what `node` is called, '' for a fault's entry as a whole.
    """
    for each in (wrong, *wrong.more):
        path = each.path[:-1] if each.at_key else each.path
        way = ".".join(step for step in (name, *path) if isinstance(step, str) and step)
        place = node.find(each.path, at_key=each.at_key)
        problems.add(place, f"{way}: {each.message}" if way else each.message, each.suggestion)


def refuse_unknown(
    node: Node,
    known: Iterable[str],
    what: str,
    problems: Problems,
    homes: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Fields of a mapping that mean nothing there.

    `homes` says what other fields there are, and where: one at the wrong level is told where it belongs.
    """
    known = tuple(known)
    for name, entry in node.fields.items():
        if name in known:
            continue
        message = f"unknown field '{name}' in {what}"
        home = next((home for home, names in (homes or {}).items() if name in names), "")
        if home:
            problems.add(entry.key_at, f"{message}: it belongs {home}")
        else:
            problems.add(entry.key_at, message, closest(name, known, _MEANT))


def is_mapping(node: Node, what: str, problems: Problems) -> bool:
    """Whether it is a mapping, or nothing (`match:` with no fields under it)."""
    if isinstance(node.value, dict) or node.value is None:
        return True
    problems.add(node.at, f"expected {what} as a mapping, got {shown(node.plain())}")
    return False


def _words_of(setting: Setting) -> str:
    """` (ok, error …)` for a setting of a closed set: what its writer must choose from."""
    words = setting.kind.schema.get("enum")
    return f" ({', '.join(map(str, words))})" if isinstance(words, list) else ""
