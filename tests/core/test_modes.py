"""What breaks "one request, one reply", as a dialogue: a reply too few or too many would put all later ones out of place.

Takes commands and a server's replies; gives proof that what the client gets is what the server said, faults or none.
"""

import pytest

from tests.conversation import Talk

#: Looks at every reply, acts on none.
ARMED = "- {fault: latency, when: {nth: 1000000}, at: after_apply, delay: 1s}"


@pytest.mark.parametrize("faults", ["", ARMED])
def test_monitor_says_nothing_to_a_monitor(faults: str):
    """A second MONITOR gets no reply, and what comes behind it gets its own."""
    line = b'+1700000000.000001 [0 127.0.0.1:1] "PING"\r\n'
    with Talk(faults) as talk:
        talk.handshake("MONITOR", "+OK")
        talk.client("MONITOR")
        talk.expect_upstream("MONITOR")
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(line, "+PONG")
        talk.expect_client(line, "+PONG")


@pytest.mark.parametrize("faults", ["", ARMED])
@pytest.mark.parametrize("word", ["OFF", "SKIP"])
def test_an_array_that_lacks_what_it_announces_is_not_waited_for(faults: str, word: str):
    """Redis up to 8.2 queues CLIENT REPLY and then garbles EXEC's array: from there on bytes pass as they come."""
    with Talk(faults) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client(f"CLIENT REPLY {word}")
        talk.upstream("+QUEUED")
        assert "CLIENT REPLY" in talk.expect_raw("upstream")
        talk.expect_upstream(f"CLIENT REPLY {word}")
        talk.expect_client("+QUEUED")
        talk.client("ECHO 1", "EXEC")
        talk.expect_upstream("ECHO 1", "EXEC")
        talk.upstream("+QUEUED", b"*2\r\n$1\r\n1\r\n")
        talk.expect_client("+QUEUED", b"*2\r\n$1\r\n1\r\n")


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_server_that_refuses_to_queue_it_is_understood_further(faults: str):
    """Valkey 9 does not queue CLIENT REPLY: its error is a reply like any other."""
    with Talk(faults) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("CLIENT REPLY OFF", "-ERR not allowed inside a transaction")
        talk.handshake("EXEC", "-EXECABORT Transaction discarded because of previous errors.")
        talk.handshake("PING", "+PONG")
