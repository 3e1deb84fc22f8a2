"""What an event says of a reply that was late, or never left: how late it really was, and what the client saw of it."""

import pytest

from chaosproxy.core.pending import missed, spent
from tests.conversation import Talk

LATE = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
EARLY = "- {fault: latency, match: {commands: GET}, at: before_forward, delay: 1s}"
PIECES = "- {fault: slice, match: {commands: GET}, split: 2, gap: 1s}"
MADE = "- {fault: reply, match: {commands: GET}, at: after_apply, value: made}"
ENDS = ("client_gone", "upstream_gone", "cut", "switch")


def end(talk: Talk, how: str) -> None:
    """Have it end, or its profile."""
    getattr(talk, how)(*["reset"] if how == "cut" else [])
    if how == "upstream_gone":
        talk.wait(9)
    if how in {"cut", "upstream_gone"}:
        talk.expect_closed("reset" if how == "cut" else "close")


def asked(talk: Talk, raw: str = '"A"') -> None:
    """A GET is answered."""
    talk.client("GET a")
    talk.expect_upstream("GET a")
    talk.upstream(raw)


@pytest.mark.parametrize("how", ["client_gone", "cut", "switch"])
def test_a_reply_that_is_late(how):
    """Its client goes, or the profile does: it was late by as much as had passed, and is said to have come only if it did."""
    with Talk(
        f"{LATE}\n{LATE.replace('1s', '2s').replace('latency', 'latency, name: more')}"
    ) as talk:
        asked(talk)
        talk.wait(1.5)
        talk.expect_nothing_fired()
        end(talk, how)
        came = how == "switch"
        if came:
            talk.expect_client('"A"')
        told, outcome = ("late", "ok") if came else ("nothing", "unknown")
        talk.expect_fired("latency", applied="yes", told=told, outcome=outcome, delay=1.0)
        talk.expect_fired("more", applied="yes", told=told, outcome=outcome, delay=0.5)


def test_a_late_reply_comes_though_its_server_goes():
    """It is the client's, and late by as much as it was to be."""
    with Talk(LATE) as talk:
        asked(talk)
        talk.upstream_gone()
        talk.wait(1)
        talk.expect_client('"A"')
        talk.expect_closed("close")
        talk.expect_fired("latency", told="late", delay=1.0)


@pytest.mark.parametrize("how", ["client_gone", "upstream_gone", "cut", "switch"])
def test_a_request_that_is_late(how):
    """The same of one that has not been forwarded: it was held up as long as it was."""
    with Talk(
        f"{EARLY}\n{EARLY.replace('1s', '2s').replace('latency', 'latency, name: more')}"
    ) as talk:
        talk.client("GET a")
        talk.wait(1.25)
        end(talk, how)
        if how == "switch":
            talk.expect_upstream("GET a")
            talk.upstream('"A"')
            talk.expect_client('"A"')
        came = ("yes", "late", "ok") if how == "switch" else ("no", "nothing", "fail")
        what = dict(zip(("applied", "told", "outcome"), came, strict=True))
        talk.expect_fired("latency", **what, delay=1.0)
        talk.expect_fired("more", **what, delay=0.25)


BEFORE = [
    pytest.param(EARLY, id="latency"),
    pytest.param(
        "- {fault: bandwidth, match: {commands: GET}, direction: to_upstream, rate: 10B/s}",
        id="bandwidth",
    ),
    pytest.param(
        "- {fault: reorder, match: {commands: GET}, until: {command: DEL}, max: 1s}", id="reorder"
    ),
    pytest.param(
        "- {fault: run, match: {commands: GET}, at: before_forward, where: standby, commands: [[INCR, n]]}",
        id="run",
    ),
    pytest.param("- {fault: expire_key, mode: now, match: {commands: GET}}", id="expire_key"),
]


@pytest.mark.parametrize("rule", BEFORE)
@pytest.mark.parametrize("how", ["client_gone", "upstream_gone", "cut"])
def test_a_request_that_is_never_sent(rule, how):
    """Whatever holds it up: its command was surely not applied, and nobody was told anything."""
    with Talk(rule) as talk:
        talk.client("GET a")
        end(talk, how)
        talk.expect_upstream()
        talk.expect_fired(talk.events()[0].fault, applied="no", told="nothing", outcome="fail")


@pytest.mark.parametrize("rule", BEFORE)
@pytest.mark.parametrize("how", ["client_gone", "upstream_gone", "cut"])
def test_a_request_that_is_sent_and_not_answered(rule, how):
    """Nobody can tell whether its command was applied."""
    with Talk(rule) as talk:
        talk.client("GET a")
        if talk._asked:
            talk.side('*["notify-keyspace-events" ""]' if "expire" in rule else ":1")
        if talk._asked:
            talk.side(":1")
        talk.wait(10)
        talk.expect_upstream("GET a")
        end(talk, how)
        talk.expect_fired(
            talk.events()[0].fault, applied="unknown", told="nothing", outcome="unknown"
        )


