"""Bytes that are nearly what they should be: whole conversations with something broken in them.

Takes nothing; gives strategies for a client's bytes, a server's bytes, and the pieces in which they come.
"""

from hypothesis import strategies as st

from tests.wire import encode

#: What lengths and counts a hostile side announces.
NUMBERS = (
    *(b"0", b"1", b"2", b"7", b"-1", b"-2", b"-0", b"+1", b"01", b" 1", b"1 ", b"", b"1.0", b"1e3", b"0x10"),
    *(b"1000", b"4096", b"4097", b"65536", b"1048576", b"1048577", b"1000000000", b"536870912", b"536870913"),
    *(b"2147483647", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808"),
    *(b"1" * 20, b"9" * 64, b"\xc2\xb2", b"1\0", b"_1", b"1_0"),
)  # fmt: skip
TOKENS = (
    *(b"*", b"$", b"+", b"-", b":", b"_", b"#", b",", b"(", b"!", b"=", b"%", b"~", b">", b"|", b"\r\n", b"\r", b"\n"),
    *(b"\0", b"\xff", b"'", b'"', b"\\x0", b" ", b"\t", b"PING", b"PING\r\n", b"MULTI\r\n", b"EXEC\r\n"),
    *(b"*1\r\n$4\r\nPING\r\n", b"*0\r\n", b"*-1\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"+OK\r\n", b"-ERR no\r\n", b":1\r\n"),
    *(b">2\r\n+invalidate\r\n*0\r\n", b"|1\r\n+a\r\n+b\r\n", b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", b"x" * 300),
    *(b"*1\r\n" * 40, b"%1\r\n" * 40, b"|1\r\n" * 40, b"x" * 5000),
)  # fmt: skip

WORDS = st.sampled_from(
    [b"PING", b"ECHO", b"GET", b"get", b"SELECT", b"MULTI", b"EXEC", b"DISCARD", b"nothing", b"CLIENT", b"SUBSCRIBE"]
)  # fmt: skip
ARGUMENTS = st.lists(
    st.sampled_from([b"", b"0", b"1", b"a", b"GETNAME", b"c1", b"x" * 200, b"\r\n", b"x" * 5000]),
    max_size=3,
)
COMMANDS = st.tuples(WORDS, ARGUMENTS).map(lambda both: encode(both[0], *both[1])) | st.tuples(
    WORDS, ARGUMENTS
).map(lambda both: b" ".join((both[0], *filter(bytes.isalnum, both[1]))) + b"\r\n")

LEAVES = st.sampled_from(
    [b"+OK\r\n", b"+QUEUED\r\n", b"-ERR no\r\n", b"-MOVED 1 h:1\r\n", b":7\r\n", b"$-1\r\n", b"$3\r\nabc\r\n", b"$0\r\n\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n", b"(12345678901234567890\r\n", b"!5\r\nERR x\r\n", b"=5\r\ntxt:a\r\n", b"*-1\r\n", b"$5000\r\n" + b"y" * 5000 + b"\r\n"]
)  # fmt: skip


def _inside(values):
    parts = st.lists(values, max_size=4)
    return st.one_of(
        st.tuples(st.sampled_from([b"*", b"~", b">"]), parts).map(
            lambda both: b"%s%d\r\n%s" % (both[0], len(both[1]), b"".join(both[1]))
        ),
        parts.map(lambda found: b"%%%d\r\n%s" % (len(found), b"".join(found + found))),
        values.map(lambda value: b"|1\r\n+about\r\n+it\r\n" + value),
    )


REPLIES = st.recursive(LEAVES, _inside, max_leaves=8)

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["insert", "cut", "double", "swap", "number", "byte"]),
        st.integers(0, 1 << 16),
        st.integers(0, 60),
        st.sampled_from(TOKENS),
        st.sampled_from(NUMBERS),
    ),
    max_size=4,
)


def changed(raw: bytes, changes) -> bytes:
    """Break it, here and there."""
    for what, where, size, token, number in changes:
        at = where % (len(raw) + 1)
        match what:
            case "insert":
                raw = raw[:at] + token + raw[at:]
            case "cut":
                raw = raw[:at] + raw[at + size :]
            case "double":
                raw = raw[: at + size] + raw[at:]
            case "swap":
                raw = raw[at : at + size] + raw[:at] + raw[at + size :]
            case "byte":
                raw = raw[:at] + bytes([size]) + raw[at + 1 :]
            case "number":
                # Of some header: what stands between its type and its line break.
                begin = max(raw.find(b"\n", at), 0) + 2
                end = raw.find(b"\r", begin)
                if end >= 0:
                    raw = raw[:begin] + number + raw[end:]
    return raw[:40_000]


def broken(parts):
    """Such parts in a row, broken here and there; or bytes that never were any."""
    return st.one_of(
        st.tuples(st.lists(parts, max_size=8), CHANGES).map(
            lambda both: changed(b"".join(both[0]), both[1])
        ),
        st.lists(st.sampled_from(TOKENS + NUMBERS) | st.binary(max_size=8), max_size=30).map(
            b"".join
        ),
    )


REQUEST_BYTES = broken(COMMANDS)
REPLY_BYTES = broken(REPLIES)
#: Sizes of pieces, over and over.
SIZES = st.lists(st.sampled_from([1, 2, 3, 5, 17, 100, 1000, 4096, 65536]), min_size=1, max_size=5)


def pieces(raw: bytes, sizes):
    """Cut bytes into pieces of these sizes, again and again; at most a few hundred of them."""
    least = len(raw) // 300 + 1
    at = index = 0
    while at < len(raw):
        size = max(sizes[index % len(sizes)], least)
        yield raw[at : at + size]
        at, index = at + size, index + 1
