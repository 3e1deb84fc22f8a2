"""The faults by name: each is read in when it is asked for, and none that there is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chaosproxy import faults
from chaosproxy.core.fault import FAULTS

ROOT = Path(__file__).resolve().parent.parent.parent


def test_names():
    """The files are the faults."""
    files = sorted(path.stem for path in (ROOT / "chaosproxy/faults").glob("[a-z]*.py"))
    assert list(faults.names()) == files


def test_all_and_one():
    """Without names all are registered; a name that is none's is no error here, whoever asked says what is wrong."""
    faults.register()
    assert set(faults.names()) <= set(FAULTS)
    before = dict(FAULTS)
    faults.register("latency", "no_such_fault", "os.path", "")
    assert before == FAULTS


@pytest.mark.parametrize("names", [[], ["latency"], ["latency", "no_such_fault"]])
def test_one_by_one(names):
    """What is not named is not read in."""
    code = f"""
import json
from chaosproxy import faults
from chaosproxy.core.fault import FAULTS
{names!r} and faults.register(*{names!r})
print(json.dumps(sorted(FAULTS)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == names[:1]
