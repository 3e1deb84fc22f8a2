"""A command meets a failover: it begins with one, by itself or on request; one waits for its steps; what it refuses."""

import pytest

from chaosproxy.core.admission import admit, shut_door, stays_shut
from chaosproxy.core.effect import Fired, KeysTouched, Matched, Skipped, StartFailover
from chaosproxy.core.engine import Engine
from chaosproxy.core.failing import (
    FAILOVER,
    begin_by_itself,
    begins_at,
    forget,
    lost_events,
    state_of,
)
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.lost import Lost
from chaosproxy.core.replay import Recording
from tests.conversation import TABLE, Talk, profile
from tests.failing import Director
from tests.wire import encode

READONLY = "-READONLY You can't write against a read only replica."


def rule(settings, when="", match=""):
    parts = [settings, when and f"when: {{{when}}}", match and f"match: {{{match}}}"]
    return f"- {{fault: failover, name: fo, {', '.join(filter(None, parts))}}}"


@pytest.mark.parametrize("protocol", [2, 3])
def test_it_begins_with_an_exchange(protocol):
    """The one that the rule picks is the first to meet it: it waits until the first steps are done."""
    faults = rule("style: managed", "nth: 2", "commands: SET")
    with Talk(faults, protocol=protocol) as talk, talk.another() as other:
        director = Director(talk)
        talk.handshake("SET k 1", "+OK")
        assert talk.skipped("fo") == ["nth"]
        talk.client("SET k 2", "GET k")
        assert StartFailover("fo") in talk.effects
        talk.expect_fired("fo", command="SET", match=2, applied="no", told="nothing", outcome="ok")
        other.client("GET k")
        talk.expect_silence()
        other.expect_silence()
        director.look()
        talk.expect_client(READONLY)
        talk.expect_fired(
            "fo", command="SET", applied="no", told="error", outcome="fail", ordinal=0
        )
        talk.expect_upstream("GET k")
        talk.upstream('"1"')
        talk.expect_client('"1"')
        other.expect_upstream("GET k")
        other.upstream('"1"')
        other.expect_client('"1"')
        with talk.another() as later:
            talk.wait(1)
        talk.clock.now += 1
        with talk.another() as later:
            later.handshake("SET k 3", "+OK")
        other.client("SET k 3")
        other.expect_client(READONLY)


def test_what_is_on_its_way_is_answered_first():
    """A step waits for it; what waits for others does not count."""
    faults = rule("style: sentinel, blocked_clients: UNBLOCKED", "nth: 1", "commands: SET")
    with Talk(faults) as talk, talk.another() as other, talk.another() as blocked:
        director = Director(talk)
        blocked.client("BLPOP q 0")
        blocked.expect_upstream("BLPOP q 0")
        other.client("INCR n")
        talk.client("SET k 1")
        director.look()
        other.expect_upstream("INCR n")
        other.client("INCR n")
        other.expect_silence()
        other.upstream(":1")
        other.expect_client(":1")
        director.look()
        blocked.expect_client(
            "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
        )
        blocked.expect_closed("close")
        for each in (talk, other):
            each.expect_closed("reset")
        assert director.lost == Lost((), (), ())


def test_blocked_clients_can_be_reset():
    """They hear nothing then."""
    faults = rule("style: managed, blocked_clients: reset", "nth: 1", "commands: SET")
    with Talk(faults) as talk, talk.another() as blocked:
        director = Director(talk)
        blocked.client("BLPOP q 0")
        blocked.heard("upstream")
        talk.client("SET k 1")
        director.look()
        blocked.expect_closed("reset")
        blocked.conversation.unblock(b"-UNBLOCKED\r\n", talk.now)
        blocked.expect_silence()
        talk.expect_client(READONLY)


