"""The faults, one file each; the file's name is the fault's name in YAML.

Takes names; importing a fault's file registers it in `core.fault.FAULTS`. A profile needs those that it names, and most start with
few or none: so they are imported one by one, and all together only for who wants to know what there is.
"""

import importlib
import pkgutil
from functools import cache


@cache
def names() -> tuple[str, ...]:
    """The names of all faults."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def register(*wanted: str) -> None:
    """See that these faults are registered, as far as there are such; without names all."""
    for name in wanted or names():
        if name in names():
            importlib.import_module(f"{__name__}.{name}")
