"""The texts in a reply: each is changed, lengths are put right, everything else is as it came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core.texts import change_texts, not_utf8, shortened
from tests.conversation import reply


def cut(raw: bytes) -> bytes:
    return change_texts(raw, lambda text: shortened(text, 2))


@pytest.mark.parametrize(
    ("sent", "made"),
    [
        ('"hello"', '"he"'),
        ('*["hello" *["hello" :1] "hi"]', '*["he" *["he" :1] "hi"]'),
        ('%["key" "value"]', '%["ke" "va"]'),
        (b"=9\r\ntxt:hello\r\n", b"=6\r\ntxt:he\r\n"),
        (b"|1\r\n+ttl\r\n:1\r\n$5\r\nhello\r\n", b"|1\r\n+ttl\r\n:1\r\n$2\r\nhe\r\n"),
        (b"$7\r\na\r\n$3\r\n\r\n", b"$2\r\na\r\r\n"),
    ],
)
def test_each_text(sent, made):
    """Strings and verbatim strings, however deep, whatever bytes are in them."""
    assert cut(reply(sent)) == reply(made)


@pytest.mark.parametrize(
    "raw",
    [
        '"hi"',
        '""',
        "+hello",
        ":12345",
        "-ERR hello",
        "$-1",
        "*-1",
        "_",
        "#t",
        ",12.5",
        "(12345",
        b"!9\r\nERR hello\r\n",
        b"$?\r\n;5\r\nhello\r\n;0\r\n",
        b"no end",
        "*[]",
    ],
)
def test_nothing_to_change(raw):
    """The very same bytes, where no text is longer, and where there is none."""
    raw = reply(raw)
    assert cut(raw) is raw


def test_half_a_text():
    """What is not here is not missed: no end of it is made up."""
    assert cut(b"$5\r\nhe") == b"$5\r\nhe"


@given(st.lists(st.binary()), st.integers(0, 5))
def test_lengths_are_right(texts, size):
    """Whatever the texts are, what comes out is the array of what became of each."""

    def array(parts: list[bytes]) -> bytes:
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)

    made = change_texts(array(texts), lambda text: shortened(text, size))
    assert made == array([text[:size] for text in texts])


@given(st.text(min_size=1))
def test_never_utf8(text):
    """No text is UTF-8 afterwards, and it is as long as before."""
    made = not_utf8(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UnicodeDecodeError):
        made.decode()
    assert len(made) == len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (b"", b""),
        (b"abc", b"ab\xff"),
        ("aé😀".encode(), b"a\xc3\xff" + "😀".encode()),
        ("a😀b".encode(), b"a\xf0\x9f\x98\xffb"),
    ],
)
def test_which_byte(text, made):
    """The last one of the first character of several bytes; of a text without one, its last."""
    assert not_utf8(text) == made
