"""How a swallowed write is carried out: proven first, computed by the server, answered in its place, and written down.

The dialogues for every mode of a connection are in tests/faults/test_drop_write.py, real servers in tests/live; here it is the
order of things, and what becomes of them when the server or the side connection says no.
"""

import pytest

from tests.conversation import Talk

DROP = "- {fault: drop_write, tell: ok, match: {commands: [RPUSH]}}"
GATE = ["MULTI", "SELECT 15", "DBSIZE", "SELECT 0", "EXEC"]
PROVEN = ["+OK", *["+QUEUED"] * 3, "*[+OK :0 +OK]"]
PLAN = [
    "MULTI",
    "COPY k k DB 15 REPLACE",
    "SELECT 15",
    "RPUSH k a",
    "DEL k",
    "SELECT 0",
    "EXEC",
]


def test_proven_then_computed():
    """First the gate, and only then the transaction; the client gets EXEC's element, and what it sends meanwhile waits."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a", "PING")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*PLAN)
        talk.upstream("+OK", *["+QUEUED"] * 5, "*[:1 +OK :7 :1 +OK]")
        talk.expect_client(":7")
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        how = "reply computed in scratch database 15"
        talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok", detail=how)


def test_not_proven_then_beside():
    """Where the scratch database holds something, temporary keys take its place."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream("+OK", *["+QUEUED"] * 3, "*[+OK :3 +OK]")
        heard = talk.heard("upstream")
        assert b"SELECT" not in heard
        assert heard.count(b":chaosproxy:") >= 4
        talk.upstream_eof()
        talk.expect_closed("close")


def test_the_servers_own_refusal():
    """What the server refuses before it queues it, it would have refused anyway: the client gets that very error."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*PLAN)
        refused = "-READONLY You can't write against a read only replica."
        talk.upstream(
            "+OK",
            "+QUEUED",
            "+QUEUED",
            refused,
            "+QUEUED",
            "+QUEUED",
            "-EXECABORT Transaction discarded.",
        )
        talk.expect_client(refused)
        talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")


@pytest.mark.parametrize("phase", ["gate", "plan"])
def test_the_upstream_goes(phase: str):
    """If the upstream goes in the middle of it nothing was told and nothing is written down as told."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        if phase == "plan":
            talk.upstream(*PROVEN)
            talk.expect_upstream(*PLAN)
        talk.upstream_eof()
        talk.expect_closed("close")
        talk.expect_nothing_fired()
