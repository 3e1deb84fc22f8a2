"""What holds for all requests and replies: any pieces, any cuts, any nonsense, and hiredis agrees.

hiredis is the other opinion: of requests it understands arrays of bulk strings, of replies all but
attributes, blob errors and pushes inside replies.
"""

from itertools import cycle
from unittest.mock import patch

import hiredis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chaosproxy.core import reply, syntax
from chaosproxy.core.reply import ReplyFramer, elements
from chaosproxy.core.resp import KEEP, RequestFramer, encode_bulk, encode_command
from chaosproxy.core.syntax import CONFIRMATIONS, WIDTH, ProtocolError, split_words
from chaosproxy.core.value import ErrorReply, decode
from tests.framing import drain, pieces, run

# How long one example takes, or is thought up, says nothing on a busy machine.
checked = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
seldom = settings(checked, max_examples=50)
often = settings(checked, max_examples=1000)

# --- what may come, as (raw, what it says) ------------------------------------------------------

BLANKS = st.lists(st.sampled_from([b"\r\n", b"\n", b" \t\r\n", b"*0\r\n", b"*-1\r\n"]), max_size=2)
SIZES = st.sampled_from([9, 10, 99, 100, 999, 1000, KEEP, KEEP + 1])
DATA = st.one_of(*[st.binary(max_size=12)] * 4, SIZES.map(lambda size: b"x" * size))
ARRAYS = st.lists(DATA, min_size=1, max_size=12).map(lambda args: (encode_command(*args), args))
WORDS = st.lists(st.from_regex(rb"[a-z0-9$:+-]{1,9}", fullmatch=True), min_size=1, max_size=4)
LINES = WORDS.map(lambda words: (b" ".join(words) + b"\r\n", words))


@st.composite
def requests(draw):
    """Requests in a row, and bytes between them that make none."""
    raw, args = draw(ARRAYS | LINES)
    return b"".join(draw(BLANKS)) + raw, args


TEXT = st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=70).map(str.encode)
LEAVES = st.one_of(
    TEXT.map(lambda text: (b"+%s\r\n" % text, text)),
    TEXT.map(lambda text: (b"-%s\r\n" % text, ErrorReply(text))),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: (b":%d\r\n" % n, n)),
    st.floats(allow_nan=False).map(lambda n: (b",%s\r\n" % repr(n).encode(), n)),
    st.booleans().map(lambda flag: (b"#%c\r\n" % b"ft"[flag], flag)),
    st.sampled_from([b"$-1\r\n", b"*-1\r\n", b"_\r\n"]).map(lambda raw: (raw, None)),
    DATA.map(lambda data: (encode_bulk(data), data)),
    DATA.map(lambda data: (b"=%d\r\ntxt:%s\r\n" % (len(data) + 4, data), data)),
)


def aggregate(kind, parts):
    return b"%s%d\r\n%s" % (kind, len(parts), b"".join(raw for raw, _ in parts))


def inside(values):
    """Arrays, sets and maps; a map's keys can be a dict's, and none comes twice."""
    lists = st.lists(values, max_size=5)
    return st.one_of(
        lists.map(lambda parts: (aggregate(b"*", parts), [value for _, value in parts])),
        lists.map(lambda parts: (aggregate(b"~", parts), [value for _, value in parts])),
        lists.map(
            lambda parts: (
                aggregate(b"%", [(b":%d\r\n%s" % (n, raw), 0) for n, (raw, _) in enumerate(parts)]),
                [(n, value) for n, (_, value) in enumerate(parts)],
            )
        ),
    )


#: Replies that hiredis understands.
REPLIES = st.recursive(LEAVES, inside, max_leaves=20)
ATTRIBUTES = REPLIES.map(lambda reply: b"|1\r\n+about\r\n" + reply[0])
PUSHES = REPLIES.map(lambda reply: b">2\r\n+invalidate\r\n" + reply[0])
CONFIRMED = st.sampled_from(sorted(CONFIRMATIONS)).map(
    lambda kind: (b">3\r\n%s$1\r\nc\r\n:1\r\n" % encode_bulk(kind), [kind, b"c", 1])
)


@st.composite
def extended(draw, depth=2):
    """A reply as servers may send it: attributes before values, pushes between elements."""
    attributes = b"".join(draw(st.lists(ATTRIBUTES, max_size=1)))
    if not depth:
        raw, value = draw(REPLIES)
        return attributes + raw, value
    parts, raws = [], []
    for part in draw(st.lists(extended(depth=depth - 1) | CONFIRMED, max_size=3)):
        raws += [*draw(st.lists(PUSHES, max_size=1)), part[0]]
        parts.append(part[1])
    return attributes + b"*%d\r\n%s" % (len(parts), b"".join(raws)), parts


