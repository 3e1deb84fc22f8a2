"""How a key goes: which requests that takes for each setting of notifications, and what is made of each answer."""

import pytest

from chaosproxy.core.vanishing import SETTING, requests
from tests.conversation import Talk

NOW = "- {fault: expire_key, mode: now, match: {commands: GET}}"
EVICT = "- {fault: expire_key, mode: evict, match: {commands: GET}}"
PEXPIRE, UNLINK = (b"PEXPIRE", b"k", b"10"), (b"UNLINK", b"k")
ASKED = "CONFIG GET notify-keyspace-events"


def setting(flags: str, protocol: int = 2) -> str:
    """CONFIG GET's reply."""
    return f'{"%" if protocol == 3 else "*"}["notify-keyspace-events" "{flags}"]'


def quiet(body, flags: bytes):
    """A transaction with notifications off."""
    return [
        (b"MULTI",),
        (b"CONFIG", b"SET", SETTING, b""),
        body,
        (b"CONFIG", b"SET", SETTING, flags),
        (b"EXEC",),
    ]


@pytest.mark.parametrize("flags", [b"", b"KE", b"KEx", b"KEl$", b"g", b"A", b"K"])
def test_expired_where_nobody_hears_expire(flags):
    """PEXPIRE alone, where its own notification is off."""
    assert requests("expired", b"k", 0, flags) == [PEXPIRE]


@pytest.mark.parametrize("flags", [b"Kg", b"Eg", b"AKE", b"gxKE"])
def test_expired_where_somebody_would(flags):
    """Notifications are off around PEXPIRE, and on again as they were."""
    assert requests("expired", b"k", 0, flags) == quiet(PEXPIRE, flags)


@pytest.mark.parametrize("flags", [b"", b"e", b"A", b"KE", b"KEl"])
def test_evicted_where_nobody_hears_anything(flags):
    """UNLINK alone, where neither its own notification nor that of an eviction is on."""
    assert requests("evicted", b"k", 0, flags) == [UNLINK]


@pytest.mark.parametrize("flags", [b"Kg", b"gKEx"])
def test_evicted_where_somebody_hears_del_only(flags):
    """Without the class of evictions nothing is published."""
    assert requests("evicted", b"k", 0, flags) == quiet(UNLINK, flags)


@pytest.mark.parametrize(
    ("flags", "published"),
    [
        (b"AK", (b"__keyspace@3__:k", b"evicted")),
        (b"eE", (b"__keyevent@3__:evicted", b"k")),
        (b"AKE", (b"__keyspace@3__:k", b"evicted", b"__keyevent@3__:evicted", b"k")),
        (b"egKE", (b"__keyspace@3__:k", b"evicted", b"__keyevent@3__:evicted", b"k")),
    ],
)
def test_evicted_where_somebody_hears_that(flags, published):
    """What an eviction gives is published, keyspace first, by a script that unlinks; with the rest off where del would be heard."""
    wanted = requests("evicted", b"k", 3, flags)
    silent = flags == b"eE"
    body = wanted[0] if silent else wanted[2]
    assert (body[0], body[2:]) == (b"EVAL", (b"1", b"k", *published))
    assert b"UNLINK" in body[1]
    assert wanted == ([body] if silent else quiet(body, flags))


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize(("rule", "how"), [(NOW, "expired"), (EVICT, "evicted")])
def test_it_goes(rule, how, protocol):
    """Asked aside, in the client's database, in its protocol; when it has gone the command follows, and the event says so."""
    with Talk(rule, protocol=protocol) as talk:
        talk.client("GET k")
        talk.expect_silence()
        talk.expect_side(ASKED, db=0, protocol=protocol, where="upstream")
        talk.side(setting("AKE", protocol))
        talk.expect_side(*map(wire, requests(how, b"k", 0, b"AKE")))
        talk.side("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[+OK :1 +OK]")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired(
            "expire_key", applied="yes", told="ok", outcome="ok", keys=(b"k",), detail=""
        )
        assert [(touched.how, touched.count) for touched in talk.touched()] == [(how, 1)]


def wire(args) -> bytes:
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(arg), arg) for arg in args)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "side_connection"),
        (":0", "no_key"),
        ("-NOPERM no", "refused"),
        (b":x\r\n", "refused"),
    ],
)
@pytest.mark.parametrize("rule", [NOW, EVICT])
def test_it_does_not_go(rule, answer, reason):
    """A key that was not there, or could not be made to go: the command follows as it is, and nothing is told that did not happen."""
    with Talk(rule) as talk:
        talk.client("GET k")
        talk.side(setting(""))
        talk.side(*([answer] if answer else []))
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert talk.skipped("expire_key") == [reason]
        assert talk.touched() == []
        talk.expect_nothing_fired()


def test_the_side_connection_fails_at_once():
    """Without an answer to the first question there is no second one."""
    with Talk(NOW) as talk:
        talk.client("GET k")
        talk.side()
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert talk.skipped("expire_key") == ["side_connection"]


@pytest.mark.parametrize("answer", ["-NOPERM no CONFIG", "*[]", "%[]", b":x\r\n", "*[+a :1]"])
@pytest.mark.parametrize(
    ("rule", "plain", "says"), [(NOW, "PEXPIRE k 10", "expire too"), (EVICT, "UNLINK k", "del")]
)
def test_config_is_not_allowed(rule, plain, says, answer):
    """The key goes all the same, the event says what notifications will say, and why."""
    with Talk(rule) as talk:
        talk.client("GET k")
        talk.side(answer)
        talk.expect_side(plain)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        event = talk.expect_fired("expire_key")
        assert "CONFIG is not allowed" in event.detail
        assert says in event.detail
        assert ("NOPERM no CONFIG" if answer[0] == "-" else "no such setting") in event.detail


def test_setting_is_not_allowed():
    """CONFIG GET alone does not help: then the transaction is refused, and nothing of it was done."""
    with Talk(EVICT) as talk:
        talk.client("GET k")
        talk.side(setting("AKE"))
        talk.side("+OK", "-NOPERM config|set", "+QUEUED", "-NOPERM config|set", "-EXECABORT no")
        talk.expect_side("UNLINK k")
        talk.side(":1")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert "NOPERM config|set" in talk.expect_fired("expire_key").detail


def test_transactions_are_not_allowed():
    """Where MULTI is refused each request is carried out by itself, so the setting is put back, and the key has gone."""
    with Talk(NOW) as talk:
        talk.client("GET k")
        talk.side(setting("AKE"))
        talk.side("-NOPERM multi", "+OK", ":1", "+OK", "-NOPERM exec")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key", detail="")


def test_the_transaction_cannot_be_carried_out():
    """EXEC is refused for another reason: nothing has gone."""
    with Talk(NOW) as talk:
        talk.client("GET k")
        talk.side(setting("AKE"))
        talk.side("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "-LOADING Redis is loading")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert talk.skipped("expire_key") == ["refused"]


def test_the_answer_is_no_reply_of_a_server():
    """Nonsense from the side connection is not taken for success."""
    with Talk(NOW) as talk:
        talk.client("GET k")
        talk.side(setting("AKE"))
        talk.side("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[+OK]")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert talk.skipped("expire_key") == ["refused"]
