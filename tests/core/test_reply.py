"""Replies: cut where they end, in whatever pieces they arrive; arrays taken apart."""

import tracemalloc
from dataclasses import replace
from time import process_time

import pytest

from chaosproxy.core.reply import HEAD, LINE, ReplyFrame, ReplyFramer, elements
from chaosproxy.core.resp import encode_array, encode_bulk, encode_command
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode
from tests.framing import drain, every_cut, measured, pieces, run
from tests.wire import Wire


def frame(raw: bytes, head: bytes | None = None, *, value: int = 0) -> ReplyFrame:
    """The frame that these bytes are; its value begins at `value`."""
    return ReplyFrame(raw, raw[value], head, raw[value:].partition(b"\r\n")[0], True)


PUSH = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n\r\n\r\n"
SUBSCRIBED = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
ATTRIBUTE = b"|1\r\n+ttl\r\n*2\r\n:1\r\n%1\r\n+a\r\n_\r\n"

LINES = [
    b"+OK\r\n",
    b"+\r\n",
    b"-ERR x\r\n",
    b":-5\r\n",
    b"_\r\n",
    b"#t\r\n",
    b",1.5\r\n",
    b"(1234\r\n",
]
BLOBS = [
    *(b"$0\r\n\r\n", b"$3\r\nabc\r\n", b"$10\r\n" + b"\r\n" * 5 + b"\r\n", b"$-1\r\n"),
    *(b"$100\r\n" + b"x" * 100 + b"\r\n", b"=7\r\ntxt:abc\r\n", b"!5\r\nERR x\r\n", b"$3\r\nabcxx"),
]
AGGREGATES = [
    frame(b"*0\r\n"),
    frame(b"*-1\r\n"),
    frame(b"~1\r\n:1\r\n"),
    frame(b"%1\r\n+a\r\n:1\r\n", b"a"),
    frame(b"%0\r\n"),
    frame(b"*2\r\n:1\r\n$-1\r\n"),
    frame(b"*2\r\n$5\r\nfirst\r\n$1\r\n2\r\n", b"first"),
    frame(b"*1\r\n$0\r\n\r\n", b""),
    frame(b"*1\r\n$-1\r\n"),
    frame(b"*1\r\n$63\r\n" + b"x" * 63 + b"\r\n", b"x" * 63),
    frame(b"*1\r\n$64\r\n" + b"x" * 64 + b"\r\n"),
    frame(b"*1\r\n+" + b"x" * 63 + b"\r\n", b"x" * 63),
    frame(b"*1\r\n+" + b"x" * 64 + b"\r\n"),
    frame(b"*1\r\n=5\r\ntxt:x\r\n"),
    frame(b"*1\r\n-ERR\r\n"),
    frame(b"*2\r\n*1\r\n+in\r\n+out\r\n"),
    frame(b"*2\r\n*0\r\n*-1\r\n"),
    frame(b"*1\r\n" * 200 + b":1\r\n"),
    frame(b"*12\r\n" + b":1\r\n" * 12),
    frame(PUSH, b"message"),
    frame(SUBSCRIBED, b"subscribe"),
    frame(b">0\r\n"),
    frame(ATTRIBUTE + b"+OK\r\n", value=len(ATTRIBUTE)),
    frame(ATTRIBUTE * 2 + b"$2\r\nab\r\n", value=2 * len(ATTRIBUTE)),
    frame(b"|0\r\n*1\r\n+a\r\n", b"a", value=4),
    frame(b"*2\r\n" + ATTRIBUTE + b"+a\r\n:2\r\n"),
    frame(b"*2\r\n+a\r\n" + ATTRIBUTE + b":2\r\n", b"a"),
]
#: Pushes inside replies: no element, unless they confirm a subscription or its end.
ASIDE = [
    frame(b"*2\r\n:1\r\n" + PUSH + b":2\r\n"),
    frame(b"*1\r\n" + PUSH + PUSH + b":2\r\n"),
    frame(b"*1\r\n>0\r\n>1\r\n:1\r\n>1\r\n*1\r\n$9\r\nsubscribe\r\n:2\r\n"),
    frame(b"*1\r\n>1\r\n$10\r\nsubscribes\r\n:2\r\n"),
    frame(b"*2\r\n:1\r\n*1\r\n" + PUSH + b":2\r\n"),
    frame(b"*1\r\n" + SUBSCRIBED),
    frame(b"*2\r\n+a\r\n" + SUBSCRIBED.replace(b"$9\r\n", b"+"), b"a"),
    frame(b"*2\r\n" + SUBSCRIBED.replace(b"$9\r\n", b"$12\r\npun") + PUSH + b":1\r\n"),
]
ALL = [*map(frame, LINES), *map(frame, BLOBS), *AGGREGATES, *ASIDE]


