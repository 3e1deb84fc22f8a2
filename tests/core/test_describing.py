"""A connection as the control API shows it: all that is known of it, and nothing that it does not have."""

from tests.conversation import Talk


def test_all_of_it():
    """What it is, what it is in, and what is held and owed."""
    rule = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
    with Talk(rule, protocol=3, at=50.0) as talk:
        talk.handshake("CLIENT SETNAME \xe9", "+OK")
        talk.handshake("SELECT 2", "+OK")
        talk.handshake("SUBSCRIBE a", '>["subscribe" "a" :1]')
        talk.handshake("MULTI", "+OK")
        assert talk.conversation.describe() == {
            "id": 1,
            "address": "10.0.0.9",
            "listener": "redis",
            "name": "\xe9",
            "db": 2,
            "protocol": 3,
            "in_transaction": True,
            "subscribed": True,
            "buffered": 0,
            "waiting_replies": 0,
            "holding": False,
            "raw": False,
            "opened": 50.0,
        }
        talk.handshake("DISCARD", "+OK")
        talk.client("GET a", "SET a 1")
        talk.expect_upstream("GET a", "SET a 1")
        talk.upstream("+A")
        said = talk.conversation.describe()
        assert (said["buffered"], said["waiting_replies"], said["holding"]) == (4, 2, True)
        assert not said["in_transaction"]
        talk.wait(1)
        talk.expect_client("+A")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("latency")
