"""What an event says of a reply that was late, or never left: how late it really was, and what the client saw of it."""

import pytest

from chaosproxy.core.pending import missed, spent
from tests.conversation import Talk, begin

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
    assert [missed(outcome, "yes") for outcome in ("ok", "fail")] == ["unknown", "fail"]
    assert [missed(outcome, "no") for outcome in ("ok", "false_ok", "fail")] == ["fail"] * 3


ANSWERED = [
    pytest.param(EARLY, id="latency"),
    pytest.param("- {fault: duplicate, match: {commands: SET}}", id="duplicate"),
    pytest.param("- {fault: bandwidth, match: {commands: GET}, rate: 1kB/s}", id="bandwidth"),
    pytest.param(BEFORE[3].values[0], id="run"),
    pytest.param(LATE, id="latency-after"),
    pytest.param(PIECES, id="slice"),
]
LOST = [
    pytest.param("disconnect, at: after_apply, how: reset", "reset", id="reset"),
    pytest.param("disconnect, at: after_apply, how: close", "closed", id="close"),
    pytest.param("disconnect, at: mid_reply, bytes: 2", "partial", id="mid_reply"),
    pytest.param("blackhole, at: after_apply, what: reply", "nothing", id="reply"),
    pytest.param("blackhole, at: after_apply, what: connection", "nothing", id="connection"),
    pytest.param("blackhole, at: mid_reply, what: connection, bytes: 2", "partial", id="silence"),
]


@pytest.mark.parametrize("rule", ANSWERED)
@pytest.mark.parametrize(("ends", "told"), LOST)
def test_a_reply_that_another_fault_keeps_from_the_client(rule, ends, told):
    """What acted on the same command, before or after it was applied, says what the client saw in the end."""
    rule = rule.replace("GET", "SET")
    with Talk(f"{rule}\n- {{fault: {ends}, match: {{commands: SET}}}}") as talk:
        talk.client("SET a 1")
        while talk._asked:
            talk.side(":1")
        talk.wait(1)
        talk.heard("upstream")
        talk.upstream(*["+OK"] * (1 + ("duplicate" in rule)))
        talk.wait(1)
        talk.client_gone()
        talk._awaited.clear()
        assert len(talk.heard("client")) == 2 * (told == "partial")
        events = talk.events()
        assert len(events) == 2
        assert [(e.applied, e.told, e.outcome) for e in events] == [("yes", told, "unknown")] * 2


@pytest.mark.parametrize("where", ["after_apply", "mid_reply"])
def test_a_silence_that_ends(where):
    """What acted on a reply that is held by it says so once that has left: it came, late or not."""
    ends = (
        f"- {{fault: blackhole, at: {where}, what: connection, for: 5s, match: {{commands: GET}}}}"
    )
    with Talk(f"{EARLY}\n{ends}") as talk:
        talk.client("GET a")
        talk.wait(1)
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_fired("blackhole", outcome="unknown")
        talk.expect_nothing_fired()
        talk.wait(5)
        assert talk.heard("client") == b"$1\r\nA\r\n"
        talk.expect_fired("latency", applied="yes", told="late", outcome="ok", delay=1.0)


@pytest.mark.parametrize("how", ["client_gone", "cut"])
def test_a_reply_behind_one_that_is_late(how):
    """It is here and waits for its turn when the connection ends: what had acted on its command was not told to have worked."""
    with Talk(f"{LATE}\n- {{fault: duplicate, match: {{commands: SET}}}}") as talk:
        talk.client("GET a", "SET b 1")
        talk.expect_upstream("GET a", "SET b 1", "SET b 1")
        talk.upstream('"A"', "+OK", "+OK")
        talk.expect_nothing_fired()
        end(talk, how)
        talk.expect_fired("latency", told="nothing", outcome="unknown", delay=0.0)
        talk.expect_fired("duplicate", applied="yes", told="nothing", outcome="unknown")


def test_what_has_acted_arms_others_at_once():
    """Though its event waits for the client to have the reply: which command is the next is not a question of time."""
    rules = """\
- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}
- {fault: duplicate, match: {commands: SET}}
- {fault: reply, match: {commands: DEL}, when: {armed_by: duplicate}, at: after_apply, error: ERR armed}"""
    with Talk(rules) as talk:
        talk.client("GET a", "SET b 1")
        talk.upstream('"A"', "+OK", "+OK")
        talk.client("DEL b")
        talk.upstream(":1")
        talk.wait(1)
        talk.heard("upstream")
        talk.expect_client('"A"', "+OK", "-ERR armed")
        for fault in ("latency", "duplicate", "reply"):
            talk.expect_fired(fault)


def test_a_lost_write_of_which_the_client_is_not_told():
    """A write inside a transaction has no effect, and EXEC's reply never leaves: nobody was told that it worked."""
    rules = """\
- {fault: drop_write, match: {commands: RPUSH}, tell: ok}
- {fault: disconnect, match: {commands: EXEC}, at: after_apply}"""
    with Talk(rules) as talk:
        begin(talk)
        talk.client("RPUSH k a", "EXEC")
        talk.upstream(*["+QUEUED"] * 5)
        talk.expect_client("+QUEUED")
        talk.heard("upstream")
        talk.upstream("*[:0 +OK :1 :1 +OK]")
        talk.expect_closed("reset")
        talk.expect_fired("drop_write", applied="no", told="reset", outcome="fail")
        talk.expect_fired("disconnect", applied="yes", told="reset", outcome="unknown")


