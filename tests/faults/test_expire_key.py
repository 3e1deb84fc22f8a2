"""`expire_key`: a key goes just before its command; times are changed by syntax, in every form a command comes in."""

import pytest

from chaosproxy.core.setting import Invalid
from chaosproxy.faults.expire_key import MODE, Ttl
from chaosproxy.profile import ProfileError
from tests.conversation import Talk, profile

CONFIG = '*["notify-keyspace-events" ""]'
UNKNOWN = "the connection ended before it was known whether it happened"
#: The clock of a conversation: seconds since 1970.
CLOCK = 1_000_000_100


def rule(mode: str, commands: str = "GET", more: str = "") -> str:
    return f"- {{fault: expire_key, mode: {mode}, match: {{commands: [{commands}]}}{more}}}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def modes(function):
    """Run a test for both ways a key can go."""
    ways = [("now", "PEXPIRE k 10", "expired"), ("evict", "UNLINK k", "evicted")]
    return pytest.mark.parametrize(("mode", "way", "how"), ways)(function)


# --- the setting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("now", "now"),
        ("evict", "evict"),
        ("strip_ttl", "strip_ttl"),
        ("no_renewal", "no_renewal"),
        ({"ttl_scale": 0.01}, Ttl(scale=0.01)),
        ({"ttl_scale": 2}, Ttl(scale=2.0)),
        ({"ttl_set": "3s"}, Ttl(to=3.0)),
        ({"ttl_set": 0.5}, Ttl(to=0.5)),
        ({"clock_skew": "-30s"}, Ttl(skew=-30.0)),
        ({"clock_skew": "+2m"}, Ttl(skew=120.0)),
        ({"clock_skew": "30s"}, Ttl(skew=30.0)),
        ({"clock_skew": 30}, Ttl(skew=30.0)),
    ],
)
def test_mode(value, parsed):
    """A word, or one setting with its value, which has its unit or is in seconds."""
    assert MODE.parse(value) == parsed


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("later", "expected now, evict, strip_ttl or no_renewal, got 'later'"),
        (["now"], "expected now, evict, strip_ttl or no_renewal, got a list"),
        ({}, "expected {ttl_scale: 0.01}, {ttl_set: 3s} or {clock_skew: -30s}, got nothing"),
        ({"ttl_scale": 0}, "expected a factor above 0, such as 0.01, got 0"),
        ({"ttl_scale": -1}, "expected a factor above 0, such as 0.01, got -1"),
        ({"ttl_scale": True}, "expected a factor above 0, such as 0.01, got true"),
        ({"ttl_scale": "10%"}, "expected a factor above 0, such as 0.01, got '10%'"),
        ({"ttl_scale": 2e6}, "expected a factor above 0, such as 0.01, got 2000000.0"),
        ({"ttl_set": "0s"}, "expected a duration such as 800ms or 1.5s, longer than 0, got '0s'"),
        ({"clock_skew": "--30s"}, "expected a duration with its sign, such as -30s or +2m, got '--30s'"),
        ({"clock_skew": -30}, "expected a duration with its sign, such as -30s or +2m, got -30"),
        ({"clock_skew": "soon"}, "expected a duration with its sign, such as -30s or +2m, got 'soon'"),
        ({"ttl_set": "3s", "ttl_scale": 2}, "give one of ttl_scale, ttl_set and clock_skew"),
        ({"skew": "3s"}, "unknown field 'skew', expected {ttl_scale: 0.01}, {ttl_set: 3s} or {clock_skew: -30s}"),
    ],
)  # fmt: skip
def test_no_mode(value, message):
    """What is wrong is said with what would be right."""
    with pytest.raises(Invalid) as wrong:
        MODE.parse(value)
    assert wrong.value.message == message


# --- a key goes ------------------------------------------------------------------------------------


