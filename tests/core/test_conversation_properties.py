"""Whatever the two sides send and the rules decide: what holds of every conversation.

Takes random commands, pieces, profiles and events; a toy server answers. Every command carries its number in its key, and so
does its reply: so it can be seen whose reply a reply is.
"""

import re
from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from chaosproxy.core.effect import AwaitFlush
from chaosproxy.core.reply import ReplyFramer, elements
from tests.conversation import Talk, command, reply
from tests.toy import Toy

# -- no faults


def pieces(raw: bytes, sizes: list[int]) -> list[bytes]:
    """Cut bytes into pieces of these sizes, again and again."""
    out = []
    at = index = 0
    while at < len(raw):
        size = sizes[index % len(sizes)]
        out.append(raw[at : at + size])
        at, index = at + size, index + 1
    return out


SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=5)
GARBAGE = st.lists(
    st.sampled_from(
        [
            b"*", b"$", b"+", b"-", b":", b">", b"%", b"|", b"_", b"~", b"\r\n", b"\n", b"1", b"2", b"-1", b"3", b"9",
            b"subscribe", b"message", b"EXEC", b"MULTI", b"SET", b"GET a\r\n", b"*1\r\n", b"$4\r\n", b"\0", b'"', b"'",
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n", b"+OK\r\n", b"+QUEUED\r\n",
            b"*2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n", b">1\r\n$9\r\nsubscribe\r\n", b"*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n",
            b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n", b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", b"%0\r\n", b"*0\r\n",
            b"|1\r\n+a\r\n+b\r\n", b"*2\r\n+OK\r\n:x\r\n", b"-ERR x\r\n", b"*1\r\n$4\r\nSYNC\r\n", b"*1\r\n$5\r\nRESET\r\n",
            b"$-1\r\n", b"*-1\r\n", b"*1\r\n$11\r\nUNSUBSCRIBE\r\n", b"*1\r\n$7\r\nMONITOR\r\n", b'+1.000000 [0 x] "a"\r\n',
        ]
    )
    | st.binary(max_size=6),
    max_size=25,
).map(b"".join)  # fmt: skip


@settings(deadline=None)
@given(st.data())
def test_garbage_passes(data):
    """Without a fault any bytes whatever pass in both directions, unchanged, and nothing raises.

    What is not given yet is the unfinished end of it, and comes when the side that sent it ends.
    """
    talk = Talk()
    sent = {"client": b"", "upstream": b""}
    heard = {"client": b"", "upstream": b""}
    for _ in range(data.draw(st.integers(1, 6))):
        side = data.draw(st.sampled_from(["client", "upstream"]))
        for piece in pieces(data.draw(GARBAGE), data.draw(SIZES)):
            (talk.client if side == "client" else talk.upstream)(piece)
            sent[side] += piece
            heard["upstream"] += talk.heard("upstream")
            heard["client"] += talk.heard("client")
            assert sent["client"].startswith(heard["upstream"])
            assert sent["upstream"].startswith(heard["client"])
    talk.upstream_eof()
    heard["client"] += talk.heard("client")
    assert heard["client"] == sent["upstream"]
    if b"SYNC" not in sent["client"]:  # which waits for the replies to what came before
        assert heard["upstream"] == sent["client"]


# -- random rules

