"""Requests: cut where servers cut them, in whatever pieces they arrive, held or passed through."""

import tracemalloc
from random import Random

import pytest

from chaosproxy.core import resp
from chaosproxy.core.resp import KEEP, KEEP_ALL, RequestFramer, encode_bulk, encode_command
from chaosproxy.core.syntax import INLINE, ProtocolError
from tests.framing import drain, every_cut, measured, pieces, run
from tests.wire import Wire, decode

PING = b"*1\r\n$4\r\nPING\r\n"

ARRAY, LINE = False, True

#: Frames in order: the bytes of each, its arguments, and whether it is an inline command.
STREAMS = {
    "array": [(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", [b"GET", b"k"], ARRAY)],
    "two": [(PING, [b"PING"], ARRAY), (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", [b"ECHO", b""], ARRAY)],
    "empty name": [(b"*1\r\n$0\r\n\r\n", [b""], ARRAY)],
    "longer headers": [
        (encode_command(b"SET", b"k" * 10, b"v" * 100), [b"SET", b"k" * 10, b"v" * 100], ARRAY)
    ],
    "ten arguments": [(encode_command(*[b"a"] * 10), [b"a"] * 10, ARRAY)],
    "a frame inside a value": [(encode_command(b"ECHO", PING), [b"ECHO", PING], ARRAY)],
    "inline": [(b"PING\n", [b"PING"], LINE), (b"ECHO \t'a b'\r\n", [b"ECHO", b"a b"], LINE)],
    "mixed": [
        (b"PING\r\n", [b"PING"], LINE),
        (PING, [b"PING"], ARRAY),
        (b"GET $1\n", [b"GET", b"$1"], LINE),
    ],
    "nobody looks behind a CR": [(b"*1\rX$4\rYPING\rZ", [b"PING"], ARRAY)],
    "nobody looks behind a value": [
        (b"*1\r\n$4\r\nPINGxx", [b"PING"], ARRAY),
        (PING, [b"PING"], ARRAY),
    ],
    "blanks before": [
        (b"\r\n*0\r\n*-1\r\n" + PING, [b"PING"], ARRAY),
        (b"*-10\r\n \t \n\nGET k\r\n", [b"GET", b"k"], LINE),
    ],
}

#: What makes no command and gets no reply.
BLANKS = [
    b"\r\n",
    b"\n",
    b" \t \r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-10\r\n",
    b"*-9223372036854775808\r\n",
]

#: What no server takes as a command.
NONSENSE = [
    *(b"*abc\r\n", b"*\r\n", b"*01\r\n", b"*+1\r\n", b"*-0\r\n", b"*9223372036854775808\r\n"),
    *(b"*1\r\nPING\r\n", b"*1\r\n:4\r\n", b"*1\r\n\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n"),
    *(b"*1\r\n$-1\r\n", b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$\r\n", b"*2\r\n$4\r\nPING\r\n$x\r\n"),
    *(b"*" + b"1" * 30, b"*1\r\n$" + b"1" * 30, b"*\0001\r\n"),
    *(b'ECHO "a\r\n', b"ECHO a'\r\n", b"PING\0\r\n", b"ECHO \0", b"ECHO '\xff'\n"),
]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("behind", [b"", b"*1\r\n$4\r\nPIN", b"PIN", b"\r", b"*"])
def test_frames(stream, behind):
    """The same frames come out whole, byte by byte, split anywhere, and with more behind them."""
    for cut in every_cut(b"".join(raw for raw, _, _ in stream) + behind):
        framer = RequestFramer()
        frames, error = run(framer, cut)
        assert [(frame.raw, frame.args, frame.inline) for frame in frames] == stream
        assert all(frame.whole for frame in frames)
        assert (error, framer.partial, framer.started) == (None, len(behind), behind != b"")
        assert framer.rest() == behind


@pytest.mark.parametrize("blank", BLANKS)
def test_what_makes_no_command(blank):
    """It is no frame and starts none; it goes in front of the next one, or alone if none comes."""
    for cut in every_cut(blank):
        framer = RequestFramer()
        assert run(framer, cut) == ([], None)
        assert (framer.partial, framer.started, framer.name) == (len(blank), False, None)
        assert framer.size_hint() == 0
        framer.feed(PING)
        [frame] = drain(framer)[0]
        assert (frame.raw, frame.whole) == (blank + PING, True)
        run(framer, cut)
        assert framer.cut_through() == blank
        assert framer.partial == 0
        assert [(f.raw, f.whole) for f in run(framer, [PING])[0]] == [(PING, True)]


@pytest.mark.parametrize("blank", BLANKS)
def test_what_makes_no_command_is_handed_out_by_the_piece(blank):
    """Until its end is seen it may be a frame; that it was handed out is not the next frame's matter."""
    framer = RequestFramer()
    for at in range(len(blank)):
        framer.feed(blank[at : at + 1])
        assert framer.next() is None
        assert framer.started == (at < len(blank) - 1)
        assert framer.cut_through() == blank[at : at + 1]
    assert [(f.raw, f.whole) for f in run(framer, [PING])[0]] == [(PING, True)]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense(nonsense):
    """Frames before it come out, then it is refused for good, and none of its bytes is lost."""
    for cut in every_cut(PING + b"\r\n" + nonsense + b"more"):
        framer = RequestFramer()
        frames, error = run(framer, cut)
        assert [frame.args for frame in frames] == [[b"PING"]]
        assert error
        framer.feed(b"and more")
        with pytest.raises(ProtocolError) as caught:
            framer.next()
        assert caught.value.text == str(caught.value) == error
        expected = b"\r\n" + nonsense + b"moreand more"
        assert framer.partial == len(expected)
        # As good as rest(): nothing is watched any more.
        assert framer.cut_through() == expected
        framer.feed(PING)
        assert framer.rest() == PING


def test_nonsense_behind_a_frame_that_was_cut_through():
    """What was handed out is not handed out again."""
    framer = RequestFramer()
    run(framer, [b"*3\r\n$3\r\nSET\r\n$1"])
    assert framer.cut_through() == b"*3\r\n$3\r\nSET\r\n$1"
    assert run(framer, [b"\r\nk\r\n$x\r\n"]) == ([], "invalid length behind b'$'")
    assert framer.rest() == b"\r\nk\r\n$x\r\n"


def test_longest_inline_command():
    """An inline command is understood as long as every server takes it, however it arrives."""
    line = b"ECHO " + b"x" * (INLINE - 5)
    for data in ([line + b"\n"], [line, b"\n"], pieces(line + b"\n", 1000)):
        frames, error = run(RequestFramer(), data)
        assert ([frame.raw for frame in frames], error) == ([line + b"\n"], None)
    for data in ([line + b"x\n"], [line + b"x"], [line, b"x\n"], pieces(line + b"x\n", 1000)):
        framer = RequestFramer()
        assert run(framer, data) == ([], "an inline command with a NUL or without an end")
        assert framer.rest()[: len(line)] == line


def test_the_unfinished_frame():
    """As its bytes come, its name and its least size become known."""
    framer = RequestFramer()
    seen = []
    for piece in (b"*3", b"\r\n", b"$3\r\nSE", b"T\r\n$", b"2\r\nkk", b"\r\n$5000\r", b"\n", b"1"):
        framer.feed(piece)
        assert framer.next() is None
        seen.append((framer.name, framer.size_hint(), framer.partial))
    assert seen == [
        (None, 2, 2),
        (None, 4 + 3 * 6, 4),
        (None, 4 + 9 + 2 * 6, 10),
        (b"SET", 13 + 2 * 6, 14),
        (b"SET", 13 + 8 + 6, 19),
        (b"SET", 21 + 6, 27),
        (b"SET", 21 + 7 + 5002, 28),
        (b"SET", 21 + 7 + 5002, 29),
    ]
    framer.feed(b"1" * 4999 + b"\r\nGET k")
    [frame] = drain(framer)[0]
    assert (frame.args, frame.whole) == ([b"SET", b"kk", b"1" * 5000], True)
    assert (framer.name, framer.size_hint(), framer.partial, framer.started) == (None, 5, 5, True)


def test_cut_through():
    """A frame that passes is still a frame: what is left of it, and that some of it is gone."""
    framer = RequestFramer()
    out = b""
    request = encode_command(b"SET", b"key", b"v" * (KEEP + 1), b"EX", b"10")
    for piece in pieces(b"\r\n" + request[:-3], 7):
        framer.feed(piece)
        assert framer.next() is None
        assert framer.size_hint() <= len(request)
        out += framer.cut_through()
        assert framer.partial == 0
        assert framer.started == (len(out) > 2)
    assert out == b"\r\n" + request[:-3]
    assert framer.name == b"SET"
    framer.feed(request[-3:] + request)
    passed, whole = drain(framer)[0]
    assert (passed.raw, passed.whole) == (request[-3:], False)
    assert passed.args == [b"SET", b"key", None, b"EX", b"10"]
    assert (whole.raw, whole.whole) == (request, True)
    assert whole.args == [b"SET", b"key", b"v" * (KEEP + 1), b"EX", b"10"]
    assert framer.cut_through() == b""


def test_frames_cut_through_in_a_row():
    """What one frame did not keep is no matter of the next."""
    framer = RequestFramer()
    first = encode_command(*[b"x" * KEEP] * (KEEP_ALL // KEEP + 1))
    second = encode_command(b"SET", b"k", b"v" * (KEEP + 1), b"NX")
    for request, kept in ((first, [b"x" * KEEP] * (KEEP_ALL // KEEP)), (second, [b"SET", b"k"])):
        run(framer, [request[:-1]])
        assert framer.cut_through() == request[:-1]
        [frame] = run(framer, [request[-1:]])[0]
        assert frame.args == [*kept, None, *([b"NX"] if request == second else [])]


def test_the_size_of_what_passes():
    """The least size of a frame does not shrink by what is handed out of it."""
    framer = RequestFramer()
    request = encode_command(b"SET", b"k", b"v" * 10_000)
    for piece in pieces(request[:-2], 999):
        framer.feed(piece)
        assert framer.next() is None
        framer.cut_through()
        assert framer.size_hint() == len(request)
    assert framer.size_hint() == len(request)


@pytest.mark.parametrize("size", [0, 1, KEEP - 1, KEEP, KEEP + 1, 2 * KEEP])
@pytest.mark.parametrize("at", [-1, 0, 1, 3])
def test_what_is_kept_of_a_frame_cut_through(size, at):
    """Arguments up to KEEP bytes, whether they came before the first cut, over it or after it."""
    request = encode_command(b"SET", b"k" * size, b"v" * size)
    cut = max(4, len(encode_command(b"SET", b"k" * size)) + at)
    framer = RequestFramer()
    run(framer, [request[:cut]])
    out = framer.cut_through()
    [frame] = run(framer, [request[cut:]])[0]
    assert out + frame.raw == request
    kept = size <= KEEP
    assert frame.args == [b"SET", b"k" * size if kept else None, b"v" * size if kept else None]


def test_a_cut_where_nothing_is_left_to_come_but_the_end():
    """The two bytes behind a value are all that is missing, and then come one by one."""
    framer = RequestFramer()
    run(framer, [b"*1\r\n" + encode_bulk(b"x" * 5000)[:-2]])
    assert len(framer.cut_through()) == 4 + 7 + 5000
    assert run(framer, [b"\r"]) == ([], None)
    [frame] = run(framer, [b"\n"])[0]
    assert (frame.args, frame.raw, frame.whole) == ([None], b"\r\n", False)


def test_an_inline_command_cut_through():
    """A line is cut through as well, and split when its end has come."""
    framer = RequestFramer()
    run(framer, [b"ECHO 'a"])
    assert framer.cut_through() == b"ECHO 'a"
    assert (framer.name, framer.size_hint()) == (None, 7)
    [frame] = run(framer, [b" b'\r\nPI"])[0]
    assert (frame.args, frame.raw, frame.whole) == ([b"ECHO", b"a b"], b" b'\r\n", False)
    assert framer.rest() == b"PI"


def test_a_large_value_passes_in_little_memory():
    """64 MB go by in a few reads' worth of memory."""
    size = 64 * 1024 * 1024
    read = b"x" * 65536

    def data():
        yield b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % size
        for _ in range(size // len(read)):
            yield bytes(bytearray(read))  # each read is an object of its own
        yield b"\r\n"

    [frame], out, peak = measured(RequestFramer(), data())
    assert frame.args == [b"SET", b"k", None]
    assert out == len(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n\r\n" % size) + size
    assert peak < 1_000_000


def test_many_values_pass_in_little_memory():
    """None of 2,000 arguments is too large to keep; all of them are."""
    request = encode_command(*[b"x" * KEEP] * 2000)
    [frame], out, peak = measured(RequestFramer(), pieces(request, 65536))
    assert out == len(request)
    assert frame.args == [b"x" * KEEP] * (KEEP_ALL // KEEP) + [None] * (2000 - KEEP_ALL // KEEP)
    assert peak < 1_000_000


def test_a_large_value_held():
    """Nothing cut through: the frame is whole, with all that is in it."""
    request = b"\n" + encode_command(b"SET", b"k", Random(1).randbytes(8_000_000), b"NX")
    framer = RequestFramer()
    frames, _ = run(framer, pieces(request, 65536))
    assert [(frame.raw, frame.whole) for frame in frames] == [(request, True)]
    assert encode_command(*frames[0].args) == request[1:]


def test_a_count_alone_takes_no_memory():
    """A header promises 2^63 arguments: nothing is made ready for them."""
    framer = RequestFramer()
    tracemalloc.start()
    assert run(framer, [b"*9223372036854775807\r\n$9223372036854775807\r\n"]) == ([], None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000
    assert framer.size_hint() > 2**63
    assert framer.cut_through() == b"*9223372036854775807\r\n$9223372036854775807\r\n"


def test_peek():
    """The next frame can be seen before it is taken."""
    framer = RequestFramer()
    assert framer.peek() is None
    framer.feed(PING + b"PING\r\n*1")
    for inline in (False, True):
        seen = framer.peek()
        assert seen.inline is inline
        assert framer.next() is seen
    assert framer.peek() is None


def test_rest():
    """Going raw: frames not taken, what made no command, the unfinished frame; then no more frames."""
    data = PING + b"\r\n" + PING + b"*0\r\n*2\r\n$4\r\nECHO\r\n$3\r\na"
    framer = RequestFramer()
    framer.feed(data)
    assert framer.rest() == data
    assert (framer.partial, framer.started, framer.name, framer.size_hint()) == (0, False, None, 0)
    framer.feed(PING)
    assert framer.next() is None
    assert framer.partial == len(PING)
    assert framer.rest() == PING
    assert framer.rest() == b""


@pytest.mark.parametrize("seed", range(5))
def test_servers_see_the_same_commands(any_server, seed):
    """Each command that we see in a random mix, and nothing else, gets its answer from real servers."""
    random = Random(seed)
    kinds = [
        lambda: encode_command(b"ECHO", random.randbytes(random.randrange(40))),
        lambda: b"ECHO word%d\r\n" % random.randrange(1000),
        lambda: b"echo 'two\\'words' \n",
        lambda: encode_command(b"ECHO", b"$3\r\nfoo\r\n*1\r\n"),
        lambda: random.choice(BLANKS),
    ]
    data = b"".join(random.choice(kinds)() for _ in range(200)) + PING
    frames, _ = run(RequestFramer(), pieces(data, random.randrange(1, 100)))
    with Wire(any_server.port) as wire:
        wire.send_bytes(data, step=random.choice([0, 7]))
        *echoes, last = map(decode, wire.read(len(frames)))
        assert echoes == [frame.args[1] for frame in frames[:-1]]
        assert last == "PONG"
        assert wire.silent(0.05)


ENCODED = [
    (resp.encode_command(b"GET", b"k\r\n"), b"*2\r\n$3\r\nGET\r\n$3\r\nk\r\n\r\n"),
    (resp.encode_simple(b"OK"), b"+OK\r\n"),
    (resp.encode_simple(b"two\r\nlines"), b"+two  lines\r\n"),
    (resp.encode_error(b"ERR no"), b"-ERR no\r\n"),
    (resp.encode_error(b"ERR a\nb\r"), b"-ERR a b \r\n"),
    (resp.encode_integer(-12), b":-12\r\n"),
    (resp.encode_bulk(b""), b"$0\r\n\r\n"),
    (resp.encode_bulk(b"\r\n"), b"$2\r\n\r\n\r\n"),
    (resp.encode_null(2), b"$-1\r\n"),
    (resp.encode_null(2, "array"), b"*-1\r\n"),
    (resp.encode_null(3), b"_\r\n"),
    (resp.encode_null(3, "array"), b"_\r\n"),
    (resp.encode_array([]), b"*0\r\n"),
    (resp.encode_array([b":1\r\n", b"+a\r\n"]), b"*2\r\n:1\r\n+a\r\n"),
    (resp.encode_map(2, [(b"+a\r\n", b":1\r\n")]), b"*2\r\n+a\r\n:1\r\n"),
    (resp.encode_map(3, [(b"+a\r\n", b":1\r\n")]), b"%1\r\n+a\r\n:1\r\n"),
    (resp.encode_map(3, []), b"%0\r\n"),
]


@pytest.mark.parametrize(("encoded", "expected"), ENCODED)
def test_encoders(encoded, expected):
    """What we say ourselves, to the byte as servers say it."""
    assert encoded == expected