@both
@modes
def test_what_was_sent_before_comes_first(mode, way, how, protocol):
    """What takes the key goes aside, so it waits for the replies to what the client sent before; then the command follows."""
    with Talk(rule(mode), protocol=protocol) as talk:
        talk.client("SET k v", "GET k", "GET l")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_side("CONFIG GET notify-keyspace-events", protocol=protocol)
        talk.side(CONFIG)
        talk.expect_side(way)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key", applied="yes", told="ok", keys=(b"k",))
        # And the next one, of another key, likewise.
        talk.side(CONFIG)
        talk.expect_side(way.replace(" k", " l"))
        talk.side(":0")
        talk.expect_upstream("GET l")
        talk.upstream('"v"')
        talk.expect_client('"v"')
        assert talk.skipped("expire_key") == ["no_key"]
        assert [(touched.how, touched.count) for touched in talk.touched()] == [(how, 1)]


RUN = "- {fault: run, match: {commands: GET}, at: before_forward, commands: [[SET, k, w]]}\n"
GO = "- {fault: expire_key, match: {commands: GET}, mode: evict}\n"


def test_before_what_runs():
    """Where commands run too, it is one after the other, in the profile's order: they find the key gone."""
    with Talk(GO + RUN) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        talk.expect_upstream()
        talk.side(":1")
        talk.expect_upstream("SET k w")
        talk.upstream("+OK")
        talk.expect_upstream("GET k")
        talk.upstream('"w"')
        talk.expect_client('"w"')
        assert {fired.fault for fired in talk.events()} == {"expire_key", "run"}


def test_after_what_runs():
    """And the other way round: nothing goes before they have run."""
    with Talk(RUN + GO) as talk:
        talk.client("GET k")
        talk.expect_upstream("SET k w")
        with pytest.raises(AssertionError, match="asked nothing"):
            talk.side(CONFIG)
        talk.upstream("+OK")
        talk.side(CONFIG)
        talk.side(":1")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")


def test_what_has_not_run_at_a_switch():
    """What waits its turn when another profile comes has not happened."""
    with Talk(GO + RUN) as talk:
        talk.client("GET k")
        talk.switch()
        talk.side(CONFIG)
        talk.side(":1")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key")
        assert talk.skipped("run") == ["switched"]


def test_it_surely_is_over():
    """A key that expires is asked for only after its last milliseconds are over, on a server whose clock is coarse too."""
    with Talk(rule("now")) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        talk.side(":1")
        talk.wait(0.014)
        talk.expect_silence()
        talk.wait(0.002)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key")


