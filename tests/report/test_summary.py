"""The job's summary: what fired, what did not, and how to have it again."""

from chaosproxy.report import summary
from tests.report.running import FAULT, HOSTILE, NEVER, run


def test_passed():
    """A table, the seed, and the commands."""
    text = summary.render(run())
    assert text.startswith("### chaosproxy: p, passed\n")
    assert "Seed 7, 12 commands in 2.5 s." in text
    assert "| lost-ack | disconnect | 3 | 1 | nth 2 |  |" in text
    assert "```sh\nchaosproxy exec --seed 7 -- pytest -q\nchaosproxy exec --replay" in text


def test_failed():
    """What never fired stands out."""
    ended = run(faults=[FAULT, NEVER], required=("never",), divergence="diverges: a; b", replay="")
    text = summary.render(ended)
    assert "failed (exit status 1)" in text
    assert "| never | disconnect | 0 | 0 |  | **never fired** |" in text
    assert "**never never fired**: nothing that it matches ever came." in text
    assert "The replay diverges: a; b." in text


def test_incomplete():
    """An events file that is not complete fails the run."""
    text = summary.render(run(recorded=5, lost=2))
    assert "failed (exit status 1)" in text
    assert "2 of 5 events could not be written" in text


def test_without_faults():
    """Calm has no table."""
    assert "| fault |" not in summary.render(run(faults=[], required=()))


def test_hostile():
    """A name cannot become markup, and no command ends the block of code."""
    text = summary.render(run(profile=HOSTILE, again="echo ```\x1b"))
    assert "\\<script\\>" in text.partition("\n")[0]
    assert "\\|" in text
    assert text.count("```") == 2
    assert "\x1b" not in text
