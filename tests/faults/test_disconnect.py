"""`disconnect`: connections are cut, exactly there: what was promised before is delivered, and nothing after it."""

import pytest

from tests.conversation import Talk

INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def cut(at: str, commands: str = "RPUSH", more: str = "") -> str:
    return f"- {{fault: disconnect, match: {{commands: {commands}}}, at: {at}{more}}}"


HOW = pytest.mark.parametrize(("how", "told"), [("reset", "reset"), ("close", "closed")])


@both
@HOW
def test_before_forward(protocol, how, told):
    """Redis never sees the command; earlier replies are delivered, later commands are not seen."""
    with Talk(cut("before_forward", more=f", how: {how}"), protocol=protocol) as talk:
        talk.client("GET a", "RPUSH l x", "GET b")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.expect_closed(how)
        talk.expect_fired("disconnect", applied="no", told=told, outcome="fail")


@both
@HOW
def test_after_apply(protocol, how, told):
    """The lost acknowledgement: the whole reply is here, and the client has nothing of it."""
    with Talk(cut("after_apply", more=f", how: {how}"), protocol=protocol) as talk:
        talk.client("GET a", "RPUSH l x", "GET b")
        talk.expect_upstream("GET a", "RPUSH l x", "GET b")
        talk.upstream('"A"', b":1")
        talk.expect_client('"A"')
        talk.expect_nothing_fired()
        talk.upstream(b"\r\n")
        talk.expect_closed(how)
        talk.expect_fired("disconnect", applied="yes", told=told, outcome="unknown")


def test_after_apply_of_a_large_reply():
    """Not a byte of a reply that comes in many pieces is given before it is whole."""
    with Talk(cut("after_apply", "GET")) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(b"$100000\r\n")
        for _ in range(100):
            talk.upstream(b"x" * 1000)
            talk.expect_nothing_fired()
        talk.upstream(b"\r\n")
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="yes")


@both
@pytest.mark.parametrize(
    ("count", "given"),
    [("3", 3), ("0", 0), ("-1", 10), ("-100", 0), ("11", 10), ("1000", 10), (None, 5)],
)
def test_mid_reply(protocol, count, given):
    """Exactly so many bytes of the reply are given: at least none, of which no event says that they were a part, and never all."""
    more = f", bytes: {count}" if count else ""
    with Talk(cut("mid_reply", "GET", more), protocol=protocol) as talk:
        talk.client("PING", "GET a", "PING")
        talk.expect_upstream("PING", "GET a", "PING")
        talk.upstream("+PONG", '"hello"', "+PONG")
        talk.expect_client("+PONG", b"$5\r\nhello\r\n"[:given])
        talk.expect_closed("reset")
        talk.expect_fired(
            "disconnect",
            applied="yes",
            told="partial" if given else "reset",
            outcome="unknown",
            detail=f"{given} of 11 bytes",
        )


ITEMS = ('"a"', '"bc"', '"def"')


@both
@pytest.mark.parametrize("count", [0, 1, 2])
def test_so_many_elements(protocol, count):
    """The client gets an array's header and so many of its elements whole, and not a byte of the next one."""
    rule = cut("mid_reply", "LRANGE", f", frames: {count}")
    with Talk(rule, protocol=protocol) as talk:
        talk.client("LRANGE l 0 -1")
        talk.expect_upstream("LRANGE l 0 -1")
        talk.upstream("*[" + " ".join(ITEMS) + "]")
        talk.expect_client(b"*3\r\n", *ITEMS[:count])
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", told="partial", outcome="unknown")