@both
@modes
def test_in_a_transaction(mode, way, how, protocol):
    """A queued command's key goes when it is queued, in the transaction's database; what becomes of EXEC is told."""
    with Talk(rule(mode), protocol=protocol) as talk:
        talk.handshake("SELECT 2", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.client("GET k")
        talk.expect_side("CONFIG GET notify-keyspace-events", db=2)
        talk.side(CONFIG)
        talk.expect_side(way, db=2)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.expect_nothing_fired()
        talk.handshake("EXEC", "*[$-1]")
        talk.expect_fired("expire_key", applied="yes", told="ok")


@modes
def test_in_a_transaction_that_is_not_carried_out(mode, way, how):
    """WATCH sees that the key has gone: EXEC answers null, and the event says that the command was not applied."""
    with Talk(rule(mode)) as talk:
        talk.handshake("WATCH k", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.client("GET k")
        talk.side(CONFIG)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*-1")
        talk.expect_fired("expire_key", applied="no")


@modes
@pytest.mark.parametrize("word", ["OFF", "SKIP"])
def test_without_replies(mode, way, how, word):
    """A client that wants no replies gets none; its command waits all the same."""
    with Talk(rule(mode)) as talk:
        talk.client(f"CLIENT REPLY {word}", "GET k")
        talk.expect_upstream(f"CLIENT REPLY {word}")
        talk.side(CONFIG)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.expect_client()
        talk.expect_fired("expire_key", applied="unknown", told="nothing")


@modes
def test_between_asking_and_its_command(mode, way, how):
    """Nothing of ours comes between ASKING and the command it is for."""
    with Talk(rule(mode)) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("GET k")
        talk.side(CONFIG)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key")


@modes
def test_the_client_goes_meanwhile(mode, way, how):
    """It is not known then whether the key has gone, and the event says that; Redis never saw the command."""
    with Talk(rule(mode)) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        talk.client_gone()
        talk.expect_fired("expire_key", applied="no", told="nothing", detail=UNKNOWN)
        talk.side(":1")
        talk.expect_silence()


@modes
def test_the_client_goes_before_anything_happened(mode, way, how):
    """A command that still waits for those before it has met no fault when its client goes."""
    with Talk(rule(mode)) as talk:
        talk.client("SET k v", "GET k")
        talk.expect_upstream("SET k v")
        talk.client_gone()
        assert talk.skipped("expire_key") == ["client_gone"]
        talk.expect_nothing_fired()


@modes
def test_the_client_has_said_all(mode, way, how):
    """A client that half-closes after its command gets the reply."""
    with Talk(rule(mode)) as talk:
        talk.client("SET k v", "GET k")
        talk.client_eof()
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.side(CONFIG)
        talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.expect_half_close()
        talk.upstream("$-1")
        talk.expect_client("+OK", "$-1")
        talk.expect_fired("expire_key", applied="yes")


@modes
def test_the_upstream_goes_meanwhile(mode, way, how):
    """The command will not be applied any more; whether the key has gone is not known."""
    with Talk(rule(mode)) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        talk.upstream_gone()
        talk.expect_closed("close")
        talk.expect_fired("expire_key", applied="no", told="nothing", detail=UNKNOWN)


@modes
@pytest.mark.parametrize("answered", [False, True])
def test_another_profile_meanwhile(mode, way, how, answered):
    """What has begun is brought to its end: the command follows it, and what happened is told."""
    with Talk(rule(mode)) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        if answered:
            talk.side(":1")
        talk.switch()
        if not answered:
            talk.side(":1")
        talk.wait(0.02)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_fired("expire_key", applied="yes", generation=1)


def test_another_profile_before_anything_happened():
    """A command that still waits for those before it goes on as it is."""
    with Talk(rule("evict")) as talk:
        talk.client("SET k v", "GET k")
        talk.expect_upstream("SET k v")
        talk.switch()
        talk.expect_upstream("GET k")
        talk.upstream("+OK", '"v"')
        talk.expect_client("+OK", '"v"')
        assert talk.skipped("expire_key") == ["switched"]


def test_the_first_key_that_matches():
    """Of several keys the first one that the rule is about goes."""
    mget = "- {fault: expire_key, mode: evict, match: {commands: MGET, keys: 'b*'}}"
    with Talk(mget) as talk:
        talk.client("MGET a b1 b2")
        talk.side(CONFIG)
        talk.expect_side("UNLINK b1")
        talk.side(":1")
        talk.expect_upstream("MGET a b1 b2")
        talk.upstream("*[$-1 $-1 $-1]")
        talk.expect_client("*[$-1 $-1 $-1]")
        talk.expect_fired("expire_key")


def test_a_key_is_no_pattern():
    """A key with {key} in it is that key, and nothing is put in its place."""
    with Talk(rule("now")) as talk:
        talk.client("GET a{key}b")
        talk.side(CONFIG)
        talk.expect_side("PEXPIRE a{key}b 10")
        talk.side(":0")
        talk.expect_upstream("GET a{key}b")
        talk.upstream("$-1")
        talk.expect_client("$-1")


def test_a_command_with_a_key():
    """A rule that names only commands without a key is refused as it is read: nothing would ever come of it."""
    with pytest.raises(ProfileError, match="acts on keys and none of these has one"):
        profile("- {fault: expire_key, match: {commands: [PING, INFO]}, mode: now}")


NO_TIME = "changes times to live in this mode and none of these carries one"
NO_ABSOLUTE = "changes absolute times in this mode and none of these carries one"
NO_LONGER = "withholds longer times to live in this mode and none of these carries one"


@pytest.mark.parametrize(
    ("mode", "bad", "why", "good"),
    [
        ("strip_ttl", "GET, EVAL, DEL", NO_TIME, "EVAL, SET"),
        ("{ttl_scale: 0.01}", "EVALSHA, FCALL", NO_TIME, "'@write'"),
        ("{ttl_set: 3s}", "'@read'", NO_TIME, "HSETEX"),
        ("{clock_skew: -30s}", "EXPIRE, SETEX, HPEXPIRE", NO_ABSOLUTE, "EXPIREAT"),
        ("{clock_skew: 30s}", "PSETEX, GET", NO_ABSOLUTE, "GET, SET"),
        ("no_renewal", "HSETEX, MSETEX, RESTORE, GET", NO_LONGER, "PEXPIRE"),
        ("no_renewal", "EVAL", NO_LONGER, "SETEX"),
    ],
)
def test_commands_without_a_time(mode, bad, why, good):
    """A rule that changes times and names only commands that carry none, as scripts, is refused as it is read."""
    with pytest.raises(ProfileError, match=f"can never hold, fault expire_key {why}"):
        profile(rule(mode, bad))
    assert profile(rule(mode, good))
    assert profile(rule(mode, "ACME.FROB, GET"))


@pytest.mark.parametrize("mode", ["now", "evict", "strip_ttl", "no_renewal", "{ttl_set: 3s}"])
def test_without_a_key(mode):
    """A command without keys has none that could go, and no time."""
    with Talk(rule(mode, "PING, SET")) as talk:
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        assert talk.skipped("expire_key") == ["not_applicable"]


def test_two_rules():
    """A delay before and two keys gone: one after the other, then the command."""
    two = """
- {fault: latency, match: {commands: MGET}, at: before_forward, delay: 1s}
- {fault: expire_key, name: one, mode: now, match: {commands: MGET, keys: a}}
- {fault: expire_key, name: two, mode: evict, match: {commands: MGET, keys: b}}
"""
    with Talk(two) as talk:
        talk.client("MGET a b")
        talk.wait(1.0)
        talk.side(CONFIG)
        talk.side(CONFIG)
        talk.side(":1")
        talk.side(":1")
        talk.expect_silence()
        talk.wait(0.02)
        talk.expect_upstream("MGET a b")
        talk.upstream("*[$-1 $-1]")
        talk.expect_client("*[$-1 $-1]")
        talk.expect_fired("latency", delay=1.0)
        talk.expect_fired("one")
        talk.expect_fired("two")


def test_a_request_too_large_to_be_held():
    """The key of a command that passes in pieces stays: the rule says why."""
    with Talk(rule("now", "SET"), max_buffer=1000) as talk:
        talk.client(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n" + b"x" * 4000)
        talk.client(b"x" * 1000 + b"\r\n")
        assert talk.heard("upstream").endswith(b"x\r\n")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert talk.skipped("expire_key") == ["too_large"]


# --- another time ----------------------------------------------------------------------------------

CHANGES = [
    ("{ttl_scale: 0.01}", "SET k v EX 10", "SET k v PX 100", "time to live times 0.01"),
    ("{ttl_scale: 3}", "GETEX k PX 5", "GETEX k PX 15", "time to live times 3"),
    ("{ttl_scale: 0.5}", f"EXPIREAT k {CLOCK + 10}", f"EXPIREAT k {CLOCK + 5}", "time to live times 0.5"),
    ("{ttl_scale: 0.5}", f"SET k v EXAT {CLOCK + 5}", f"SET k v PXAT {CLOCK + 2}500", "time to live times 0.5"),
    ("{ttl_set: 3s}", "SETEX k 604800 v", "SETEX k 3 v", "time to live set to 3 s"),
    ("{ttl_set: 1.5s}", "EXPIRE k 604800 NX", "PEXPIRE k 1500 NX", "time to live set to 1.5 s"),
    ("{ttl_set: 3s}", f"PEXPIREAT k {CLOCK + 10}000", f"PEXPIREAT k {CLOCK + 3}000", "time to live set to 3 s"),
    ("{ttl_set: 3s}", f"RESTORE k {CLOCK + 10}000 x ABSTTL", f"RESTORE k {CLOCK + 3}000 x ABSTTL", "time to live set to 3 s"),
    ("{ttl_set: 3s}", "HSETEX h EX 10 FIELDS 1 EX 10", "HSETEX h EX 3 FIELDS 1 EX 10", "time to live set to 3 s"),
    ("{clock_skew: -30s}", f"SET k v EXAT {CLOCK + 99}", f"SET k v EXAT {CLOCK + 69}", "clock skewed by -30 s"),
    ("{clock_skew: +0.5s}", f"EXPIREAT k {CLOCK}", f"PEXPIREAT k {CLOCK}500", "clock skewed by +0.5 s"),
    ("{clock_skew: -30s}", "EXPIREAT k 20", "PEXPIREAT k 1", "clock skewed by -30 s"),
    ("strip_ttl", "SET k v EX 10 NX", "SET k v NX", "no time to live"),
    ("strip_ttl", "SET k v KEEPTTL", "SET k v", "no time to live"),
    ("strip_ttl", "SETEX k 10 v", "SET k v", "no time to live"),
    ("strip_ttl", "GETEX k PXAT 99999999999999", "GETEX k", "no time to live"),
]  # fmt: skip
UNCHANGED = [
    # Absolute times are the client's clock, relative ones are not.
    ("{clock_skew: -30s}", "SET k v EX 10"),
    ("{clock_skew: -30s}", "EXPIRE k 10"),
    ("{clock_skew: 0s}", f"SET k v EXAT {CLOCK + 99}"),
    ("{ttl_scale: 1}", "EXPIRE k 10"),
    ("{ttl_set: 3s}", "SET k v PX 3000"),
    # A time that is over is a deletion.
    ("{ttl_scale: 9}", f"EXPIREAT k {CLOCK - 1}"),
    ("{ttl_set: 3s}", f"SET k v EXAT {CLOCK - 1}"),
    ("{ttl_set: 3s}", "EXPIRE k 0"),
    ("strip_ttl", "EXPIRE k -1"),
    ("strip_ttl", f"PEXPIREAT k {CLOCK - 1}000"),
    ("strip_ttl", f"GETEX k EXAT {CLOCK - 1}"),
    ("no_renewal", "EXPIRE k 0"),
    ("no_renewal", "GETEX k PERSIST"),
    ("no_renewal", "EXPIRE k 10 NX"),
    ("no_renewal", "EXPIRE k 10 LT"),
    ("no_renewal", "HSETEX h EX 10 FIELDS 1 a v"),
    ("no_renewal", "RESTORE k 10 x"),
    ("strip_ttl", "EXPIRE k"),
    ("strip_ttl", "EXPIRE k soon"),
    # Refused for their number of words, by an error that names the command.
    ("{ttl_set: 1.5s}", "SETEX k 10"),
    ("{ttl_set: 1.5s}", "SETEX k 10 v w"),
    ("no_renewal", "HEXPIRE h 10 FIELDS 1"),
    ("{ttl_set: 3s}", "SET k v"),
    ("strip_ttl", "SET k EX"),
    ("no_renewal", "SET k v"),
    ("{ttl_set: 3s}", "SET k EX PX"),
    ("{ttl_set: 3s}", "LPUSH k EX 10"),
]  # fmt: skip


def any_command(mode: str) -> str:
    return f"- {{fault: expire_key, mode: {mode}}}"


@both
@pytest.mark.parametrize(("mode", "sent", "goes", "detail"), CHANGES)
def test_changed(mode, sent, goes, detail, protocol):
    """The request goes out with another time; its reply is the server's own, and the event says what was changed."""
    with Talk(any_command(mode), protocol=protocol, at=100.0) as talk:
        talk.client("PING", sent, "PING")
        talk.expect_upstream("PING", goes, "PING")
        talk.upstream("+PONG", ":1", "+PONG")
        talk.expect_client("+PONG", ":1", "+PONG")
        talk.expect_fired("expire_key", applied="yes", told="ok", outcome="ok", detail=detail)
        assert [(touched.how, touched.count) for touched in talk.touched()] == [("ttl", 1)]


@pytest.mark.parametrize(("mode", "sent"), UNCHANGED)
def test_unchanged(mode, sent):
    """Where there is nothing to change the very bytes go on, and no event says otherwise."""
    raw = b" ".join(word.encode() for word in sent.split()) + b"\r\n"
    with Talk(any_command(mode)) as talk:
        for way in (sent, raw):
            talk.client(way)
            talk.expect_upstream(way)
            talk.upstream(":1")
            talk.expect_client(":1")
        assert talk.skipped("expire_key") == ["not_applicable"] * 2
        assert talk.touched() == []


@both
def test_changed_in_a_transaction(protocol):
    """Between MULTI and EXEC too; once EXEC has answered the event is told."""
    with Talk(any_command("{ttl_set: 3s}"), protocol=protocol) as talk:
        talk.client("MULTI", "RPUSH k a")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_upstream("RPUSH k a")
        talk.upstream("+QUEUED")
        talk.client("EXPIRE k 604800")
        talk.expect_upstream("EXPIRE k 3")
        talk.upstream("+QUEUED")
        talk.expect_client("+OK", "+QUEUED", "+QUEUED")
        talk.handshake("EXEC", "*[:1 :1]")
        talk.expect_fired("expire_key", applied="yes", told="ok")


@pytest.mark.parametrize(("answer", "applied"), [("*-1", "no"), ("-EXECABORT no", "no")])
def test_changed_in_a_transaction_that_is_not_carried_out(answer, applied):
    """The event says that nothing of it was applied."""
    with Talk(any_command("{ttl_set: 3s}")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("EXPIRE k 604800")
        talk.expect_upstream("EXPIRE k 3")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", answer)
        talk.expect_fired("expire_key", applied=applied, told="error")


def test_changed_and_refused():
    """An error of the server's reaches the client as it is."""
    with Talk(any_command("{ttl_set: 3s}")) as talk:
        talk.client("SETEX k 9 v")
        talk.expect_upstream("SETEX k 3 v")
        talk.upstream("-OOM command not allowed")
        talk.expect_client("-OOM command not allowed")
        talk.expect_fired("expire_key", applied="no", told="error")


def test_changed_without_replies():
    """It goes out changed all the same; that it was applied nobody knows."""
    with Talk(any_command("{ttl_set: 3s}")) as talk:
        talk.client("CLIENT REPLY OFF", "SETEX k 9 v")
        talk.expect_upstream("CLIENT REPLY OFF", "SETEX k 3 v")
        talk.expect_fired("expire_key", applied="unknown", told="nothing")


def test_changed_inline():
    """A command that came as a line of words goes out as an array."""
    with Talk(any_command("{ttl_set: 3s}")) as talk:
        talk.client(b"set k 'a b' ex 10\r\n")
        talk.expect_upstream(b"*5\r\n$3\r\nset\r\n$1\r\nk\r\n$3\r\na b\r\n$2\r\nex\r\n$1\r\n3\r\n")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("expire_key")


def test_changes_add_up():
    """Each rule sees the request as the one before it left it."""
    two = """
- {fault: expire_key, name: half, mode: {ttl_scale: 0.5}}
- {fault: expire_key, name: tenth, mode: {ttl_scale: 0.1}}
- {fault: expire_key, name: none, mode: strip_ttl, match: {keys: immortal}}
"""
    with Talk(two) as talk:
        talk.client("SETEX k 100 v", "SETEX immortal 100 v")
        talk.expect_upstream("SETEX k 5 v", "SET immortal v")
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK", "+OK")
        for name in ("half", "tenth", "half", "tenth", "none"):
            talk.expect_fired(name)


def test_expire_is_stripped_of_all():
    """Of EXPIRE nothing is left without its time: it is acknowledged as the server would have, and not done."""
    with Talk(any_command("strip_ttl")) as talk:
        talk.client("EXPIRE k 10")
        gate = ("MULTI", "SELECT 15", "DBSIZE", "SELECT 0", "EXEC")
        talk.expect_upstream(*gate)
        talk.upstream("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[+OK :0 +OK]")
        talk.expect_upstream(
            "MULTI", "COPY k k DB 15 REPLACE", "SELECT 15", "EXPIRE k 10", "DEL k", "SELECT 0", "EXEC"
        )  # fmt: skip
        talk.upstream("+OK", *["+QUEUED"] * 5, "*[:1 +OK :1 :1 +OK]")
        talk.expect_client(":1")
        talk.expect_fired("expire_key", applied="no", told="ok", outcome="false_ok")


@modes
def test_raw_meanwhile(mode, way, how):
    """The connection is no longer understood: the command passes, and what was not known then stays so."""
    with Talk(rule(mode)) as talk:
        talk.client("GET k")
        talk.side(CONFIG)
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_upstream("GET k")
        talk.expect_client(b"?\r\n")
        talk.expect_fired("expire_key", applied="unknown", detail=UNKNOWN)
        talk.side(":0")
        assert talk.skipped("expire_key") == []
