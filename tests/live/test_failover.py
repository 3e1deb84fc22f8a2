"""What a failover loses, on real servers: exactly the writes that its event names, and everything else stays what it was.

Takes writers that remember what was acknowledged; gives what is missing afterwards, and what the events list.
"""

import threading
import time
from collections import Counter

import pytest

from tests.proxying import at_its_own_port, wait_for
from tests.wire import Wire, WireError

RULE = "faults:\n- {{fault: failover, name: fo, {}}}\n"
KEYS = ("0", "1", "2")
#: Each with what begins it: the clock, a write, a request.
FAILOVERS = {
    "by the clock": "style: sentinel, when: {from: 1s}, lose: {for: 500ms}, outage: 100ms, loading: 50ms",
    "by a write": "style: managed, match: {commands: INCR}, when: {nth: 200}, lose: {for: 500ms}, outage: 50ms",
    "by count": "style: managed, match: {commands: RPUSH}, when: {nth: 200}, lose: {writes: 30}",
    "restart": "style: restart, match: {commands: EXEC}, when: {nth: 30}, lose: {for: 500ms}, loading: 50ms",
    "on request": "style: cluster, when: {trigger: manual}, lose: {for: 500ms}, outage: 50ms",
}


class Writer(threading.Thread):
    """A client that pushes and counts, sometimes in a transaction, and remembers what was acknowledged; it comes back."""

    def __init__(self, number: int, port: int, enough: threading.Event, acked: list) -> None:
        super().__init__()
        self.number, self.port, self.enough, self.acked = number, port, enough, acked

    def run(self) -> None:
        wire = None
        turn = 0
        while not self.enough.is_set():
            turn += 1
            try:
                wire = wire or Wire(self.port)
                done = self._write(wire, turn)
            except (OSError, EOFError, AssertionError):
                done = False
            if not done:
                if wire is not None:
                    wire.close()
                wire = None
                time.sleep(0.005)
        if wire is not None:
            wire.close()

    def _write(self, wire: Wire, turn: int) -> bool:
        key = KEYS[turn % len(KEYS)]
        element = f"{self.number}-{turn}"
        calls = [("INCR", f"n:{key}"), ("RPUSH", f"l:{key}", element)]
        if turn % 5:
            calls = calls[turn % 2 :][:1]
            replies = [wire.ask(*calls[0])]
        else:
            replies = [wire.ask(*call) for call in (("MULTI",), *calls, ("EXEC",))]
            replies = replies[-1] if isinstance(replies[-1], list) else []
        good = bool(replies) and not any(isinstance(reply, WireError) for reply in replies)
        if good:
            self.acked += calls
        return good


def missing(server, acked):
    """Which acknowledged writes are not there: INCRs by number, RPUSHes by element."""
    gone = Counter()
    for key in KEYS:
        counted = Counter(call[1] for call in acked if call[0] == "INCR")
        gone["INCR", f"n:{key}"] = counted[f"n:{key}"] - int(server.ask("GET", f"n:{key}") or 0)
        there = {element.decode() for element in server.ask("LRANGE", f"l:{key}", "0", "-1")}
        gone["RPUSH", f"l:{key}"] = sum(
            call[0] == "RPUSH" and call[1] == f"l:{key}" and call[2] not in there for call in acked
        )
    return +gone


def told(proxy):
    """What the events list."""
    listed = Counter()
    for event in proxy.events("fo"):
        if event["applied"] == "undone":
            assert event["outcome"] == "false_ok"
            for write in event["writes"]:
                (key,) = write["keys"]
                listed[write["command"], key] += write["count"]
    return listed


def fail_over(server, settings, writes):
    """Four writers, one failover in the middle: what is missing, and what the events list."""
    server.ask("FLUSHALL")
    acked, enough = [], threading.Event()
    by_the_clock = "from:" in settings
    with at_its_own_port(server, "calm" if by_the_clock else RULE.format(settings)) as proxy:
        writers = [Writer(number, proxy.port, enough, acked) for number in range(4)]
        for writer in writers:
            writer.start()
        try:
            wait_for(lambda: len(acked) > 20, "the first writes")
            if by_the_clock:
                proxy.use(RULE.format(settings))
            if "manual" in settings:
                wait_for(lambda: len(acked) > writes // 2, "half of the writes")
                proxy.service.trigger("fo")
            wait_for(
                lambda: any("switched" in event.get("detail", "") for event in proxy.events("fo")),
                "the switch",
                timeout=60,
            )
            after = len(acked)
            wait_for(lambda: len(acked) >= max(writes, after + 100), "all writes", timeout=120)
        finally:
            enough.set()
            for writer in writers:
                writer.join(30)
        listed = told(proxy)
        assert proxy.metric("failovers_total") == 1
    return missing(server, acked), listed, acked


@pytest.mark.parametrize("name", FAILOVERS)
def test_exactly_what_is_listed_is_lost(redis70, name):
    """Four connections write to the same keys across a failover; what was acknowledged and is gone is what the event lists."""
    for _ in range(5):
        gone, listed, _ = fail_over(redis70, FAILOVERS[name], 1000)
        assert gone == listed
        if listed:
            break
        # Nobody had written anything for half a second: the machine was busy.
    assert listed
    if "writes: 30" in FAILOVERS[name]:
        # A transaction is lost whole.
        assert 30 <= sum(listed.values()) <= 31


@pytest.mark.soak
@pytest.mark.parametrize("run", range(10))
@pytest.mark.parametrize("name", FAILOVERS)
def test_exactly_ten_times(redis70, name, run):
    """The same with 5,000 writes."""
    del run
    settings = FAILOVERS[name].replace("from: 1s", "from: 2s").replace("nth: 200", "nth: 900")
    gone, listed, acked = fail_over(redis70, settings, 5000)
    assert len(acked) >= 5000
    assert gone == listed
    assert listed
