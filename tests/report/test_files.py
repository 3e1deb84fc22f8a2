"""A report's files: all of them, whole, over what was there."""

import json

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


def test_summary_is_added(tmp_path):
    """A job's summary may have something in it already."""
    path = tmp_path / "summary.md"
    path.write_text("# Before\n")
    files.add_summary(path, run())
    assert path.read_text().startswith("# Before\n### chaosproxy: p, passed")
