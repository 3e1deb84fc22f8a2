"""SIGTERM under load: no reply on its way is lost, nobody new is let in, and it ends in time whatever holds it up.

Takes a proxy in a process of its own, clients that never wait, and each kind of fault that holds something; gives proof by
counting on both sides.
"""

import asyncio
import signal
import time
from contextlib import ExitStack, closing, suppress

import pytest

from chaosproxy.service import GRACE
from tests import servers
from tests.proxying import TURNED_AWAY, wait_for
from tests.unbreakable.phases import PHASES, every, rule
from tests.unbreakable.stand import MISTAKE, Stand, start_before
from tests.wire import encode

CLIENTS = 50
#: Commands in one packet, and how many may be unanswered.
BATCH, OPEN = 20, 60
#: What ending may take beside the grace, on a machine that has much else to do, in seconds.
SPARE = 15.0


LATE = """
faults:
  - {fault: latency, match: {commands: INCR}, when: {every: 50}, at: after_apply, delay: 20ms}
"""


class Flood(asyncio.Protocol):
    """A client that counts up a key of its own, many at a time, until its connection ends."""

    def __init__(self, key: str, size: int) -> None:
        self.request = encode("INCR", key) + (encode("ECHO", "x" * size) if size else b"")
        self.each = 2 if size else 1
        self.sent = self.lines = 0
        self.last = b""
        self.ended = asyncio.get_running_loop().create_future()
        self.begun = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        self.more()

    def more(self):
        while self.sent - self.answered < OPEN and not self.transport.is_closing():
            self.transport.write(self.request * BATCH)
            self.sent += BATCH

    @property
    def answered(self) -> int:
        # An echo has two lines; the last one may be missing, its count not.
        return self.lines if self.each == 1 else (self.lines + 2) // 3

    def data_received(self, data):
        self.lines += data.count(b"\n")
        self.last = data[-2:]
        self.begun.set()
        self.more()

    def eof_received(self):
        return False

    def connection_lost(self, error):
        self.error = error
        self.ended.set_result(None)


async def flood(proxy, size: int, seconds: float) -> list[Flood]:
    """Have them all at it for so long, then have the proxy stop; give them once their connections have ended."""
    loop = asyncio.get_running_loop()
    floods = []
    for number in range(CLIENTS):
        _, each = await loop.create_connection(
            lambda number=number: Flood(f"n{number}", size), "127.0.0.1", proxy.port
        )
        floods.append(each)
    await asyncio.gather(*(each.begun.wait() for each in floods))
    await asyncio.sleep(seconds)
    proxy.signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        await asyncio.gather(*(each.ended for each in floods))
    return floods


@pytest.mark.parametrize("size", [0, 2_000])
@pytest.mark.parametrize("profile", ["calm", LATE], ids=["calm", "late"])
def test_under_load(redis70, profile, size):
    """What the server has carried out and what clients were told are the same, to the last command of each."""
    proxy = start_before(redis70, profile)
    floods = asyncio.run(flood(proxy, size, 0.3))
    began = time.monotonic()
    with pytest.raises(TURNED_AWAY):
        proxy.connect()
    assert proxy.process.wait(GRACE + SPARE) == 0
    assert time.monotonic() - began < GRACE + SPARE
    proxy.stop()
    done = [int(redis70.ask("GET", f"n{number}") or 0) for number in range(CLIENTS)]
    told = [each.answered for each in floods]
    assert done == told
    assert all(each.last == b"\r\n" for each in floods)
    assert sum(told) > CLIENTS * BATCH / 2


@pytest.fixture
def stand(request):
    """A proxy under one profile, which is told to stop."""
    port = servers.free_port()
    server = servers.start_on(port, "redis70")
    made = Stand("redis70", (), port, server, start_before(server))
    yield made
    if made.proxy.process.poll() is None:
        made.proxy.process.kill()
    with suppress(AssertionError):  # told twice it ends with another status
        made.proxy.stop()
    made.end()


#: Phases in which SIGTERM is tried in every run; in all others by a soak test.
SOME = "pipeline latency-after tell-nothing stopped-drop-ok"


