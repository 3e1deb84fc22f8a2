"""`run`: other commands run on the server, exactly there; the client sees nothing of them."""

import pytest

from chaosproxy.profile import ProfileError
from tests.conversation import Talk, profile

BEFORE = "- {fault: run, match: {commands: SET}, at: before_forward, commands: [[INCR, n], [DEL, '{key}:x']]}"
AFTER = "- {fault: run, match: {commands: SET}, at: after_apply, commands: [[RPUSH, l, '{key}']]}"
LAST = "- {fault: run, match: {commands: SET}, at: after_reply, commands: [[RPUSH, l, '{key}']]}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_before_forward(protocol):
    """They go out just ahead of the command, on its own connection; their replies are hidden."""
    with Talk(BEFORE, protocol=protocol) as talk:
        talk.client("GET a", "SET k v", "GET b")
        talk.expect_upstream("GET a", "INCR n", "DEL k:x", "SET k v", "GET b")
        talk.upstream('"A"', ":7", ":0", "+OK", '"B"')
        talk.expect_client('"A"', "+OK", '"B"')
        talk.expect_fired("run", applied="yes", told="ok", outcome="ok", detail="")
        assert [(touched.how, touched.count) for touched in talk.touched()] == [("run", 1)]


def test_their_errors_are_told():
    """An error of theirs reaches the event, and nobody else."""
    with Talk(BEFORE) as talk:
        talk.client("SET k v")
        talk.expect_upstream("INCR n", "DEL k:x", "SET k v")
        talk.upstream("-ERR value is not an integer or out of range", ":0", "+OK")
        talk.expect_client("+OK")
        talk.expect_fired("run", detail="ERR value is not an integer or out of range")


@pytest.mark.parametrize(
    "commands",
    [
        "[[SET, a, b], [select, 5]]",
        "[[SET, a, b], [SUBSCRIBE, x]]",
        "[[SET, a, b], [MONITOR]]",
        "[[SET, a, b], [HELLO, 3]]",
        "[[SET, a, b], [Client, reply, 'OFF']]",
        "[[SET, a, b], [client, no-evict, 'on']]",
        "[[UNWATCH]]",
        "[[SUNSUBSCRIBE]]",
    ],
)
def test_none_of_the_connections_own(commands):
    """What changes the connection is refused: it is the client's, or one that other faults use as well."""
    message = (
        "commands: [A-Z -]+ changes the connection that it runs on, which is not the fault's own"
    )
    with pytest.raises(ProfileError, match=message):
        profile(f"- {{fault: run, at: after_apply, commands: {commands}}}")


@pytest.mark.parametrize("word", ["'@write'", "'CONFIG|SET'"])
def test_a_commands_own_name(word):
    """What means several commands, or a subcommand, in `match` is nothing that a server knows."""
    with pytest.raises(
        ProfileError, match=r"expected a command's own name; did you mean '(WRITE|CONFIG, SET)'"
    ):
        profile(f"- {{fault: run, at: after_apply, commands: [[{word}, a, b]]}}")


@pytest.mark.parametrize(
    ("words", "good"),
    [
        ("[BLPOP, q, '0']", False),
        ("[blmove, a, b, left, right, '0.0']", False),
        ("[BLMPOP, '0', '1', q, LEFT]", False),
        ("[XREAD, block, '0', STREAMS, s, $]", False),
        ("[XREADGROUP, GROUP, g, c, BLOCK, '00', STREAMS, s, '>']", False),
        ("[WAIT, '1', '0']", False),
        ("[WAITAOF, '0', '1', '0']", False),
        ("[MULTI], [EXEC], [BZPOPMIN, z, '0']", False),
        ("[BLPOP, q, '0.1']", True),
        ("[BLMPOP, '1', '1', q, LEFT, COUNT, '0']", True),
        ("[XREAD, COUNT, '0', STREAMS, BLOCK, '0']", True),
        ("[XREAD, BLOCK, '5', STREAMS, s, $]", True),
        ("[XREAD, BLOCK]", True),
        ("[WAIT, '1', '100']", True),
        ("[WAIT, '0', '0']", True),
        ("[WAITAOF, '0', '0', '0']", True),
        ("[MULTI], [BLPOP, q, '0'], [EXEC]", True),
        ("[SET, k, '0']", True),
    ],
)
def test_none_that_waits_for_good(words, good):
    """A command that may wait without an end would hold all that comes behind it: clients, other faults on the side connection."""
    rule = f"- {{fault: run, at: after_reply, commands: [{words}]}}"
    if good:
        assert profile(rule).rules
        return
    with pytest.raises(ProfileError, match=r"commands: [A-Z]+ may wait for good, .* timeout"):
        profile(rule)


