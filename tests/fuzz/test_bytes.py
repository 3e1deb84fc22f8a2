"""Any bytes on both sides: the framers, the fast lane's measuring, and whole conversations.

Takes streams that are nearly right; gives proof that nothing but ProtocolError comes of them, that no byte is lost, that pieces make
no difference, nor does the fast lane, and that what is held is bounded.
"""

from hypothesis import strategies as st

from chaosproxy.core.addresses import in_frame
from chaosproxy.core.measuring import count
from chaosproxy.core.reply import ReplyFramer, elements
from chaosproxy.core.resp import RequestFramer
from chaosproxy.core.syntax import LINES, WIDTH, ProtocolError
from chaosproxy.topology.sentinel import master_of, translated
from tests.conversation import Talk
from tests.framing import drain, run
from tests.fuzz.properties import Properties
from tests.fuzz.streams import REPLY_BYTES, REQUEST_BYTES, SIZES, pieces

properties = Properties()

FAULTS = st.sampled_from(
    [
        "",
        "- {fault: latency, match: {commands: GET}, at: before_forward, delay: 100ms}",
        "- {fault: latency, match: {commands: ECHO}, at: after_apply, delay: 100ms}",
        "- {fault: disconnect, match: {commands: '@read'}, at: after_apply, when: {nth: 2}}",
        "- {fault: reply, at: before_forward, error: ERR no, when: {every: 3}}",
        "- {fault: slice, size: 1, gap: 1ms}",
        "- {fault: push, match: {push: {kind: invalidate}}, do: drop}",
        "- {fault: latency, match: {keys: '*', reply: {larger_than: 100}}, at: after_apply, delay: 1s}",
    ]
)


def check_framer(make, raw, sizes, cuts):
    """The same frames and the same rest in any pieces, with nothing lost, cut through or not."""
    whole = make()
    expected, wrong = run(whole, [raw])
    framer = make()
    frames, error = run(framer, pieces(raw, sizes))
    assert frames == expected
    assert (error is None) == (wrong is None)
    assert framer.partial == whole.partial <= len(raw)
    through, out, seen = make(), b"", 0
    for number, piece in enumerate(pieces(raw, sizes)):
        through.feed(piece)
        more, _ = drain(through)
        seen += len(more)
        out += b"".join(frame.raw for frame in more)
        if cuts[number % len(cuts)]:
            out += through.cut_through()
            assert through.partial == 0
    assert out + through.rest() == raw
    assert seen == len(frames)
    rest = framer.rest()
    assert rest == whole.rest()
    assert b"".join(frame.raw for frame in frames) + rest == raw
    return frames, error


CUTS = st.lists(st.booleans(), min_size=1, max_size=5)


@properties.of(200, raw=REQUEST_BYTES, sizes=SIZES, cuts=CUTS)
def requests(raw, sizes, cuts):
    frames, _ = check_framer(RequestFramer, raw, sizes, cuts)
    assert all(frame.args for frame in frames)


@properties.of(200, raw=REPLY_BYTES, sizes=SIZES, cuts=CUTS)
def replies(raw, sizes, cuts):
    frames, _ = check_framer(ReplyFramer, raw, sizes, cuts)
    for frame in frames:
        if frame.kind in WIDTH:
            header, parts, pushes = elements(frame.raw)
            assert len(header) + sum(map(len, parts + pushes)) == len(frame.raw)


#: Those whose replies have addresses in them.
ASKED = (
    *((b"CLUSTER", b"SLOTS"), (b"CLUSTER", b"SHARDS"), (b"CLUSTER", b"NODES"), (b"CLUSTER", b"REPLICAS")),
    *((b"INFO",), (b"ROLE",), (b"GET", b"k")),
)  # fmt: skip


@properties.of(300, raw=REPLY_BYTES)
def addresses(raw):
    """Whatever is said where addresses should be: it is translated, or stays as it is."""
    frames, _ = run(ReplyFramer(), [raw])
    for frame in frames:
        for asked in ASKED:
            assert isinstance(in_frame(lambda host, port, *_: (b"proxy", 1), asked, frame), bytes)
        for find in (lambda place: (b"proxy", 1), lambda place: None):
            assert isinstance(translated(frame.raw, find), bytes)
        master_of(frame.raw)


@properties.of(400, raw=REPLY_BYTES)
def counted_replies(raw):
    """What the fast lane counts are as many frames to the framer, and where it finds an error so does that."""
    framer = ReplyFramer()
    frames, wrong = run(framer, [raw])
    try:
        counted = count(raw, LINES)
    except ProtocolError:
        assert wrong is not None
        return
    if counted is not None:
        assert (counted, framer.partial, wrong) == (len(frames), 0, None)


def converse(faults, said, sizes, *, fast):
    """Have both sides say it, piece by piece, and then hang up: what each has heard."""
    talk = Talk(faults, max_buffer=2000)
    talk.fast = fast
    heard = {"client": b"", "upstream": b""}
    sides = {"client": talk.client, "upstream": talk.upstream}
    for side, raw in said:
        for piece in pieces(raw, sizes):
            conversation = talk.conversation
            if talk.conversation._line.closed:
                break
            # Who holds as much as it may is not read: that is all that bounds it.
            paused = (
                conversation.client_paused if side == "client" else conversation.upstream_paused
            )
            if paused:
                talk.wait(10)
            if not (
                conversation.client_paused if side == "client" else conversation.upstream_paused
            ):
                sides[side](piece)
            assert talk.conversation.buffered <= 2 * 2000 + 2 * 65536 + 40_000
            for name in heard:
                heard[name] += talk.heard(name)
    talk.wait(10)
    talk.upstream_eof()
    talk.wait(100)
    for name in heard:
        heard[name] += talk.heard(name)
    events = [(event.fault, event.command, event.told, event.applied) for event in talk.events()]
    return heard, events


SAID = st.lists(
    st.tuples(st.just("client"), REQUEST_BYTES) | st.tuples(st.just("upstream"), REPLY_BYTES),
    max_size=6,
)


@properties.of(150, faults=FAULTS, said=SAID, sizes=SIZES)
def conversations(faults, said, sizes):
    """Nothing raises, and the fast lane makes no difference: not in what is heard, nor in what is written down."""
    assert converse(faults, said, sizes, fast=True) == converse(faults, said, sizes, fast=False)


@properties.of(200, said=SAID, sizes=SIZES)
def calm_conversations(said, sizes):
    """Without a fault every byte passes, whatever it is."""
    heard, _ = converse("", said, sizes, fast=True)
    sent = {side: b"".join(raw for each, raw in said if each == side) for side in heard}
    assert sent["client"].startswith(heard["upstream"])
    assert sent["upstream"].startswith(heard["client"])
    if b"SYNC" not in sent["client"]:
        assert heard["upstream"] == sent["client"]


test_quickly, test_for_minutes = properties.tests()