@every(PHASES, only=SOME)
def test_in_each_phase(stand, phase):
    """Whatever holds its clients, and with a server that is stopped: it ends with 0, in time, and nobody is left open."""
    stand.put(phase.profile)
    with ExitStack() as stack:
        wires = [stack.enter_context(closing(wire)) for wire in phase.enter(stand)]
        began = time.monotonic()
        stand.proxy.signal(signal.SIGTERM)
        for wire in wires:
            wire.read_to_end()
        assert stand.proxy.process.wait(GRACE + SPARE) == 0
        assert time.monotonic() - began < GRACE + SPARE
    assert not MISTAKE.search(stand.log()), stand.log()


#: What is asked of the server, or waited for, before the client is answered; then the answer comes.
ANSWERED = [
    ("latency-before", "fault: latency, match: {commands: SET}, at: before_forward, delay: 500ms", ()),
    ("latency-after", "fault: latency, match: {commands: SET}, at: after_apply, delay: 500ms", ()),
    ("reorder", "fault: reorder, match: {commands: SET}, waiting: 2, max: 500ms", ()),
    ("slice", "fault: slice, match: {commands: SET}, split: [1], gap: 500ms", ()),
    ("bandwidth", "fault: bandwidth, match: {commands: SET}, rate: 40B/s", ()),
    ("drop-write", "fault: drop_write, match: {commands: SET}, tell: ok", ()),
    ("drop-write-aside", "fault: drop_write, match: {commands: SET}, tell: ok", (("WATCH", "w"),)),
    ("run-aside", "fault: run, match: {commands: SET}, at: before_forward, commands: [[INCR, n]]", (("MULTI",),)),
    ("run-after", "fault: run, match: {commands: SET}, at: after_apply, commands: [[INCR, n]]", ()),
    ("expire", "fault: expire_key, match: {commands: SET}, mode: now", ()),
    ("duplicate", "fault: duplicate, match: {commands: SET}, times: 3", ()),
    ("calm", "fault: latency, match: {commands: GET}, at: after_apply, delay: 1ms", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "before"), ANSWERED, ids=[name for name, *_ in ANSWERED])
def test_what_is_being_worked_on_is_answered(stand, name, text, before):
    """A command that the proxy has read is answered, and then the end comes, wherever it is: also where the server is slow."""
    stand.put(rule(text))
    with stand.proxy.connect() as client:
        for command in before:
            client.ask(*command)
        stand.server.ask("SET", "x", "1")
        stand.pause()
        client.send("SET", "x", "v" * 20)
        read = len(encode("SET", "x", "v" * 20))
        known = sum(len(encode(*command)) for command in before)
        wait_for(
            lambda: stand.proxy.metric("bytes_total", direction="from_client") >= read + known,
            "the command to be read",
        )
        stand.proxy.signal(signal.SIGTERM)
        wait_for(lambda: refuses(stand.proxy), "it to stop listening")
        stand.go_on()
        answer = b"+QUEUED\r\n" if before == (("MULTI",),) else b"+OK\r\n"
        assert client.read_to_end() == (answer, "FIN")
    assert stand.proxy.process.wait(GRACE + SPARE) == 0


def refuses(proxy) -> bool:
    try:
        proxy.connect().close()
    except TURNED_AWAY:
        return True
    return False


def test_who_has_just_come_is_answered(stand):
    """A client whose upstream side the server has not accepted yet has its command carried out too."""
    stand.server.ask("CONFIG", "SET", "maxclients", "100")
    stand.pause()
    with stand.proxy.connect() as client:
        client.send("PING")
        # Who has not been heard when it stops listening is turned away.
        wait_for(
            lambda: (
                stand.proxy.metric("bytes_total", direction="from_client") >= len(encode("PING"))
            ),
            "the command to be read",
        )
        stand.proxy.signal(signal.SIGTERM)
        wait_for(lambda: refuses(stand.proxy), "it to stop listening")
        stand.go_on()
        assert client.read_to_end() == (b"+PONG\r\n", "FIN")
    assert stand.proxy.process.wait(GRACE + SPARE) == 0


def test_twice(stand):
    """A second SIGTERM ends it at once, whoever waits."""
    with stand.proxy.connect() as client:
        client.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in stand.server.ask("CLIENT", "LIST"), "the request")
        stand.pause()
        stand.proxy.signal(signal.SIGTERM)
        wait_for(lambda: refuses(stand.proxy), "it to stop listening")
        stand.proxy.signal(signal.SIGTERM)
        # Had it waited it would have ended with 0.
        assert stand.proxy.process.wait(GRACE + SPARE) == -signal.SIGTERM
