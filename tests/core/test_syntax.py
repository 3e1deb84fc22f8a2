"""Headers and inline lines, to the byte as servers read them."""

import pytest

from chaosproxy.core import syntax
from chaosproxy.core.syntax import ProtocolError, split_words
from tests.wire import Wire, decode, talk

#: Lines that all servers split alike.
LINES = {
    b"ECHO word": [b"ECHO", b"word"],
    b" \t ECHO\t\tword \r": [b"ECHO", b"word"],
    b"ECHO\rword\r\r": [b"ECHO", b"word"],
    b"\v\fECHO \va\vb": [b"ECHO", b"a\vb"],
    b"ECHO a\v": [b"ECHO", b"a\v"],
    b'ECHO ""': [b"ECHO", b""],
    b"ECHO ''": [b"ECHO", b""],
    b'"ECHO" "two words"': [b"ECHO", b"two words"],
    b'ECHO mid"dle q"': [b"ECHO", b"middle q"],
    b"ECHO mid'dle q'\t": [b"ECHO", b"middle q"],
    b'ECHO "\\n\\r\\t\\b\\a"': [b"ECHO", b"\n\r\t\b\a"],
    b'ECHO "\\x00\\xfF\\x7g\\X41\\q"': [b"ECHO", b"\0\xffx7gX41q"],
    b'ECHO "\\"\\\\\'"': [b"ECHO", b"\"\\'"],
    b"ECHO 'it\\'s \\n \"raw\"'": [b"ECHO", b'it\'s \\n "raw"'],
    b"ECHO '\\a\\\\b'": [b"ECHO", b"\\a\\\\b"],
    b"ECHO \x80\xfe": [b"ECHO", b"\x80\xfe"],
    b'ECHO a\\"b c"': [b"ECHO", b"a\\b c"],
}

#: Lines that no server understands, and then those that Valkey 9 alone does, in its own way.
UNBALANCED = [b'"', b"'", b'ECHO "open', b"ECHO 'open", b'ECHO "open\\']
DISPUTED = {
    b'ECHO "a"b': b"ab",
    b"ECHO 'a'b": b"ab",
    b'ECHO "a""b"': b"ab",
    b'ECHO "a"\v': b"a\v",
    b'ECHO "a\\"': b"a\\",
    b"ECHO 'a\\'": b"a\\",
    b"ECHO 'a\\\\'": b"a\\\\",
}
#: All take this, but Valkey 9 sees no \xff.
LOST = b"ECHO a\xffb"


@pytest.mark.parametrize("line", LINES)
def test_split_words(line):
    """Blanks, quotes and escapes make the words that `sdssplitargs` makes."""
    assert split_words(line) == LINES[line]


@pytest.mark.parametrize("line", [b"", b" ", b"\r", b"\t\v\f \r"])
def test_a_blank_line_has_no_words(line):
    """A line of blanks is no command."""
    assert split_words(line) == []


@pytest.mark.parametrize("line", [*UNBALANCED, *DISPUTED])
def test_unbalanced(line):
    """A quote that does not close, or not before a blank, is not understood."""
    with pytest.raises(ProtocolError, match=r"^unbalanced quotes in request$"):
        split_words(line)


def test_a_byte_that_not_all_servers_see():
    """Servers split the line, but not into the same words: it is not understood."""
    with pytest.raises(ProtocolError, match=r"^a byte 255 in an inline command$"):
        split_words(LOST)


def test_every_server_splits_so(any_server):
    """What stands above is what real servers do: each line's argument comes back from ECHO."""
    with Wire(any_server.port) as wire:
        for line, words in LINES.items():
            wire.send_bytes(line + b"\n")
            assert decode(wire.read()[0]) == words[1], line


def test_no_server_splits_these(any_server):
    """Unbalanced quotes end the connection: nothing is lost if we stop looking."""
    for line in UNBALANCED:
        expected = b"-ERR Protocol error: unbalanced quotes in request\r\n"
        assert talk(any_server.port, line + b"\r\n", finish=False)[0] == expected, line


@pytest.mark.servers("redis62", "redis70", "redis82")
def test_redis_does_not_split_these(server):
    r"""Behind a closing quote Redis wants a blank (it takes `\v`, which Valkey makes a word's part)."""
    assert decode(talk(server.port, LOST + b"\r\n")[0]) == b"a\xffb"
    for line in DISPUTED:
        expected = b"$1\r\na\r\n" if b"\v" in line else b"-ERR Protocol error: unbalanced quotes"
        assert talk(server.port, line + b"\r\n")[0].startswith(expected), line