@pytest.mark.parametrize(("sent", "applied"), [(False, "no"), (True, "unknown")])
def test_a_queued_request_that_was_late(sent, applied):
    """It was applied if its EXEC was, of which nothing is known once that has been sent."""
    with Talk(EARLY) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED", late=1)
        if sent:
            talk.client("EXEC")
            talk.expect_upstream("EXEC")
        talk.client_gone()
        outcome = "unknown" if sent else "fail"
        talk.expect_fired("latency", applied=applied, told="nothing", outcome=outcome)


@pytest.mark.parametrize(
    ("ends", "applied", "told", "outcome"),
    [
        ("disconnect, at: before_forward, how: reset", "no", "reset", "fail"),
        ("disconnect, at: before_forward, how: close", "no", "closed", "fail"),
        ("blackhole, at: before_forward, what: request", "no", "nothing", "fail"),
        ("blackhole, at: before_forward, what: connection", "unknown", "nothing", "unknown"),
        ("reply, at: before_forward, error: OOM", "no", "error", "ok"),
        ("reply, at: before_forward, value: made", "no", "late", "ok"),
    ],
)
def test_what_another_fault_makes_of_a_late_request(ends, applied, told, outcome):
    """It is late all the same, and is said to have come to what it came to; an answer is one, whoever gave it."""
    with Talk(f"{EARLY}\n- {{fault: {ends}, match: {{commands: GET}}}}") as talk:
        talk.client("GET a")
        talk.wait(1)
        talk.expect_fired("latency", applied=applied, told=told, outcome=outcome, delay=1.0)
        talk.heard("client")
        if "disconnect" in ends:
            talk.expect_closed("reset" if "reset" in ends else "close")
        else:
            talk.client_gone()


def test_a_late_request_that_wants_no_reply():
    """It missed nothing: the outcome is as without the delay."""
    with Talk(EARLY) as talk:
        talk.client("CLIENT REPLY SKIP", "GET a")
        talk.wait(1)
        talk.expect_upstream("CLIENT REPLY SKIP", "GET a")
        talk.expect_fired("latency", applied="unknown", told="nothing", outcome="ok")


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_reply_in_pieces(all_of_it):
    """Some of it is here when the client goes: it saw a part; what was all given was all seen."""
    with Talk(PIECES) as talk:
        asked(talk)
        talk.expect_client(b"$1")
        if all_of_it:
            talk.wait(1)
            talk.expect_client(b"\r\nA\r\n")
        talk.client_gone()
        told, outcome = ("ok", "ok") if all_of_it else ("partial", "unknown")
        talk.expect_fired("slice", applied="yes", told=told, outcome=outcome)


def test_an_answer_that_never_leaves():
    """What stands in a reply's place and is late with it was not seen, either."""
    with Talk(f"{LATE}\n{MADE}") as talk:
        asked(talk)
        talk.wait(0.5)
        talk.client_gone()
        talk.expect_fired("latency", told="nothing", delay=0.5)
        talk.expect_fired("reply", applied="yes", told="nothing", outcome="unknown")


def test_pieces_of_which_none_has_left():
    """A reply that its bucket has not let through yet is not seen in part."""
    rules = f"{PIECES}\n- {{fault: bandwidth, match: {{commands: GET}}, direction: to_client, rate: 1B/s}}"
    with Talk(rules) as talk:
        asked(talk)
        talk.expect_client()
        talk.client_gone()
        talk.expect_fired("bandwidth")
        talk.expect_fired("slice", told="nothing", outcome="unknown")


def test_what_goes_raw():
    """Where nothing is understood any more what is late goes on at once."""
    with Talk(LATE) as talk:
        asked(talk)
        talk.wait(0.5)
        talk.upstream(b"?")
        talk.expect_client('"A"', b"?")
        talk.expect_raw("upstream")
        talk.expect_fired("latency", told="late", delay=0.5)


def test_what_is_said_of_a_delay():
    """All of it, but for what floats make of it, or as much as had passed."""
    assert spent(1.0, 3.0) == (1.0, 2.0)
    assert spent(0.3, 0.3 - 1e-12)[0] == 0.3
    assert spent(1.0, 0.25) == (0.25, 0.0)
    assert spent(1.0, -0.5) == (0.0, -0.5)
    assert (missed("ok"), missed("false_ok"), missed("fail")) == ("unknown", "false_ok", "fail")
