"""The server, or a client, goes in the middle of a failover that is emulated, and of a new connection's beginning.

Takes a proxy in a process of its own and a real server; gives proof that what a failover holds, or refuses, is over in time.
"""

import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.proxying import TURNED_AWAY, wait_for
from tests.unbreakable import stand as stands
from tests.unbreakable.stand import until
from tests.wire import Wire, encode

STEPS = """
faults:
  - fault: failover
    match: {commands: SET, keys: begin}
    style: steps
    steps: [%s]
    lose: {writes: 3}
"""
#: A failover that stands still in one of its steps, and what a client that begins it meets there.
STEP = {
    "hold": "{hold: 1500ms}, switch",
    "refuse": "{refuse: 1500ms}, switch",
    "reset-new": "{reset_new: 1500ms}, switch",
    "readonly": "{readonly: 1500ms}, switch",
    "loading": "switch, {loading: 1500ms}",
    "wait": "switch, {wait: 1500ms}, rejoin",
}


def begun(stand, step: str) -> list[Wire]:
    """Clients in the middle of a failover: one has written, one reads, one waits, and one has begun it."""
    stand.put(STEPS % STEP[step])
    writer, blocked, beginner = (stand.proxy.connect() for _ in range(3))
    for number in range(3):
        assert writer.ask("RPUSH", "list", number) == number + 1
    blocked.send("BLPOP", "nothing", 0)
    wait_for(lambda: b"cmd=blpop" in stand.server.ask("CLIENT", "LIST"), "the request")
    beginner.send("SET", "begin", "v")
    until(stand.events, "it to begin")
    return [writer, blocked, beginner]


def served(stand) -> bool:
    try:
        with stand.proxy.connect() as client:
            return client.ask("PING") == "PONG"
    except (EOFError, *TURNED_AWAY):
        return False


@pytest.mark.parametrize("step", STEP)
def test_the_server_goes(stand, step):
    """Nobody is left waiting, and once it is back, and the failover over, all is served."""
    with ExitStack() as stack:
        wires = [stack.enter_context(closing(wire)) for wire in begun(stand, step)]
        stand.kill()
        for wire in wires:
            wire.read_to_end()
            wire.close()
        stand.restart()
        until(lambda: served(stand), "service")
    stand.put("calm")
    stand.settle()


@pytest.mark.parametrize("step", STEP)
def test_the_clients_go(stand, step):
    """It takes its course without them."""
    for wire in begun(stand, step):
        wire.reset()
    until(lambda: served(stand), "service")
    until(lambda: any("switched" in e.get("detail", "") for e in stand.events()), "the switch")
    stand.put("calm")
    stand.settle()


@pytest.mark.parametrize("end", ["kill", "go_on"])
def test_a_server_that_is_stopped_as_it_switches(stand, end):
    """What is to be undone at the switch cannot be: that is bounded too, and told as it is."""
    wires = begun(stand, "hold")
    stand.pause()
    if end == "kill":
        stand.kill()
        stand.restart()
    else:
        wait_for(lambda: not stand.ready(), "it to be missed")
        stand.go_on()
    until(lambda: served(stand), "service")
    for wire in wires:
        wire.close()
    stand.put("calm")
    stand.settle()


# -- dialling


@pytest.fixture
def narrow():
    """A server whose kernel completes hardly any connection that the server does not accept."""
    stand = stands.start("redis70", "--tcp-backlog", "1")
    yield stand
    stand.end()


def dialling(port: int) -> int:
    """How many connections to this port are being made and are not there yet."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(line[2].endswith(f":{port:04X}") and line[3] == "02" for line in lines)


def test_dialling(narrow):
    """A server that accepts nobody: what is said early is kept; then all goes on, or ends, with the server."""
    for end in ("go_on", "kill"):
        narrow.pause()
        with ExitStack() as stack:
            wires = [stack.enter_context(narrow.proxy.connect()) for _ in range(8)]
            for wire in wires:
                wire.send("PING")
            until(lambda: dialling(narrow.port) >= 3, "some to be dialled for")
            assert not narrow.ready()
            wires.pop().reset()
            if end == "kill":
                narrow.kill()
                assert [wire.read_to_end()[0] for wire in wires] == [b""] * 7
                narrow.restart()
            else:
                narrow.go_on()
                # The kernel tries again after seconds; a client that is waited for too long is closed.
                assert {answer(wire) for wire in wires} <= {b"+PONG\r\n", b""}
        narrow.settle()


def answer(wire: Wire) -> bytes:
    """What it is answered; nothing where it is closed."""
    try:
        return wire.read()[0]
    except EOFError:
        return b""


# -- a client's process


CLIENT = """
import socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(bytes.fromhex(sys.argv[2]))
print("sent", flush=True)
time.sleep(60)
"""
SAID = {
    "half-command": b"*2\r\n$3\r\nGET\r\n$5\r\nab",
    "pipeline": encode("SET", "k", "v") * 100,
    "blocked": encode("BLPOP", "l", 0),
    "multi": encode("MULTI") + encode("SET", "k", "v"),
    "subscribed": encode("SUBSCRIBE", "c"),
    "held": encode("SET", "x", "v"),
}
HELD = """
faults:
  - {fault: latency, match: {commands: SET, keys: x}, at: before_forward, delay: 10m}
"""


def test_a_clients_process_is_killed(stand):
    """SIGKILL, in several phases at once: nothing is left of any."""
    stand.put(HELD)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(stand.proxy.port), said.hex()],
            stdout=subprocess.PIPE,
        )
        for said in SAID.values()
    ]
    for process in processes:
        assert process.stdout.readline() == b"sent\n"
    until(lambda: stand.now()["connections"] == len(SAID), "all to be there")
    until(lambda: stand.now()["held_commands"], "one to be held")
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    until(lambda: not any(stand.now().values()), "all to be gone")
    stand.settle()