@pytest.mark.servers("valkey9")
def test_valkey_splits_these_otherwise(server):
    """Valkey 9 goes on with the word behind a closing quote: this is why we do not guess."""
    for line, word in [*DISPUTED.items(), (LOST, b"ab")]:
        assert decode(talk(server.port, line + b"\r\n")[0]) == word, line


HEADERS = {
    b"*0\r\n": (0, 4),
    b"*9\r\n": (9, 4),
    b"*10\r\n": (10, 5),
    b"*999\r\n": (999, 6),
    b"*1000\r\n": (1000, 7),
    b"*-1\r\n": (-1, 5),
    b"*7\rX": (7, 4),
    b"*-9223372036854775808\r\n": (-(2**63), 23),
    b"*9223372036854775807\r\n": (2**63 - 1, 22),
}


@pytest.mark.parametrize("header", HEADERS)
def test_read_header(header):
    """A number and the size of its header; a byte less, and it goes on."""
    for behind in (b"", b"$", b"\r\n" * 20):
        assert syntax.read_header(b"xx" + header + behind, 2) == HEADERS[header]
    for size in range(1, len(header)):
        assert syntax.read_header(header[:size], 0) is None


@pytest.mark.parametrize(
    "header",
    [
        *(
            b"*\r\n",
            b"*a\r\n",
            b"*01\r\n",
            b"*+1\r\n",
            b"*-0\r\n",
            b"* 1\r\n",
            b"*1 \r\n",
            b"*1_0\r\n",
        ),
        *(
            b"*--1\r\n",
            b"*-\r\n",
            b"*?\r\n",
            b"*1.0\r\n",
            b"*\0001\r\n",
            b"*1\n\r\n",
            b"*\xd9\xa1\r\n",
        ),
        *(b"*9223372036854775808\r\n", b"*-9223372036854775809\r\n", b"*" + b"1" * 21),
    ],
)
def test_no_header(header):
    """A number is written in one way only, and has an end."""
    with pytest.raises(ProtocolError, match="invalid length"):
        syntax.read_header(header, 0)


def test_short_headers_are_read_alike():
    """The look-up that saves reading gives what reading gives, for each header that is in it."""
    for kind, table in ((b"*", syntax.ARRAYS), (b"$", syntax.ARGUMENTS)):
        found = [syntax.read_header(b"%s%d\r\n" % (kind, n), 0) for n in range(1000)]
        assert list(table.values()) == found
        for start, header in table.items():
            full = b"%s%d\r\n" % (kind, header[0])
            assert full.startswith(start)
            assert len(full) - len(start) <= 1


def test_read_argument():
    """An argument is a bulk string, and never a null."""
    assert syntax.read_argument(b"$1000\r\n", 0) == (1000, 7)
    assert syntax.read_argument(b"$10", 0) is None
    with pytest.raises(ProtocolError, match=r"^expected '\$', got b'P'$"):
        syntax.read_argument(b"P", 0)
    with pytest.raises(ProtocolError, match=r"^an argument of -1 bytes$"):
        syntax.read_argument(b"$-1\r\n", 0)


def test_read_length():
    """A reply's length may say null; an attribute's may not, and not every byte begins a reply."""
    assert [syntax.read_length(b"%c-1\r\n" % kind, 0) for kind in b"$*%~>=!"] == [(-1, 5)] * 7
    assert syntax.read_length(b"|0\r\n", 0) == (0, 4)
    assert syntax.read_length(b"%", 0) is None
    for header in (b"|-1\r\n", b"$-2\r\n", b"*-2\r\n"):
        with pytest.raises(ProtocolError, match=r"^a reply of -[12] bytes or elements$"):
            syntax.read_length(header, 0)
    for kind in b"P;.\0\n":
        with pytest.raises(ProtocolError, match=r"^no reply begins with"):
            syntax.read_length(bytes((kind,)), 0)


def test_read_line():
    """A line ends at its newline, is no longer than every server takes it, and has no NUL."""
    assert syntax.read_line(b"xPING\r\nPING\0", 1) == b"PING\r"
    assert syntax.read_line(b"PING\r", 0) is None
    longest = b"x" * syntax.INLINE
    assert syntax.read_line(longest, 0) is None
    assert syntax.read_line(longest + b"\n", 0) == longest
    for line in (longest + b"x", longest + b"x\n", b"a\0", b"a\0\n"):
        with pytest.raises(ProtocolError, match="an inline command with a NUL or without an end"):
            syntax.read_line(line, 0)
