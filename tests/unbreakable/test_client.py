"""Clients go, in whatever phase they are in: by a reset, by a close, or as their process is killed.

Takes a proxy in a process of its own and a real server; gives proof that nothing is left of them on either side.
"""

from tests.unbreakable.phases import PHASES, every
from tests.unbreakable.stand import until

#: Beside these a close is tried in all phases by a soak test.
SOME = "idle half-command blocked multi latency-before reorder stopped-calm stopped-drop-ok stopped-disconnect-mid"


def clients(stand) -> list[bytes]:
    """The server's clients, but for the test's and the proxy's own."""
    listed = stand.server.ask("CLIENT", "LIST").splitlines()
    own = (b" name=chaosproxy ", b"cmd=client|list")
    return [line for line in listed if not any(word in line for word in own)]


@every(PHASES)
def test_reset(stand, phase):
    """Under the fault that holds it, and with a server that is stopped: its connection is gone on both sides."""
    stand.put(phase.profile)
    for wire in phase.enter(stand):
        wire.reset()
    until(lambda: not any(stand.now().values()), "all to be gone")
    if phase.stopped:
        stand.go_on()
    until(lambda: not clients(stand), "the server to have lost them")
    stand.put("calm")
    stand.settle()


@every(PHASES, only=SOME)
def test_close(stand, phase):
    """A close is no different, but that what was sent before it still takes effect."""
    stand.put(phase.profile)
    for wire in phase.enter(stand):
        wire.close()
    if phase.stopped:
        stand.go_on()
    stand.put("calm")
    until(lambda: not any(stand.now().values()), "all to be gone")
    until(lambda: not clients(stand), "the server to have lost them")
    stand.settle()