@both
@pytest.mark.parametrize("count", [0, 1, 2])
def test_so_many_of_a_transaction(protocol, count):
    """Of EXEC: so many results of its commands arrive."""
    with Talk(cut("mid_reply", "EXEC", f", frames: {count}"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        for _ in range(3):
            talk.handshake("INCR n", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:1 :2 :3]")
        talk.expect_client(b"*3\r\n", *[":1", ":2", ":3"][:count])
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", command="EXEC", told="partial")


@pytest.mark.parametrize("count", [0, 1])
def test_so_many_confirmations(count):
    """Of SUBSCRIBE: so many of its channels are confirmed."""
    with Talk(cut("mid_reply", "SUBSCRIBE", f", frames: {count}")) as talk:
        talk.client("SUBSCRIBE a b")
        talk.expect_upstream("SUBSCRIBE a b")
        talk.upstream('*["subscribe" "a" :1]', '*["subscribe" "b" :2]')
        talk.expect_client(*['*["subscribe" "a" :1]'][:count])
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", told="partial" if count else "reset")


@both
@pytest.mark.parametrize(
    ("spot", "given"),
    [
        ("inside_multibyte", b"$3\r\na\xc3"),
        ("before_crlf", b"$3\r"),
        ("inside_header", b"$"),
    ],
)
def test_a_named_spot(protocol, spot, given):
    """The client gets all up to the middle of the first place of that kind."""
    with Talk(cut("mid_reply", "GET", f", spot: {spot}"), protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream("$3\r\naé\r\n".encode())
        talk.expect_client(given)
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", told="partial")


@both
@pytest.mark.parametrize("where", ["frames: 0", "frames: 3", "spot: inside_multibyte"])
def test_there_is_no_such_place(protocol, where):
    """A reply without such a place arrives whole, and the rule says that it did not apply."""
    answer = "*[:1 :2 :3]" if where == "frames: 3" else ":1"
    with Talk(cut("mid_reply", more=f", {where}"), protocol=protocol) as talk:
        talk.client("RPUSH l x")
        talk.expect_upstream("RPUSH l x")
        talk.upstream(answer)
        talk.expect_client(answer)
        assert talk.skipped("disconnect") == ["not_applicable"]


@both
@HOW
def test_after_reply(protocol, how, told):
    """All bytes are given before the act; the client was told, so its outcome is ok."""
    del told
    with Talk(cut("after_reply", more=f", how: {how}"), protocol=protocol) as talk:
        talk.client("RPUSH l x", "GET b")
        talk.expect_upstream("RPUSH l x", "GET b")
        talk.upstream(":1")
        talk.expect_client(":1")
        talk.expect_closed(how)
        talk.expect_fired("disconnect", applied="yes", told="ok", outcome="ok")


def test_after_an_error_reply():
    """An error was not applied, and the event says so."""
    with Talk(cut("after_reply")) as talk:
        talk.client("RPUSH l x")
        talk.expect_upstream("RPUSH l x")
        talk.upstream("-OOM no")
        talk.expect_client("-OOM no")
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="no", told="error")


@both
def test_at_its_turn(protocol):
    """A cut waits until replies to earlier commands have left, however late they are."""
    rules = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}\n" + cut(
        "after_apply"
    )
    with Talk(rules, protocol=protocol) as talk:
        talk.client("GET a", "RPUSH l x", "GET b")
        talk.expect_upstream("GET a", "RPUSH l x", "GET b")
        talk.upstream('"A"', ":1", '"B"')
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('"A"')
        talk.expect_closed("reset")
        talk.expect_fired("latency", keys=(b"a",), told="late")
        talk.expect_fired("disconnect", told="reset")
        talk.expect_fired("latency", keys=(b"b",), told="nothing", outcome="unknown")


