"""What a test asks to be put in force: looked at word by word, as no type checker sees what a marker is given.

Takes what `use()` and the marker are given; gives a Profile and names of faults, or raises TypeError that says what instead.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.core.scalar import MOST, closest
from chaosproxy.profile import Source, find, load

#: What a marker takes beside profiles.
_TAKEN: Final = ("yaml", "seed", "set", "require_fired")
_SEQUENCES: Final = (list, tuple, set, frozenset)


def read_profile(names: Sequence[object], yaml: object, seed: object, overrides: object) -> Profile:
    """Read profiles by their names and paths, or a text, with some values set.

    Raises TypeError for what is none of these, ProfileError for what is wrong with a profile.
    """
    if (yaml is None) == (not names):
        raise TypeError("use() takes the names of profiles, or yaml=")
    whole = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= MOST
    if seed is not None and not whole:
        raise _wrong("seed", f"a whole number from 0 to {MOST}", seed)
    sources = [find(_name(name)) for name in names]
    if yaml is not None:
        if not isinstance(yaml, str):
            raise _wrong("yaml", "a profile's text", yaml)
        sources = [Source("test", yaml.encode("utf-8", "surrogatepass"), "yaml")]
    return load(sources, table=CommandTable.bundled(), overrides=_overrides(overrides))


def check_marker(given: Collection[str], required: object) -> None:
    """Look at a marker's arguments by name, and at its `require_fired`. Raises TypeError for what a marker does not take."""
    for name in given:
        if name not in _TAKEN:
            meant = f"did you mean '{near}'?" if (near := closest(name, _TAKEN)) else ""
            raise TypeError(f"no argument is called '{name}'; {meant or ', '.join(_TAKEN)}")
    read_required(required)


def read_required(given: object) -> Sequence[str] | None:
    """Read what must fire; None: nothing has to, empty: each that acts for sure. Raises TypeError."""
    if given is None or given is False:
        return None
    if given is True:
        return ()
    each = list(given) if isinstance(given, _SEQUENCES) else [given]
    names = [name for name in each if isinstance(name, str)]
    if len(names) < len(each):
        raise _wrong("require_fired", "True, 'all', or the names of faults", given)
    return names or None


def _name(given: object) -> str:
    path = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(path, str):
        raise _wrong("a profile", "a shipped one's name or a file's path", given)
    return path


def _overrides(given: object) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise _wrong("set", 'values by their paths, as {"lost-ack.when.nth": 3}', given)
    try:
        return [f"{path}={json.dumps(value)}" for path, value in given.items()]
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"set: no value that a profile can have: {error}") from None


def _wrong(field: str, what: str, given: object) -> TypeError:
    return TypeError(f"{field}: expected {what}, got {given!r:.60}")
