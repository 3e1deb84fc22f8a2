"""Events files as recordings: what a run wrote with `--events`, read back to be replayed.

Takes a path; gives the header's facts and a Recording, or raises RecordingError with the line that is wrong.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from chaosproxy.core.replay import Recording

#: What the profile that a run begins with is called in its events; the header tells of no other.
_FIRST = "1"


class RecordingError(Exception):
    """The file is not a recording that can be replayed; the text says where and why."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recording and what it was made with; `missing`: events that are not in it, by their numbers (a full disk)."""

    seed: int
    profile: str
    profile_sha256: str
    recording: Recording
    missing: int = 0


def read_recording(path: Path) -> RecordedRun:
    """Read an events file. Raises RecordingError."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    values = [_object(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not values:
        raise RecordingError(f"{path}: it is empty, not even a first line that says the seed")
    header, events = values[0], values[1:]
    seed, profile, digest = (header.get(name) for name in ("seed", "profile", "profile_sha256"))
    if not (isinstance(seed, int) and isinstance(profile, str) and isinstance(digest, str)):
        raise RecordingError(
            f"{path}:1: the first line should say seed, profile and profile_sha256, as --events writes it"
        )
    if header.get("redacted"):
        raise RecordingError(
            f"{path}: its keys were written as hashes (--redact-keys), and cannot be found again"
        )
    try:
        recording = Recording.of(events)
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from None
    generations = {json.dumps(event.get("generation")) for event in events}
    if len(generations) > 1:
        raise RecordingError(
            f"{path}: it holds events of {len(generations)} profiles, one after the other; only a run with one can be replayed"
        )
    if generations - {_FIRST}:
        raise RecordingError(
            f"{path}: its events are of a profile that came later; only a run with one can be replayed"
        )
    last = max((int(str(event["n"])) for event in events), default=0)
    return RecordedRun(seed, profile, digest, recording, last - len(events))


def _object(path: Path, number: int, line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RecordingError(f"{path}:{number}: not a JSON object, as --events writes one a line")
    return value
