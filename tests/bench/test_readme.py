"""What README says of speed is what a kept run gives, whatever that was; and what a run gives, kept or missed, is said.

Takes the kept run and made-up ones, gives assertions.
"""

import pytest

from tests.bench import plot, readme, stored
from tests.bench.peers import Missing, Peer
from tests.bench.record import Failure, Record, Sample
from tests.bench.stored import Run

NAMES = ("haproxy", "relay-uvloop", "chaos-calm")


def run(**cpu: tuple[float, float]) -> Run:
    """A run of one round, in which SETs and GETs without a pipeline cost each peer so much."""
    samples = [
        Sample(1, name.replace("_", "-"), "p1", part, {"cpu": value, "user": value / 4})
        for name, values in cpu.items()
        for part, value in zip(("SET", "GET"), values, strict=True)
    ]
    peers = [Peer(name, f"a {name}", lambda _: [], "1.2") for name in NAMES]
    missing = [Missing("nginx", "/usr/lib/nginx/modules/x.so is no program")]
    failures = [Failure("relay-uvloop", "huge", "it fell over /tmp/some-where/output.log")]
    return Run(Record(peers, missing, samples, failures), "On a machine.", 1 << 20)


def test_readme_says_what_was_measured():
    """No figure in README, nor in its plot, is any but the kept run's; `python -m tests.bench.readme` renews them."""
    kept = stored.stored()
    text = readme.README.read_text()
    assert readme.with_section(text, kept) == text
    if kept is None:
        assert not stored.PLOT.exists()
    else:
        assert stored.PLOT.read_text() == plot.plot(kept.record)


def test_a_run_is_kept_whole():
    """What is read is what was written, to four digits; a path of the machine is in neither."""
    made = run(haproxy=(10.123456, 12345.67), chaos_calm=(0.000123456, 11))
    text = stored.dump(made)
    again = stored.load(text)
    assert stored.dump(again) == text
    assert [each.values["cpu"] for each in again.record.samples] == [10.12, 12350, 0.0001235, 11]
    assert [(each.name, each.note, each.version) for each in again.record.peers] == [
        (name, f"a {name}", "1.2") for name in NAMES
    ]
    assert (again.about, again.huge) == ("On a machine.", 1 << 20)
    assert again.record.missing == [Missing("nginx", "x.so is no program")]
    assert again.record.failures == [Failure("relay-uvloop", "huge", "it fell over output.log")]


def test_each_target_has_its_verdict():
    """The worse of SET and GET counts; a missed target is called that, with the scenario, and one that was not measured too."""
    said = readme.section(run(haproxy=(10, 10), relay_uvloop=(10, 10), chaos_calm=(12, 13)))
    assert (
        "| calm: CPU ÷ haproxy | 1.30 p1 · - p16 | ≤ 1.25 · 1.8 | **missed** in p1; not measured in p16 |"
        in said
    )
    assert (
        "| run: ms until it listens | - startup | ≤ 300 | "
        "not measured: chaos-calm was not measured in startup |" in said
    )
    assert "2 are missed" in said
    assert "- nginx: missing: " in said
    assert "haproxy 1.2 (a haproxy); " in said


def test_a_target_that_is_met_is_said_to_be():
    """Where all of a promise's scenarios keep their limit, it is met."""
    made = run(haproxy=(10, 10), chaos_calm=(11, 12))
    more = [
        Sample(each.round, each.peer, "p16", each.part, each.values) for each in made.record.samples
    ]
    made.record.samples.extend(more)
    assert "| calm: CPU ÷ haproxy | 1.20 p1 · 1.20 p16 | ≤ 1.25 · 1.8 | met |" in readme.section(
        made
    )


def test_a_readme_without_a_place_for_it():
    """The section's marks are there once; anything else is a mistake and not a README without figures."""
    with pytest.raises(ValueError, match="README has 0 places"):
        readme.with_section("# chaosproxy\n", None)
    marks = "<!-- bench:begin -->\nold\n<!-- bench:end -->\n"
    assert readme.with_section(marks, None) == "<!-- bench:begin -->\n<!-- bench:end -->\n"
