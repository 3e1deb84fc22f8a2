"""`drop_write`: a write without effect: the client is told what the profile says, and Redis never carries it out."""

import pytest

from chaosproxy.core.ending import ENDED
from tests.conversation import Talk
from tests.toy import Toy, serve

DROPPED = "-ERR the write was dropped by the fault drop_write"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def dropped(tell: str, commands: str = "SET") -> str:
    return f"- {{fault: drop_write, match: {{commands: {commands}}}, tell: {tell}}}"


# -- what is left alone


@pytest.mark.parametrize("tell", ["ok", "error", "nothing", "disconnect"])
@pytest.mark.parametrize("sent", ["GET a", "PING", "NOSUCH a"])
def test_not_a_write(tell, sent):
    """What is no write passes, and the rule says why it did not act."""
    with Talk(f"- {{fault: drop_write, tell: {tell}}}") as talk:
        talk.handshake(sent, "+answer")
        assert talk.skipped("drop_write") == ["not_applicable"]


# -- tell: error


@both
def test_an_error(protocol):
    """The client gets an error in its place; the write never leaves."""
    with Talk(dropped("error"), protocol=protocol) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"A"', '"B"')
        talk.expect_client('"A"', DROPPED, '"B"')
        talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")


@both
def test_an_error_in_a_transaction(protocol):
    """The transaction cannot be carried out any more, as if the server had refused the write."""
    aborted = "-EXECABORT Transaction discarded because of previous errors."
    with Talk(dropped("error"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1", "EXEC")
        talk.expect_upstream("CHAOSPROXY.REFUSED", "EXEC")
        talk.upstream("-ERR unknown command", aborted)
        talk.expect_client(DROPPED, aborted)


# -- tell: nothing


@both
def test_nothing(protocol):
    """Silence: the write never leaves, nor does anything behind it; what was asked before is answered."""
    with Talk(dropped("nothing"), protocol=protocol) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.wait(3600)
        talk.expect_silence()
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail")


def test_nothing_in_a_transaction():
    """The transaction is never carried out."""
    with Talk(dropped("nothing")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1", "EXEC")
        talk.wait(3600)
        talk.expect_silence()


# -- tell: disconnect


@both
def test_disconnect(protocol):
    """The connection is reset once what was asked before is answered; the write never leaves."""
    with Talk(dropped("disconnect"), protocol=protocol) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.expect_closed("reset")
        talk.expect_fired("drop_write", applied="no", told="reset", outcome="fail")


# -- with no reply asked for


@pytest.mark.parametrize("quiet", ["OFF", "SKIP"])
@pytest.mark.parametrize("tell", ["ok", "error"])
def test_with_no_reply(quiet, tell):
    """The write is dropped, and nothing is told."""
    with Talk(dropped(tell)) as talk:
        talk.client(f"CLIENT REPLY {quiet}", "SET a 1", "GET a")
        placeholder = ["PING"] if quiet == "SKIP" else []
        talk.expect_upstream(f"CLIENT REPLY {quiet}", *placeholder, "GET a")
        talk.expect_client()
        talk.expect_fired("drop_write", applied="no", told="nothing")


# -- another profile, or an end, while it is being dropped


@pytest.mark.parametrize("tell", ["nothing", "disconnect"])
def test_a_switch_does_not_bring_it_back(tell):
    """A write that was told to be lost stays lost; one that was not dropped yet goes on."""
    with Talk(dropped(tell)) as talk:
        talk.client("GET a", "SET a 1")
        talk.expect_upstream("GET a")
        talk.switch()
        if tell == "nothing":
            talk.expect_closed("reset")
            talk.expect_fired("drop_write", applied="no")
        else:
            talk.expect_upstream("SET a 1")
            assert talk.skipped("drop_write") == ["switched"]


def test_a_switch_while_the_reply_is_computed():
    """What is under way is brought to its end: the write is dropped, and told so."""
    with Talk(dropped("ok")) as talk:
        talk.client("SET a 1", "GET a")
        gate = talk.heard("upstream")
        assert b"SET\r\n" not in gate
        talk.switch()
        assert talk.heard("upstream") == b""
        talk.upstream_gone()
        talk.expect_closed("close")
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail", detail=ENDED)


# -- tell: ok, in a transaction that ends otherwise than carried out


def queued(talk: Talk) -> Toy:
    """A swallowed write between MULTI and EXEC."""
    toy = Toy(talk.protocol)
    talk.client("MULTI", "SET k:1 v")
    serve(talk, toy)
    talk.expect_client("+OK", "+QUEUED")
    return toy


@both
def test_swallowed_in_a_transaction(protocol):
    """Only the write's element reaches the client; it was applied to copies."""
    with Talk(dropped("ok"), protocol=protocol) as talk:
        toy = queued(talk)
        talk.client("EXEC", "PING")
        serve(talk, toy)
        talk.expect_client("*[+1]", "+PONG")
        talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok")


@both
@pytest.mark.parametrize("end", ["DISCARD", "WATCH failed", "upstream_gone", "raw", "switch"])
def test_swallowed_in_a_transaction_that_is_not_carried_out(protocol, end):
    """Where the transaction ends otherwise nothing was dropped, and nothing is said to have been."""
    with Talk(dropped("ok"), protocol=protocol) as talk:
        toy = queued(talk)
        match end:
            case "DISCARD":
                talk.client("DISCARD")
                serve(talk, toy)
                talk.expect_client("+OK")
                assert talk.skipped("drop_write") == ["aborted"]
            case "WATCH failed":
                talk.client("EXEC")
                talk.heard("upstream")
                talk.upstream("*-1" if protocol == 2 else "_")
                talk.expect_client("*-1" if protocol == 2 else "_")
                assert talk.skipped("drop_write") == ["aborted"]
            case "upstream_gone":
                talk.upstream_gone()
                talk.expect_closed("close")
                assert talk.skipped("drop_write") == ["upstream_gone"]
            case "raw":
                talk.upstream(b"?\r\n")
                talk.expect_raw("upstream")
                talk.expect_client(b"?\r\n")
                assert talk.skipped("drop_write") == ["raw"]
            case _:
                talk.switch()
                talk.client("EXEC")
                serve(talk, toy)
                talk.expect_client("*[+1]")
                talk.expect_fired("drop_write", told="ok")  # what is queued cannot be taken back


def test_refused_when_it_is_queued():
    """A write that the server refuses to queue is told as refused: it had no effect all the same."""
    with Talk(dropped("ok")) as talk:
        toy = Toy()
        talk.client("MULTI")
        serve(talk, toy)
        talk.expect_client("+OK")
        talk.client("SET k:1 v")
        toy.receive(talk.heard("upstream"))
        talk.upstream(*["-OOM no"] * len(toy.out))
        talk.expect_client("-OOM no")
        talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")
