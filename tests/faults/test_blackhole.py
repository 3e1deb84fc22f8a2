"""`blackhole`: silence on an open connection: what is lost stays lost, what is held comes late, and nothing is closed."""

import pytest

from tests.conversation import Talk

INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def silent(at: str, what: str, more: str = "", commands: str = "GET") -> str:
    return f"- {{fault: blackhole, match: {{commands: {commands}}}, at: {at}, what: {what}{more}}}"


# -- what: request


@both
def test_a_request_is_lost(protocol):
    """Redis never sees it, nor anything behind it; what was asked before is answered, and the socket stays open."""
    with Talk(silent("before_forward", "request"), protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired(
            "blackhole",
            applied="no",
            told="nothing",
            outcome="fail",
            detail="request silent for good",
        )
        talk.client("PING")
        talk.wait(3600)
        talk.expect_silence()


@both
def test_a_request_is_lost_in_a_transaction(protocol):
    """The transaction is never carried out."""
    with Talk(silent("before_forward", "request"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a", "EXEC")
        talk.wait(3600)
        talk.expect_silence()
        talk.expect_fired("blackhole", applied="no", told="nothing")


def test_pushes_come_though_a_request_is_lost():
    """Only the request is lost: what the server says without being asked still comes."""
    with Talk(silent("before_forward", "request"), protocol=3) as talk:
        talk.client("GET a")
        talk.upstream(INVALIDATED)
        talk.expect_client(INVALIDATED)


def test_the_client_says_goodbye_after_its_request_was_lost():
    """A FIN is passed on, so that the upstream side does not stay open for ever."""
    with Talk(silent("before_forward", "request")) as talk:
        talk.client("GET a")
        talk.client_eof()
        talk.expect_half_close()
        talk.upstream_eof()
        talk.expect_closed("close")


def test_the_upstream_goes_after_a_request_was_lost():
    """The end of the real connection is not hidden."""
    with Talk(silent("before_forward", "request")) as talk:
        talk.client("SET a 1", "GET a")
        talk.expect_upstream("SET a 1")
        talk.upstream_gone()
        talk.expect_closed("close")


def test_the_upstream_stops_making_sense_after_a_request_was_lost():
    """A lost request is not sent after all because bytes pass unseen from now on."""
    with Talk(silent("before_forward", "request")) as talk:
        talk.client("GET a")
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_client(b"?\r\n")
        talk.client("PING")
        talk.expect_upstream()


# -- what: reply


@both
def test_a_reply_is_lost(protocol):
    """It was applied, and the client gets nothing of the reply, nor of any behind it."""
    with Talk(silent("after_apply", "reply"), protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1", "GET a", "SET a 2")
        talk.upstream("+OK", '"1"', "+OK")
        talk.expect_client("+OK")
        talk.expect_fired(
            "blackhole",
            applied="yes",
            told="nothing",
            outcome="unknown",
            detail="reply silent for good",
        )
        talk.client("SET a 3")
        talk.expect_upstream("SET a 3")
        talk.upstream("+OK")
        talk.wait(3600)
        talk.expect_client()


@both
def test_a_reply_is_lost_in_a_transaction(protocol):
    """The reply to a queued command is EXEC's: all of it is lost."""
    with Talk(silent("after_apply", "reply"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["1"]')
        talk.expect_client()
        talk.expect_fired("blackhole", applied="yes", told="nothing")


def test_the_upstream_goes_after_a_reply_was_lost():
    """A client that waits for a lost reply waits on: its socket stays open."""
    with Talk(silent("after_apply", "reply")) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"1"')
        talk.upstream_gone()
        talk.wait(3600)
        talk.expect_silence()
        assert not talk._awaited


def test_the_upstream_stops_making_sense_after_a_reply_was_lost():
    """What passes unseen from then on does not take the place of the lost reply."""
    with Talk(silent("after_apply", "reply")) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"1"')
        talk.upstream(b"?\r\n", b"more")
        talk.expect_raw("upstream")
        talk.expect_client()
        talk.switch()
        talk.expect_client('"1"', b"?\r\nmore")


# -- what: connection


@both
@pytest.mark.parametrize("span", ["", ", for: 2s"])
def test_before_forward(protocol, span):
    """Nothing passes in either direction; for as long as it lasts all is held, and then it goes on, late."""
    rule = silent("before_forward", "connection", span)
    with Talk(rule, protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1")
        about = "for 2 s" if span else "for good"
        talk.expect_fired(
            "blackhole",
            applied="unknown",
            told="nothing",
            outcome="unknown",
            detail=f"connection silent {about}, both",
        )
        talk.client("SET a 3")
        talk.upstream("+OK")
        talk.wait(1.9)
        talk.expect_silence()
        talk.wait(0.1)
        if span:
            talk.expect_upstream("GET a", "SET a 2", "SET a 3")
            talk.expect_client("+OK")
            talk.upstream('"1"', "+OK", "+OK")
            talk.expect_client('"1"', "+OK", "+OK")
        else:
            talk.expect_silence()


@both
@pytest.mark.parametrize(
    ("at", "given"), [("after_apply", 0), ("mid_reply", 4), ("mid_reply", 0), ("after_reply", 7)]
)
def test_after(protocol, at, given):
    """So much of the reply is given; the rest, and all behind it, comes when the silence ends."""
    more = ", for: 2s" + (f", bytes: {given}" if at == "mid_reply" else "")
    told = {0: "nothing", 4: "partial", 7: "ok"}[given]
    raw = b"$1\r\n1\r\n"
    with Talk(silent(at, "connection", more), protocol=protocol) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream(raw)
        talk.expect_client(raw[:given])
        talk.expect_fired(
            "blackhole",
            applied="yes",
            told=told,
            outcome="ok" if at == "after_reply" else "unknown",
        )
        talk.upstream("+PONG")
        talk.client("PING")
        talk.wait(1)
        talk.expect_silence()
        talk.wait(1)
        talk.expect_upstream("PING")
        talk.expect_client(raw[given:], "+PONG")


@both
@pytest.mark.parametrize(
    ("where", "given"),
    [("frames: 1", b"*2\r\n$2\r\n\xc3\xa9\r\n"), ("spot: inside_multibyte", b"*2\r\n$2\r\n\xc3")],
)
def test_in_the_middle_of_a_reply(protocol, where, given):
    """So many elements, or all up to a named spot, arrive; the rest comes when the silence ends."""
    raw = b"*2\r\n$2\r\n\xc3\xa9\r\n:1\r\n"
    rule = silent("mid_reply", "connection", f", for: 2s, {where}")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(raw)
        talk.expect_client(given)
        talk.expect_fired("blackhole", told="partial", outcome="unknown")
        talk.wait(2)
        talk.expect_client(raw[len(given) :])


@both
def test_there_is_no_such_place(protocol):
    """A reply without such a place arrives whole, and nothing falls silent."""
    rule = silent("mid_reply", "connection", ", frames: 1")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("GET a", "GET a")
        talk.expect_upstream("GET a", "GET a")
        talk.upstream('"1"', '"2"')
        talk.expect_client('"1"', '"2"')
        assert talk.skipped("blackhole") == ["not_applicable"] * 2


@both
def test_to_upstream_only(protocol):
    """Replies still come; requests wait."""
    rule = silent("after_apply", "connection", ", for: 2s, direction: to_upstream")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream('"1"')
        talk.expect_client('"1"')
        talk.expect_fired("blackhole", applied="yes", told="ok", outcome="ok")
        talk.client("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        talk.expect_upstream()
        talk.wait(2)
        talk.expect_upstream("PING")


@both
def test_to_client_only(protocol):
    """Requests still reach Redis; replies wait, and pushes with them."""
    rule = silent("after_reply", "connection", ", for: 2s, direction: to_client")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"1"')
        talk.expect_client('"1"')
        talk.client("GET b", "PING")
        talk.expect_upstream("GET b", "PING")
        pushes = [INVALIDATED] if protocol == 3 else []
        talk.upstream(*pushes, '"2"', *pushes, b"+PO")
        talk.expect_client()
        talk.wait(2)
        talk.expect_client(*pushes, '"2"')
        talk.expect_fired("blackhole", match=1)
        talk.expect_fired("blackhole", match=2)  # it falls silent again
        talk.upstream(b"NG\r\n")
        talk.expect_client()
        talk.wait(2)
        talk.expect_client(*pushes, "+PONG")


@both
def test_a_subscriber_in_silence(protocol):
    """Half open: no message comes any more, and nothing tells the client."""
    kind = ">" if protocol == 3 else "*"
    rule = silent("after_reply", "connection", commands="SUBSCRIBE")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b")
        talk.expect_upstream("SUBSCRIBE a b")
        confirmed = (f'{kind}["subscribe" "a" :1]', f'{kind}["subscribe" "b" :2]')
        talk.upstream(*confirmed)
        talk.expect_client(*confirmed)
        talk.upstream(f'{kind}["message" "a" "x"]')
        talk.wait(3600)
        talk.expect_silence()


@both
def test_in_a_transaction(protocol):
    """It falls silent at EXEC's reply, never at +QUEUED."""
    with Talk(silent("after_apply", "connection", ", for: 1s"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["1"]')
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('*["1"]')


def test_a_reply_that_is_unfinished_when_silence_ends():
    """A reply that began in the silence is given in its order, whole."""
    with Talk(silent("after_reply", "connection", ", for: 1s")) as talk:
        talk.client("GET a", "PING", "PING")
        talk.expect_upstream("GET a", "PING", "PING")
        talk.upstream('"1"', "+PONG", b"+PO")
        talk.expect_client('"1"')
        talk.wait(1)
        talk.expect_client("+PONG", b"+PO")
        talk.upstream(b"NG\r\n")
        talk.expect_client(b"NG\r\n")


def test_a_request_that_is_delayed_when_silence_falls():
    """A request that waits by another rule does not go out in the silence; afterwards it does, late."""
    rules = (
        silent("after_apply", "connection", ", for: 3s")
        + """
- {fault: latency, match: {commands: SET}, at: before_forward, delay: 1s}
"""
    )
    with Talk(rules) as talk:
        talk.client("GET a", "SET a 1")
        talk.expect_upstream("GET a")
        talk.upstream('"1"')
        talk.wait(2)
        talk.expect_silence()
        talk.wait(1)
        talk.expect_upstream("SET a 1")
        talk.expect_client('"1"')


def test_a_late_reply_when_silence_falls():
    """A reply that waits by another rule does not come in the silence either."""
    rules = (
        silent("after_reply", "connection", ", for: 3s")
        + """
- {fault: latency, match: {commands: PING}, at: after_apply, delay: 1s}
"""
    )
    with Talk(rules) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream('"1"', "+PONG")
        talk.expect_client('"1"')
        talk.wait(2.9)
        talk.expect_client()
        talk.wait(0.1)
        talk.expect_client("+PONG")


def test_a_cut_in_silence():
    """What another rule would cut after a reply is cut when the reply has been given: after the silence."""
    rules = (
        silent("after_reply", "connection", ", for: 3s")
        + """
- {fault: disconnect, match: {commands: PING}, at: after_reply}
"""
    )
    with Talk(rules) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream('"1"', "+PONG")
        talk.expect_client('"1"')
        talk.wait(3)
        talk.expect_client("+PONG")
        talk.expect_closed("reset")


@pytest.mark.parametrize("span", ["", ", for: 3s"])
def test_the_upstream_goes_in_silence(span):
    """The end is silent too: the client hears of it when the silence ends, after what was held."""
    with Talk(silent("after_apply", "connection", span)) as talk:
        talk.client("GET a", "PING", "PING")
        talk.expect_upstream("GET a", "PING", "PING")
        talk.upstream('"1"', "+PONG")
        talk.upstream_gone()
        talk.wait(3)
        if span:
            talk.expect_client('"1"', "+PONG")
            talk.expect_closed("close")
        else:
            talk.expect_silence()


@pytest.mark.parametrize("span", ["", ", for: 3s"])
@pytest.mark.parametrize("at", ["before_forward", "after_apply", "after_reply"])
@pytest.mark.parametrize("protocol", [2, 3])
def test_the_client_says_goodbye_in_silence(at, span, protocol):
    """Its upstream side ends at once, what was held is never sent, and nobody waits for the end of the silence."""
    with Talk(silent(at, "connection", span), protocol=protocol) as talk:
        talk.client("GET a")
        if at != "before_forward":
            talk.expect_upstream("GET a")
            talk.upstream('"1"')
        if at == "after_reply":
            talk.expect_client('"1"')
        talk.client("PING")
        talk.client_eof()
        talk.expect_half_close()
        talk.expect_silence()
        talk.upstream_eof()
        talk.expect_closed("close")
        assert len(talk.events()) == 1


@pytest.mark.parametrize("first", ["client", "upstream"])
@pytest.mark.parametrize(
    "rule",
    [
        silent("after_apply", "connection", ", direction: to_client"),
        silent("after_apply", "connection", ", direction: to_client, for: 9s"),
        silent("after_apply", "reply"),
    ],
)
def test_both_have_said_goodbye(rule, first):
    """Where only the client hears nothing its FIN goes on, and once the server has left too it is over."""
    with Talk(rule) as talk:
        talk.client("GET a", "BLPOP l 0")
        talk.expect_upstream("GET a", "BLPOP l 0")
        talk.upstream('"1"')
        if first == "client":
            talk.client_eof()
            talk.expect_half_close()
            talk.upstream_eof()
        else:
            talk.upstream_eof()
            talk.expect_silence()
            talk.client_eof()
        talk.expect_closed("close")


@pytest.mark.parametrize("direction", ["both", "to_upstream"])
def test_silence_falls_once_the_client_has_said_goodbye(direction):
    """Its upstream side is told of its end, and it is over with that."""
    with Talk(silent("after_apply", "connection", f", direction: {direction}")) as talk:
        talk.client("GET a")
        talk.client_eof()
        talk.expect_upstream("GET a")
        talk.expect_half_close()
        talk.upstream('"1"')
        if direction == "to_upstream":
            talk.expect_client('"1"')
        talk.upstream_eof()
        talk.expect_closed("close")


def test_the_client_goes_in_silence():
    """A client that gives up takes its upstream side with it, and what was held is never sent."""
    with Talk(silent("before_forward", "connection")) as talk:
        talk.client("GET a", "PING")
        talk.expect_silence()
        talk.client_gone()
        talk.expect_upstream()
        assert len(talk.events()) == 1


def test_the_upstream_stops_making_sense_in_silence():
    """Bytes that are not understood are held like all others."""
    with Talk(silent("after_apply", "connection", ", for: 1s")) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"1"', b"?\r\n")
        talk.expect_raw("upstream")
        talk.client("PING")
        talk.upstream(b"more")
        talk.expect_silence()
        talk.wait(1)
        talk.expect_client('"1"', b"?\r\nmore")
        talk.expect_upstream("PING")


def test_the_client_stops_making_sense_in_silence():
    """The same of a client's bytes."""
    with Talk(silent("after_apply", "connection", ", for: 1s")) as talk:
        talk.client("GET a", b"*\r\n", b"x")
        talk.expect_upstream("GET a", b"*\r\n", b"x")
        talk.expect_raw("client")
        talk.upstream('"1"')
        talk.client(b"y")
        talk.expect_silence()
        talk.wait(1)
        talk.expect_upstream(b"y")
        talk.expect_client('"1"')


def test_no_more_is_read_than_may_be_held():
    """In silence both sides are read up to the limit, and no further."""
    with Talk(silent("after_reply", "connection"), max_buffer=1000) as talk:
        talk.client("GET a", "PING", "PING")
        talk.expect_upstream("GET a", "PING", "PING")
        talk.upstream('"1"')
        talk.expect_client('"1"')
        talk.upstream(b"$2000\r\n" + b"x" * 900)
        talk.client(b"*2\r\n$3\r\nGET\r\n$2000\r\n" + b"x" * 900)
        assert not talk.conversation.upstream_paused
        assert not talk.conversation.client_paused
        talk.upstream(b"x" * 200)
        talk.client(b"x" * 200)
        assert talk.conversation.upstream_paused
        assert talk.conversation.client_paused
        assert talk.conversation.buffered > 2000
        talk.expect_silence()


@both
@pytest.mark.parametrize("phase", ["before its turn", "before the reply", "in a transaction"])
def test_another_profile(protocol, phase):
    """What had not fallen silent when its profile ended does not."""
    rules = (
        silent("after_apply", "connection")
        + """
- {fault: latency, match: {commands: PING}, at: after_apply, delay: 1s}
"""
    )
    with Talk(rules, protocol=protocol) as talk:
        match phase:
            case "before its turn":
                talk.client("PING", "GET a")
                talk.expect_upstream("PING", "GET a")
                talk.upstream("+PONG", '"1"')
                talk.switch()
                talk.expect_client("+PONG", '"1"')
            case "before the reply":
                talk.client("GET a")
                talk.expect_upstream("GET a")
                talk.switch()
                talk.upstream('"1"')
                talk.expect_client('"1"')
            case _:
                talk.handshake("MULTI", "+OK")
                talk.handshake("GET a", "+QUEUED")
                talk.switch()
                talk.handshake("EXEC", '*["1"]')
        assert talk.skipped("blackhole") == ["switched"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "at: after_apply, what: request",
            "what: request goes with at: before_forward; later there is no request to lose",
        ),
        ("at: after_reply, what: reply", "what: reply goes with at: after_apply"),
        (
            "at: after_apply, what: reply, for: 1s",
            "for: goes with what: connection; to be late is the fault latency",
        ),
        (
            "at: after_apply, what: reply, direction: to_client",
            "direction: goes with what: connection",
        ),
        ("at: after_apply, what: connection, bytes: 1", "bytes: goes with at: mid_reply"),
        ("at: after_reply, what: connection, frames: 1", "frames: goes with at: mid_reply"),
        (
            "at: mid_reply, what: connection, frames: 1, spot: before_crlf",
            "spot: give at most one of bytes, frames and spot",
        ),
    ],
)
def test_refused(settings, message, problems):
    """What cannot be meant is refused when the profile is read."""
    assert problems(f"- {{fault: blackhole, {settings}}}") == [message]


def test_two_silences():
    """Each direction is silent until the last of its silences is over; one does not end the other."""
    rules = """
- {fault: blackhole, match: {commands: GET}, at: after_reply, what: connection, for: 5s, direction: to_client}
- {fault: blackhole, match: {commands: SET}, at: before_forward, what: connection, for: 1s}
"""
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.client("SET a 1", "PING")
        talk.wait(1)
        talk.expect_upstream("SET a 1", "PING")
        talk.upstream("+OK", "+PONG")
        talk.wait(3.9)
        talk.expect_client()
        talk.wait(0.1)
        talk.expect_client("+OK", "+PONG")