def test_by_the_clock():
    """No command is needed: at `from` it begins; in the window that is known before everything is taken down."""
    faults = rule("style: managed, outage: 2s, rejoin: 3s", "from: 10s")
    with Talk(faults) as talk:
        director = Director(talk)
        live = talk.world.engine.by_name["fo"]
        assert begins_at(talk.world.engine, live) == talk.now + 10
        talk.clock.now += 9.9
        director.look()
        talk.client("SET k 1")
        talk.expect_upstream("SET k 1")
        talk.clock.now += 0.1
        director.look()
        assert begins_at(talk.world.engine, live) is None
        talk.client("SET k 2")
        talk.expect_silence()
        talk.upstream("+OK")
        talk.expect_client("+OK")
        director.look()
        talk.expect_client(READONLY)
        assert state_of(live).newcomers == "refuse"
        talk.clock.now += 2
        director.look()
        talk.client("SET k 3", "GET k")
        talk.expect_client(READONLY)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.clock.now += 3
        director.look()
        talk.expect_closed("close")
        assert [e.command for e in director.effects if isinstance(e, Fired)] == [FAILOVER] * 2


def test_once_only():
    """By itself it begins once; and not before it is armed, nor when it is switched off."""
    faults = (
        rule("style: managed", "armed_by: no")
        + "\n- {fault: reply, name: no, match: {commands: SET}, when: {first: 1}, at: before_forward, error: OOM}"
    )
    with Talk(faults) as talk:
        engine = talk.world.engine
        live = engine.by_name["fo"]
        assert begins_at(engine, live) is None
        assert begin_by_itself(engine, talk.now, []) == []
        talk.client("SET k 1")
        talk.heard("client")
        assert begins_at(engine, live) == talk.now
        live.counter.enabled = False
        assert begin_by_itself(engine, talk.now, []) == []
        live.counter.enabled = True
        assert begin_by_itself(engine, talk.now, []) == [live]
        assert begin_by_itself(engine, talk.now, []) == []
        state_of(live).due = None
        assert begin_by_itself(engine, talk.now, []) == []


def test_on_request():
    """Each request is one failover, as soon as the one before is over; without one it does nothing."""
    with Talk(rule("style: managed", "trigger: manual")) as talk:
        director = Director(talk)
        live = talk.world.engine.by_name["fo"]
        director.look()
        assert state_of(live).begun is None
        assert begins_at(talk.world.engine, live) is None
        for times in (1, 2):
            live.counter.requests += 1
            director.look()
            assert live.counter.requests == 0
            begun = [e for e in director.effects if isinstance(e, Fired) and "begins" in e.detail]
            assert len(begun) == times


def test_a_request_for_an_exchange():
    """Where the rule picks, it begins with the next exchange that it picks."""
    with Talk(rule("style: managed", "trigger: manual", "commands: SET")) as talk:
        director = Director(talk)
        live = talk.world.engine.by_name["fo"]
        talk.handshake("SET k 1", "+OK")
        live.counter.requests += 1
        director.look()
        talk.handshake("GET k", '"1"')
        talk.client("SET k 2")
        talk.expect_fired("fo", command="SET")
        director.look()
        talk.expect_client(READONLY)
        talk.expect_fired("fo", told="error")


def test_one_at_a_time():
    """What is picked while it is under way begins none."""
    faults = rule("style: managed, outage: 1s", "every: 1", "commands: GET")
    with Talk(faults) as talk:
        director = Director(talk)
        talk.client("GET k")
        director.look()
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.handshake("GET k", "$-1")
        assert talk.skipped("fo") == ["running"]
        talk.clock.now += 1
        director.look()


