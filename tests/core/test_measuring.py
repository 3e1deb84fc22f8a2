"""Measured like the framers do: the same replies counted, the same ends found, and a large value shown to a framer unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core.measuring import Body, arguments, count, header_of, unfinished
from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import KEEP, RequestFramer, encode_command
from chaosproxy.core.syntax import LINES, ProtocolError

REPLIES = st.sampled_from(
    [
        b"+OK\r\n", b"-ERR\r\n", b":1\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"$3\r\nabc\r\n", b"$1000\r\n" + b"x" * 1000 + b"\r\n", b"_\r\n",
        b"#t\r\n", b",1\r\n", b"(1\r\n", b"=5\r\ntxt:a\r\n", b"!3\r\nERR\r\n", b"*0\r\n", b"*-1\r\n", b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
        b"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n", b"*1200\r\n" + b":1\r\n" * 1200, b"*", b"$5\r\nab", b"$12345", b"*1", b"+O", b"?\r\n", b"$x\r\n",
        b"*x\r\n", b">1\r\n+a\r\n", b"|1\r\n+a\r\n+b\r\n:1\r\n", b"*1\r\n|1\r\n+a\r\n+b\r\n:1\r\n", b"*1\r\n",
    ]
)  # fmt: skip


@given(st.lists(REPLIES, max_size=5).map(b"".join))
def test_replies_are_counted_as_the_framer_does(data: bytes):
    """Whole replies and nothing else: so many as the framer finds. Anything it does not tell is told to be so."""
    framer = ReplyFramer()
    framer.feed(data)
    frames = []
    try:
        while (frame := framer.next()) is not None:
            frames.append(frame)
        whole = not framer.started and not any(frame.raw[0] in b">|" for frame in frames)
    except ProtocolError:
        whole = False
    try:
        counted = count(data, LINES)
    except ProtocolError:
        counted = None
    # Where there is a push or an attribute inside a reply, or what looks like one, it need not be told.
    special = b"|1" in data or b">1" in data
    assert counted == (len(frames) if whole else None) or (special and counted is None)


def test_counting_from_a_place_and_without_errors():
    """The rest of a reply may stand ahead; where errors tell addresses they are not for counting."""
    assert count(b"xyz\r\n+OK\r\n:1\r\n", LINES, 5) == 2
    assert count(b"xyz\r\n", LINES, 5) == 0
    assert count(b"-ERR\r\n", LINES.replace(b"-", b"")) is None


def test_arguments():
    """Their ends and what they are, however long they are."""
    raw = encode_command(b"SET", b"k", b"x" * 50, b"y" * 500, b"z" * 5000)
    pos, args = arguments(raw, raw.index(b"$1\r\n"), 4, b"SET")
    assert (pos, args) == (len(raw), [b"SET", b"k", b"x" * 50, b"y" * 500, b"z" * 5000])
    for wrong in (b"", b"$", b"$1000", b":1\r\n"):
        with pytest.raises(ProtocolError):
            header_of(wrong, 0)
        with pytest.raises(ProtocolError):
            arguments(wrong, 0, 1, b"SET")


def test_only_what_is_large_is_counted_off():
    """A small value is kept by framers, so it is theirs."""
    assert unfinished(b"*2\r\n$3\r\nGET\r\n$1000\r\nx", 0, 13, 1009) is None
    data = b"+OK\r\n$9000\r\nabc"
    assert unfinished(data, 5, 5, 9009) == Body(b"$9000\r\n", 3, 8999)
    # A header ends with `\\r` and one more byte, whatever that is, which may not be here yet.
    assert unfinished(data.replace(b"\n", b"?"), 5, 5, 9009) == Body(b"$9000\r?", 3, 8999)
    assert unfinished(data[:11], 5, 5, 9009) is None


@pytest.mark.parametrize("size", [KEEP + 1000, 70_000, 200_000])
def test_a_framer_that_is_shown_what_has_passed(size: int):
    """It goes on as one does that has seen all of it."""
    command = encode_command(b"SET", b"k", b"x" * size, b"EX", b"1")
    value = command.index(b"x")
    for passed in (0, 1, 4000, size - 2, size + 1):
        seen, shown = RequestFramer(), RequestFramer()
        seen.feed(command[: value + passed])
        seen.cut_through()
        Body(command[:value], passed, size + 2 - passed).show(shown)
        for framer in (seen, shown):
            assert framer.started
            assert framer.next() is None
            framer.feed(command[value + passed :] + b"PING\r\n")
        assert seen.next() == shown.next() is not None
        assert seen.next() == shown.next() is not None
    reply = b"$%d\r\n%s\r\n" % (size, b"x" * size)
    for passed in (0, 1, 4000, size + 1):
        told, known = ReplyFramer(), ReplyFramer()
        told.feed(reply[: reply.index(b"x") + passed])
        told.cut_through()
        Body(reply[: reply.index(b"x")], passed, size + 2 - passed).show(known)
        for each in (told, known):
            assert each.partial == 0
            each.feed(reply[reply.index(b"x") + passed :] + b":1\r\n")
        assert told.next() == known.next() is not None
        assert told.next() == known.next() is not None


def test_a_value_passes_but_for_its_end():
    """The chunk in which it ends is not only the value's."""
    body = Body(b"", 0, 10)
    assert body.passes(9)
    assert (body.passed, body.owed) == (9, 1)
    assert not body.passes(1)
    assert (body.passed, body.owed) == (9, 1)
