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


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("-LOADING Redis is loading", id="refused for another reason"),
        pytest.param("*[+OK]", id="no reply of a server"),
    ],
)
def test_the_transaction_cannot_be_carried_out(answer):
    """Nothing has gone, and nonsense from the side connection is not taken for success."""
    with Talk(NOW) as talk:
        talk.client("GET k")
        talk.side(setting("AKE"))
        talk.side("+OK", "+QUEUED", "+QUEUED", "+QUEUED", answer)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        assert talk.skipped("expire_key") == ["refused"]


# --- several commands that want the same key gone --------------------------------------------------


@pytest.mark.parametrize(("rule", "how"), [(NOW, "expired"), (EVICT, "evicted")])
def test_one_after_the_other(rule, how):
    """While one command has the key going, others that want it gone wait: a second PEXPIRE would put off the first one's end."""
    with Talk(rule) as one, one.another() as two, one.another() as three:
        for talk in (one, two, three):
            talk.client("GET k")
        one.expect_side(ASKED)
        one.side(setting(""))
        two.wait(1)
        assert two._asked == three._asked == []
        one.side(":1")
        one.wait(0.02)
        one.expect_upstream("GET k")
        two.expect_side(ASKED)
        assert three._asked == []
        two.side(setting(""))
        two.side(":0")
        two.expect_upstream("GET k")
        three.side(setting(""))
        three.side(":0")
        three.expect_upstream("GET k")
        for talk in (one, two, three):
            talk.upstream("$-1")
            talk.expect_client("$-1")
        one.expect_fired("expire_key", applied="yes")
        assert two.skipped("expire_key") == three.skipped("expire_key") == ["no_key"]
        assert one.world.vanishing == {}


@pytest.mark.parametrize("other", ["GET l", "SELECT 3"])
def test_another_key_waits_for_nobody(other):
    """Another key, or the same one in another database, goes at once."""
    with Talk(NOW) as one, one.another() as two:
        one.client("GET k")
        if other == "SELECT 3":
            two.client(other)
            two.expect_upstream(other)
            two.upstream("+OK")
            two.expect_client("+OK")
            other = "GET k"
        two.client(other)
        for talk in (one, two):
            talk.expect_side(ASKED)
            talk.side()
            talk.expect_upstream("GET k" if talk is one else other)
            talk.upstream("$-1")
            talk.expect_client("$-1")


@pytest.mark.parametrize("when", ["asked", "told", "waiting"])
def test_the_first_one_leaves(when):
    """However far the first one came before its client went, the next one goes on at once."""
    with Talk(NOW) as one, one.another() as two:
        one.client("GET k")
        two.client("GET k")
        if when != "asked":
            one.side(setting(""))
        if when == "waiting":
            one.side(":1")
        assert two._asked == []
        one.client_gone()
        one.expect_fired("expire_key", told="nothing")
        two.side(setting(""))
        two.side(":1")
        two.wait(0.02)
        two.expect_upstream("GET k")
        two.upstream("$-1")
        two.expect_client("$-1")
        two.expect_fired("expire_key", told="ok")


def test_one_that_waits_leaves():
    """A client that goes while its command waits for another's is nobody's concern."""
    with Talk(NOW) as one, one.another() as two:
        one.client("GET k")
        two.client("GET k")
        two.client_gone()
        one.side(setting(""))
        one.side(":0")
        one.expect_upstream("GET k")
        one.upstream("$-1")
        one.expect_client("$-1")
        assert two.skipped("expire_key") == ["client_gone"]


def test_a_wake_for_another_reason():
    """One that waits and is woken by something else waits on, and is remembered once."""
    with Talk(NOW) as one, one.another() as two:
        one.client("GET k")
        two.client("GET k")
        two.wake()
        assert one.world.vanishing == {(0, b"k"): [two.connection]}
        one.side()
        one.expect_upstream("GET k")
        one.upstream("$-1")
        one.expect_client("$-1")
        two.side()
        two.expect_upstream("GET k")
        two.upstream("$-1")
        two.expect_client("$-1")


def test_two_rules_for_one_key():
    """One command that two rules have a key go for waits for both, and for nobody else."""
    with Talk(NOW + "\n" + EVICT) as talk:
        talk.client("GET k")
        talk.side(setting(""))
        talk.side(setting(""))
        talk.side(":1")
        talk.side(":0")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key")
        assert talk.skipped("expire_key-2") == ["no_key"]
        assert talk.world.vanishing == {}
