"""Events: their shape, their file, what is never in them, and that a full disk stops nothing."""

import base64
import errno
import json
import logging
import os
import threading
import time
from dataclasses import replace

import pytest

from chaosproxy import journal as journal_module
from chaosproxy.core.effect import Fired
from chaosproxy.journal import Event, Journal

FIRED = Fired(
    fault="lost-ack",
    type="disconnect",
    position="after_apply",
    command="RPUSH",
    keys=(b"chat:1", "chât".encode()),
    db=3,
    client="worker",
    connection=7,
    match=2,
    applied="yes",
    told="reset",
    outcome="unknown",
    generation=2,
    digest="00112233445566aa",
    delay=0.25,
    draw=0.125,
    detail="chat:1 and more",
    per="chat:1",
    ordinal=5,
)
HEADER = {"chaosproxy": "1", "seed": 7, "profile": "lost-ack", "profile_sha256": "ab"}


def recorded(journal: Journal, fired: Fired = FIRED, now: float = 0.0) -> Event:
    """Write an event down, and give it as it is told."""
    journal.record(fired, now)
    return journal.events()[-1]


def test_shape():
    """An event has these fields, in this order, and nothing else."""
    event = recorded(Journal(100.0), now=101.5)
    assert event.pop("at").startswith("20")
    assert list(event.items()) == [
        ("n", 1),
        ("t", 1.5),
        ("generation", 2),
        ("connection", 7),
        ("client", "worker"),
        ("db", 3),
        ("command", "RPUSH"),
        ("keys", ["chat:1", "chât"]),
        ("fault", "lost-ack"),
        ("type", "disconnect"),
        ("position", "after_apply"),
        ("match", 2),
        ("ordinal", 5),
        ("applied", "yes"),
        ("told", "reset"),
        ("outcome", "unknown"),
        ("per", "chat:1"),
        ("delay", 0.25),
        ("draw", 0.125),
        ("digest", "00112233445566aa"),
        ("detail", "chat:1 and more"),
    ]


def test_what_is_not_there_is_left_out():
    """No delay, no chance, no detail: no such field."""
    event = recorded(Journal(0), replace(FIRED, delay=None, draw=None, detail=""))
    assert not {"delay", "draw", "detail", "keys_b64"} & event.keys()


def test_keys_that_are_no_text():
    """Keys that are not UTF-8 come as base64, all of them, in order."""
    event = recorded(Journal(0), replace(FIRED, keys=(b"a", b"\xff\x00")))
    assert "keys" not in event
    assert [base64.b64decode(key) for key in event["keys_b64"]] == [b"a", b"\xff\x00"]


LOST = replace(
    FIRED,
    keys=(b"n", b"a"),
    detail="switched, 3 writes undone",
    writes=(("INCR", (b"n",), 2), ("SET", (b"a",), 1)),
)


def test_what_was_lost():
    """The writes that a failover has lost stand beside the keys: which command, on which keys, how many."""
    event = recorded(Journal(0), LOST)
    assert event["writes"] == [
        {"command": "INCR", "keys": ["n"], "count": 2},
        {"command": "SET", "keys": ["a"], "count": 1},
    ]
    hidden = recorded(Journal(0, redact=True), LOST)
    assert [write["keys"] for write in hidden["writes"]] == [[key] for key in hidden["keys"]]
    assert hidden["keys"] != event["keys"]
    assert hidden["detail"] == "switched, 3 writes undone"


def test_of_how_many_profiles():
    """The latest generation of which there is an event; none yet: 0. Events of an older one may come later."""
    journal = Journal(0)
    assert journal.generation == 0
    for generation in (1, 3, 2):
        recorded(journal, replace(FIRED, generation=generation))
    assert journal.generation == 3