COMMANDS = ["SET", "GET", "RPUSH", "EXEC", "MULTI", "BLPOP", "SELECT", "'@write'", "'@read'"]
WRITES = ["SET", "RPUSH", "'@write'", "EVAL", "EXPIRE", "FLUSHALL"]
#: What a rule of these names: others could never hold.
ABOUT = {
    "fault: drop_write": WRITES,
    "fault: duplicate": WRITES,
    "fault: stale_read": ["GET", "'@read'", "[GET, SET]"],
    "mode: no_renewal": ["SET", "'@write'", "[EXEC, SET]", "EXPIRE"],
    "mode: strip_ttl": ["SET", "'@write'", "[EXEC, SET]", "EXPIRE"],
    "miss: true": ["GET", "BLPOP", "'@write'", "'@read'", "[SET, GET]"],
    "fault: expire_key": ["SET", "GET", "RPUSH", "BLPOP", "'@write'", "'@read'", "[EXEC, GET]"],
}
FAULTS = [
    "fault: latency, at: before_forward, delay: 100ms",
    "fault: latency, at: after_apply, delay: 100ms",
    "fault: latency, at: after_apply, delay: {uniform: [0s, 1s]}",
    "fault: disconnect, at: before_forward",
    "fault: disconnect, at: after_apply, how: close",
    "fault: disconnect, at: mid_reply, bytes: 2",
    "fault: disconnect, at: after_reply",
    "fault: blackhole, at: before_forward, what: request",
    "fault: blackhole, at: after_apply, what: reply",
    "fault: blackhole, at: before_forward, what: connection, for: 1s",
    "fault: blackhole, at: after_apply, what: connection, for: 1s, direction: to_client",
    "fault: blackhole, at: mid_reply, what: connection, for: 1s, bytes: 1",
    "fault: blackhole, at: after_reply, what: connection, direction: to_upstream",
    "fault: reply, at: before_forward, error: READONLY",
    "fault: reply, at: before_forward, miss: true",
    "fault: reply, at: after_apply, error: made up",
    "fault: reply, at: after_apply, value: made",
    "fault: disconnect, at: after_reply, ~reply: {type: simple}",
    "fault: latency, at: after_apply, delay: 100ms, ~after: {command: SET, same: connection}",
    "fault: run, at: after_apply, commands: [[DEL, x]], ~connection: {state: subscribed}",
    "fault: drop_write, tell: ok",
    "fault: drop_write, tell: error",
    "fault: drop_write, tell: nothing",
    "fault: drop_write, tell: disconnect",
    "fault: run, at: before_forward, commands: [[DEL, x]]",
    "fault: run, at: after_apply, commands: [[DEL, x]]",
    "fault: run, at: after_reply, commands: [[DEL, x]]",
    "fault: duplicate",
    "fault: duplicate, times: 3, gap: 100ms",
    "fault: slice, split: [1, -1], gap: 100ms",
    "fault: slice, size: 2, gap: 10ms",
    "fault: bandwidth, rate: 100B/s",
    "fault: bandwidth, rate: 100B/s, direction: to_client",
    "fault: reorder, until: {command: SET, same: any}, max: 1s",
    "fault: reorder, waiting: 2, max: 1s",
    "fault: expire_key, mode: now",
    "fault: expire_key, mode: evict",
    "fault: expire_key, mode: no_renewal",
    "fault: expire_key, mode: strip_ttl",
    "fault: stale_read, behind: 1",
    "fault: push, do: duplicate",
    "fault: push, do: delay, delay: 100ms",
    "fault: push, do: drop",
]
WHENS = ["", "when: {nth: 1}", "when: {chance: 50%}", "when: {limit: 2}", "when: {every: 2}"]


def profile(random: Random) -> str:
    """Some rules."""
    rules = []
    for _ in range(random.randint(1, 4)):
        fault = random.choice(FAULTS)
        if fault.startswith("fault: push"):
            rules.append(f"- {{{fault}}}")
            continue
        about = random.choice(next((ABOUT[each] for each in ABOUT if each in fault), COMMANDS))
        fault, _, more = fault.partition(", ~")
        match = f"match: {{commands: {about}{', ' if more else ''}{more}}}"
        parts = (fault, match, random.choice(WHENS))
        rules.append(f"- {{{', '.join(part for part in parts if part)}}}")
    return "\n".join(rules)


KINDS = (
    "SET k:{n} v", "GET k:{n}", "RPUSH k:{n} v", "BLPOP k:{n} 0", "MULTI", "MULTI", "EXEC", "EXEC", "DISCARD",
    "WATCH k:{n}", "SELECT 1", "PING", "CLIENT REPLY SKIP", "GET k:{n}", "SET k:{n} v",
)  # fmt: skip