#: The size of each piece, and whether what is unfinished is cut through behind it; over and over.
PLANS = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 7, 60, 500, 5000]), st.booleans()), min_size=1, max_size=9
)

#: Bytes that look like frames, and are most often none.
SOUP = st.lists(
    st.sampled_from(
        [
            *(b"*", b"$", b"%", b"~", b">", b"|", b"+", b"-", b":", b"_", b"=", b"!", b"#"),
            *(b"\r\n", b"\r", b"\n", b"0", b"1", b"2", b"3", b"-1", b"a", b"abc", b" ", b"'", b'"'),
            *(b"*1\r\n", b"*2\r\n", b"$3\r\nabc\r\n", b"+a\r\n", b">1\r\n", b"|1\r\n", b"$100\r\n"),
            *(
                b"$9\r\nsubscribe\r\n",
                b"+subscribe\r\n",
                b":1\r\n",
                b"\0",
                b"\xff",
                b"\\",
                b"\\x41",
            ),
            *(b"*1\r\n$4\r\nPING\r\n", b"x" * 70, b"PING\r\n"),
        ]
    ),
    max_size=40,
).map(b"".join)


def passed(framer, data, plan):
    """Feed by the plan; gives all frames, and checks that bytes come out as they went in."""
    frames = []
    out = b""
    fed = 0
    for size, cut in cycle(plan):
        framer.feed(data[fed : fed + size])
        fed += len(data[fed : fed + size])
        more, error = drain(framer)
        assert error is None
        frames += more
        out += b"".join(frame.raw for frame in more)
        assert len(out) + framer.partial == fed
        if cut:
            out += framer.cut_through()
            assert framer.partial == 0
        assert data.startswith(out)
        if fed == len(data):
            assert out == data
            return frames
    raise AssertionError


@checked
@given(st.lists(requests(), max_size=8), PLANS)
def test_requests_in_any_pieces_with_any_cuts(stream, plan):
    """The same commands, and every byte once; an argument is missing only where it may be."""
    data = b"".join(raw for raw, _ in stream)
    frames = passed(RequestFramer(), data, plan)
    assert len(frames) == len(stream)
    for frame, (raw, args) in zip(frames, stream, strict=True):
        for got, sent in zip(frame.args, args, strict=True):
            assert got == sent or (got is None and not frame.whole and len(sent) > KEEP)
        assert raw.endswith(frame.raw)
        assert frame.whole or frame.raw != raw


@checked
@given(st.lists(requests(), max_size=8), PLANS)
def test_requests_held(stream, plan):
    """Where nothing is cut through, frames are whole, to the byte."""
    data = b"".join(raw for raw, _ in stream)
    frames = passed(RequestFramer(), data, [(size, False) for size, _ in plan])
    assert [(frame.raw, frame.args, frame.whole) for frame in frames] == [
        (raw, args, True) for raw, args in stream
    ]


@checked
@given(st.lists(ARRAYS, max_size=8), PLANS)
def test_requests_as_hiredis_reads_them(stream, plan):
    """Arrays of bulk strings are the same commands to hiredis, fed with the same pieces."""
    data = b"".join(raw for raw, _ in stream)
    read = hiredis_reads(pieces(data, plan[0][0]))
    frames, _ = run(RequestFramer(), pieces(data, plan[0][0]))
    assert [frame.args for frame in frames] == read == [args for _, args in stream]


def hiredis_reads(data):
    """All values that hiredis reads of these pieces."""
    reader = hiredis.Reader(notEnoughData=...)
    values = []
    for piece in data:
        reader.feed(piece)
        while (value := reader.gets()) is not ...:
            values.append(value)
    return values


def from_hiredis(value):
    """Say what hiredis read in our words."""
    match value:
        case dict():
            return [(key, from_hiredis(item)) for key, item in value.items()]
        case list():
            return [from_hiredis(item) for item in value]
        case hiredis.ReplyError():
            return ErrorReply(str(value).encode())
        case _:
            return value


@seldom
@given(st.lists(REPLIES, max_size=8), PLANS)
def test_replies_as_hiredis_reads_them(stream, plan):
    """Every type that hiredis knows is the same frame and the same value to us."""
    data = b"".join(raw for raw, _ in stream)
    read = [from_hiredis(value) for value in hiredis_reads(pieces(data, plan[0][0]))]
    frames, error = run(ReplyFramer(), pieces(data, plan[0][0]))
    assert error is None
    assert [frame.raw for frame in frames] == [raw for raw, _ in stream]
    assert [decode(frame.raw) for frame in frames] == read == [value for _, value in stream]


