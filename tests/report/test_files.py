"""A report's files: all of them, whole, over what was there."""

import errno
import json
import os
from pathlib import Path

import pytest

from chaosproxy.report import files
from tests.report.running import run


def test_written(tmp_path):
    """Three files, of this run, also where there were others."""
    (tmp_path / "report.html").write_text("old" * 100_000)
    files.write(tmp_path, run())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "junit.xml",
        "report.html",
        "report.json",
    ]
    assert json.loads((tmp_path / "report.json").read_text()) == run().as_dict()
    assert (tmp_path / "junit.xml").read_bytes().startswith(b"<?xml")
    assert "old" * 3 not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("what", ["report.json", "junit.xml", "report.html"])
def test_no_room(tmp_path, monkeypatch, what):
    """One that does not fit is named and left as it was: none is there in part."""
    files.write(tmp_path, run(seed=1))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = Path.write_bytes

    def full(path, data):
        if what in path.name:
            write(path, data[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space") as caught:
        files.write(tmp_path, run(seed=2))
    assert caught.value.filename == str(tmp_path / what)
    assert {path.name for path in tmp_path.iterdir()} == set(before)
    assert (tmp_path / what).read_bytes() == before[what]


def test_summary_without_room():
    """What a full disk says is said of the summary."""
    with pytest.raises(OSError, match="No space") as caught:
        files.add_summary(Path("/dev/full"), run())
    assert caught.value.filename == "/dev/full"


def test_summary_is_added(tmp_path):
    """A job's summary may have something in it already."""
    path = tmp_path / "summary.md"
    path.write_text("# Before\n")
    files.add_summary(path, run())
    assert path.read_text().startswith("# Before\n### chaosproxy: p, passed")