def test_whole_transactions():
    """A transaction of its own is begun and ended, or nothing behind it would be carried out."""
    rule = "- {{fault: run, match: {{commands: SET}}, at: before_forward, commands: [{}]}}"
    for half in ("[MULTI], [INCR, n]", "[MULTI], [EXEC], [INCR, n], [MULTI]"):
        with pytest.raises(ProfileError, match="MULTI needs its EXEC among these commands"):
            profile(rule.format(half))
    for good in (
        "[MULTI], [INCR, n], [EXEC]",
        "[MULTI], [DISCARD]",
        "[CLIENT, KILL, TYPE, normal]",
    ):
        assert profile(rule.format(good)).rules
    with Talk(rule.format("[MULTI], [INCR, n], [EXEC]")) as talk:
        talk.client("SET k v", "GET k")
        talk.expect_upstream("MULTI", "INCR n", "EXEC", "SET k v", "GET k")
        talk.upstream("+OK", "+QUEUED", "*[:1]", "+OK", '"v"')
        talk.expect_client("+OK", '"v"')
        talk.expect_fired("run", applied="yes", detail="")


@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_while_the_client_watches(at):
    """They run aside: an EXEC among them would end the client's WATCH, and its own transaction would be carried out whatever was written."""
    rule = f"- {{fault: run, match: {{commands: SET}}, at: {at}, commands: [[MULTI], [INCR, n], [EXEC]]}}"
    with Talk(rule) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("GET k", "SET k v")
        talk.expect_upstream("GET k", *["SET k v"] * (at == "after_apply"))
        talk.upstream("$-1", *["+OK"] * (at == "after_apply"))
        talk.expect_client("$-1")
        talk.expect_side("MULTI", "INCR n", "EXEC", db=0)
        talk.side("+OK", "+QUEUED", "*[:1]")
        if at == "before_forward":
            talk.expect_upstream("SET k v")
            talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("run", applied="yes", detail="")


def test_without_a_key():
    """A command without keys puts nothing in the place of {key}, and no key is touched."""
    rule = (
        "- {fault: run, match: {commands: PING}, at: before_forward, commands: [[ECHO, '{key}']]}"
    )
    with Talk(rule) as talk:
        talk.client("PING")
        talk.expect_upstream(b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "PING")
        talk.upstream('""', "+PONG")
        talk.expect_client("+PONG")
        assert [(touched.how, touched.count) for touched in talk.touched()] == [("run", 0)]


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ("MULTI", "+OK"),
        ("CLIENT REPLY OFF", None),
        ("CLIENT REPLY SKIP", None),
        ("ASKING", "+OK"),
        ("CLIENT TRACKING on NOLOOP", "+OK"),
        ("CLIENT CACHING YES", "+OK"),
    ],
)
def test_aside(sent, answer):
    """Where nothing of ours may go on the client's connection the side connection runs them, and the command waits."""
    with Talk(BEFORE) as talk:
        talk.client(sent, "SET k v", "GET b")
        talk.expect_upstream(sent)
        if answer:
            talk.upstream(answer)
            talk.expect_client(answer)
        talk.expect_side("INCR n", "DEL k:x", db=0, where="upstream")
        talk.expect_silence()
        talk.side(":1", ":0")
        assert talk.heard("upstream").startswith(b"*3\r\n$3\r\nSET")


@pytest.mark.parametrize(
    "end",
    ["CLIENT TRACKING OFF", "RESET", "CLIENT TRACKING ON PREFIX no"],
    ids=["off", "reset", "on"],
)
def test_a_client_that_caches(end):
    """It is told of keys that others write, and not of its own: what runs is another's, and comes behind what it has sent before."""
    with Talk(BEFORE, protocol=3) as talk:
        talk.handshake("CLIENT TRACKING ON NOLOOP", "+OK")
        talk.client("GET b", "SET k v")
        talk.expect_upstream("GET b")
        assert not talk._asked
        talk.upstream('"b"')
        talk.expect_client('"b"')
        talk.expect_side("INCR n", "DEL k:x", db=0)
        talk.side(":1", ":0")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("run")
        talk.handshake(end, "-ERR no" if "no" in end else "+OK")
        talk.client("SET k v")
        if "no" in end:
            talk.expect_side("INCR n", "DEL k:x", db=0)
        else:
            talk.expect_upstream("INCR n", "DEL k:x", "SET k v")


