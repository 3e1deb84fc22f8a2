"""The bench as a whole, on small sizes.

Takes the command line, gives assertions about the files it writes.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.load import LOADS
from tests.bench.peers import Missing, choose, find
from tests.bench.process import ROOT
from tests.bench.run import SCENARIOS
from tests.bench.target import TARGETS

PEERS = ("haproxy", "relay-asyncio", "relay-uvloop", "chaos-calm")
COMPARED = {"", "haproxy", "relay-uvloop"}


@pytest.mark.bench
@pytest.mark.timeout(300)
def test_a_quick_run_measures_everything_it_was_asked_for(tmp_path: Path) -> None:
    """Every peer has a figure in every scenario, every target its ratio and a verdict."""
    # What pip cannot bring is asked for here, so that a skip says how to get it.
    if missing := [each for each in choose(PEERS, {}) if isinstance(each, Missing)]:
        pytest.skip("; ".join(f"{each.name}: {each.reason}" for each in missing))
    if find("redis-server") is None or find("redis-benchmark") is None:
        pytest.skip("redis-server and redis-benchmark: install Debian's redis")
    names = ",".join([*PEERS, "toxiproxy"])
    words = [sys.executable, "-m", "tests.bench", "--quick", "--peers", names]
    words += ["--peer", "toxiproxy=/nowhere/toxiproxy-server", "--out", str(tmp_path)]
    spare = tmp_path / "spare"
    spare.mkdir()
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(spare)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    raw = json.loads((tmp_path / "bench.json").read_text())
    assert raw["failures"] == []
    assert [name for name, _ in raw["missing"]] == ["toxiproxy"]
    measured = {(peer, scenario, part) for _, peer, scenario, part, _ in raw["samples"]}
    loads = [load.name for load in LOADS]
    assert measured == {
        (peer, scenario, part)
        for scenario in SCENARIOS
        for peer in (*PEERS, *(["direct"] if scenario in loads else []))
        for part in (("SET", "GET") if scenario in loads else ("",))
    }

    text = (tmp_path / "bench.md").read_text()
    assert text.strip() == done.stdout.strip()
    assert "- toxiproxy: missing: /nowhere/toxiproxy-server is no program" in text
    for target in TARGETS:
        line = next(
            line
            for line in text.splitlines()
            if line.startswith(f"| {target.title}, {target.scenario} |")
        )
        if target.peer == "chaos-calm" and target.against in COMPARED:
            assert re.search(
                r"\| [\d.,]+(?: SET · [\d.,]+ GET)? \| [≤≥] [\d.,]+ \| (pass|FAIL) \|$", line
            )
        else:
            assert "| not measured: " in line
    assert (tmp_path / "bench.svg").read_text().startswith("<svg")
    assert list(spare.iterdir()) == []
