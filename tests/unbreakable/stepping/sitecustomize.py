"""A wall clock that tests set: what Python runs first in a process whose PYTHONPATH begins with this folder.

Takes the file that STEPPED names, with a number of seconds in it; gives a `time.time` that is so much ahead.
"""

import os
import time
from pathlib import Path

_FILE = Path(os.environ["STEPPED"])
_time = time.time


def _stepped() -> float:
    return _time() + float(_FILE.read_text() or 0)


time.time = _stepped