MADE_FIRST = "- {fault: reply, match: {commands: SET}, at: before_forward, value: made}"


@pytest.mark.parametrize("how", ["client_gone", "cut", "switch"])
@pytest.mark.parametrize(
    ("rule", "outcome"),
    [(MADE_FIRST, "false_ok"), (MADE_FIRST.replace("value: made", "error: OOM"), "fail")],
)
def test_an_answer_behind_a_reply_that_is_late(how, rule, outcome):
    """It is told once it has left: a client that goes before has not been lied to."""
    with Talk(f"{LATE}\n{EARLY.replace('GET', 'SET').replace('1s', '10ms')}\n{rule}") as talk:
        talk.client("GET a", "SET b 1")
        talk.wait(0.1)
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_nothing_fired()
        end(talk, how)
        came = how == "switch"
        assert bool(talk.heard("client")) == came
        told = "ok" if outcome == "false_ok" else "error"
        late = "late" if told == "ok" else told
        talk.expect_fired("latency", told="late" if came else "nothing")
        events = [talk.expect_fired("latency-2", delay=0.01), talk.expect_fired("reply")]
        assert [e.applied for e in events] == ["no", "no"]
        assert [e.told for e in events] == ([late, told] if came else ["nothing"] * 2)
        assert [e.outcome for e in events] == (["ok", outcome] if came else ["fail"] * 2)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (["DISCARD", "+OK"], "error"),
        (["EXEC", "-EXECABORT no"], "error"),
        (["EXEC", "*-1"], "error"),
        (["EXEC", "*[:1]"], "ok"),
        (["RESET", "+RESET"], "error"),
        ([], "nothing"),
    ],
)
def test_an_answer_inside_a_transaction(ends, told):
    """What the client is told of a queued command it is told by EXEC; without that nobody was lied to."""
    with Talk(f"{EARLY.replace('GET', 'SET')}\n{MADE_FIRST}") as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("INCR n", "+QUEUED")
        talk.client("SET b 1")
        talk.wait(1)
        talk.expect_client("+QUEUED")
        talk.expect_nothing_fired()
        if ends:
            talk.client(ends[0])
            talk.expect_upstream(ends[0])
            talk.upstream(ends[1])
            assert talk.heard("client")
        else:
            talk.client_gone()
        ok = told == "ok"
        late, outcomes = "late" if ok else told, ("ok", "false_ok") if ok else ("fail", "fail")
        talk.expect_fired("latency", applied="no", told=late, outcome=outcomes[0], delay=1.0)
        talk.expect_fired("reply", applied="no", told=told, outcome=outcomes[1])


@pytest.mark.parametrize("how", ["client_gone", "switch"])
def test_copies_of_a_command_whose_reply_has_not_left(how):
    """They are sent, and the reply is late: their event says whether it came."""
    copies = "- {fault: duplicate, match: {commands: SET}, gap: 1s}"
    with Talk(f"{copies}\n{LATE.replace('1s', '3s').replace('GET', 'SET')}") as talk:
        talk.client("SET a 1")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.wait(1.5)
        talk.side("+OK")
        talk.expect_nothing_fired()
        end(talk, how)
        came = how == "switch"
        assert bool(talk.heard("client")) == came
        told, outcome = ("late", "ok") if came else ("nothing", "unknown")
        talk.expect_fired("latency", told=told, outcome=outcome, delay=1.5)
        told = "ok" if came else told
        talk.expect_fired("duplicate", applied="yes", told=told, outcome=outcome)


@pytest.mark.parametrize(
    ("at", "told"), [("mid_reply, bytes: 2", "partial"), ("after_reply", "ok")]
)
def test_copies_of_a_command_whose_client_was_cut_off(at, told):
    """Where it had the whole reply before, that is what it saw."""
    rules = f"- {{fault: duplicate, match: {{commands: SET}}, gap: 1s}}\n- {{fault: disconnect, match: {{commands: SET}}, at: {at}}}"
    with Talk(rules) as talk:
        talk.client("SET a 1")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        assert talk.heard("client") == (b"+OK\r\n" if told == "ok" else b"+O")
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="yes", told=told)
        outcome = "ok" if told == "ok" else "unknown"
        talk.expect_fired("duplicate", applied="yes", told=told, outcome=outcome)


def test_a_lost_write_in_a_transaction_was_not_applied_whatever_else_acted_on_it():
    """Its element comes from copies: a delay of it, before or after, does not say that it was applied."""
    rules = """\
- {fault: latency, name: early, match: {commands: RPUSH}, at: before_forward, delay: 1s}
- {fault: drop_write, match: {commands: RPUSH}, tell: ok}
- {fault: latency, name: late, match: {commands: RPUSH}, at: after_apply, delay: 1s}"""
    with Talk(rules) as talk:
        begin(talk)
        talk.client("RPUSH k a", "EXEC")
        talk.wait(1)
        talk.upstream(*["+QUEUED"] * 5)
        talk.heard("upstream")
        talk.upstream("*[:0 +OK :1 :1 +OK]")
        talk.wait(1)
        talk.expect_client("+QUEUED", "*[:1]")
        events = talk.events()
        assert {(e.fault, e.applied) for e in events} >= {("early", "no"), ("drop_write", "no")}
        assert {e.applied for e in events} == {"no"}