@seldom
@given(st.lists(extended(), max_size=4), PLANS)
def test_replies_in_any_pieces_with_any_cuts(stream, plan):
    """Attributes and pushes inside or not: the same frames, and every byte once."""
    data = b"".join(raw for raw, _ in stream)
    whole = passed(ReplyFramer(), data, [(len(data) + 1, False)])
    assert [(frame.raw, frame.whole) for frame in whole] == [(raw, True) for raw, _ in stream]
    assert [decode(frame.raw) for frame in whole] == [value for _, value in stream]
    frames = passed(ReplyFramer(), data, plan)
    for frame, same in zip(frames, whole, strict=True):
        assert (frame.kind, frame.head, frame.header) == (same.kind, same.head, same.header)
        assert same.raw.endswith(frame.raw)
        assert frame.whole == (frame.raw == same.raw)


@checked
@given(extended())
def test_elements_are_replies(expected):
    """An array's parts are all of its bytes, and its elements say what it says."""
    raw, values = expected
    header, parts, pushes = elements(raw)
    assert len(header) + sum(map(len, parts + pushes)) == len(raw)
    assert raw.startswith(header)
    assert [decode(part) for part in parts] == values
    assert all(push.startswith(b">2\r\n+invalidate\r\n") for push in pushes)


@often
@given(SOUP | st.binary(max_size=60), PLANS)
@example(b"*1\r\n$5\r\n'", [(1, True)])
def test_nonsense_as_requests(data, plan):
    """Nothing but ProtocolError comes of it, the same in any pieces, and no byte is lost."""
    with patch.object(syntax, "INLINE", 60):
        whole = RequestFramer()
        expected, expected_error = run(whole, [data])
        framer = RequestFramer()
        frames, error = run(framer, pieces(data, plan[0][0]))
        assert (frames, error is None) == (expected, expected_error is None)
        rest = framer.rest()
        assert rest == whole.rest()
        assert b"".join(frame.raw for frame in frames) + rest == data
        through = RequestFramer()
        out = b""
        count = fed = 0
        for size, cut in cycle(plan):
            through.feed(data[fed : fed + size])
            fed += size
            more, _ = drain(through)
            count += len(more)
            out += b"".join(frame.raw for frame in more)
            assert through.size_hint() >= 0
            if cut:
                out += through.cut_through()
            if fed >= len(data):
                break
        assert out + through.rest() == data
        assert count == len(frames)


@often
@given(SOUP | st.binary(max_size=60), PLANS)
@example(b"*1\r\n>1\r\n|1\r\n+a\r\n+b\r\n$9\r\nsubscribe\r\n:1\r\n", [(1, True)])
def test_nonsense_as_replies(data, plan):
    """Nothing but ProtocolError comes of it, the same in any pieces, and no byte is lost."""
    with patch.object(reply, "LINE", reply.HEAD + 1):
        whole = ReplyFramer()
        expected, expected_error = run(whole, [data])
        framer = ReplyFramer()
        frames, error = run(framer, pieces(data, plan[0][0]))
        assert (frames, error is None) == (expected, expected_error is None)
        rest = framer.rest()
        assert rest == whole.rest()
        assert b"".join(frame.raw for frame in frames) + rest == data
        through = ReplyFramer()
        out = b""
        kinds = []
        fed = 0
        for size, cut in cycle(plan):
            through.feed(data[fed : fed + size])
            fed += size
            more, _ = drain(through)
            kinds += [(frame.kind, frame.head, frame.header) for frame in more]
            out += b"".join(frame.raw for frame in more)
            if cut:
                out += through.cut_through()
            if fed >= len(data):
                break
        assert out + through.rest() == data
        assert kinds == [(frame.kind, frame.head, frame.header) for frame in frames]
    for frame in frames:
        if frame.kind in WIDTH:
            header, parts, pushes = elements(frame.raw)
            assert len(header) + sum(map(len, parts + pushes)) == len(frame.raw)
        try:
            decode(frame.raw)
        except ProtocolError as refused:
            assert refused.text.endswith("has no value")  # noqa: PT017 - most have one


@checked
@given(st.lists(st.binary(max_size=9), min_size=1))
def test_quoted_words(words):
    """Any bytes can be said in an inline command, by their numbers."""
    quoted = (b'"%s"' % b"".join(b"\\x%02x" % byte for byte in word) for word in words)
    assert split_words(b" ".join(quoted)) == words
