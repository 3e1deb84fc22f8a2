"""Wire scripts about ends and sizes: who ends a connection and when, what is large, what is refused before AUTH.

Gives SCRIPTS.
"""

from tests.transparency.script import SINCE_70, End, Script, Sleep, alone, one, say

_WHOLE = ("whole",)

_MIB = 1 << 20

_ENDS = (
    one("FIN behind requests", "PING; PING; PING", shows=b"+PONG\r\n+PONG\r\n+PONG\r\n"),
    Script(
        "FIN at once behind requests",
        (say("a", "PING; PING; PING", settle=False),),
        shows=b"+PONG\r\n",
    ),
    Script(
        "FIN at once behind a request for much",
        (say("a", ("SET", "k", "x" * _MIB)), say("a", "GET k; PING", settle=False)),
        shows=b"x" * _MIB + b"\r\n+PONG\r\n",
    ),
    Script("FIN while blocked", (say("a", "BLPOP nokey 0"), End("a", "fin"))),
    Script(
        "FIN while blocked, requests behind", (say("a", "BLPOP nokey 0; PING"), End("a", "fin"))
    ),
    Script("FIN at once without a word", (say("a", b"", settle=False),), modes=_WHOLE),
    one("FIN in the middle of a count", b"*2"),
    one("FIN in the middle of a length", b"*2\r\n$3\r\nGET\r\n$1"),
    one("FIN in the middle of a value", "ECHO before", b"*2\r\n$4\r\nECHO\r\n$10\r\nabc"),
    one("FIN in the middle of an inline command", "ECHO before", b"PIN"),
    one("FIN before the last CR LF", "ECHO before", b"*1\r\n$4\r\nPING"),
    Script(
        "a client that goes while blocked takes nothing with it",
        (
            say("a", "BLPOP q 0"),
            End("a", "close"),
            say("b", "RPUSH q 1; LLEN q"),
        ),
        shows=b":1\r\n:1\r\n",
    ),
    Script(
        "a client that resets while blocked takes nothing with it",
        (say("a", "BLPOP q 0"), End("a", "reset"), say("b", "RPUSH q 1; LLEN q")),
        shows=b":1\r\n:1\r\n",
    ),
    Script(
        "a client that goes inside a transaction leaves nothing",
        (say("a", "MULTI; SET k v"), End("a", "close"), say("b", "GET k")),
    ),
    one("QUIT", "ECHO before; QUIT", shows=b"+OK\r\n"),
    one("QUIT, requests behind", "QUIT; PING; PING", shows=b"+OK\r\n"),
    one("QUIT, inline, requests behind", b"QUIT\r\nPING\r\n", shows=b"+OK\r\n"),
    one("QUIT with arguments", "QUIT now please; PING"),
    one("QUIT in a transaction", "MULTI; SET k v; QUIT; GET k"),
    one(
        "SHUTDOWN with bad arguments",
        "SHUTDOWN MAYBE; SHUTDOWN NOSAVE SAVE; SHUTDOWN a b c d e f; PING",
    ),
    one(
        "SHUTDOWN ABORT", "SHUTDOWN ABORT; PING", servers=SINCE_70, shows=b"No shutdown in progress"
    ),
)