ALL_KINDS = (
    *KINDS, "SUBSCRIBE a b", "SUBSCRIBE a", "UNSUBSCRIBE", "UNSUBSCRIBE a x", "PSUBSCRIBE p", "PUNSUBSCRIBE", "SSUBSCRIBE s",
    "SUNSUBSCRIBE", "HELLO 3", "HELLO 2", "RESET", "SELECT 2", "CLIENT SETNAME x", "UNWATCH", "MULTI", "EXEC", "CLIENT REPLY OFF",
    "CLIENT REPLY ON", "CLIENT REPLY ON", "EVAL x 1 k:{n}", "EXPIRE k:{n} 9", "SET k:{n} v EX 9", "FLUSHALL", "GETEX k:{n} EX 9",
)  # fmt: skip


def script(random: Random, kinds: Sequence[str]) -> list[bytes]:
    """A client's commands, the n-th of which carries its number; none that servers answer differently."""
    lines: list[str] = []
    toy = Toy()
    for _ in range(random.randint(1, 16)):
        line = random.choice(kinds).format(n=len(lines) + 1)
        queued, off = toy.queue is not None, not toy.replies
        if "REPLY" in line and queued:
            continue  # servers differ, or garble EXEC's array
        if "SUBSCRIBE" in line and (off or toy.skip):
            continue  # confirmed by some servers although replies are off
        lines.append(line)
        toy.receive(command(line))
    return [command(line) for line in lines]


@settings(deadline=None)
@given(st.data(), st.randoms(use_true_random=False))
def test_garbage_never_raises(data, random):
    """Whatever the rules want to do with it: no bytes of either side raise anything."""
    talk = Talk(profile(random), protocol=random.choice([2, 3]))
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            raw = (
                b"".join(script(random, ALL_KINDS)) if random.random() < 0.8 else data.draw(GARBAGE)
            )
            said = talk.client
        else:
            raw, said = data.draw(GARBAGE), talk.upstream
        for piece in pieces(raw, data.draw(SIZES)):
            if not talk._over:
                said(piece)
        while talk._asked:
            talk.side(
                *[data.draw(st.sampled_from(["+OK", ":0", "-ERR no", b":x\r\n"]))]
                * len(talk._asked[0].requests)
            )
        talk.wait(data.draw(st.sampled_from([0.0, 0.1, 3.0])))
    talk._heard = {"client": b"", "upstream": b""}
    talk._awaited.clear()
    talk.client_gone()
    talk._awaited.clear()
    talk.close()