def ident(value):
    return repr(value.raw)[2:42] if isinstance(value, ReplyFrame) else None


@pytest.mark.parametrize("expected", ALL, ids=ident)
@pytest.mark.parametrize("behind", [b"", b"+OK", b"$3\r\na", b"*"])
def test_a_frame(expected, behind):
    """The same frame comes out whole, byte by byte, split anywhere, and with more behind it."""
    for cut in every_cut(expected.raw + behind):
        framer = ReplyFramer()
        assert run(framer, cut) == ([expected], None)
        assert framer.partial == len(behind)
        assert framer.started == (behind != b"")
        assert framer.kind == (behind[0] if behind else None)
        assert framer.rest() == behind


def test_frames_in_a_row():
    """What one frame was leaves no trace in the next."""
    data = b"".join(each.raw for each in ALL)
    for size in (1, 2, 3, 7, 64, len(data)):
        assert run(ReplyFramer(), pieces(data, size)) == (ALL, None)


NONSENSE = [
    *(b"P", b"\r\n", b"\0", b";3\r\nabc\r\n", b".\r\n", b"$?\r\n", b"*?\r\n", b"%?\r\n"),
    *(b"$abc\r\n", b"$\r\n", b"$01\r\n", b"$-2\r\n", b"*-2\r\n", b"|-1\r\n", b"$" + b"1" * 30),
    *(b"*2\r\n+a\r\nX", b"*1\r\n" + PUSH + b"*x\r\n", b"*9223372036854775808\r\n"),
    b"$9223372036854775808\r\n",
]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense(nonsense):
    """Frames before it come out, then it is refused for good, and none of its bytes is lost."""
    for cut in every_cut(b"+OK\r\n" + nonsense + b"more"):
        framer = ReplyFramer()
        frames, error = run(framer, cut)
        assert [each.raw for each in frames] == [b"+OK\r\n"]
        assert error
        framer.feed(b"and more")
        with pytest.raises(ProtocolError) as caught:
            framer.next()
        assert caught.value.text == error
        assert framer.partial == len(nonsense) + 12
        # As good as rest(): nothing is watched any more.
        assert framer.cut_through() == nonsense + b"moreand more"
        framer.feed(b"+OK\r\n")
        assert framer.rest() == b"+OK\r\n"


def test_the_kind_of_an_unfinished_frame():
    """Known with the value's first byte; an attribute says nothing of it."""
    framer = ReplyFramer()
    seen = []
    for byte in pieces(b"|1\r\n+a\r\n+b\r\n|0\r\n*2\r\n:1\r\n$3\r\nabc\r\n", 1):
        framer.feed(byte)
        seen.append(framer.kind)
    at = len(b"|1\r\n+a\r\n+b\r\n|0\r\n")
    assert seen == [None] * at + [ord("*")] * (len(seen) - at - 1) + [None]


@pytest.mark.parametrize("expected", ALL, ids=ident)
def test_cut_through(expected):
    """A frame that passes is still a frame: what is left of it, and that some of it is gone."""
    for cut in every_cut(expected.raw):
        framer = ReplyFramer()
        out = b""
        for piece in cut[:-1]:
            framer.feed(piece)
            assert framer.next() is None
            out += framer.cut_through()
            assert framer.partial == 0
            assert framer.started
        framer.feed(cut[-1] + b"+OK\r\n")
        passed, whole = drain(framer)[0]
        assert out + passed.raw == expected.raw
        assert passed.whole == (out == b"")
        assert passed == replace(expected, raw=passed.raw, whole=passed.whole)
        assert whole == frame(b"+OK\r\n")
        assert framer.cut_through() == b""


def test_nonsense_behind_a_frame_that_was_cut_through():
    """What was handed out is not handed out again."""
    framer = ReplyFramer()
    run(framer, [b"*2\r\n$1"])
    assert framer.cut_through() == b"*2\r\n$1"
    assert run(framer, [b"\r\nk\r\n$x\r\n"])[1] == "invalid length behind b'$'"
    assert framer.rest() == b"\r\nk\r\n$x\r\n"


