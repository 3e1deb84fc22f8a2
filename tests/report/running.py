"""A run that has ended, for the tests of what is told of it.

Takes what is to be different; gives a Run.
"""

from chaosproxy.verdict import Run

EVENT = {
    "n": 1,
    "t": 0.5,
    "at": "2026-11-30T12:34:56.789+00:00",
    "connection": 1,
    "client": "127.0.0.1",
    "db": 0,
    "command": "RPUSH",
    "keys": ["chat:1"],
    "fault": "lost-ack",
    "type": "disconnect",
    "position": "after_apply",
    "match": 1,
    "applied": "yes",
    "told": "reset",
    "outcome": "unknown",
}
FAULT = {
    "profile": "p",
    "name": "lost-ack",
    "type": "disconnect",
    "matched": 3,
    "fired": 1,
    "skipped": {"nth": 2},
}
NEVER = FAULT | {"name": "never", "matched": 0, "fired": 0, "skipped": {}}
#: What has to be said as it is, and must not become anything else: markup, control characters, what XML cannot say.
HOSTILE = "<script>alert(1)</script>&\"'|`x`\x1b[2J\x00\ufffe"


def run(**more):
    given = {
        "version": "0.1.0",
        "profile": "p",
        "profile_sha256": "ab",
        "description": "It breaks.",
        "healthy": "It does not matter.",
        "seed": 7,
        "upstream": "redis://127.0.0.1:6379",
        "command": ("pytest", "-q"),
        "status": 0,
        "started": "2026-11-30T12:34:56.000+00:00",
        "seconds": 2.5,
        "commands": 12,
        "faults": [FAULT],
        "required": ("lost-ack",),
        "events": [EVENT],
        "recorded": 1,
        "again": "chaosproxy exec --seed 7 -- pytest -q",
        "replay": "chaosproxy exec --replay x -- pytest -q",
    }
    return Run(**(given | more))