def test_redacted():
    """With `redact` no key is left anywhere, equal keys look equal, and two runs have nothing in common."""
    journal = Journal(0, redact=True)
    one, two = recorded(journal), recorded(journal)
    assert one["keys"] == two["keys"]
    assert len(set(one["keys"])) == 2
    assert "chat" not in json.dumps(one)
    assert one["digest"] != FIRED.digest
    assert recorded(Journal(0, redact=True))["keys"] != one["keys"]


def test_file(tmp_path):
    """The file has the header and then each event, as soon as it happens, over what it held before."""
    path = tmp_path / "events.jsonl"
    path.write_text("old")
    journal = Journal(0)
    journal.open(str(path), HEADER)
    assert json.loads(path.read_text()) == HEADER
    events = [recorded(journal), recorded(journal)]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [HEADER, *events]
    assert "chât" in path.read_text()
    journal.close()


def test_stdout(capfd):
    """`-` is stdout."""
    journal = Journal(0)
    journal.open("-", HEADER)
    event = recorded(journal)
    journal.close()
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == [HEADER, event]


def test_file_that_cannot_be_opened(tmp_path):
    """Where no file can be, opening it says so."""
    with pytest.raises(FileNotFoundError):
        Journal(0).open(str(tmp_path / "no" / "events.jsonl"), HEADER)


def test_full_disk(tmp_path, monkeypatch, caplog):
    """A disk that is full loses events, counts them, says so once; a line it took half of is completed."""
    path = tmp_path / "events.jsonl"
    journal = Journal(0)
    journal.open(str(path), HEADER)
    journal.record(FIRED, 0)
    write, room = os.write, 40

    def small(file, data):
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(file, data[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", small)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            journal.record(FIRED, 0)
    monkeypatch.undo()
    journal.record(FIRED, 0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["n"] for line in lines[1:]] == [1, 2, 5]
    assert journal.lost == 2
    assert [event["n"] for event in journal.events()] == [1, 2, 3, 4, 5]
    assert [record.message for record in caplog.records] == [
        f"events are being lost: {path}: No space left on device"
    ]
    journal.close()


def test_run():
    """Events of two runs have the same numbers: what tells them apart is another one for each run."""
    assert len({Journal(0).run for _ in range(10)}) == 10


def test_memory_is_bounded():
    """Only the newest events are kept; how many are gone is told, and numbers go on."""
    journal = Journal(0, kept=3)
    for _ in range(5):
        journal.record(FIRED, 0)
    assert [event["n"] for event in journal.events()] == [3, 4, 5]
    assert [event["n"] for event in journal.events(after=4)] == [5]
    assert (journal.last, journal.dropped) == (5, 2)
    journal.clear()
    assert (journal.events(), journal.dropped) == ([], 5)
    assert recorded(journal)["n"] == 6


def test_memory_is_bounded_in_bytes(monkeypatch):
    """However many keys a command has: the oldest events go first, and the last one stays whatever it takes."""
    monkeypatch.setattr(journal_module, "MOST_BYTES", 10_000)
    journal = Journal(0.0)
    for _ in range(20):
        journal.record(FIRED, 1.0)
    assert 5 <= len(journal.events()) <= 9
    journal.record(replace(FIRED, keys=(b"k" * 7000,)), 1.0)
    assert [event["n"] for event in journal.events()] == [20, 21]
    journal.record(replace(FIRED, keys=(b"k",) * 1000), 1.0)
    assert [event["n"] for event in journal.events()] == [22]
    assert journal.dropped == 21
    journal.clear()
    for _ in range(6):
        journal.record(FIRED, 1.0)
    assert len(journal.events()) == 6


def test_waiting_for_an_event():
    """Whoever waits gets the event when it happens, and nothing when none does."""
    journal = Journal(0)
    began = time.monotonic()
    assert journal.events(wait=0.05) == []
    assert time.monotonic() - began >= 0.05
    found = []
    waiter = threading.Thread(target=lambda: found.extend(journal.events(after=1, wait=60)))
    waiter.start()
    journal.record(FIRED, 0)
    journal.record(FIRED, 0)
    waiter.join(60)
    assert [event["n"] for event in found] == [2]
