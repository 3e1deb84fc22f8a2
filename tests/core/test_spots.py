"""Places in a reply: where its parts end, where its spots are, how much of it that leaves."""

import pytest

from chaosproxy.core.setting import Invalid
from chaosproxy.core.spots import check_share, ends, share, spots
from tests.conversation import reply


@pytest.mark.parametrize(
    ("spot", "found"),
    [
        ("inside_multibyte", [10, 12]),
        ("before_crlf", [3, 7, 16]),
        ("inside_header", [1, 5]),
    ],
)
def test_spots(spot, found):
    """Each place of that kind, behind its first byte."""
    raw = b"*1\r\n$7\r\n" + "aéé".encode() + b"xy\r\n"
    assert [raw[at - 1 :][:2] for at in spots(raw, "before_crlf")] == [b"\r\n"] * 3
    assert spots(raw, spot) == found


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("*[:1 *[:2 :3] :4]", [4, 8, 20, 24]),
        ("%[:1 :2]", [4, 8, 12]),
        ("*[]", [4]),
        (b"*1\r\n:1\r\n*1\r\n:2\r\n", [0, 8, 16]),
        (":1", []),
        ('"text"', []),
        ("-ERR no", []),
        (b"half", []),
        ("*-1", [5]),
    ],
)
def test_ends(raw, found):
    """Of an aggregate the header and each element, of several frames each of them; of one value nothing."""
    assert ends(reply(raw)) == found


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ((None, None, None), (True, None)),
        ((-3, None, None), (True, -3)),
        ((None, 0, None), (True, 4)),
        ((None, 1, None), (True, 8)),
        ((None, 2, None), (False, 12)),
        ((None, 3, None), (False, None)),
        ((None, None, "before_crlf"), (True, 3)),
        ((None, None, "inside_multibyte"), (False, None)),
    ],
)
def test_share(settings, found):
    """The bytes the client gets, where there is such a place with something behind it."""
    assert share(b"*2\r\n:1\r\n:2\r\n", *settings) == found


def test_check_share():
    """One of the three at most, and in the middle of a reply only."""
    check_share(middle=False, count=None, frames=None, spot=None)
    check_share(middle=True, count=1, frames=None, spot=None)
    with pytest.raises(Invalid) as wrong:
        check_share(middle=False, count=None, frames=1, spot=None)
    assert (wrong.value.path, wrong.value.message) == (("frames",), "goes with at: mid_reply")
    with pytest.raises(Invalid) as wrong:
        check_share(middle=True, count=1, frames=None, spot="before_crlf")
    assert wrong.value.path == ("spot",)
