"""Profiles for a soak: all that ship, and nasty ones made from every fault, at every position, told in every way.

Takes a seed; gives pairs of a name and what PUT /profile takes.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from chaosproxy import profile as profiles

#: How often each of a nasty profile's rules acts.
CHANCES = ("1%", "3%", "10%", "30%")
WRITES = "['@write', EVAL, EVALSHA]"
#: An injected message in each protocol, on the channels of that protocol.
INJECTED = {
    2: r'"*3\r\n$7\r\nmessage\r\n$7\r\nmade up\r\n$7\r\nmade up\r\n"',
    3: r'">3\r\n$7\r\nmessage\r\n$7\r\nmade up\r\n$7\r\nmade up\r\n"',
}
#: Faults after which a connection may be over.
CUTTING = ("admit", "blackhole", "disconnect", "drop_write", "failover")
_POSITIONS = ("before_forward", "after_apply", "mid_reply", "after_reply")
_STEPS = "[{cut: reset}, {refuse: 200ms}, {loading: 200ms}, switch, {readonly: 200ms}, rejoin]"

#: Every fault: one rule each, without name, match and chance. `~` before what match has besides.
RULES: tuple[str, ...] = (
    "fault: latency, at: before_forward, delay: {uniform: [0s, 400ms]}",
    "fault: latency, at: after_apply, delay: {pareto: {min: 1ms, alpha: 1}, max: 1s}",
    *(
        f"fault: disconnect, at: {at}, how: {how}"
        for at in _POSITIONS
        for how in ("reset", "close")
    ),
    "fault: disconnect, at: mid_reply, frames: 1",
    "fault: disconnect, at: mid_reply, spot: inside_multibyte",
    "fault: disconnect, at: after_apply, who: matching, ~clients: 'c1*'",
    "fault: disconnect, at: before_forward, who: all, ~keys: 'nb:*'",
    "fault: blackhole, at: before_forward, what: request",
    "fault: blackhole, at: after_apply, what: reply",
    *(f"fault: blackhole, at: {at}, what: connection, for: 500ms" for at in _POSITIONS),
    *(f"fault: blackhole, at: {at}, what: connection" for at in _POSITIONS),
    "fault: blackhole, at: after_apply, what: connection, direction: to_client",
    "fault: blackhole, at: after_apply, what: connection, direction: to_upstream, for: 300ms",
    "fault: reply, at: before_forward, error: READONLY",
    "fault: reply, at: before_forward, error: MOVED",
    "fault: reply, at: after_apply, error: 'ERR made up'",
    "fault: reply, at: before_forward, value: made up",
    "fault: reply, at: after_apply, value: made up",
    "fault: reply, at: before_forward, miss: true",
    "fault: reply, at: after_apply, miss: true",
    "fault: reply, at: after_apply, truncate: 7",
    "fault: reply, at: after_apply, invalid_utf8: true",
    *(f"fault: drop_write, tell: {tell}, !" for tell in ("ok", "error", "nothing", "disconnect")),
    "fault: run, at: before_forward, commands: [[SCRIPT, FLUSH]]",
    "fault: run, at: after_apply, commands: [[DEL, '{key}']], ~keys: '*'",
    "fault: run, at: after_reply, commands: [[APPEND, scratch, x], [DEL, scratch]]",
    "fault: duplicate, !",
    "fault: duplicate, times: 3, gap: 50ms, !",
    "fault: slice, size: 5, gap: 10ms",
    "fault: slice, split: inside_multibyte, gap: 20ms",
    "fault: slice, split: [1, -1], gap: 30ms",
    "fault: bandwidth, rate: 20KiB/s",
    "fault: bandwidth, rate: 100KiB/s, direction: to_upstream, shared: proxy",
    "fault: reorder, until: {command: SET, same: any}, max: 1s, !",
    "fault: reorder, waiting: 3, max: 500ms, order: shuffled, !",
    "fault: expire_key, mode: now",
    "fault: expire_key, mode: evict",
    "fault: expire_key, mode: strip_ttl",
    "fault: expire_key, mode: no_renewal",
    "fault: expire_key, mode: {ttl_set: 500ms}",
    "fault: stale_read, lag: 500ms",
    "fault: stale_read, behind: 2",
    "fault: push, do: drop, ~push: {kind: [message, invalidate]}",
    "fault: push, do: delay, delay: 200ms, ~push: {kind: [message, invalidate]}",
    "fault: push, do: duplicate, ~push: {kind: [message, invalidate]}",
    *(
        f"fault: push, do: inject, frame: {frame}, ~push: {{kind: message, channel: 'ch{resp}:*'}}"
        for resp, frame in INJECTED.items()
    ),
    "fault: disconnect, at: after_reply, ~push: {kind: message}",
    "fault: admit, new_connections: reset",
    "fault: admit, new_connections: refuse",
    "fault: admit, new_connections: accept_silent",
    "fault: admit, new_connections: {error: MAXCLIENTS}",
    "fault: admit, delay: 200ms",
    *(f"fault: failover, style: {style}, outage: 300ms, ?" for style in ("sentinel", "cluster")),
    "fault: failover, style: managed, lose: {writes: 5}, outage: 200ms, rejoin: 500ms, ?",
    "fault: failover, style: restart, lose: {for: 300ms}, outage: 200ms, loading: 200ms, ?",
    f"fault: failover, style: steps, steps: {_STEPS}, ?",
    "fault: latency, at: after_apply, delay: 50ms, ~commands: '@handshake'",
    "fault: reply, at: before_forward, error: LOADING, ~commands: '@handshake'",
    "fault: disconnect, at: mid_reply, ~commands: '@handshake'",
)


def shipped() -> Iterator[tuple[str, dict[str, Any]]]:
    """All that ship."""
    for name in profiles.names():
        yield name, {"name": name}


def nasty(number: int, random: Random, rules: list[str]) -> tuple[str, dict[str, Any]]:
    """Make one of these rules; `!` about writes, `?` on a certain write."""
    name = f"nasty-{number}"
    lines = [_rule(index, rule, random) for index, rule in enumerate(rules)]
    return name, {"name": name, "yaml": "faults:\n" + "".join(lines)}


def _rule(index: int, rule: str, random: Random) -> str:
    rule, _, match = rule.partition(", ~")
    if rule.endswith(", !"):
        rule, match = rule[:-3], f"commands: {WRITES}"
    when = f"chance: {random.choice(CHANCES)}"
    if rule.endswith(", ?"):
        rule, match, when = rule[:-3], f"commands: {WRITES}", f"nth: {random.randint(5, 50)}"
    match = f", match: {{{match}}}" if match else ""
    return f"- {{{rule}, name: r{index}{match}, when: {{{when}}}}}\n"


def cuts(body: dict[str, Any]) -> bool:
    """Whether a profile may end connections, or keep them out; what it has lost ends them once it is over."""
    source = (
        profiles.Source(body["name"], body["yaml"].encode(), body["name"])
        if "yaml" in body
        else profiles.shipped(body["name"])
    )
    return any(rule.fault.type in CUTTING for rule in profiles.load([source]).rules)


def turns(seed: str, each: int = 4) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give profiles for ever: in each turn all that ship and every rule once, some together, in another order."""
    random = Random(seed)
    number = 0
    while True:
        rules = random.sample(RULES, len(RULES))
        turn = list(shipped())
        while rules:
            number += 1
            turn.append(nasty(number, random, [rules.pop() for _ in range(min(each, len(rules)))]))
        random.shuffle(turn)
        yield from turn
