"""Profiles: the only place that knows YAML, and every message about a profile.

Takes names, paths or texts of profiles; gives a `Profile` for the engine, or raises `ProfileError` with all
problems at once.

    problems.py     what is wrong, and where
    yaml_nodes.py   YAML with places, and without surprises
    fields.py       the fields that belong to no single fault
    reader.py       a mapping as a dataclass of settings
    rules.py        the entries of `faults:`
    checks.py       matches that can never hold, faults that can never fire
    overrides.py    `--set`
    load.py         all of that in order
    library.py      where profiles are found
"""

from chaosproxy.profile.library import find, first_line, names, shipped
from chaosproxy.profile.load import Source, load
from chaosproxy.profile.overrides import split_override
from chaosproxy.profile.problems import Problem, ProfileError

__all__ = [
    "Problem",
    "ProfileError",
    "Source",
    "find",
    "first_line",
    "load",
    "names",
    "shipped",
    "split_override",
]
