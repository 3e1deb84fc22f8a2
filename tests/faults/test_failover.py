"""`failover`: what its settings come to, for each style, and the dialogue that clients of each kind of deployment see."""

import pytest

from chaosproxy.core.failover import CutOff, Lose, Phase, Rejoin, Switch, Unblock
from chaosproxy.profile import ProfileError
from tests.conversation import Talk, profile
from tests.failing import Director

READONLY = "-READONLY You can't write against a read only replica."
LOADING = "-LOADING Redis is loading the dataset in memory"


def fault(settings):
    return profile(f"- {{fault: failover, {settings}}}").rules[0].fault


def problem(settings):
    with pytest.raises(ProfileError) as caught:
        fault(settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "steps", "old"),
    [
        ("style: sentinel", (CutOff("reset"), Switch()), "READONLY"),
        (
            "style: sentinel, outage: 1s, loading: 500ms, blocked_clients: UNBLOCKED, rejoin: 2s",
            (
                Unblock(), CutOff("reset"), Phase(1, "refuse"), Switch(), Phase(0.5, refusal="LOADING"), Phase(1.5), Rejoin(),
            ),
            "READONLY",
        ),
        (
            "style: sentinel, outage: 1s, old_connections: keep",
            (Unblock(), Phase(1, "refuse", "READONLY"), Switch()),
            "READONLY",
        ),
        ("style: managed, rejoin: 2s", (Unblock(), Switch(), Phase(2), Rejoin()), "READONLY"),
        ("style: managed, old_connections: reset", (CutOff("reset"), Switch()), "READONLY"),
        ("style: managed, blocked_clients: reset", (Unblock(told=False), Switch()), "READONLY"),
        (
            "style: cluster, outage: 1s",
            (Unblock(), Phase(1, "refuse", "CLUSTERDOWN"), Switch()),
            "MOVED",
        ),
        ("style: restart, loading: 3s", (CutOff("reset"), Switch(), Phase(3, refusal="LOADING")), None),
        (
            "style: steps, steps: [unblock, {cut: close}, {refuse: 1s}, {reset_new: 1s}, {hold: 250ms}, switch, {wait: 1s}, rejoin]",
            (
                Unblock(), CutOff("close"), Phase(1, "refuse"), Phase(1, "reset"), Phase(0.25, held=True), Switch(), Phase(1),
                Rejoin(),
            ),
            "READONLY",
        ),
        (
            "style: steps, steps: [{readonly: 2s}, {masterdown: 1s}, {clusterdown: 1s}, {loading: 1s}]",
            tuple(
                Phase(seconds, refusal=code)
                for seconds, code in ((2, "READONLY"), (1, "MASTERDOWN"), (1, "CLUSTERDOWN"), (1, "LOADING"))
            ),
            "READONLY",
        ),
    ],
)  # fmt: skip
def test_each_style(settings, steps, old):
    """What its clients see, one step after the other, and what is said on connections to the old primary."""
    state = fault(settings).new_state()
    assert (state.steps, state.old, state.log) == (steps, old, None)


def test_which_need_another_server():
    """All make use of a standby but the one whose server comes back."""
    assert (
        fault("style: managed").standby == fault("style: steps, steps: [switch]").standby == "uses"
    )
    assert fault("style: restart").standby is None