@pytest.mark.parametrize(
    ("phase", "command", "answer"),
    [
        ("loading: 1s", "PING", "-LOADING Redis is loading the dataset in memory"),
        ("readonly: 1s", "SET k v", READONLY),
        (
            "masterdown: 1s",
            "GET k",
            "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ),
        ("masterdown: 1s", "SET k v", READONLY),
        ("clusterdown: 1s", "GET k", "-CLUSTERDOWN The cluster is down"),
        ("wait: 1s", "SET k v", None),
        ("refuse: 1s", "SET k v", None),
        ("reset_new: 1s", "SET k v", None),
        ("hold: 1s", "SET k v", ""),
    ],
)
def test_a_phase(phase, command, answer):
    """For its time everybody gets its error, or waits; then all is as it was."""
    with Talk(rule(f"style: steps, steps: [{{{phase}}}]")) as talk:
        director = Director(talk)
        director.look()
        talk.client("INFO" if answer else command)
        if answer:
            talk.expect_upstream("INFO")
            talk.upstream("$-1")
            talk.expect_client("$-1")
            talk.client(command)
            talk.expect_client(answer)
            talk.expect_fired("fo", told="error", outcome="fail", command=command.split()[0])
        elif answer == "":
            talk.expect_silence()
        else:
            talk.expect_upstream(command)
            talk.upstream("+OK")
            talk.expect_client("+OK")
        talk.clock.now += 1
        director.look()
        if answer == "":
            talk.expect_upstream(command)
            talk.upstream("+OK")
            talk.expect_client("+OK")
        else:
            talk.handshake(command, "+OK")


def test_a_cluster():
    """Until the switch it is down; then who was connected is sent to where the proxy is."""
    with Talk(rule("style: cluster, outage: 1s")) as talk:
        talk.world.address = "127.0.0.1:7000"
        director = Director(talk)
        director.look()
        talk.client("GET k")
        talk.expect_client("-CLUSTERDOWN The cluster is down")
        talk.clock.now += 1
        director.look()
        talk.client("GET k", "EVAL x 0", "PING")
        talk.expect_client("-MOVED 7629 127.0.0.1:7000", "-MOVED 0 127.0.0.1:7000")
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")


@pytest.mark.parametrize("protocol", [2, 3])
def test_in_a_transaction(protocol):
    """A command refused while it is queued spoils it; one that was queued before is refused at EXEC."""
    with (
        Talk(rule("style: managed", "trigger: manual"), protocol=protocol) as talk,
        talk.another() as other,
    ):
        director = Director(talk)
        other.client("MULTI", "GET k", "SET k 1")
        other.upstream("+OK")
        other.upstream("+QUEUED")
        other.upstream("+QUEUED")
        other.heard("client")
        other.heard("upstream")
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        other.client("EXEC")
        other.expect_upstream("DISCARD")
        other.expect_client("-EXECABORT Transaction discarded because of: " + READONLY[1:])
        other.upstream("+OK")
        talk.client("MULTI", "GET k", "SET k 1", "EXEC")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_upstream("GET k")
        talk.upstream("+QUEUED")
        talk.expect_client("+OK", "+QUEUED", READONLY)
        talk.expect_upstream("CHAOSPROXY.REFUSED")
        talk.upstream("-ERR unknown")
        talk.expect_upstream("EXEC")
        talk.upstream("-EXECABORT Transaction discarded because of previous errors.")
        talk.expect_client("-EXECABORT Transaction discarded because of previous errors.")


def test_one_that_only_reads():
    """Its transaction is carried out on the old primary too."""
    with Talk(rule("style: managed")) as talk:
        Director(talk).look()
        talk.client("MULTI", "GET k", "EXEC")
        talk.upstream("+OK")
        talk.upstream("+QUEUED")
        talk.upstream("*[$-1]")
        talk.heard("upstream")
        talk.expect_client("+OK", "+QUEUED", "*[$-1]")


def test_two_failovers():
    """Whichever refuses first does; the other one's rule is not asked."""
    faults = (
        rule("style: steps, steps: [{loading: 1s}]")
        + "\n- {fault: failover, style: steps, steps: [{readonly: 1s}]}"
    )
    with Talk(faults) as talk:
        director = Director(talk)
        director.look()
        talk.client("SET k v")
        talk.expect_client("-LOADING Redis is loading the dataset in memory")
        talk.expect_fired("fo")
        talk.expect_nothing_fired()


@pytest.mark.parametrize("real", [False, True])
def test_what_is_lost_is_lost_once(real):
    """What one failover has lost, or left, or a real one, the next does not lose; one that loses nothing changes nothing."""
    faults = (
        rule("style: steps, steps: [switch], lose: {writes: 1}", "trigger: manual")
        + "\n- {fault: failover, name: next, style: steps, steps: [switch], lose: {writes: 2}, when: {trigger: manual}}"
        + "\n- {fault: failover, name: none, style: steps, steps: [switch], when: {trigger: manual}}"
    )
    with Talk(faults) as talk:
        director = Director(talk)
        found = []
        for name in ("none", "fo", "next"):
            talk.clock.now += 1
            with talk.another() as client:
                client.client("SET k v", f"INCR {name}")
                client.upstream(*["$-1", ":-2"] * 2, "+OK")  # each of the two asks
                client.upstream(*["$-1", ":-2"] * 2, ":1")
                client.heard("upstream")
                client.heard("client")
            if real:
                forget(talk.world.engine)
            talk.world.engine.by_name[name].counter.requests = 1
            director.look()
            found.append([keys[0] for _, keys in director.lost.writes])
        assert found == ([[]] * 3 if real else [[], [b"fo"], [b"k", b"next"]])


def test_what_is_refused_and_its_client_gone():
    """Profile order holds: one that waits first, or ends otherwise, is not refused; that spends nothing."""
    faults = "- {fault: latency, at: before_forward, delay: 1s}\n" + rule(
        "style: managed", "trigger: manual"
    )
    with Talk(faults) as talk:
        director = Director(talk)
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        talk.client("SET k 1")
        talk.client_gone()
        assert talk.skipped("fo") == ["client_gone"]


LATE = "- {fault: %s, name: late, match: {commands: [SET, GET, EXEC]}}"


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize(
    "how", ["latency, at: before_forward, delay: 1s", "reorder, waiting: 9, max: 1s"]
)
@pytest.mark.parametrize("lose", ["", ", lose: {writes: 9}"])
def test_what_is_held_up_across_a_switch(how, lose, protocol):
    """A write that another rule holds up until there is a new primary is refused; what only reads is not."""
    faults = rule(f"style: managed{lose}", "trigger: manual") + "\n" + LATE % how
    with (
        Talk(faults, protocol=protocol) as write,
        write.another() as read,
        write.another() as queued,
    ):
        director = Director(write)
        queued.client("MULTI", "INCR n")
        queued.upstream("+OK")
        queued.upstream("+QUEUED")
        queued.heard("client")
        queued.heard("upstream")
        for each, command in ((write, "SET k 1"), (read, "GET k"), (queued, "EXEC")):
            each.client(command)
            each.expect_silence()
        write.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        assert director.lost == Lost((), (), ())
        write.clock.now += 1
        for each in (write, read, queued):
            each.wake()
        if lose:
            write.expect_upstream("DUMP k", "PEXPIRETIME k")
            write.upstream("$-1", ":-2")
            queued.side("$-1", ":-2")
        write.expect_client(READONLY)
        write.expect_fired("late", applied="no", told="error")
        write.expect_fired("fo", applied="no", told="error", outcome="fail", ordinal=0)
        queued.expect_upstream("DISCARD")
        queued.upstream("+OK")
        queued.expect_client("-EXECABORT Transaction discarded because of: " + READONLY[1:])
        read.expect_upstream("GET k")
        read.upstream("$-1")
        read.expect_client("$-1")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("begun", ["slow", "earlier"])
def test_what_has_begun_to_leave(begun, old):
    """An old primary that has a part of it does not get the rest: the connection ends; in a mere phase it goes on."""
    failover = "style: managed" if old else "style: steps, steps: [{readonly: 60s}]"
    slow = "\n- {fault: bandwidth, match: {commands: SET}, rate: 1KiB/s, direction: to_upstream}"
    request = encode("SET", "k", "x" * 3000)
    with Talk(slow if begun == "slow" else "") as talk:
        faults = rule(failover, "trigger: manual")
        if begun == "slow":
            talk.switch(faults + slow)
            talk.client(request)
            talk.wait(1)
        else:
            talk.client(request[:1000])
            talk.switch(faults)
        part = talk.heard("upstream")
        assert part
        director = Director(talk)
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        if begun == "earlier":
            talk.client(request[1000:])
        talk.wait(5)
        if old:
            assert part + talk.heard("upstream") != request
            talk.expect_closed("reset")
            if begun == "slow":
                talk.expect_fired("bandwidth", told="reset", applied="no")
            talk.expect_fired("fo", told="reset", applied="no", outcome="fail")
        else:
            assert part + talk.heard("upstream") == request
            assert set(talk.skipped("fo")) == {"too_large"}
            talk.upstream("+OK")
            talk.expect_client("+OK")


def test_a_silence_across_a_switch():
    """What was held in it is refused once it is over."""
    faults = rule("style: managed", "trigger: manual") + (
        "\n- {fault: blackhole, match: {commands: SET}, at: before_forward, what: connection, for: 1s}"
    )
    with Talk(faults) as talk:
        director = Director(talk)
        talk.client("SET k 1", "SET k 2")
        talk.expect_silence()
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        talk.wait(1)
        talk.expect_client(READONLY, READONLY)


def test_no_renewal_at_an_old_primary():
    """What would be written there with less time to live is refused, wherever its rule stands."""
    faults = "- {fault: expire_key, name: short, mode: no_renewal}\n" + rule("style: managed")
    with Talk(faults) as talk:
        director = Director(talk)
        director.look()
        talk.client("SET k 1 EX 9")
        talk.expect_client(READONLY)
        assert talk.skipped("short") == ["refused"]


def test_another_profile_comes():
    """What waits for a step goes on under the new one, once the step is done."""
    with Talk(rule("style: managed", "nth: 1", "commands: SET")) as talk:
        director = Director(talk)
        talk.client("SET k 1")
        talk.switch()
        talk.client("GET k")
        talk.expect_silence()
        director.look()
        talk.expect_upstream("SET k 1", "GET k")
        talk.upstream("+OK", "$-1")
        talk.expect_client("+OK", "$-1")


def test_new_connections():
    """While nobody accepts, the door is shut; who came through it all the same is reset, and so is who comes in a reset phase."""
    engine = Engine(
        profile(rule("style: steps, steps: [{refuse: 1s}, {reset_new: 1s}]")), TABLE, 7, 1, 0.0
    )
    state = state_of(engine.failovers[0])
    server = ServerInfo()
    assert admit(engine, server, 1, "10.0.0.9", 0, open_connections=0) == ([], [])
    assert (shut_door(engine, 0), stays_shut(engine, 0)) == (None, False)
    state.begin(0)
    state.step(0)
    assert shut_door(engine, 0) == (float("inf"), [])
    assert stays_shut(engine, 0)
    (meeting,), effects = admit(engine, server, 2, "10.0.0.9", 0.5, open_connections=0)
    assert (meeting.decision.what, meeting.fired.told, meeting.fired.outcome) == (
        "reset",
        "reset",
        "fail",
    )
    assert effects == [Matched("fo")]
    state.step(1)
    assert (shut_door(engine, 1), stays_shut(engine, 1)) == (None, False)
    (meeting,), _ = admit(engine, server, 3, "10.0.0.9", 1, open_connections=0)
    assert meeting.decision.what == "reset"
    state.step(2)
    assert admit(engine, server, 4, "10.0.0.9", 2, open_connections=0) == ([], [])


def test_what_was_kept_is_told():
    """Which commands, how often and why, of many kinds the first ones; also where nothing was lost, and once where that takes many events."""
    live = Engine(profile(rule("style: managed")), TABLE, 7, 1, 0.0).by_name["fo"]
    kept = (("SET", "built_on"), ("EVAL", "no_keys"), ("SET", "built_on"))
    many = tuple((f"C{number}", "no_keys") for number in range(22))
    writes = tuple(("SET", (b"%d" % number,)) for number in range(501))

    def told(writes, kept):
        effects = lost_events(live, Lost(writes, kept, ()), 3.0)
        return [effect.detail for effect in effects if isinstance(effect, Fired)]

    said = "; kept: SET x2 (built_on), EVAL x1 (no_keys)"
    assert told((), kept) == ["switched, nothing lost" + said]
    assert told(writes, kept) == [
        "switched, 500 writes undone: SET x500" + said,
        "switched, 1 writes undone: SET x1",
    ]
    (detail,) = told((), many)
    assert detail.endswith("C19 x1 (no_keys), 2 kinds more")


def test_what_was_lost_is_told():
    """How many writes of which kind, with their keys; in parts if there are many; and what could not be undone."""
    engine = Engine(profile(rule("style: managed")), TABLE, 7, 1, 0.0)
    live = engine.by_name["fo"]
    writes = (("INCR", (b"n",)), ("SET", (b"a",)), ("INCR", (b"n",)), ("MSET", (b"a", b"b")))
    effects = lost_events(live, Lost(writes, (("FLUSHALL", "sweeps"),), ()), 3.0)
    event = next(effect for effect in effects if isinstance(effect, Fired))
    assert (
        event.detail
        == "switched, 4 writes undone: INCR x2, SET x1, MSET x1; kept: FLUSHALL x1 (sweeps)"
    )
    assert event.writes == (("INCR", (b"n",), 2), ("SET", (b"a",), 1), ("MSET", (b"a", b"b"), 1))
    assert (event.keys, event.command) == ((b"n", b"a", b"b"), FAILOVER)
    assert (event.applied, event.told, event.outcome, event.ordinal) == (
        "undone",
        "ok",
        "false_ok",
        0,
    )
    assert KeysTouched("fo", "undone", 3) in effects
    real = lost_events(live, Lost(writes, (), ()), 3.0, "lost")
    assert KeysTouched("fo", "lost", 3) in real
    assert real[1].detail == "switched, 4 writes lost: INCR x2, SET x1, MSET x1"
    assert Skipped("fo", "sweeps") in effects
    assert live.matched == live.fired + sum(live.skipped.values()) == 3
    many = tuple(("SET", (b"%d" % number,)) for number in range(1200))
    events = [e for e in lost_events(live, Lost(many, (), ()), 3.0) if isinstance(e, Fired)]
    assert [len(event.keys) for event in events] == [500, 500, 200]
    assert {event.detail for event in events} == {
        "switched, 500 writes undone: SET x500",
        "switched, 200 writes undone: SET x200",
    }
    (nothing,) = [e for e in lost_events(live, Lost((), (), ()), 3.0) if isinstance(e, Fired)]
    assert (nothing.detail, nothing.applied, nothing.outcome) == (
        "switched, nothing lost",
        "no",
        "ok",
    )


def test_a_replay():
    """It begins where it began, be it a match, a time or a request; what followed from that is not looked for."""
    faults = rule("style: managed", "nth: 2", "commands: SET")
    with Talk(faults) as talk:
        director = Director(talk)
        talk.handshake("SET k 1", "+OK")
        talk.client("SET k 2")
        director.look()
        talk.heard("client")
        began, refusal = talk.events()
    events = [
        {
            "n": n,
            "fault": "fo",
            "ordinal": e.ordinal,
            "match": e.match,
            "digest": e.digest,
            "command": e.command,
        }
        for n, e in enumerate((began, refusal), 1)
    ]
    recording = Recording.of(events)
    with Talk(faults, recording=recording) as talk:
        director = Director(talk)
        talk.handshake("SET k 1", "+OK")
        assert talk.skipped("fo") == ["not_recorded"]
        talk.client("SET k 2")
        director.look()
        talk.expect_client(READONLY)
    assert recording.verdict() is None
    by_request = rule("style: managed", "trigger: manual")
    with Talk(by_request) as talk:
        director = Director(talk)
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        began = next(e for e in director.effects if isinstance(e, Fired))
    event = {
        "n": 1,
        "fault": "fo",
        "ordinal": 1,
        "match": 1,
        "digest": began.digest,
        "command": FAILOVER,
    }
    recording = Recording.of([event])
    with Talk(by_request, recording=recording) as talk:
        director = Director(talk)
        director.look()
        director.look()
        assert state_of(talk.world.engine.by_name["fo"]).begun == talk.now
    assert recording.verdict() is None


def test_a_delay_that_ends_while_all_is_held():
    """It wants to be woken when that is over, not again and again before."""
    faults = (
        rule("style: steps, steps: [{hold: 60s}]", "trigger: manual")
        + "\n- {fault: latency, match: {commands: GET}, at: before_forward, delay: 1s}"
    )
    with Talk(faults) as talk:
        director = Director(talk)
        talk.client("GET k")
        talk.world.engine.by_name["fo"].counter.requests = 1
        director.look()
        talk.clock.now += 2
        assert talk.conversation.due is None
        talk.wake()
        talk.expect_silence()
        talk.clock.now += 58
        director.look()
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")