_LARGE = (
    alone(
        "a large value there and back",
        ("SET", "k", b"0123456789abcdef" * (_MIB // 8)),
        "GET k",
        "STRLEN k",
    ),
    one("many requests in one go", *(f"ECHO {i}" for i in range(2000)), modes=("whole", "split")),
    one(
        "many requests of all kinds in one go",
        *(
            request
            for i in range(300)
            for request in (
                f"SET k{i} {i}",
                f"GET k{i}",
                b"INCR n\r\n",
                f"RPUSH l {i}",
                "LRANGE l -3 -1",
            )
        ),
        modes=("whole", "split"),
    ),
    one(
        "a request of many arguments",
        ("MSET", *(word for i in range(3000) for word in (f"k{i}", i))),
        ("MGET", *(f"k{i}" for i in range(3000))),
        "DBSIZE",
        modes=("whole", "split"),
        shows=b":3000\r\n",
    ),
    one(
        "large values in a row",
        *(
            request
            for size in (16383, 16384, 32768, 65535, 65536, 200000)
            for request in (("SET", f"k{size}", "x" * size), f"GET k{size}")
        ),
    ),
    Script(
        "a reply much larger than any buffer, read late",
        (
            say("a", ("SET", "k", b"x" * (6 * _MIB))),
            say("a", *["GET k"] * 3, settle=False),
            Sleep(0.05),
        ),
        resp=(2,),
        # What is looked at is the way between, not the server.
        servers=("valkey9",),
        modes=_WHOLE,
    ),
)

_PASSWORD = (("requirepass", "secret"),)

_BEFORE_AUTH = tuple(
    one(
        f"before AUTH: {name}",
        *requests,
        settings=_PASSWORD,
        resp=(2,),
        **({"shows": shows} if shows else {}),
    )
    for name, requests, shows in (
        ("a command", ("PING; GET k",), b"-NOAUTH Authentication required.\r\n"),
        ("an unknown command", ("nosuch x",), None),
        ("a wrong password", ("AUTH wrong; PING",), b"-WRONGPASS"),
        ("a wrong user", ("AUTH nobody secret; PING",), b"-WRONGPASS"),
        ("the right password", ("AUTH secret; PING",), b"+OK\r\n+PONG\r\n"),
        ("user and password", ("AUTH default secret; PING",), b"+OK\r\n+PONG\r\n"),
        ("AUTH with a bad number of arguments", ("AUTH; AUTH a b c",), b"-ERR"),
        (
            "eleven arguments",
            (b"*11\r\n", b"$1\r\nx\r\n" * 11),
            {
                "redis70": b"unauthenticated multibulk length",
                "valkey9": b"unauthenticated multibulk length",
            },
        ),
        ("eleven arguments behind AUTH", ("AUTH secret", ("DEL", *"abcdefghij")), b"+OK\r\n:0\r\n"),
        ("HELLO 3", ("HELLO 3; PING",), b"-NOAUTH HELLO must be called"),
        ("HELLO 3 with a wrong password", ("HELLO 3 AUTH default wrong; PING",), b"-WRONGPASS"),
        ("HELLO 3 with the password", ("HELLO 3 AUTH default secret; HGETALL nokey",), b"%0\r\n"),
        (
            "HELLO 2 with the password and a name",
            ("HELLO 2 AUTH default secret SETNAME me; CLIENT GETNAME",),
            b"me\r\n",
        ),
        ("QUIT", ("QUIT; PING",), b"+OK\r\n"),
        ("RESET", ("RESET; PING",), None),
        ("RESET behind AUTH", ("AUTH secret; RESET; PING",), b"NOAUTH"),
        ("MULTI", ("MULTI; SET k v; EXEC",), b"-NOAUTH"),
        ("SUBSCRIBE", ("SUBSCRIBE ch",), b"-NOAUTH"),
        ("CLIENT REPLY OFF", ("CLIENT REPLY OFF; PING; AUTH secret; PING",), b"-NOAUTH"),
        ("POST", (b"POST / HTTP/1.1\r\n",), None),
        ("a protocol error", ("PING", b"*1\r\nPING\r\n"), b"got 'P'"),
    )
)

_LONG_BEFORE_AUTH = one(
    "before AUTH: a long argument",
    b"*2\r\n$4\r\nECHO\r\n$16385\r\n",
    settings=_PASSWORD,
    resp=(2,),
    shows={"redis70": b"unauthenticated bulk length", "valkey9": b"unauthenticated bulk length"},
    # A rule may have to see the whole argument, which never comes.
    only_calm=True,
)

SCRIPTS = (*_ENDS, *_LARGE, *_BEFORE_AUTH, _LONG_BEFORE_AUTH)