def test_what_is_lost():
    """As it is said; else as far as the replica lags."""
    assert fault("style: managed, lose: {for: 800ms}").loses == Lose(seconds=0.8)
    assert fault("style: managed, lose: {writes: 3}, lag: 1s").loses == Lose(writes=3)
    assert fault("style: managed, lag: 2s").loses == Lose(seconds=2)
    log = fault("style: managed, lag: 2s").new_state().log
    assert (log.seconds, log.writes) == (2, None)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("outage: 1s", "style"),
        ("style: steps", "go together"),
        ("style: managed, steps: [switch]", "go together"),
        ("style: steps, steps: []", "a list of steps such as"),
        ("style: steps, steps: [swich]", "switch"),
        ("style: steps, steps: [5]", "a step such as"),
        ("style: steps, steps: [{cut: reset, refuse: 1s}]", "a step such as"),
        ("style: steps, steps: [{cut: rest}]", "reset"),
        ("style: steps, steps: [{refuse: 0s}]", "duration"),
        ("style: steps, steps: [{refus: 1s}]", "unknown step 'refus'"),
        ("style: steps, steps: [{switch: 1s}]", "'switch' takes nothing: write it as a word"),
        ("style: steps, steps: [switch], outage: 1s", "is a step"),
        ("style: steps, steps: [switch, switch]", "one switch only"),
        (
            "style: steps, steps: [{wait: 1s}], lose: {writes: 1}",
            "nothing is lost without a switch",
        ),
        ("style: restart, old_connections: keep", "keeps no connection"),
        ("style: managed, loading: 2s, rejoin: 1s", "comes after loading"),
        ("style: managed, lose: {for: 1s, writes: 1}", "give one of for and writes"),
        ("style: managed, lose: {}", "writes"),
    ],
)
def test_what_makes_no_sense(settings, says):
    """Each contradiction is told at load."""
    assert says in problem(settings)


@pytest.mark.parametrize("protocol", [2, 3])
def test_stuck_on_the_old_primary(protocol):
    """A connection that stays answers READONLY for ever, reads go on; a new one works; at rejoin the old one is closed."""
    faults = "- {fault: failover, style: managed, when: {from: 1s}, rejoin: 60s}"
    with Talk(faults, protocol=protocol) as talk:
        director = Director(talk)
        talk.handshake("SET k 1", "+OK")
        talk.clock.now += 1
        director.look()
        for _ in range(3):
            talk.client("SET k 2")
            talk.expect_client(READONLY)
            talk.handshake("GET k", '"1"')
            talk.clock.now += 10
        with talk.another(protocol=protocol) as new:
            new.handshake("SET k 3", "+OK")
            talk.clock.now += 30
            director.look()
            talk.expect_closed("close")
            new.handshake("SET k 4", "+OK")


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_restart(protocol):
    """Everybody is reset; who comes back is told LOADING, but not in the handshake; then all is well."""
    faults = "- {fault: failover, style: restart, when: {from: 1s}, outage: 1s, loading: 3s}"
    with Talk(faults) as talk:
        director = Director(talk)
        talk.clock.now += 1
        director.look()
        talk.expect_closed("reset")
        talk.clock.now += 1.5
        director.look()
        with talk.another(protocol=protocol) as new:
            new.handshake("CLIENT SETNAME app", "+OK")
            new.client("PING")
            new.expect_client(LOADING)
            talk.clock.now += 3
            director.look()
            new.handshake("PING", "+PONG")


def test_a_written_out_planned_failover():
    """Writes are held, then the old primary refuses them and reads go on."""
    faults = "- {fault: failover, style: steps, steps: [{hold: 250ms}, switch]}"
    with Talk(faults) as talk:
        director = Director(talk)
        director.look()
        talk.client("SET k v", "GET k")
        talk.expect_silence()
        talk.clock.now += 0.25
        director.look()
        talk.expect_client(READONLY)
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_client("$-1")


@pytest.mark.parametrize("protocol", [2, 3])
def test_lost_at_failover(protocol):
    """Acknowledged and readable until the switch; then all keys of the window are what they were."""
    faults = "- {fault: failover, style: managed, lose: {writes: 2}, when: {from: 1s}}"
    with Talk(faults, protocol=protocol) as talk:
        director = Director(talk)
        for number in range(3):
            talk.client("INCR n")
            talk.upstream(f'"{number}"', ":-1", f":{number + 1}")
            talk.heard("upstream")
            talk.expect_client(f":{number + 1}")
        talk.handshake("GET n", '"3"')
        talk.clock.now += 1
        director.look()
        assert director.lost.writes == (("INCR", (b"n",)),) * 2
        assert len(director.lost.requests) == 1
        assert b"\r\n$1\r\n1\r\n$7\r\nREPLACE" in director.lost.requests[0]
