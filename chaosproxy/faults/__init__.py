"""The faults, one file each; the file's name is the fault's name in YAML.

Takes nothing; importing this package imports every file beside it, and each registers itself in `core.fault.FAULTS`.
"""

import importlib
import pkgutil

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
