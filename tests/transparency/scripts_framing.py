"""Wire scripts about requests: how they are framed, what is refused and with which words.

Gives SCRIPTS.
"""

from tests.transparency.script import one
from tests.wire import encode

_WHOLE = ("whole",)

_MIB = 1 << 20

_ACCEPTED = (
    one("inline, CR LF", b"PING\r\n", shows=b"+PONG\r\n"),
    one("inline, LF alone", b"PING\n", shows=b"+PONG\r\n"),
    one("inline, blanks of all kinds", b"  SET\tk   v \r\n", b"GET k\r\n", shows=b"$1\r\nv\r\n"),
    one(
        "inline, double quotes",
        rb'SET k "a\x41\n\r\t\a\b\"\\ \q end"' + b"\r\n",
        b"GET k\r\n",
        shows=b'aA\n\r\t\a\b"\\ q end',
    ),
    one(
        "inline, single quotes",
        rb"SET k 'it\'s \n raw'" + b"\r\n",
        b"GET k\r\n",
        shows=rb"it's \n raw",
    ),
    one(
        "inline, empty arguments",
        b"SET \"\" ''\r\n",
        b"GET ''\r\n",
        b'STRLEN ""\r\n',
        shows=b"$0\r\n\r\n",
    ),
    one("inline, quote in the middle of a word", b'ECHO a"b c"\r\n', b"PING\r\n"),
    one("inline, hex escape cut short", rb'ECHO "\x4"' + b"\r\n", rb'ECHO "\xZZ"' + b"\r\n"),
    one("nothing: empty lines", b"\r\n\n   \r\n\t\n", b"PING\r\n", shows=b"+PONG\r\n"),
    one(
        "nothing: arrays of no elements", b"*0\r\n*-1\r\n*-10\r\n", b"PING\r\n", shows=b"+PONG\r\n"
    ),
    one("nothing: only that", b"\r\n*0\r\n*-1\r\n"),
    one("a command without a name", b"*1\r\n$0\r\n\r\n", "PING", shows=b"unknown command"),
    one(
        "inline and arrays mixed",
        b"PING\r\n",
        "ECHO 1",
        b"\r\nECHO 2\n",
        "ECHO 3",
        b"*0\r\n",
        b"ECHO 4\r\n",
    ),
    one("names in any case", "pInG", b"eChO hi\r\n", "gEt nokey"),
    one("CR followed by anything", b"*1\rX$4\rYPING\rZ", "PING"),
    one("bulk ended by anything", b"*1\r\n$4\r\nPINGxx", "PING"),
    one(
        "all bytes in a value",
        ("SET", "k", bytes(range(256))),
        "GET k; STRLEN k",
        shows=b":256\r\n",
    ),
    one(
        "a value that looks like requests", ("SET", "k", encode("PING") * 3 + b"PING\r\n"), "GET k"
    ),
    one(
        "a value that looks like replies",
        ("SET", "k", b"+OK\r\n-ERR no\r\n*2\r\n>3\r\n"),
        "GET k; PING",
    ),
    one(
        "values that end in CR and LF",
        ("SET", "k", b"\r\n\r"),
        "GET k",
        ("SET", "k", b"\n"),
        "GET k",
    ),
    one("an empty value", ("SET", "k", b""), "GET k", ("ECHO", b"")),
    one(
        "what a RESP3 value looks like, as a request",
        b"%1\r\n+a\r\n_\r\n,1.5\r\n#t\r\n(12\r\n>1\r\n~1\r\n",
    ),
    one("replies sent as requests", b"+OK\r\n-ERR x\r\n:1\r\n$1\r\nx\r\n", "PING"),
    one(
        "control bytes as a request", b"\x01\x02\x7f\xff\xfe\r\n", "PING", shows=b"unknown command"
    ),
)

