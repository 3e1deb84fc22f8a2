"""The server is killed, stopped, and comes back, in whatever phase its clients are in.

Takes a proxy in a process of its own and a real server; gives proof that clients are told in bounded time, that the proxy
serves the next ones, that nothing is left of the old ones, and that what is not known is not claimed.
"""

import contextlib
import time
from contextlib import ExitStack

from tests.busy import measured
from tests.unbreakable.phases import PHASES, Phase, every
from tests.unbreakable.stand import Stand, until
from tests.wire import Wire

#: Beside these, being stopped for a while is tried in all phases by a soak test.
SOME = "idle half-command pipeline blocked multi subscribed latency-before latency-after reorder blackhole-reply"


def kept(wire: Wire) -> bool:
    """Whether it is open: what has come has been read, and no end comes."""
    while not wire.silent(0.05):
        size = len(wire.buffer)
        wire.buffer = b""
        if not size:
            return False
    return True


def entered(stand: Stand, phase: Phase, stack: ExitStack) -> list[Wire]:
    """Clients in that phase, until the stack is closed."""
    stand.put(phase.profile)
    return [stack.enter_context(contextlib.closing(wire)) for wire in phase.enter(stand)]


@every(PHASES)
def test_killed(stand, phase):
    """Clients are closed, or kept where that is the fault; the proxy says that it is not ready, and serves all once it is."""
    with ExitStack() as stack:
        wires = entered(stand, phase, stack)
        stand.kill()
        assert not stand.ready()
        if phase.stays:
            assert all(kept(wire) for wire in wires)
            stand.put("calm")
        for wire in wires:
            wire.read_to_end()
            wire.close()
        until(lambda: not any(stand.now().values()), "all to be gone")
        with stand.proxy.connect() as late:
            assert late.read_to_end() == (b"", "FIN")
    stand.restart()
    events = stand.events()
    stand.settle()
    assert {event["applied"] for event in events} == set(phase.applied)


@every([phase for phase in PHASES if not phase.stopped], only=SOME)
def test_stopped_for_a_while(stand, phase):
    """Nobody is closed while it is stopped, the proxy says that it is not ready, within a second; then all goes on."""
    with ExitStack() as stack:
        wires = entered(stand, phase, stack)
        stand.pause()
        late = stack.enter_context(stand.proxy.connect())
        late.send("PING")
        with measured() as busy:
            began = time.monotonic()
            assert not stand.ready()
            assert time.monotonic() - began < 9 + busy.lost
        assert all(kept(wire) for wire in wires)
        stand.go_on()
        until(stand.ready, "readiness")
        stand.put("calm")
        assert late.read() == [b"+PONG\r\n"]
        for wire in wires:
            if phase.goes_on:
                wire.finish()
                wire.read_to_end()
            wire.close()
    stand.settle()
