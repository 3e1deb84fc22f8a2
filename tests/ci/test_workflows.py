"""Workflows run other people's code: which, is said by the commit, as a tag is whatever its owner makes of it tomorrow."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.y*ml")), ROOT / "tests" / "deploy" / "github-workflow.yaml"]  # fmt: skip
USES = re.compile(r"^\s*(?:- )?uses: (.*)$", re.MULTILINE)
PINNED = re.compile(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_pinned(file):
    """Each action is named by a full commit, with the release that it is beside it."""
    used = USES.findall(file.read_text())
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []


def test_one_release_of_each():
    """An action is the same one everywhere: no workflow is forgotten when it is renewed."""
    used = {
        PINNED.fullmatch(each).groups()
        for file in WORKFLOWS
        for each in USES.findall(file.read_text())
    }
    assert len(used) == len({name for name, *_ in used})


def test_least_rights():
    """No job may write to the repository, and no checkout of ours leaves its token behind for what runs next."""
    for file in WORKFLOWS:
        assert "permissions:\n  contents: read\n" in file.read_text()
    ours = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert ours.count("actions/checkout@") == ours.count("persist-credentials: false") > 0
