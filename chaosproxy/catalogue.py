"""The catalogue of faults: what each does, where it may stand, and its settings, from the code itself.

Takes the registered fault classes; gives data, text for a terminal and Markdown tables for README.
"""

import inspect
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from chaosproxy import faults
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.rule import Match, When
from chaosproxy.core.setting import REQUIRED, Setting, settings_of
from chaosproxy.profile.fields import MATCH_HELP, WHEN_HELP

faults.register()

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Field:
    """One setting as a reader sees it.

    `takes` is what can be written (`reset | close`, `duration`), `unit` in which units, `default` what it
    is when left out (`required`: it must be given; '': nothing).
    """

    name: str
    takes: str
    unit: str
    default: str
    help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One fault: `summary` is a sentence, `help` the rest of what there is to say, '' if nothing is."""

    type: str
    summary: str
    help: str
    positions: tuple[str, ...]
    outcome: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What all faults share: `match` and `when`."""

    name: str
    summary: str
    fields: tuple[Field, ...]


def entries() -> list[Entry]:
    """Every fault, by name."""
    return [_entry(FAULTS[name]) for name in sorted(FAULTS)]


def parts() -> list[Part]:
    """`match` and `when`."""
    return [
        Part("match", MATCH_HELP, _fields(Match)),
        Part("when", WHEN_HELP, _fields(When)),
    ]


def _entry(cls: type[Fault]) -> Entry:
    summary, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
    positions = tuple(position.value for position in cls.positions)
    return Entry(cls.type, summary, rest.strip(), positions, cls.outcome, _fields(cls))


def _fields(cls: type) -> tuple[Field, ...]:
    return tuple(_field(setting) for _, setting in settings_of(cls).values())


def _field(setting: Setting) -> Field:
    words = setting.kind.schema.get("enum")
    takes = " | ".join(map(str, words)) if isinstance(words, list) else setting.kind.name
    return Field(setting.name, takes, setting.kind.unit, _default(setting.default), setting.help)


def _default(default: object) -> str:
    match default:
        case None:
            return ""
        case bool():
            return str(default).lower()
        case _ if default is REQUIRED:
            return "required"
        case _:
            return str(default)


def overview() -> str:
    """A line for each fault."""
    rows = [(entry.type, entry.summary) for entry in entries()]
    wide = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{wide}}  {summary}" for name, summary in rows)


def describe(what: Entry | Part) -> str:
    """Everything about one fault, `match` or `when`, for a terminal."""
    match what:
        case Entry(kind, summary, help_text, positions, outcome):
            more = [*_folded(help_text, ""), ""] if help_text else []
            head = [f"{kind}: {summary}", "", *more, f"outcome   {outcome}", _at(positions)]
        case Part(name, summary):
            head = [f"{name}: {summary}"]
        case _:
            assert_never(what)
    fields = [
        line
        for field in what.fields
        for line in ("", _headline(field), *_folded(field.help, "    "))
    ]
    return "\n".join([*head, *fields])


def _at(positions: Sequence[str]) -> str:
    if len(positions) == 1:
        return f"at        {positions[0]} (always: leave it out)"
    return f"at        {', '.join(positions)} (required)"


def _headline(field: Field) -> str:
    notes = [field.unit] if field.unit else []
    if field.default:
        notes.append("required" if field.default == "required" else f"default {field.default}")
    return f"  {field.name}: {field.takes}" + (f" ({'; '.join(notes)})" if notes else "")


def _folded(text: str, indent: str) -> list[str]:
    """Paragraphs folded to the terminal's width."""
    folded: list[str] = []
    for paragraph in text.split("\n\n"):
        lines = textwrap.wrap(
            paragraph,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        folded += ["", *lines] if folded else lines
    return folded


def markdown() -> str:
    """The faults, their settings, and the fields they share, as three Markdown tables."""
    faults = [
        ("fault", "what it does", "`at`", "outcome"),
        *((f"`{one.type}`", one.summary, _where(one.positions), one.outcome) for one in entries()),
    ]
    settings = [
        ("setting", "takes", "left out", "meaning"),
        *(_cells(f"{one.type}.{field.name}", field) for one in entries() for field in one.fields),
    ]
    shared = [
        ("field", "takes", "left out", "meaning"),
        *(_cells(f"{part.name}.{field.name}", field) for part in parts() for field in part.fields),
    ]
    return "\n".join(_table(rows) for rows in (faults, settings, shared))


def _where(positions: Sequence[str]) -> str:
    return f"always {positions[0]}" if len(positions) == 1 else ", ".join(positions)


def _cells(name: str, field: Field) -> Sequence[str]:
    takes = f"{field.takes} ({field.unit})" if field.unit else field.takes
    return f"`{name}`", takes, field.default, field.help


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "".join(_row(cells) for cells in (head, ["---"] * len(head), *body))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