@both
@pytest.mark.parametrize("at", ["after_apply", "mid_reply", "after_reply"])
def test_in_a_transaction(protocol, at):
    """A queued command's reply is EXEC's: the cut happens there, never at +QUEUED."""
    with Talk(cut(at), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("RPUSH l x", "+QUEUED")
        talk.client("EXEC", "GET a")
        talk.expect_upstream("EXEC", "GET a")
        talk.expect_nothing_fired()
        talk.upstream("*[:1]")
        given = {"after_apply": b"", "mid_reply": b"*1\r\n:1", "after_reply": b"*1\r\n:1\r\n"}[at]
        talk.expect_client(given)
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", command="RPUSH", applied="yes")


@both
@pytest.mark.parametrize(
    ("where", "given"),
    [
        ("", 6),
        (", bytes: 1", 1),
        (", bytes: -1", 12),
        (", spot: before_crlf", 3),
        (", spot: inside_header", 1),
    ],
)
def test_in_the_middle_of_an_element(protocol, where, given):
    """A queued command's share counts from its own element's start, whatever stands around that in EXEC's array."""
    element = b"$7\r\nabcdefg\r\n"
    with Talk(cut("mid_reply", "GET", where), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        for command in ("INCR n", "GET a", "INCR n"):
            talk.handshake(command, "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(b"*3\r\n:1\r\n" + element + b":2\r\n")
        talk.expect_client(b"*3\r\n:1\r\n" + element[:given])
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", command="GET", told="partial", outcome="unknown")


@both
def test_before_forward_in_a_transaction(protocol):
    """The transaction is never carried out: the server discards it with the connection."""
    with Talk(cut("before_forward"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("RPUSH l x")
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="no")


def test_a_transaction_that_is_not_carried_out():
    """Nothing was applied, so nothing is cut after it; the next one is."""
    with Talk(cut("after_apply")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("RPUSH l x", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("-EXECABORT Transaction discarded because of previous errors.")
        talk.expect_client("-EXECABORT Transaction discarded because of previous errors.")
        assert talk.skipped("disconnect") == ["aborted"]
        talk.client("RPUSH l x")
        talk.expect_upstream("RPUSH l x")
        talk.upstream(":1")
        talk.expect_closed("reset")


def test_refused_when_it_was_queued():
    """A command the server would not queue was not applied: no cut after it."""
    with Talk(cut("after_apply")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("RPUSH l x", "-OOM no")
        assert talk.skipped("disconnect") == ["refused"]


@pytest.mark.parametrize("quiet", ["OFF", "SKIP"])
def test_with_no_reply(quiet):
    """Without a reply nobody can know when it was applied: the rule does not act, and says why."""
    with Talk(cut("after_apply")) as talk:
        talk.client(f"CLIENT REPLY {quiet}", "RPUSH l x")
        talk.expect_upstream(f"CLIENT REPLY {quiet}", "RPUSH l x")
        assert talk.skipped("disconnect") == ["no_reply"]


@pytest.mark.parametrize("quiet", ["OFF", "SKIP"])
def test_before_forward_with_no_reply(quiet):
    """Before it is forwarded it can be cut all the same."""
    with Talk(cut("before_forward")) as talk:
        talk.client(f"CLIENT REPLY {quiet}", "RPUSH l x")
        talk.expect_upstream(f"CLIENT REPLY {quiet}")
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="no", told="reset")


def test_popped_and_lost():
    """A blocking pop's reply is lost with the job in it."""
    with Talk(cut("after_apply", "BLPOP")) as talk:
        talk.client("BLPOP q 0")
        talk.expect_upstream("BLPOP q 0")
        talk.wait(5)
        talk.upstream('*["q" "job"]')
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", applied="yes", told="reset")


@both
@pytest.mark.parametrize("at", ["after_apply", "after_reply"])
def test_a_subscriber(protocol, at):
    """SUBSCRIBE a b is answered by two frames: the cut waits for both; a message between them is the client's."""
    kind = ">" if protocol == 3 else "*"
    first, second = f'{kind}["subscribe" "a" :1]', f'{kind}["subscribe" "b" :2]'
    with Talk(cut(at, "SUBSCRIBE"), protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b")
        talk.expect_upstream("SUBSCRIBE a b")
        talk.upstream(first)
        talk.expect_nothing_fired()
        talk.upstream(second)
        talk.expect_client(*((first, second) if at == "after_reply" else ()))
        talk.expect_closed("reset")


def test_a_subscribed_client_is_cut_by_a_ping():
    """A RESP2 subscriber's PING is answered by an array: a reply like any other."""
    with Talk(cut("after_reply", "PING")) as talk:
        talk.handshake("SUBSCRIBE a", '*["subscribe" "a" :1]')
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream('*["message" "a" "x"]')
        talk.expect_client('*["message" "a" "x"]')
        talk.upstream('*["pong" ""]')
        talk.expect_client('*["pong" ""]')
        talk.expect_closed("reset")


def test_pushes_before_a_cut_are_the_clients():
    """A push that came before the reply was not part of it, and is delivered."""
    with Talk(cut("after_apply", "GET"), protocol=3) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(b"$1\r\n")
        talk.upstream(b"A\r\n" + b"")
        talk.expect_closed("reset")
    with Talk(cut("after_apply", "GET"), protocol=3) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(INVALIDATED, '"A"')
        talk.expect_client(INVALIDATED)
        talk.expect_closed("reset")


@pytest.mark.parametrize("who", ["all", "matching"])
@pytest.mark.parametrize("at", ["before_forward", "after_apply", "mid_reply", "after_reply"])
def test_others(at, who):
    """Other connections are cut as this one is, at the same moment."""
    with Talk(cut(at, more=f", who: {who}, how: close")) as talk:
        talk.client("RPUSH l x")
        if at != "before_forward":
            talk.expect_upstream("RPUSH l x")
            talk.upstream(":1")
        talk.heard("client")
        talk.expect_closed("close")
        talk.expect_cut_others(who, "close")


def test_a_cut_by_another_connection():
    """What waits on a connection that is cut from outside ends with it."""
    rules = (
        cut("after_apply")
        + "\n- {fault: latency, match: {commands: GET}, at: before_forward, delay: 1s}"
    )
    with Talk(rules) as talk:
        talk.client("RPUSH l x", "GET a", "GET b")
        talk.expect_upstream("RPUSH l x")
        talk.cut("close")
        talk.expect_closed("close")
        talk.expect_fired("latency", applied="no")
        assert talk.skipped("disconnect") == ["cut"]


@both
@pytest.mark.parametrize("phase", ["waiting for earlier replies", "waiting for its own", "late"])
def test_another_profile(protocol, phase):
    """A cut that had not happened when its profile ended does not happen."""
    rules = cut("before_forward", "SET") + "\n" + cut("after_apply")
    if phase == "late":
        rules += "\n- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
    with Talk(rules, protocol=protocol) as talk:
        match phase:
            case "waiting for earlier replies":
                talk.client("GET a", "SET a 1", "GET b")
                talk.expect_upstream("GET a")
                talk.switch()
                talk.expect_upstream("SET a 1", "GET b")
                assert talk.skipped("disconnect") == ["switched"]
            case "waiting for its own":
                talk.client("RPUSH l x")
                talk.expect_upstream("RPUSH l x")
                talk.switch()
                talk.upstream(":1")
                talk.expect_client(":1")
                assert talk.skipped("disconnect-2") == ["switched"]
            case _:
                talk.client("GET a", "RPUSH l x")
                talk.expect_upstream("GET a", "RPUSH l x")
                talk.upstream('"A"', ":1")
                talk.expect_client()
                talk.switch()
                talk.expect_client('"A"', ":1")
                assert talk.skipped("disconnect-2") == ["switched"]


def test_another_profile_in_a_transaction():
    """A queued command is not cut at EXEC once its profile has ended."""
    with Talk(cut("after_apply")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("RPUSH l x", "+QUEUED")
        talk.switch()
        talk.handshake("EXEC", "*[:1]")
        assert talk.skipped("disconnect") == ["switched"]


@pytest.mark.parametrize("at", ["after_apply", "mid_reply", "after_reply"])
def test_the_upstream_goes_first(at):
    """Where the real connection ends before the reply is whole, the rule does not act and says why."""
    with Talk(cut(at)) as talk:
        talk.client("RPUSH l x")
        talk.expect_upstream("RPUSH l x")
        talk.upstream(b":1")
        talk.upstream_gone()
        talk.expect_client(b":1")
        talk.expect_closed("close")
        assert talk.skipped("disconnect") == ["upstream_gone"]


def test_the_upstream_goes_after_the_reply():
    """A reply that was whole when the upstream went still meets its rule, in its turn."""
    rules = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}\n" + cut(
        "after_apply"
    )
    with Talk(rules) as talk:
        talk.client("GET a", "RPUSH l x")
        talk.expect_upstream("GET a", "RPUSH l x")
        talk.upstream('"A"', ":1")
        talk.upstream_gone()
        talk.wait(1)
        talk.expect_client('"A"')
        talk.expect_closed("reset")


def test_only_one_cut():
    """The first final decision ends the chain: later rules count their match and say they were ended."""
    rules = "\n".join([cut("after_apply"), cut("mid_reply"), cut("after_reply")])
    with Talk(rules) as talk:
        talk.client("RPUSH l x")
        talk.expect_upstream("RPUSH l x")
        talk.upstream(":1")
        talk.expect_closed("reset")
        assert [talk.matched(f"disconnect{n}") for n in ("", "-2", "-3")] == [1, 1, 1]
        assert talk.skipped("disconnect-2") == ["ended"]
        assert talk.skipped("disconnect-3") == ["ended"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("- {fault: disconnect, at: after_apply, bytes: 3}", "bytes: goes with at: mid_reply"),
        ("- {fault: disconnect, at: after_reply, frames: 3}", "frames: goes with at: mid_reply"),
        (
            "- {fault: disconnect, at: before_forward, spot: before_crlf}",
            "spot: goes with at: mid_reply",
        ),
        (
            "- {fault: disconnect, at: mid_reply, bytes: 3, spot: before_crlf}",
            "spot: give at most one of bytes, frames and spot",
        ),
        (
            "- {fault: disconnect}",
            "fault disconnect needs 'at': one of before_forward, after_apply, mid_reply, after_reply",
        ),
    ],
)
def test_refused(rule, message, problems):
    """What cannot be meant is refused when the profile is read."""
    assert problems(rule) == [message]
