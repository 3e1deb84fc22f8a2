"""Every phase in which a connection can be when its server, or its client, goes: what a client has sent, and what holds it.

Takes a Stand; gives the clients that are in that phase, so far as either side can know. `every` has a test run in each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.proxying import wait_for
from tests.unbreakable.stand import Stand
from tests.wire import Wire, encode

#: A fault's delay that nobody waits for.
LONG = "10m"
#: More than all buffers between a server and its client take, so that a reply of this size stops half way.
LARGE = 24 << 20

Command = tuple[bytes | str | int, ...]
Enter = Callable[[Stand], list[Wire]]


@dataclass(frozen=True)
class Phase:
    """One of them. `enter` gives the clients once they are in it.

    `stays`: while the profile is in force a client is kept although its server is gone: that is what the fault is for.
    `applied`: what events say of the command when the server is killed now. `stopped`: the server is, from within `enter` on.
    `goes_on`: a client that is in it is answered once the server goes on, and under no fault.
    """

    name: str
    profile: str
    enter: Enter
    stays: bool = False
    applied: tuple[str, ...] = ()
    stopped: bool = False
    goes_on: bool = True

    def __str__(self) -> str:
        return self.name


# -- without a fault


def nobody(_: Stand) -> list[Wire]:
    return []


def saying(*commands: Command, answered: int = 0, resp: int = 2, rest: bytes = b"") -> Enter:
    """A client that has sent these, had so many replies, and then `rest`."""

    def enter(stand: Stand) -> list[Wire]:
        wire = stand.proxy.connect(resp=resp)
        for command in commands:
            wire.send(*command)
        wire.read(answered)
        wire.send_bytes(rest)
        return [wire]

    return enter


def waiting(command: Command, state: str, *before: Command, resp: int = 2) -> Enter:
    """A client whose command waits at the server, which says so of it."""

    def enter(stand: Stand) -> list[Wire]:
        wire = stand.proxy.connect(resp=resp)
        for each in before:
            wire.ask(*each)
        wire.send(*command)
        wait_for(lambda: state.encode() in stand.server.ask("CLIENT", "LIST"), state)
        return [wire]

    return enter


def large(stand: Stand) -> list[Wire]:
    """A client that has read the beginning of a large reply, and nothing more."""
    stand.server.ask("SET", "large", b"x" * LARGE)
    wire = stand.proxy.connect()
    wire.send("GET", "large")
    wire.buffer += wire.socket.recv(1 << 16)
    return [wire]


def reading_nothing(stand: Stand) -> list[Wire]:
    """A client that sends and sends and never reads."""
    stand.server.ask("SET", "large", b"x" * LARGE)
    wire = stand.proxy.connect()
    wire.send_bytes(encode("GET", "large") * 8)
    wire.buffer += wire.socket.recv(1 << 16)
    return [wire]


def busy(stand: Stand) -> list[Wire]:
    """Two clients behind a server that has something else to do."""
    wires = [stand.proxy.connect(), stand.proxy.connect()]
    wires[0].ask("PING")
    wires[1].ask("PING")
    wires[0].send("DEBUG", "SLEEP", "0.3")
    wires[1].send_bytes(encode("SET", "k", "v") * 3)
    return wires


NO_FAULT = (
    Phase("nobody", "calm", nobody),
    Phase("idle", "calm", saying(("PING",), answered=1)),
    Phase("just-connected", "calm", saying()),
    Phase("half-command", "calm", saying(("PING",), answered=1, rest=b"*2\r\n$3\r\nGET\r\n$5\r\nab")),
    Phase("half-large-command", "calm", saying(rest=b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"x" * 4_000_000)),
    Phase("pipeline", "calm", saying(*[("SET", "k", n) for n in range(500)])),
    Phase("busy", "calm", busy),
    Phase("blocked", "calm", waiting(("BLPOP", "l", 0), "cmd=blpop"), goes_on=False),
    Phase("blocked-resp3", "calm", waiting(("BLPOP", "l", 0), "cmd=blpop", resp=3), goes_on=False),
    Phase("half-reply", "calm", large),
    Phase("reading-nothing", "calm", reading_nothing),
    Phase("multi", "calm", saying(("MULTI",), ("SET", "k", 1), answered=2)),
    Phase("watch", "calm", saying(("WATCH", "k"), ("GET", "k"), answered=2)),
    Phase("subscribed", "calm", saying(("SUBSCRIBE", "c"), ("PSUBSCRIBE", "d*"), answered=2)),
    Phase("subscribed-resp3", "calm", saying(("SUBSCRIBE", "c"), ("GET", "k"), answered=2, resp=3)),
    Phase("monitor", "calm", saying(("MONITOR",), answered=1)),
    Phase("reply-off", "calm", saying(("CLIENT", "REPLY", "OFF"), ("SET", "k", 1))),
)  # fmt: skip


# -- where a fault holds something


def rule(text: str) -> str:
    """A profile of this one rule, or of several, one a line."""
    return "faults:\n" + "".join(f"  - {{{line}}}\n" for line in text.splitlines())


def held(
    *commands: Command, before: Sequence[Command] = (), fired: int = 0, resp: int = 2
) -> Enter:
    """A client one of whose commands, or its reply, a rule now holds; or whose rule has `fired` so often."""

    def enter(stand: Stand) -> list[Wire]:
        wire = stand.proxy.connect(resp=resp)
        for each in before:
            wire.ask(*each)
        wire.send_bytes(b"".join(encode(*command) for command in commands))
        if fired:
            wait_for(lambda: len(stand.events()) >= fired, "the fault to fire")
        else:
            wait_for(lambda: stand.now()["held_commands"], "the command to be held")
        return [wire]

    return enter


def arrived(command: Command, name: str) -> Callable[[Stand], list[Wire]]:
    """A client whose new connection a rule keeps waiting."""

    def enter(stand: Stand) -> list[Wire]:
        wire = stand.proxy.connect()
        wire.send(*command)
        wait_for(lambda: stand.now()["connections"], name)
        return [wire]

    return enter


def pushed(stand: Stand) -> list[Wire]:
    """A subscriber for whom a message is held."""
    wire = stand.proxy.connect()
    wire.ask("SUBSCRIBE", "c")
    stand.server.ask("PUBLISH", "c", "m")
    wait_for(lambda: stand.now()["buffered_bytes"], "the message to be held")
    return [wire]


SET: Command = ("SET", "x", "v")
GET: Command = ("GET", "x")
ON_SET = "match: {commands: SET, keys: x}"
ON_GET = "match: {commands: GET, keys: x}"

HOLDING = (
    Phase("latency-before", rule(f"fault: latency, {ON_SET}, at: before_forward, delay: {LONG}"), held(SET), applied=("no",)),
    Phase("latency-before-pipeline", rule(f"fault: latency, {ON_SET}, at: before_forward, delay: {LONG}"), held(GET, SET, GET, GET), applied=("no",)),
    Phase("latency-after", rule(f"fault: latency, {ON_SET}, at: after_apply, delay: {LONG}"), held(SET, GET), stays=True, applied=("yes",)),
    Phase("latency-exec", rule(f"fault: latency, match: {{commands: EXEC}}, at: after_apply, delay: {LONG}"), held(("EXEC",), before=[("MULTI",), SET]), stays=True, applied=("yes",)),
    Phase("latency-in-multi", rule(f"fault: latency, {ON_SET}, at: before_forward, delay: {LONG}"), held(SET, before=[("MULTI",)]), applied=("no",)),
    Phase("reorder", rule(f"fault: reorder, {ON_SET}, waiting: 2, max: {LONG}"), held(SET), applied=("no",)),
    Phase("duplicate-gap", rule(f"fault: duplicate, {ON_SET}, gap: {LONG}"), saying(SET, answered=1), applied=("yes",)),
    Phase("slice", rule(f"fault: slice, {ON_GET}, split: [1], gap: {LONG}"), held(GET), stays=True, applied=("yes",)),
    Phase("bandwidth-requests", rule(f"fault: bandwidth, {ON_SET}, rate: 1B/s, direction: to_upstream"), held(SET), applied=("no",)),
    Phase("bandwidth-replies", rule(f"fault: bandwidth, {ON_GET}, rate: 1B/s, direction: to_client"), held(GET, before=[("SET", "x", "v" * 500)]), stays=True, applied=("yes",)),
    Phase("blackhole-request", rule(f"fault: blackhole, {ON_SET}, at: before_forward, what: request"), held(SET, fired=1), applied=("no",), goes_on=False),
    Phase("blackhole-reply", rule(f"fault: blackhole, {ON_SET}, at: after_apply, what: reply"), held(SET, fired=1), stays=True, applied=("yes",)),
    Phase("blackhole-mid-reply", rule(f"fault: blackhole, {ON_SET}, at: mid_reply, what: connection"), held(SET, fired=1), stays=True, applied=("yes",)),
    Phase("blackhole-connection", rule(f"fault: blackhole, {ON_SET}, at: before_forward, what: connection"), held(SET, fired=1), stays=True, applied=("unknown",)),
    Phase("blackhole-to-client", rule(f"fault: blackhole, {ON_SET}, at: before_forward, what: connection, direction: to_client"), held(SET, GET, fired=1), stays=True, applied=("yes",)),
    Phase("blackhole-to-upstream", rule(f"fault: blackhole, {ON_SET}, at: before_forward, what: connection, direction: to_upstream"), held(SET, fired=1), applied=("unknown",)),
    Phase("blackhole-after-reply", rule(f"fault: blackhole, {ON_SET}, at: after_reply, what: connection"), held(SET, fired=1), stays=True, applied=("yes",)),
    Phase("tell-nothing", rule(f"fault: drop_write, {ON_SET}, tell: nothing"), held(SET, fired=1), applied=("no",), goes_on=False),
    Phase("push-delay", rule(f"fault: push, match: {{push: {{kind: message}}}}, do: delay, delay: {LONG}"), pushed, stays=True, applied=("yes",)),
    Phase("admit-delay", rule(f"fault: admit, delay: {LONG}"), arrived(GET, "the client at the door"), stays=True, applied=("no",)),
    Phase("admit-silent", rule("fault: admit, new_connections: accept_silent"), arrived(GET, "the client at the door"), stays=True, applied=("no",)),
)  # fmt: skip


# -- where the server has been asked, and does not answer


def asked(*commands: Command, before: Sequence[Command] = (), resp: int = 2) -> Enter:
    """A client whose commands, or what is asked for their sake, lie unread at a server that is stopped."""

    def enter(stand: Stand) -> list[Wire]:
        wire = stand.proxy.connect(resp=resp)
        wire.ask("SET", "x", "old", "EX", 1000)
        for each in before:
            wire.ask(*each)
        stand.pause()
        unread = _unread(stand.port)
        wire.send_bytes(b"".join(encode(*command) for command in commands))
        wait_for(lambda: _unread(stand.port) > unread, "the server to be asked")
        return [wire]

    return enter


def _unread(port: int) -> int:
    """How many bytes wait at this port to be read by the server."""
    found = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if local.endswith(f":{port:04X}") and state != "0A":
            found += int(queues.partition(":")[2], 16)
    return found


def stopped(
    name: str, text: str, enter: Enter, applied: tuple[str, ...] = (), *, goes_on: bool = True
) -> Phase:
    profile = rule(text) if text else "calm"
    return Phase(f"stopped-{name}", profile, enter, stopped=True, applied=applied, goes_on=goes_on)


def barrier(stand: Stand) -> list[Wire]:
    """A client that waits for what another one writes, which lies unread at the server."""
    late, writer = stand.proxy.connect(), stand.proxy.connect()
    late.ask("CLIENT", "SETNAME", "late")
    writer.ask("PING")
    late.send(*SET)
    wait_for(lambda: stand.now()["held_commands"], "the command to be held")
    stand.pause()
    unread = _unread(stand.port)
    writer.send("SET", "x", "earlier")
    wait_for(lambda: _unread(stand.port) > unread, "the other one's to arrive")
    return [late, writer]


#: The first SET is the test's own.
SECOND_SET = f"{ON_SET}, when: {{skip: 1}}"

ASKED = (
    stopped("calm", "", asked(SET, GET, GET)),
    stopped("calm-resp3", "", asked(SET, GET, GET, resp=3)),
    stopped("exec", "", asked(("EXEC",), before=[("MULTI",), SET])),
    stopped("latency-after", f"fault: latency, {SECOND_SET}, at: after_apply, delay: 1ms", asked(SET)),
    stopped("disconnect-after", f"fault: disconnect, {SECOND_SET}, at: after_apply", asked(SET), goes_on=False),
    stopped("disconnect-mid", f"fault: disconnect, {SECOND_SET}, at: mid_reply", asked(SET), goes_on=False),
    stopped("disconnect-before", f"fault: disconnect, {ON_GET}, at: before_forward", asked(SET, GET), (), goes_on=False),
    stopped("reply-after", f"fault: reply, {SECOND_SET}, at: after_apply, error: OOM", asked(SET)),
    stopped("reply-before", f"fault: reply, {ON_GET}, at: before_forward, error: OOM", asked(SET, GET), ("no",)),
    stopped("drop-ok", f"fault: drop_write, {SECOND_SET}, tell: ok", asked(SET), ("no",)),
    stopped("drop-ok-resp3", f"fault: drop_write, {SECOND_SET}, tell: ok", asked(SET, resp=3), ("no",)),
    stopped("drop-error", f"fault: drop_write, {SECOND_SET}, tell: error", asked(GET, SET), ("no",)),
    stopped("drop-disconnect", f"fault: drop_write, {SECOND_SET}, tell: disconnect", asked(GET, SET), goes_on=False),
    stopped("drop-ok-watching", f"fault: drop_write, {SECOND_SET}, tell: ok", asked(SET, before=[("WATCH", "y")]), ("no",)),
    stopped("drop-ok-multi", f"fault: drop_write, {SECOND_SET}, tell: ok", asked(SET, before=[("MULTI",)])),
    stopped("drop-ok-exec", f"fault: drop_write, {SECOND_SET}, tell: ok", asked(("EXEC",), before=[("MULTI",), SET]), ("no",)),
    stopped("expire-now", f"fault: expire_key, {ON_GET}, mode: now", asked(GET), ("no",)),
    stopped("expire-evict", f"fault: expire_key, {ON_GET}, mode: evict", asked(GET), ("no",)),
    stopped("expire-now-multi", f"fault: expire_key, {ON_GET}, mode: now", asked(GET, before=[("MULTI",)]), ("no",)),
    stopped("no-renewal", "fault: expire_key, match: {commands: EXPIRE}, mode: no_renewal", asked(("EXPIRE", "x", 5000))),
    stopped("ttl-set", "fault: expire_key, match: {commands: EXPIRE}, mode: {ttl_set: 100s}", asked(("EXPIRE", "x", 5000)), ("unknown",)),
    stopped("stale-read", f"fault: stale_read, {ON_GET}, lag: 10m", asked(GET)),
    stopped("stale-write", f"fault: stale_read, {ON_GET}, lag: 10m", asked(SET)),
    stopped("duplicate", f"fault: duplicate, {SECOND_SET}, times: 3", asked(SET), ("unknown",)),
    Phase("stopped-reorder", rule(f"fault: reorder, match: {{commands: SET, keys: x, clients: late}}, until: {{command: SET, same: key}}, max: {LONG}"), barrier, stopped=True, applied=("no",)),
    stopped("run-before", f"fault: run, {SECOND_SET}, at: before_forward, commands: [[INCR, n]]", asked(SET), ("unknown",)),
    stopped("run-before-multi", f"fault: run, {SECOND_SET}, at: before_forward, commands: [[INCR, n]]", asked(SET, before=[("MULTI",)]), ("no",)),
    stopped("run-after-apply", f"fault: run, {SECOND_SET}, at: after_apply, commands: [[INCR, n]]", asked(SET), ()),
    stopped("failover-lose", "fault: failover, style: managed, lose: {writes: 3}, when: {trigger: manual}", asked(SET)),
)  # fmt: skip

PHASES = (*NO_FAULT, *HOLDING, *ASKED)


def every(phases: Sequence[Phase], *, only: str = "") -> pytest.MarkDecorator:
    """Run a test in each of these phases; in those that are not named in `only` it is a soak test."""
    named = only.split()
    soak = {phase.name for phase in phases} - set(named) if only else set()
    assert set(named) <= {phase.name for phase in phases}
    params = [
        pytest.param(phase, id=phase.name, marks=[pytest.mark.soak] * (phase.name in soak))
        for phase in phases
    ]
    return pytest.mark.parametrize("phase", params)