_REFUSED = tuple(
    one(f"refused: {name}", "ECHO before", raw, **({"shows": shows} if shows else {}))
    for name, raw, shows in (
        (
            "unbalanced double quote",
            b'SET k "abc\r\n',
            b"-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (
            "unbalanced single quote",
            b"SET k 'abc\r\n",
            b"-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (
            "text behind a closing quote",
            b'SET k "a"b\r\n',
            {"redis70": b"-ERR Protocol error: unbalanced quotes in request\r\n"},
        ),
        (
            "count that is no number",
            b"*abc\r\n",
            b"-ERR Protocol error: invalid multibulk length\r\n",
        ),
        ("count that is empty", b"*\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (
            "count with a leading zero",
            b"*01\r\n",
            b"-ERR Protocol error: invalid multibulk length\r\n",
        ),
        ("count with a plus", b"*+1\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        ("count with a blank", b"* 1\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (
            "count of 2147483648",
            b"*2147483648\r\n",
            b"-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            "count of 20 digits",
            b"*99999999999999999999\r\n",
            b"-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            "a word in place of a bulk",
            b"*1\r\nPING\r\n",
            b"-ERR Protocol error: expected '$', got 'P'\r\n",
        ),
        (
            "an integer in place of a bulk",
            b"*1\r\n:4\r\n",
            b"-ERR Protocol error: expected '$', got ':'\r\n",
        ),
        (
            "an array in place of a bulk",
            b"*1\r\n*1\r\n$4\r\nPING\r\n",
            b"-ERR Protocol error: expected '$', got '*'\r\n",
        ),
        (
            "bulk of -1",
            b"*2\r\n$3\r\nGET\r\n$-1\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk with a leading zero",
            b"*1\r\n$04\r\nPING\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk with a plus",
            b"*1\r\n$+4\r\nPING\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk that is no number",
            b"*1\r\n$x\r\nPING\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk that is empty",
            b"*1\r\n$\r\nPING\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk above proto-max-bulk-len",
            b"*1\r\n$536870913\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "bulk of 20 digits",
            b"*1\r\n$99999999999999999999\r\n",
            b"-ERR Protocol error: invalid bulk length\r\n",
        ),
        ("and what follows is not run", b"*1\r\nPING\r\n*1\r\n$4\r\nPING\r\n", b"got 'P'"),
    )
)

_LIMITS = (
    one(
        "count of 1048577",
        "ECHO before",
        b"*1048577\r\n",
        shows={"redis62": b"invalid multibulk length"},
        # A rule may have to see the whole request, which never comes.
        only_calm=True,
    ),
    one("zero byte before the CR of a count", "ECHO before", b"*1\0\r\n$4\r\nPING\r\n"),
    one("zero byte before the CR of a length", "ECHO before", b"*1\r\n$4\0\r\nPING\r\n"),
    one("zero byte in an inline command", "ECHO before", b"PI\0NG\r\n", "PING"),
    # One byte too many and no more: with input left unread the server's end is RST or FIN as it happens.
    one(
        "64 KiB without an end of line",
        b"x" * ((64 << 10) + 1),
        shows=b"-ERR Protocol error: too big inline request\r\n",
    ),
    one(
        "64 KiB of count",
        b"*" + b"1" * (64 << 10),
        shows=b"-ERR Protocol error: too big mbulk count string\r\n",
    ),
    one(
        "64 KiB of length",
        b"*1\r\n$" + b"1" * (64 << 10),
        shows=b"-ERR Protocol error: too big bulk count string\r\n",
    ),
    one(
        "bulk above a lowered proto-max-bulk-len",
        ("SET", "k", "x" * _MIB),
        b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (_MIB + 1),
        settings=(("proto-max-bulk-len", str(_MIB)),),
        shows=b"invalid bulk length",
        # A rule may have to see the whole value, which never comes.
        only_calm=True,
    ),
    # An HTTP request that a web page was made to send: closed without a word.
    one("POST, inline", b"POST / HTTP/1.1\r\n"),
    one("POST, any case, as an array", "pOsT"),
    one("Host:, inline", b"Host: example\r\n"),
    one("Host:, any case, as an array", "hOsT: x"),
    # Which replies are still sent depends on what came in one read, so only in one piece.
    one("a whole HTTP GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", modes=_WHOLE),
    one("a whole HTTP POST", b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k v\r\n", modes=_WHOLE),
    one("replies before a POST", "PING; PING", b"POST / HTTP/1.1\r\n", "PING", modes=_WHOLE),
)

SCRIPTS = (*_ACCEPTED, *_REFUSED, *_LIMITS)
