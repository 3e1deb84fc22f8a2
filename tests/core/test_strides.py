"""Patterns that skip as many bytes as a number says: what they match is what the framers read, byte for byte.

Takes commands and replies, whole, cut and spoilt; gives proof against the framers.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosproxy.core import strides
from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import RequestFramer, encode_command
from chaosproxy.core.strides import LIMIT, MOST_ARGUMENTS
from chaosproxy.core.syntax import ProtocolError

SHORT = st.binary(max_size=LIMIT - 1) | st.sampled_from(
    [b"", b"\r\n", b"$3\r\nSET\r\n", b"x" * 255]
)
ANY = SHORT | st.integers(LIMIT - 2, 3 * LIMIT).map(lambda size: b"y" * size)


def opening_of(args: list[bytes]) -> bytes:
    """How a command begins, its name included."""
    return b"*%d\r\n$%d\r\n%s\r\n" % (len(args), len(args[0]), args[0])


def test_every_length_is_spelled_out():
    """Each length below the limit is matched, and only with as many bytes as it says; none from there on is."""
    for size in range(LIMIT + 3):
        raw = b"$%d\r\n%s\r\n" % (size, b"z" * size)
        assert bool(strides.is_reply(raw)) == (size < LIMIT), size
        for wrong in (
            raw[:-1],
            raw[:-3] + raw[-2:],
            raw[:-2] + b"z\r\n",
            raw.replace(b"$", b"$0", 1),
        ):
            assert wrong == raw or not strides.is_reply(wrong), (size, wrong)


def test_how_a_reply_of_each_size_begins():
    """A bulk string begins as its size in bytes says, and of sizes that none has nothing so long begins so."""
    begins = {len(raw): raw for raw in (b"$%d\r\n%s\r\n" % (n, b"z" * n) for n in range(2048))}
    assert strides.NULL == b"$-1\r\n"
    assert len(strides.NULL) not in begins
    begins[len(strides.NULL)] = strides.NULL
    assert len(strides.BULKS) > 1024
    for size, begin in enumerate(strides.BULKS):
        raw = begins.get(size)
        if raw is None:
            assert len(begin) > size
        else:
            assert begin == raw[: raw.index(b"\n") + 1]
            assert raw.endswith(strides.END)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY, max_size=MOST_ARGUMENTS), st.integers(0, MOST_ARGUMENTS + 1))
def test_a_command_is_matched_as_it_is_framed(args: list[bytes], key: int):
    """Whole, with its key found; not if any argument is long, or a byte is missing or too many."""
    args = [b"SET", *args]
    raw = encode_command(*args)
    pattern = strides.command(opening_of(args), len(args) - 1, key)
    match = pattern.fullmatch(raw)
    assert match is not None
    short = all(len(arg) < LIMIT for arg in args)
    keyed = 0 < key < len(args)
    assert (match.lastindex != (None if keyed else 1)) == short
    if short and 0 < key < len(args):
        assert match[1] == b"$%d\r\n%s\r\n" % (len(args[key]), args[key])
    for spoilt in (raw[:-1], raw + b"\0", raw[:-2] + b"\0\0"):
        match = pattern.fullmatch(spoilt)
        assert match is not None
        assert match.lastindex == (None if keyed else 1)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(SHORT, SHORT), max_size=8), st.binary(max_size=30))
def test_commands_alike_are_counted(pairs: list[tuple[bytes, bytes]], tail: bytes):
    """Of those that stand one behind the other all are found, and then what is left, in one piece."""
    data = b"".join(encode_command(b"SET", *pair) for pair in pairs) + tail
    found = strides.command(opening_of([b"SET", b"", b""]), 2).findall(data)
    assert found == [b""] * len(pairs) + [tail] * bool(tail)
    framer = RequestFramer()
    framer.feed(data[: len(data) - len(tail)])
    assert [framer.next() is not None for _ in pairs] == [True] * len(pairs)
    assert framer.next() is None
    keyed = strides.command(opening_of([b"SET", b"", b""]), 2, 1).findall(data)
    keys = [b"$%d\r\n%s\r\n" % (len(key), key) for key, _ in pairs]
    assert keyed == keys + [b""] * bool(tail)


REPLIES = st.one_of(
    SHORT.map(lambda value: b"$%d\r\n%s\r\n" % (len(value), value)),
    st.sampled_from([b"+OK\r\n", b":1\r\n", b"$-1\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n", b"(12\r\n", b"+\r\n"]),
)  # fmt: skip
OTHERS = st.sampled_from(
    [b"", b"-ERR\r\n", b"*1\r\n:1\r\n", b">1\r\n+a\r\n", b"|1\r\n+a\r\n+b\r\n", b"+a\rb\r\n", b"$5\r\nab", b"+O", b"%0\r\n", b"$300\r\n" + b"x" * 302, b"?\r\n"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(REPLIES, max_size=6), OTHERS, st.lists(REPLIES, max_size=2))
def test_replies_are_found_as_they_are_framed(head: list[bytes], other: bytes, tail: list[bytes]):
    """All that are neither errors nor aggregates, up to the first that is, or is long; the framer finds the same ones."""
    # What is cut off is the last there is.
    rest = other + b"".join(tail) if other.endswith(b"\r\n") else other
    data = b"".join(head) + rest
    assert strides.replies(data) == [b""] * len(head) + [rest] * bool(rest)
    for each in head:
        assert strides.is_reply(each)
    assert not strides.is_reply(other)
    framer = ReplyFramer()
    framer.feed(data)
    for each in head:
        frame = framer.next()
        assert frame is not None
        assert frame.raw == each


@settings(max_examples=200, deadline=None)
@given(SHORT, st.integers(0, 5000), st.integers(0, 3))
def test_a_long_last_argument_is_told_by_its_length(key: bytes, size: int, cut: int):
    """A header of three digits or more, written as servers write it; then it ends so many bytes further on, whatever they are."""
    value = b"\r" * size
    raw = encode_command(b"SET", key, value)
    for number, group in ((0, 1), (1, 2)):
        match = strides.long_command(opening_of([b"SET", b"", b""]), 2, number).match(raw)
        assert (match is not None) == (size >= 100)
        if match:
            assert match.end() + int(match[group]) + 2 == len(raw)
            assert number == 0 or match[1] == b"$%d\r\n%s\r\n" % (len(key), key)
    reply = b"$%d\r\n%s\r\n" % (size, value)
    assert strides.is_long_reply(reply[: len(reply) - cut]) == (size >= 100 and not cut)
    assert not strides.is_long_reply(reply.replace(b"$", b"$0", 1))
    assert not strides.is_long_reply(reply + b"\0")


@pytest.mark.parametrize("data", [b"?", b"$x\r\n"])
def test_what_no_framer_reads(data: bytes):
    """What is no reply is left, whole."""
    framer = ReplyFramer()
    framer.feed(data)
    assert strides.replies(data) == [data]
    assert strides.command(b"*1\r\n$4\r\nPING\r\n", 0).findall(data) == [data]
    if data.startswith(b"?"):
        with pytest.raises(ProtocolError):
            framer.next()