@pytest.mark.parametrize("behind", [b"", b"*"])
@pytest.mark.parametrize("size", [LINE - 1, LINE, LINE + 1, 3 * LINE])
@pytest.mark.parametrize("step", [1000, LINE, LINE + 1])
@pytest.mark.parametrize("stop", [b"x", b"\r"])
def test_a_long_line(size, behind, step, stop):
    """A line of any length is a frame; its header is cut off, its end found wherever it is split."""
    text = b"-" + (b"x" * 999 + stop) * (size // 1000 + 1)
    for line in (text[:size] + b"\r\n", text[: size - 1] + b"\r\r\n"):
        framer = ReplyFramer()
        expected = ReplyFrame(line, ord("-"), None, line[:-2][:LINE], True)
        assert run(framer, pieces(line + behind, step)) == ([expected], None)
        assert framer.rest() == behind
        inside = b"*2\r\n%s:1\r\n" % line
        assert run(ReplyFramer(), pieces(inside, step)) == ([frame(inside)], None)


@pytest.mark.parametrize("end", [(b"\r", b"\n"), (b"\r", b"\r", b"\n"), (b"\r", b"", b"\n")])
@pytest.mark.parametrize("cut", [False, True])
def test_the_end_of_a_long_line_in_pieces(end, cut):
    """The end of a line that is not held is found in whatever pieces it comes."""
    framer = ReplyFramer()
    out = b""
    for piece in (b"+" + b"x" * LINE, b"xxx" + end[0], *end[1:-1]):
        assert run(framer, [piece]) == ([], None)
        out += framer.cut_through() if cut else b""
    [passed] = run(framer, [end[-1]])[0]
    assert out + passed.raw == b"+" + b"x" * (LINE + 3) + b"".join(end)
    assert passed.whole is not cut


@pytest.mark.parametrize("header", [b"$67108864\r\n", b"*2\r\n$67108864\r\n", b"+"])
def test_a_large_reply_passes_in_little_memory(header):
    """64 MB go by in a few reads' worth of memory, be they a value or a line."""
    size = 64 * 1024 * 1024
    read = b"x" * 65536

    def data():
        yield header
        for _ in range(size // len(read)):
            yield bytes(bytearray(read))  # each read is an object of its own
        yield b"\r\n" + (b":1\r\n" if header[:1] == b"*" else b"")

    [passed], out, peak = measured(ReplyFramer(), data())
    assert out == sum(map(len, data()))
    assert (passed.kind, passed.whole) == (header[0], False)
    assert peak < 1_000_000


def test_a_count_alone_takes_no_memory():
    """A header promises 2^63 elements: nothing is made ready for them."""
    framer = ReplyFramer()
    tracemalloc.start()
    assert run(framer, [b"*9223372036854775807\r\n%9223372036854775807\r\n"]) == ([], None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000


def test_any_depth():
    """Arrays inside arrays take no more than a counter."""
    deep = b"*1\r\n" * 200_000 + b":1\r\n"
    assert run(ReplyFramer(), pieces(deep, 65536)) == ([frame(deep)], None)
    assert elements(deep)[1] == [deep[4:]]


def test_rest():
    """Going raw: frames not taken, the unfinished frame; then no more frames."""
    data = b"+OK\r\n" * 2 + b"*2\r\n+a\r\n$3\r\na"
    framer = ReplyFramer()
    framer.feed(data)
    assert framer.rest() == data
    assert (framer.partial, framer.started, framer.kind) == (0, False, None)
    framer.feed(b"+OK\r\n")
    assert framer.next() is None
    assert framer.partial == 5
    assert framer.rest() == b"+OK\r\n"
    assert framer.rest() == b""


ELEMENTS = [
    (b"*0\r\n", b"*0\r\n", [], []),
    (b"*-1\r\n", b"*-1\r\n", [], []),
    (b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", b"*2\r\n", [b":1\r\n", b"*1\r\n$1\r\na\r\n"], []),
    (b"%1\r\n+a\r\n~0\r\n", b"%1\r\n", [b"+a\r\n", b"~0\r\n"], []),
    (PUSH, b">3\r\n", [b"$7\r\nmessage\r\n", b"$1\r\nc\r\n", b"$2\r\n\r\n\r\n"], []),
    (b"*2\r\n:1\r\n%s:2\r\n" % PUSH, b"*2\r\n", [b":1\r\n", b":2\r\n"], [PUSH]),
    (b"*2\r\n" + SUBSCRIBED + PUSH + b":2\r\n", b"*2\r\n", [SUBSCRIBED, b":2\r\n"], [PUSH]),
    (ATTRIBUTE + b"*1\r\n:1\r\n", ATTRIBUTE + b"*1\r\n", [b":1\r\n"], []),
    (ATTRIBUTE + b"|0\r\n*0\r\n", ATTRIBUTE + b"|0\r\n*0\r\n", [], []),
    (b"*1\r\n" + ATTRIBUTE + b":1\r\n", b"*1\r\n", [ATTRIBUTE + b":1\r\n"], []),
]


@pytest.mark.parametrize(("raw", "header", "parts", "pushes"), ELEMENTS)
def test_elements(raw, header, parts, pushes):
    """Header, elements and what stands between them, and no byte is in two of them or in none."""
    assert elements(raw) == (header, parts, pushes)
    assert sorted(header + b"".join(parts + pushes)) == sorted(raw)


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"+OK\r\n", b"$1\r\na\r\n", b"*1\r\n", b"*1\r", b"*1\r\n:1\r\n:2\r\n", b"*1\r\n:1"),
        *(
            b"*0\r\n:1\r\n",
            b"*x\r\n",
            b"*1\r\nx",
            b"|1\r\n+a\r\n+b\r\n:1\r\n",
            b"|",
            b"|0\r\n",
            b"|0\r\n*1",
            b"|1\r\n+a\r\n",
        ),
        *(b"%1\r\n+a\r\n", b"*-1\r\n:1\r\n", b"*1\r\n" + PUSH, b"?"),
    ],
)
def test_no_elements(raw):
    """Only one whole aggregate can be taken apart."""
    with pytest.raises(ProtocolError):
        elements(raw)


def test_exec_with_pushes_inside(any_server):
    """What real servers do: pushes stand inside EXEC's array or behind it, confirmations count as elements."""
    with Wire(any_server.port, resp=3) as wire:
        wire.raw("SUBSCRIBE", "c")
        commands = [("MULTI",), ("PING",), ("PUBLISH", "c", "x"), ("SUBSCRIBE", "d"), ("EXEC",)]
        wire.send_bytes(b"".join(encode_command(*map(str.encode, each)) for each in commands))
        framer = ReplyFramer()
        frames = []
        while len(frames) < 5 or frames[-1].head == b"subscribe":
            framer.feed(wire.socket.recv(10))
            frames += drain(framer)[0]
        inside = any_server.version < (8,)
        header, parts, pushes = elements(frames[4].raw)
        assert header == b"*3\r\n"
        assert [part[:1] for part in parts] == [b"+", b":", b">"]
        message = encode_array([*map(encode_bulk, (b"message", b"c", b"x"))]).replace(b"*", b">")
        assert pushes == ([message] if inside else [])
        assert decode(frames[4].raw) == [b"PONG", 1, [b"subscribe", b"d", 2]]
        while not inside and len(frames) < 6:
            framer.feed(wire.socket.recv(10))
            frames += drain(framer)[0]
        assert [each.raw for each in frames[5:]] == ([] if inside else [message])
        assert framer.partial == 0


def test_head_is_short():
    """The framer rests on it: a line that is not held to its end is no head."""
    assert HEAD < LINE


def test_many_attributes_ahead():
    """A server that begins a reply with any number of attributes keeps nobody busy: each is looked at once."""
    count = 20_000
    ahead = b"|1\r\n+a\r\n+b\r\n" * count
    began = process_time()
    header, parts, pushes = elements(ahead + b"*2\r\n:1\r\n:2\r\n")
    assert process_time() - began < 20
    assert (header, parts, pushes) == (ahead + b"*2\r\n", [b":1\r\n", b":2\r\n"], [])


def test_deep_nesting():
    """Ten thousand deep is one reply like any other, of every kind that has something inside."""
    # A push inside another one is none of its elements, and an attribute is about one more value.
    for kind, values in (
        (b"*1\r\n", 1),
        (b"~1\r\n", 1),
        (b"%1\r\n+k\r\n", 1),
        (b">1\r\n", 10_000),
        (b"|1\r\n+a\r\n", 10_001),
    ):
        raw = kind * 10_000 + b":1\r\n" * values
        (frame,), error = run(ReplyFramer(), pieces(raw, 1000))
        assert (frame.raw, error) == (raw, None)
