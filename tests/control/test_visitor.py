"""One connection of the control address: where a request's head ends, in whatever pieces it comes."""

import socket

import pytest

from chaosproxy.control.handler import MOST_HEAD
from chaosproxy.control.visitor import Visitor
from tests.framing import every_cut


@pytest.fixture
def visitor():
    one, other = socket.socketpair()
    with one, other:
        yield lambda: Visitor(one, "127.0.0.1", 100.0)


@pytest.mark.parametrize(
    ("came", "head", "rest"),
    [
        (b"GET / HTTP/1.1\r\nA: b\r\n\r\nbody", b"GET / HTTP/1.1\r\nA: b\r\n\r\n", b"body"),
        (b"\r\n\n\r\nGET / HTTP/1.1\n\nmore", b"GET / HTTP/1.1\n\n", b"more"),
        (b"A\n\r\n\r\n\r\n", b"A\n\r\n", b"\r\n\r\n"),
        (b"GET / HTTP/1.1\r\nA: b\r\n", None, b"GET / HTTP/1.1\r\nA: b\r\n"),
    ],
)
def test_head(visitor, came, head, rest):
    """It ends at the first empty line; empty lines before it are none of it; any cut gives the same."""
    for pieces in every_cut(came):
        one, found = visitor(), None
        for piece in pieces:
            one.came += piece
            if found is None:
                found = one.take_head()
        assert (found, bytes(one.came)) == (head, rest)
        assert one.held == len(rest)


def test_a_head_too_large(visitor):
    """One that goes on behind MOST_HEAD is none; one that ends just there is."""
    for size, ends in ((MOST_HEAD, True), (MOST_HEAD + 1, False)):
        one = visitor()
        one.came += b"x" * (size - 2) + b"\n\n"
        assert (one.take_head() is not None) == ends
