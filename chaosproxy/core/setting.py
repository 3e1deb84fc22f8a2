"""How a setting of the profile language is declared: once, beside the code that uses it.

Takes a kind, a help text and a default; gives a dataclass field that the profile loader, the JSON
Schema, `chaosproxy faults` and the README table all read. Nothing about a setting is said twice.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final


class Invalid(ValueError):  # noqa: N818 - reads as a sentence where it is raised
    """A value that a setting cannot take.

    `message` says what is wrong and what would be right; `path` leads from the value given to the part that
    is wrong (keys and list indices), so that the loader can point at its line. `suggestion` is what was probably
    meant; `at_key` says that the last key of the path is itself what is wrong, not its value. `more` is what else is
    wrong with the same value.
    """

    def __init__(
        self,
        message: str,
        path: tuple[str | int, ...] = (),
        *,
        suggestion: str = "",
        at_key: bool = False,
        more: tuple["Invalid", ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.suggestion = suggestion
        self.at_key = at_key
        self.more = more

    def under(self, *path: str | int) -> "Invalid":
        """The same complaint, seen from a value that holds the wrong one at `path`."""
        return Invalid(
            self.message,
            (*path, *self.path),
            suggestion=self.suggestion,
            at_key=self.at_key,
            more=tuple(other.under(*path) for other in self.more),
        )


#: Of what is wrong with one value so much is told.
MOST_WRONG: Final = 100


def parse_each(
    parse: Callable[[Any, object], Any], parts: Iterable[tuple[str | int, object]]
) -> list[Any]:
    """What `parse` makes of each key or index and its value. Raises one `Invalid` for all that are wrong, or MOST_WRONG."""
    parsed: list[Any] = []
    wrong: list[Invalid] = []
    for key, part in parts:
        try:
            parsed.append(parse(key, part))
        except Invalid as found:
            placed = found.under(key)
            wrong += (placed, *placed.more)
            if len(wrong) >= MOST_WRONG:
                break
    if wrong:
        first, *more = wrong
        raise Invalid(
            first.message,
            first.path,
            suggestion=first.suggestion,
            at_key=first.at_key,
            more=tuple(more),
        )
    return parsed


@dataclass(frozen=True, slots=True)
class Kind:
    """What a scalar, list or mapping of YAML means.

    `parse` takes the plain YAML value (str, int, float, bool, None, list, dict) and gives the value the
    code works with, or raises `Invalid`. `schema` is the JSON Schema of what `parse` takes. `unit` is shown in
    the catalogue.
    """

    name: str
    parse: Callable[[object], Any]
    schema: Mapping[str, object]
    unit: str = ""


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting: its name in YAML, its kind, what it means and what it is when left out.

    `default` is the value in YAML form as shown to a reader (`None`: nothing); `REQUIRED` when it must be given.
    """

    name: str
    kind: Kind
    help: str
    default: object


def setting(
    kind: Kind,
    help: str,  # noqa: A002 - click's word for it
    *,
    default: object = REQUIRED,
    name: str = "",
    absent: object = None,
) -> Any:
    """A dataclass field that is a setting.

    `default` is given as a reader would write it in YAML and parsed by `kind`; None: it may be left out, and is `absent`
    then. `name` is the YAML name where it cannot be a Python name (`from`, `for`).
    """
    meta = {"setting": (kind, help, default, name)}
    if default is REQUIRED:
        return dataclasses.field(metadata=meta)
    value = absent if default is None else kind.parse(default)
    return dataclasses.field(default=value, metadata=meta)


def settings_of(cls: type) -> dict[str, tuple[str, Setting]]:
    """The settings of a dataclass: YAML name -> (attribute name, setting), in the order they are declared."""
    found: dict[str, tuple[str, Setting]] = {}
    for field in dataclasses.fields(cls):
        if "setting" in field.metadata:
            kind, help_text, default, name = field.metadata["setting"]
            name = name or field.name
            found[name] = (field.name, Setting(name, kind, help_text, default))
    return found