LIES = (
    "+OK", "+QUEUED", "-ERR no", ":0", ":-1", b":x\r\n", "$-1", '""', "*-1", "_", "*[]", "*[:1]", b"*1\r\n:x\r\n", '*["0" *[]]',
    '*["0" :1]', b"*2\r\n$1\r\n0\r\n*1\r\n,x\r\n", "*[+OK :0 +OK]", "*[:1 +OK :1 :1 +OK]", "%[]", '*["a" "b"]', b"#x\r\n", "*[$-1 _]",
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_lies_never_raise(random):
    """A server, or a side connection, whose replies are frames but not the right ones: nothing raises, all adds up."""
    lie(random)


def lie(random: Random) -> None:
    """One conversation with a server that often says something else than it should."""
    talk = Talk(profile(random), protocol=random.choice([2, 3]))
    server = Toy(talk.protocol)
    todo = pieces(b"".join(script(random, ALL_KINDS)), [random.randint(1, 200)])
    for _ in range(60):
        if talk._over:
            break
        if todo:
            talk.client(todo.pop(0))
        server.receive(talk.heard("upstream"))
        for frame in server.out:
            if not talk._over:
                talk.upstream(reply(random.choice(LIES)) if random.random() < 0.25 else frame)
        server.out.clear()
        while talk._asked and not talk._over:
            talk.side(*[random.choice(LIES) for _ in talk._asked[0].requests])
        talk.wait(random.choice([0.0, 0.1, 2.0]))
    talk._heard = {"client": b"", "upstream": b""}
    talk._awaited.clear()
    if not talk._over:
        talk.client_gone()
        talk._awaited.clear()
    talk.close()


EVENTS = (
    *("client",) * 6, *("upstream",) * 6, *("wait",) * 3, "side", "flushed", "push", "rare",
)  # fmt: skip
RARE = ("switch", "calm", "client_eof", "client_gone", "upstream_eof", "no_side", "cut")


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_replies_stay_in_order(random):
    """Whatever rules decide: no reply reaches the client as that of another command, and every match is accounted for."""
    converse(random)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_happens_adds_up(random):
    """The same with commands of all kinds: no bytes are held that nobody waits for, and every match is accounted for."""
    converse(random, ALL_KINDS, in_order=False)


def converse(  # noqa: C901 - one case an event
    random: Random, kinds: Sequence[str] = KINDS, *, in_order: bool = True
) -> None:
    """One conversation, all of it at random; checked at its end."""
    talk = Talk(profile(random), protocol=random.choice([2, 3]))
    server = Toy(talk.protocol)
    sent = script(random, kinds)
    todo = pieces(b"".join(sent), [random.randint(1, 80) for _ in range(3)])
    heard = held = b""
    for _ in range(random.randint(5, 60)):
        if talk._over:
            break
        event = random.choice(EVENTS)
        if event == "rare":
            event = random.choice(RARE)
        match event:
            case "client" if todo and not talk.conversation._client_ended:
                talk.client(todo.pop(0))
            case "upstream":
                while server.out and random.random() < 0.8:
                    held += server.out.pop(0)
                size = random.randint(1, 80)
                if held:
                    talk.upstream(held[:size])
                    held = held[size:]
            case "push" if talk.protocol == 3:
                server.out.insert(0, reply('>["invalidate" *["a"]]'))
            case "wait":
                talk.wait(random.choice([0.05, 0.1, 1.0, 5.0]))
            case "side" | "no_side" if talk._asked:
                count = len(talk._asked[0].requests) if event == "side" else 0
                talk.side(*[":1"] * count)
            case "flushed" if talk._awaited and isinstance(talk._awaited[0], AwaitFlush):
                talk.flushed()
            case "switch":
                talk.switch(profile(random))
            case "calm":
                talk.switch()
            case "client_eof":
                talk.client_eof()
            case "client_gone":
                talk.client_gone()
            case "upstream_eof":
                talk.upstream_eof()
            case "cut":
                talk.cut("reset")
            case _:
                continue
        server.receive(talk.heard("upstream"))
        heard += talk.heard("client")
    heard += settle(talk, server, held, todo)
    if in_order and not talk.conversation.raw:
        check_order(heard, sent, talk)
    talk.heard("upstream")
    talk._awaited.clear()
    talk.close()


def settle(talk: Talk, server: Toy, held: bytes, todo: list[bytes]) -> bytes:
    """Let everything happen that still can, then end it; give what the client heard. Nothing may be left waiting."""
    heard = b""
    conversation, line = talk.conversation, talk.conversation._line
    for _ in range(50):
        if talk._over:
            break
        if not conversation._client_ended:
            talk.client(b"".join(todo))
            todo.clear()
        server.receive(talk.heard("upstream"))
        said, held = held + b"".join(server.out), b""
        server.out.clear()
        if not (talk._over or conversation._returns.leaving.ended):
            talk.upstream(said)
        while talk._asked and not talk._over:
            talk.side(*[":1"] * len(talk._asked[0].requests))
        talk.wait(10)
        heard += talk.heard("client")
    lost = line.lost or any(slot.never for slot in line.slots)
    silent = line.client_silent or line.upstream_silent
    if not (talk._over or lost or silent):
        waiting = conversation.describe()["waiting_replies"]
        assert not waiting, talk._failed(f"{waiting} replies are waited for that never come")
        assert line.head is None, talk._failed("a request is held that nothing holds up")
        assert not line.held, talk._failed(f"{line.held} bytes are held that nothing holds up")
    if not talk._over:
        talk.client_gone()
    return heard + talk.heard("client")


NUMBER = re.compile(rb"\+(\d+)\r\n")


def check_order(heard: bytes, sent: list[bytes], talk: Talk) -> None:
    """Replies that carry a number stand at the place of the command that carried it."""
    answered = [
        number
        for number, raw in enumerate(sent, 1)
        if b"SKIP" not in raw and (number == 1 or b"SKIP" not in sent[number - 2])
    ]
    framer = ReplyFramer()
    framer.feed(heard)
    place = 0
    last = 0
    while (frame := framer.next()) is not None:
        if frame.kind == ord(">"):
            continue
        assert place < len(answered), talk._failed(f"a reply too many: {frame.raw!r}")
        number = answered[place]
        place += 1
        if frame.kind == ord("*") and frame.header != b"*-1":
            inside = [int(found[1]) for e in elements(frame.raw)[1] if (found := NUMBER.match(e))]
            assert inside == sorted(inside), talk._failed(f"elements out of order: {frame.raw!r}")
            assert not inside or last < inside[0], talk._failed("an element of another transaction")
            assert not inside or inside[-1] < number, talk._failed("an element from the future")
        if found := NUMBER.match(frame.raw):
            assert int(found[1]) == number, talk._failed(
                f"the reply to {found[1]!r} came as that to {number}"
            )
            last = number


# -- rules that look at everything and do nothing

ARMED = """
- {fault: latency, when: {nth: 1000000}, at: before_forward, delay: 1s}
- {fault: disconnect, when: {nth: 1000000}, at: after_apply}
- {fault: latency, match: {commands: '@handshake'}, when: {nth: 1000000}, at: after_apply, delay: 1s}
"""
SWALLOWING = "- {fault: drop_write, match: {commands: SET}, when: {nth: 1000000}, tell: ok}"
BY_REPLY = "- {fault: disconnect, match: {reply: {error: NEVER}}, at: after_reply}"
LOOKING = ("", ARMED, SWALLOWING, BY_REPLY, ARMED + SWALLOWING)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_looking_changes_nothing(random):
    """Rules that look at every command and act on none: each reply is the one the server would have given directly."""
    look(random)


def look(random: Random) -> None:
    """One conversation with rules that never act, and the same commands without a proxy."""
    talk = Talk(random.choice(LOOKING))
    server, direct = Toy(), Toy()
    sent = script(random, ALL_KINDS)
    raw = b"".join(sent)
    direct.receive(raw)
    todo = pieces(raw, [random.randint(1, 80) for _ in range(3)])
    heard = b""
    while todo or server.out:
        if todo and random.random() < 0.5:
            talk.client(todo.pop(0))
        elif server.out:
            frames = server.out[: random.randint(1, 4)]
            del server.out[: len(frames)]
            for piece in pieces(b"".join(frames), [random.randint(1, 60)]):
                talk.upstream(piece)
        server.receive(talk.heard("upstream"))
        heard += talk.heard("client")
    assert heard == b"".join(direct.out), talk._failed("not what the server said")
    state = talk.conversation.describe()
    assert state["waiting_replies"] == 0, talk._failed("replies are waited for that never come")
    for field_, value in (
        ("db", direct.db),
        ("protocol", direct.protocol),
        ("name", direct.name.decode()),
        ("in_transaction", direct.queue is not None),
        ("subscribed", direct.subscribed),
        ("raw", False),
    ):
        assert state[field_] == value, talk._failed(f"{field_}: {state[field_]}, not {value}")
    talk.close()
