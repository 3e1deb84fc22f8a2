"""A seed fires the same faults on the same matches, however a hundred connections happen to interleave.

Takes a hundred connections that write, each to a key of its own; gives the set of (key, match) that fired, run after run.
"""

from random import Random

from tests.proxying import serve_proxy
from tests.wire import connected, decode

CLIENTS = 100
#: With a chance of 20 % each, that none of so many fires happens to one key in a million.
WRITES = 64
DROPS = """
description: Of each key's writes one is acknowledged and never happens.
healthy: The application reads back what matters.
faults:
  - fault: drop_write
    name: dropped
    match: {commands: [RPUSH], keys: "chat:*"}
    when: {chance: 20%, per: key, limit: 1}
    tell: ok
"""


def fired(server, seed: int, pace: int) -> set[tuple[str, int]]:
    """Let each connection send its writes in order, all of them mixed by `pace`; give what fired, checked with Redis."""
    server.ask("FLUSHALL")
    order = Random(pace)
    with serve_proxy(server.url, DROPS, seed=seed) as proxy:
        with connected(proxy.port, CLIENTS) as wires:
            numbered = list(enumerate(wires))
            for write in range(1, WRITES + 1):
                order.shuffle(numbered)
                for number, wire in numbered:
                    wire.send("RPUSH", f"chat:{number}", write)
                order.shuffle(numbered)
                for _, wire in numbered:
                    assert isinstance(decode(wire.read()[0]), int)
        events = proxy.events("dropped")
    assert all((each["applied"], each["outcome"]) == ("no", "false_ok") for each in events)
    dropped = {(each["keys"][0], each["match"]) for each in events}
    stored = {f"chat:{n}": server.ask("LRANGE", f"chat:{n}", 0, -1) for n in range(CLIENTS)}
    missing = {
        (key, write)
        for key, values in stored.items()
        for write in range(1, WRITES + 1)
        if b"%d" % write not in values
    }
    # Counted per key, a match's number is the write's: what the events say is what Redis lacks.
    assert dropped == missing
    return dropped


def test_a_seed_drops_the_same_writes_every_time(valkey9):
    """Five runs, mixed differently: one write of each connection is dropped, and the same one each time."""
    runs = [fired(valkey9, seed=7, pace=pace) for pace in range(5)]
    assert len({key for key, _ in runs[0]}) == len(runs[0]) == CLIENTS
    assert all(run == runs[0] for run in runs)


def test_another_seed_drops_others(valkey9):
    """A different seed chooses different matches."""
    assert fired(valkey9, seed=7, pace=1) != fired(valkey9, seed=8, pace=1)
