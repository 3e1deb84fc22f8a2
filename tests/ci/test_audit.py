"""The audit of what chaosproxy needs: vulnerable, clean, and nobody there are three things, whatever pip-audit calls them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci.services import services

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"
CLEAN = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}
#: As pip-audit says it of a package that a service answers 404 for, with exit status 0.
SKIPPED = {
    "name": "a",
    "skip_reason": "Dependency not found on PyPI and could not be audited: a (1)",
}
UNREACHABLE = "Traceback …\nrequests.exceptions.ConnectionError: Max retries exceeded"
BROKEN_OFF = "Traceback …\nrequests.exceptions.ChunkedEncodingError: ('Connection broken')"


@pytest.fixture(scope="module")
def audit():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["audit"]


@pytest.fixture
def asked(audit, tmp_path, monkeypatch, capsys):
    """Audit one package with services that say this: a dependency, or what goes to stderr. Gives status, stdout and stderr."""
    monkeypatch.setattr(audit, "pins", lambda: ["a==1"])

    def ask(*said, required=False):
        program = tmp_path / "pip_audit.py"
        program.write_text(
            f"import json, sys\n"
            f"said = dict(zip({audit.SERVICES!r}, json.loads({json.dumps(said)!r})))[sys.argv[2]]\n"
            f"if isinstance(said, str): sys.exit(said)\n"
            f"print(json.dumps({{'dependencies': [said], 'fixes': []}}))\n"
            f"sys.exit(bool(said.get('vulns')))\n"
        )
        words = ["--required"] if required else []
        status = audit.main([*words, "--pip-audit", sys.executable, str(program)])
        return status, *capsys.readouterr()

    return ask


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(
    ("said", "status"),
    [
        ((VULNERABLE, SKIPPED), 1),
        ((SKIPPED, VULNERABLE), 1),
        ((UNREACHABLE, VULNERABLE), 1),
        ((CLEAN, VULNERABLE), 0),
        ((CLEAN, SKIPPED), 0),
        ((SKIPPED, CLEAN), 0),
        ((UNREACHABLE, CLEAN), 0),
        ((BROKEN_OFF, CLEAN), 0),
        (("ValueError: a mistake", CLEAN), 2),
        (("usage: pip-audit: unrecognized option", CLEAN), 2),
        ((SKIPPED, "ImportError"), 2),
    ],
)
def test_what_services_say(asked, said, status, required):
    """Who is vulnerable is so whatever the others say; one answer is enough; what is no answer and no network's fault is a failure."""
    found, out, err = asked(*said, required=required)
    assert found == status
    assert ("VULNERABLE: a==1: X-1" in err) == (status == 1)
    assert "NOT AUDITED" not in err
    assert ("the audit is broken" in err) == (status == 2)
    if status < 2:
        assert out == f"1 of 1 packages audited, {status} vulnerable\n"


@pytest.mark.parametrize("first", [SKIPPED, UNREACHABLE])
@pytest.mark.parametrize("second", [SKIPPED, UNREACHABLE])
def test_nobody_there(asked, first, second):
    """Where no service says anything, that is told in a block that nobody overlooks; it fails where the audit is required."""
    status, out, err = asked(first, second)
    assert status == 0
    assert out == "0 of 1 packages audited, 0 vulnerable\n"
    assert "NOT AUDITED: no service said anything about 1 of 1 packages" in err
    assert err.startswith("!" * 80)
    assert asked(first, second, required=True)[0] == 3


def test_what_is_audited(audit):
    """All that a project needs here, and what that needs in turn; not itself."""
    names = {pin.partition("==")[0] for pin in audit.pins("pytest_asyncio")}
    assert {"pytest", "pluggy", "iniconfig"} <= names
    assert "pytest-asyncio" not in names
    with pytest.raises(audit.BrokenError):
        audit.pins("no-such-project")


@pytest.mark.install
@pytest.mark.parametrize(
    ("of_click", "status", "said"),
    [
        ({"vulnerabilities": []}, 0, "packages audited, 0 vulnerable"),
        (
            {"vulnerabilities": [{"id": "X-1", "aliases": [], "details": "bad", "fixed_in": []}]},
            1,
            "VULNERABLE: click==",
        ),
        (None, 0, "NOT AUDITED: no service said anything about 1 of"),
        (OSError, 0, "NOT AUDITED: no service said anything about "),
    ],
    ids=["clean", "vulnerable", "unknown", "unreachable"],
)
def test_the_real_pip_audit(tmp_path, of_click, status, said):
    """Through the real one, with services on this machine: what the script makes of each is what it should be."""
    pytest.importorskip("pip_audit", reason="no pip-audit: pip install '.[dev]'")

    def says(name):
        if of_click is OSError:
            raise OSError
        if name == "click":
            return of_click
        return {"vulnerabilities": []}

    with services(says, tmp_path) as found:
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env=os.environ | found,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == status, done.stderr
    assert said in done.stdout + done.stderr
    # What runs it, what the extras bring, and what that needs.
    assert int(re.search(r"of (\d+) packages audited", done.stdout)[1]) > 50
