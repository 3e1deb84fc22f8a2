"""What replies say: every type, at any depth, and nothing made up."""

import math

import pytest

from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import ErrorReply, decode

PUSH = b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
SUBSCRIBED = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"

VALUES = [
    (b"+OK\r\n", b"OK"),
    (b"-ERR no\r\n", ErrorReply(b"ERR no")),
    (b":-5\r\n", -5),
    (b":+5\r\n", 5),
    (b"$3\r\na\r\n\r\n", b"a\r\n"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"_\r\n", None),
    (b"#t\r\n", True),
    (b"#f\r\n", False),
    (b",1.5\r\n", 1.5),
    (b",-inf\r\n", -math.inf),
    (b"(-12345678901234567890123\r\n", -12345678901234567890123),
    (b"=7\r\ntxt:abc\r\n", b"abc"),
    (b"!6\r\nERR\r\nx\r\n", ErrorReply(b"ERR\r\nx")),
    (b"*0\r\n", []),
    (b"*-1\r\n", None),
    (b"*2\r\n:1\r\n*2\r\n$-1\r\n*0\r\n", [1, [None, []]]),
    (b"~1\r\n+a\r\n", [b"a"]),
    (b"%2\r\n*1\r\n:1\r\n+a\r\n*1\r\n:1\r\n%0\r\n", [([1], b"a"), ([1], [])]),
    (PUSH, [b"invalidate", [b"k"]]),
    (b">0\r\n", []),
    (b"|1\r\n+ttl\r\n%1\r\n+a\r\n:1\r\n+OK\r\n", b"OK"),
    (b"|0\r\n*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", [1, 2]),
    (b"*2\r\n:1\r\n" + PUSH + b">0\r\n>1\r\n*0\r\n:2\r\n", [1, 2]),
    (b"*2\r\n" + SUBSCRIBED + PUSH + b":2\r\n", [[b"subscribe", b"c", 1], 2]),
]


@pytest.mark.parametrize(("raw", "value"), VALUES)
def test_decode(raw, value):
    """Every type of both protocols; attributes and pushes that are no element are left out."""
    decoded = decode(raw)
    assert decoded == value
    assert type(decoded) is type(value)


def test_not_a_number():
    """Servers say nan as well."""
    assert math.isnan(decode(b",nan\r\n"))


def test_any_depth():
    """Arrays inside arrays need no recursion."""
    value = decode(b"*1\r\n" * 50_000 + b":1\r\n")
    depth = 0
    while isinstance(value, list):
        [value] = value
        depth += 1
    assert (depth, value) == (50_000, 1)


@pytest.mark.parametrize(("raw", "value"), VALUES)
def test_whole_replies_only(raw, value):
    """Neither a piece of a reply nor two of them has a value."""
    for end in range(len(raw)):
        with pytest.raises(ProtocolError):
            decode(raw[:end])
    with pytest.raises(ProtocolError, match=r"^more than one reply$"):
        decode(raw + b"+OK\r\n")


@pytest.mark.parametrize(
    "raw",
    [
        *(b":x\r\n", b":\r\n", b"#x\r\n", b",x\r\n", b"(x\r\n", b":" + b"1" * 5000 + b"\r\n"),
        *(b"x\r\n", b"$?\r\n", b"$-2\r\n", b"|-1\r\n+a\r\n", b"*9223372036854775807\r\n", b"\r\n"),
    ],
)
def test_nonsense(raw):
    """What says nothing is told as such, never as another exception."""
    with pytest.raises(ProtocolError):
        decode(raw)


def test_an_error_as_text():
    """An error reads as the server wrote it, whatever bytes are in it."""
    assert str(decode(b"-ERR \xff\xc3\xa4\r\n")) == "ERR \\xffä"
