"""A run that was kept: all of its samples, as short as they can be said.

Takes a run, gives text for a file in the repository; takes that text, gives the run, from which every table can be made anew.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.bench.known import Place
from tests.bench.peers import Missing, Peer
from tests.bench.record import Failure, Record, Sample

#: Where README's tables and its plot come from.
RESULT = Path(__file__).with_name("result.json")
PLOT = RESULT.with_suffix(".svg")


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `about`: the machine and the run, in a paragraph; `huge`: bytes of the huge value."""

    record: Record
    about: str
    huge: int


def _words(_place: Place) -> NoReturn:
    raise NotImplementedError("a peer of a run that is over")


def _short(value: float) -> float:
    """Four digits that count: there is more noise than that in each."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _bare(reason: str) -> str:
    """Where things stand on one machine is nobody's business."""
    return re.sub(r"(?:/[\w.+-]+)+/", "", reason)


def _lines(values: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(json.dumps(each) for each in values) + "\n]"


def dump(run: Run) -> str:
    """Give the text: JSON, a line for each sample."""
    record = run.record
    samples = [
        [s.round, s.peer, s.scenario, s.part, {key: _short(v) for key, v in s.values.items()}]
        for s in record.samples
    ]
    parts = {
        "about": json.dumps(run.about),
        "huge": json.dumps(run.huge),
        "peers": _lines([[peer.name, peer.note, peer.version] for peer in record.peers]),
        "missing": _lines([[each.name, _bare(each.reason)] for each in record.missing]),
        "failures": _lines(
            [[each.peer, each.scenario, _bare(each.reason)] for each in record.failures]
        ),
        "samples": _lines(samples),
    }
    return "{" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items()) + "}\n"


def load(text: str) -> Run:
    """Give the run that a text is of."""
    raw = json.loads(text)
    record = Record(
        peers=[Peer(name, note, _words, version) for name, note, version in raw["peers"]],
        missing=[Missing(*each) for each in raw["missing"]],
        samples=[Sample(*each) for each in raw["samples"]],
        failures=[Failure(*each) for each in raw["failures"]],
    )
    return Run(record, raw["about"], raw["huge"])


def stored() -> Run | None:
    """Give the run whose figures are README's, None: there is none."""
    return load(RESULT.read_text()) if RESULT.exists() else None
