"""Every fault at every position, and what may come between in every phase: an end of either side, another profile, nonsense.

Takes the faults of the catalogue as rules, and one short talk; gives proof that at each moment each end leaves everything accounted for.
"""

import pytest

from chaosproxy.core.fault import FAULTS
from chaosproxy.faults import register
from tests.conversation import Talk
from tests.failing import Director
from tests.toy import Toy

RULES = [
    "latency, at: before_forward, delay: 1s",
    "latency, at: after_apply, delay: 1s",
    *(
        f"disconnect, at: {at}"
        for at in ("before_forward", "after_apply", "mid_reply", "after_reply")
    ),
    "blackhole, at: before_forward, what: request",
    "blackhole, at: after_apply, what: reply",
    *(
        f"blackhole, at: {at}, what: connection, for: 2s, direction: {way}"
        for at in ("before_forward", "after_apply", "mid_reply", "after_reply")
        for way in ("both", "to_client", "to_upstream")
    ),
    "reply, at: before_forward, error: READONLY",
    "reply, at: before_forward, value: made",
    "reply, at: after_apply, error: READONLY",
    "reply, at: after_apply, value: made",
    *(f"drop_write, tell: {tell}" for tell in ("ok", "error", "nothing", "disconnect")),
    *(
        f"run, at: {at}, commands: [[INCR, n]]"
        for at in ("before_forward", "after_apply", "after_reply")
    ),
    "duplicate",
    "duplicate, gap: 1s",
    "slice, size: 2, gap: 1s",
    "bandwidth, rate: 20B/s",
    "reorder, until: {command: GET, same: any}, max: 1s",
    "reorder, waiting: 2, max: 1s",
    "expire_key, mode: now",
    "expire_key, mode: evict",
    "expire_key, mode: strip_ttl",
    "expire_key, mode: no_renewal",
    "expire_key, mode: {ttl_set: 3s}",
    "stale_read, behind: 1",
    "failover, style: managed, lose: {writes: 3}, outage: 500ms, loading: 1s, rejoin: 2s",
    "failover, style: sentinel, lose: {for: 3s}, outage: 500ms",
]
ENDS = [
    "client_gone", "client_eof", "upstream_gone", "upstream_eof", "cut", "switch", "nonsense", "side fails", "nothing",
]  # fmt: skip
PLAIN = ("SET k:1 v", "SET k:2 v EX 10", "GET k:2", "PING")
TRANSACTION = ("MULTI", "SET k:2 v EX 10", "GET k:3", "EXEC", "PING")
STEPS = 12


def test_every_fault_is_here():
    """A new fault has a place in this list; those for pushes and new connections meet none of these commands."""
    register()
    named = {rule.partition(",")[0] for rule in RULES}
    assert named == {name for name, fault in FAULTS.items() if fault.subject == "exchange"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rule", RULES)
def test_an_end_in_every_phase(rule, end):
    """Whenever it comes: nothing raises, no byte is told after the end, nothing waits for ever, every match is accounted for."""
    for script in (PLAIN, TRANSACTION):
        for when in range(STEPS):
            _talk(rule, end, 2 + when % 2, script, when)


def _talk(rule: str, end: str, protocol: int, script: tuple[str, ...], when: int) -> None:
    name = rule.partition(",")[0]
    about = "GET" if name == "stale_read" else "SET"
    talk = Talk(f"- {{fault: {rule}, match: {{commands: {about}}}}}", protocol=protocol)
    toy = Toy(protocol)
    director = Director(talk)
    talk.client(*script)
    for step in range(STEPS):
        if talk._over:
            break
        if step == when:
            _come(talk, end)
        if not talk._over:
            _go_on(talk, toy, fails=end == "side fails" and step >= when)
            director.look()
    talk.wait(30)
    for _ in range(5 * STEPS):
        if talk._over or not (talk._heard["upstream"] or toy.out or talk._asked):
            break
        _go_on(talk, toy, fails=end == "side fails")
        director.look()
    director.look()
    _check(talk, end)


def _come(talk: Talk, end: str) -> None:
    match end:
        case "cut":
            talk.cut("reset")
        case "switch":
            talk.switch()
        case "nonsense":
            if not talk.conversation._returns.leaving.ended:
                talk.upstream(b"?\r\n")
        case "side fails" | "nothing":
            pass
        case _:
            getattr(talk, end)()


def _go_on(talk: Talk, toy: Toy, *, fails: bool) -> None:
    """One small step of everybody else: the server says a few bytes, the side connection answers, time passes."""
    toy.receive(talk.heard("upstream"))
    if toy.out and not talk.conversation._returns.leaving.ended:
        frame = toy.out.pop(0)
        for piece in (frame[:3], frame[3:]):
            if not talk._over:
                talk.upstream(piece)
    if talk._asked and not talk._over:
        talk.side(*([] if fails else [":1"] * len(talk._asked[0].requests)))
    if not talk._over:
        talk.wait(0.3)


def _check(talk: Talk, end: str) -> None:
    line = talk.conversation._line
    lost = line.lost or any(slot.never for slot in line.slots)
    if not (talk._over or lost or end in ("upstream_gone", "upstream_eof")):
        waiting = talk.conversation.describe()["waiting_replies"]
        assert not waiting, talk._failed("replies are waited for that never come")
        assert line.head is None, talk._failed("a request is held that nothing holds up")
    talk._heard = {"client": b"", "upstream": b""}
    talk._awaited.clear()
    if not talk._over:
        talk.client_gone()
        talk._awaited.clear()
        talk._heard["upstream"] = b""
    talk.close()
