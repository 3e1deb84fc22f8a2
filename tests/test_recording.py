"""Events files read back: what is in them, and what is told of a file that is none."""

import json
from pathlib import Path

import pytest

from chaosproxy.recording import RecordingError, read_recording

HEADER = '{"chaosproxy": "1", "seed": 7, "profile": "lost-ack", "profile_sha256": "ab"}\n'
EVENT = '{"n": 1, "generation": 1, "fault": "f", "ordinal": 1, "match": 1, "digest": "d", "command": "SET"}\n'


def test_read(tmp_path: Path):
    """Seed, profile and events come back."""
    path = tmp_path / "events.jsonl"
    path.write_text(HEADER + "\n" + EVENT)
    run = read_recording(path)
    assert (run.seed, run.profile, run.profile_sha256) == (7, "lost-ack", "ab")
    assert [recorded.command for recorded in run.recording.unplayed()] == ["SET"]
    assert run.missing == 0


def test_what_it_lacks(tmp_path: Path):
    """Numbers that are missing are events that could not be written; those behind the last one nobody can know."""
    path = tmp_path / "events.jsonl"
    path.write_text(HEADER + "".join(EVENT.replace("1,", f"{n},", 1) for n in (1, 2, 5, 7)))
    assert read_recording(path).missing == 3
    path.write_text(HEADER)
    assert read_recording(path).missing == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "{path}: it is empty, not even a first line that says the seed"),
        ("[]\n", "{path}:1: not a JSON object, as --events writes one a line"),
        (HEADER + "{\n", "{path}:2: not a JSON object, as --events writes one a line"),
        (
            HEADER + '"' + "x" * (1 << 20) + '"\n',
            "{path}:2: not a JSON object, as --events writes one a line",
        ),
        (
            HEADER.replace("7", '"7"'),
            "{path}:1: the first line should say seed, profile and profile_sha256, as --events writes it",
        ),
        (
            HEADER + EVENT + EVENT.replace('"n": 1, "generation": 1', '"n": 2, "generation": 2'),
            "{path}: it holds events of 2 profiles, one after the other; only a run with one can be replayed",
        ),
        (
            HEADER + EVENT.replace('"generation": 1', '"generation": 2'),
            "{path}: its events are of a profile that came later; only a run with one can be replayed",
        ),
        (
            HEADER + EVENT.replace('"generation": 1', '"generation": []'),
            "{path}: its events are of a profile that came later; only a run with one can be replayed",
        ),
        (
            HEADER.replace("}", ', "redacted": true}') + EVENT,
            "{path}: its keys were written as hashes (--redact-keys), and cannot be found again",
        ),
        (HEADER + EVENT + EVENT, "{path}: event 1 stands in it twice"),
    ],
)
def test_no_recording(tmp_path: Path, text: str, says: str):
    """What is wrong with it is told, with its place."""
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    with pytest.raises(RecordingError) as error:
        read_recording(path)
    assert str(error.value) == says.format(path=path)


def test_a_large_event(tmp_path: Path):
    """A command may have had any number of keys, and its event names them all."""
    path = tmp_path / "events.jsonl"
    keys = [f"chat:{number}" for number in range(200_000)]
    path.write_text(HEADER + json.dumps(json.loads(EVENT) | {"keys": keys}) + "\n")
    assert len(read_recording(path).recording.unplayed()) == 1


def test_no_event(tmp_path: Path):
    """An event without what is needed to find it again is told."""
    path = tmp_path / "events.jsonl"
    path.write_text(HEADER + '{"n": 1, "generation": 1}\n')
    with pytest.raises(RecordingError, match="no event to replay"):
        read_recording(path)


def test_no_file(tmp_path: Path):
    """A file that is not there is told."""
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(tmp_path / "none")