def test_aside_in_the_database_of_the_client():
    """The side connection is told which database and protocol the client uses, also one selected in the transaction."""
    with Talk(BEFORE, protocol=3) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SELECT 3", "+QUEUED")
        talk.client("SET k v")
        talk.expect_side("INCR n", "DEL k:x", db=3, protocol=3)
        talk.side(":1", ":0")
        talk.expect_upstream("SET k v")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*[+OK +OK]")
        talk.expect_fired("run", applied="yes", told="ok", db=3)


def test_the_side_connection_fails_before():
    """The command goes on, and nothing is said to have run."""
    with Talk(BEFORE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET k v")
        talk.side()
        talk.expect_upstream("SET k v")
        talk.expect_nothing_fired()
        assert talk.skipped("run") == ["side_connection"]
        assert not talk.touched()


def test_the_side_connection_fails_after_the_upstream_stopped_making_sense():
    """What was told as unknown is not taken back."""
    with Talk(BEFORE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET k v")
        talk.upstream(b"?\r\n")
        talk.expect_client(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_upstream("SET k v")
        talk.expect_fired("run", applied="unknown")
        talk.side()


@both
def test_after_apply(protocol):
    """They run once the command was applied, and its reply, with all behind it, waits for them."""
    with Talk(AFTER, protocol=protocol) as talk:
        talk.client("SET k v", "GET b")
        talk.expect_upstream("SET k v", "GET b")
        talk.expect_nothing_fired()
        talk.upstream("+OK", '"B"')
        talk.expect_side("RPUSH l k", where="upstream")
        talk.expect_silence()
        talk.side(":1")
        talk.expect_client("+OK", '"B"')
        talk.expect_fired("run", position="after_apply", applied="yes", outcome="ok")


def test_after_an_error():
    """A command that was refused was not applied; what was to run after it runs all the same, and the event is true."""
    with Talk(AFTER) as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("-OOM command not allowed")
        talk.side(":1")
        talk.expect_client("-OOM command not allowed")
        talk.expect_fired("run", applied="no", told="error")


def test_after_an_error_that_has_come():
    """The same of what runs once the client has it."""
    with Talk(LAST) as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("-OOM command not allowed")
        talk.expect_client("-OOM command not allowed")
        talk.flushed()
        talk.side(":1")
        talk.expect_fired("run", applied="no", told="error")


LATE = "- {fault: latency, match: {commands: SET}, at: after_apply, delay: 1s}"


@pytest.mark.parametrize("end", ["client_gone", "cut"])
@pytest.mark.parametrize("answered", [False, True])
def test_the_client_goes_before_its_reply_has_left(answered, end):
    """They ran, or may have; of the reply that waited for them, or for its time, the client has seen nothing."""
    with Talk(f"{LATE}\n{AFTER}") as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        if answered:
            talk.side(":1")
        talk.expect_nothing_fired()
        if end == "cut":
            talk.cut("reset")
            talk.expect_closed("reset")
        else:
            talk.client_gone()
        talk.expect_fired("latency", told="nothing", outcome="unknown")
        detail = "" if answered else "the connection ended before it was known whether they ran"
        what = {"applied": "yes", "told": "nothing", "outcome": "unknown", "detail": detail}
        talk.expect_fired("run", **what)
        assert [(touched.how, touched.count) for touched in talk.touched()] == [("run", 1)]


@pytest.mark.parametrize("answered", [False, True])
def test_the_reply_has_left_before_they_ran(answered):
    """Where nothing is understood any more nothing waits for them: the client has its reply, whatever becomes of them."""
    with Talk(AFTER) as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK", b"?")
        talk.expect_client("+OK", b"?")
        talk.expect_raw("upstream")
        talk.expect_nothing_fired()
        if answered:
            talk.side(":1")
        else:
            talk.client_gone()
        talk.expect_fired("run", applied="yes", told="ok", outcome="ok")


def test_two_that_the_reply_waits_for():
    """Each is told once the reply has left, which waits for both."""
    with Talk(f"{AFTER}\n{AFTER.replace('run,', 'run, name: two,')}") as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.side(":1")
        talk.expect_client()
        talk.expect_nothing_fired()
        talk.side(":2")
        talk.expect_client("+OK")
        talk.expect_fired("run", told="ok", outcome="ok")
        talk.expect_fired("two", told="ok", outcome="ok")


def test_the_side_connection_fails_after():
    """The reply goes on, and nothing is said to have run."""
    with Talk(AFTER) as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.side()
        talk.expect_client("+OK")
        assert talk.skipped("run") == ["side_connection"]
        assert not talk.touched()


@both
def test_after_reply(protocol):
    """They run when the client has the reply: its stack has acknowledged every byte."""
    with Talk(LAST, protocol=protocol) as talk:
        talk.client("SET k v", "SET k2 v")
        talk.expect_upstream("SET k v", "SET k2 v")
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK", "+OK")
        talk.expect_nothing_fired()
        talk.flushed()
        talk.expect_side("RPUSH l k2")
        talk.side(":1")
        talk.side(":2")
        talk.flushed()  # one was asked for each
        talk.expect_fired("run", position="after_reply", keys=(b"k",))
        talk.expect_fired("run", position="after_reply", keys=(b"k2",))


def test_after_reply_and_the_client_is_gone():
    """A client that goes before it has acknowledged the reply: nothing runs after it."""
    with Talk(LAST) as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.client_gone()
        assert talk.skipped("run") == ["client_gone"]
        talk._awaited.clear()


def test_after_reply_and_another_profile():
    """What had not begun when its profile ended does not begin."""
    with Talk(LAST) as talk:
        talk.client("SET k v", "SET k2 v")
        talk.expect_upstream("SET k v", "SET k2 v")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.switch()
        talk.flushed()
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert talk.skipped("run") == ["switched", "switched"]


def test_in_a_transaction_after_apply():
    """After EXEC has carried it out, not after it was queued."""
    with Talk(AFTER) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SET k v", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[+OK]")
        talk.expect_client()
        talk.side(":1")
        talk.expect_client("*[+OK]")
        talk.expect_fired("run", applied="yes", command="SET")


STANDBY = (
    "- {fault: run, match: {commands: SET}, at: %s, commands: [[DEL, '{key}']], where: standby}"
)


def test_on_the_standby_before():
    """They run on the second server, in the client's database, and the command waits for that."""
    with Talk(STANDBY % "before_forward") as talk:
        talk.world.standby = True
        talk.client("SET k v", "GET b")
        talk.expect_side("DEL k", db=0, where="standby")
        talk.expect_silence()
        talk.side(":1")
        talk.expect_upstream("SET k v", "GET b")
        talk.upstream("+OK", '"B"')
        talk.expect_client("+OK", '"B"')
        talk.expect_fired("run", applied="yes", told="ok", detail="")


@pytest.mark.parametrize("at", ["after_apply", "after_reply"])
def test_on_the_standby_after(at):
    """The same once the command was applied, or its reply has arrived."""
    with Talk(STANDBY % at) as talk:
        talk.world.standby = True
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        if at == "after_reply":
            talk.expect_client("+OK")
            talk.flushed()
        talk.expect_side("DEL k", db=0, where="standby")
        talk.side(":0")
        if at == "after_apply":
            talk.expect_client("+OK")
        talk.expect_fired("run", position=at, applied="yes")


@pytest.mark.parametrize(("standby", "reason"), [(False, "no_standby"), (True, "side_connection")])
def test_on_a_standby_that_is_not_there(standby, reason):
    """Without a second server the rule says so; one that does not answer is something else."""
    for at in ("before_forward", "after_apply"):
        with Talk(STANDBY % at) as talk:
            talk.world.standby = standby
            talk.client("SET k v")
            if at == "before_forward":
                talk.side()
                talk.expect_upstream("SET k v")
                talk.upstream("+OK")
            else:
                talk.expect_upstream("SET k v")
                talk.upstream("+OK")
                talk.side()
            talk.expect_client("+OK")
            assert talk.skipped("run") == [reason]


def test_which_rules_need_a_standby():
    """One that runs there does; the others can do without."""
    found = profile(f"{BEFORE}\n{(STANDBY % 'after_apply').replace('run,', 'run, name: two,')}")
    assert found.on_standby() == found.on_standby(needed=True) == ["two"]


def test_commands_that_there_are_not(problems):
    """A command that no server knows is told where it is written; a module's may be there."""
    assert problems("- {fault: run, at: before_forward, commands: [[PING], [STE, k, v]]}") == [
        "commands: unknown command STE"
    ]
    with Talk("- {fault: run, at: before_forward, commands: [[acme.frob, '{key}']]}"):
        pass
