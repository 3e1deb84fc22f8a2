"""Wire scripts about how a connection is answered: HELLO and its protocols, CLIENT REPLY.

Gives SCRIPTS.
"""

from tests.transparency.script import Hear, Script, one, say

_MAP = "HSET h f v; HGETALL h"

_HELLO = tuple(
    one(f"HELLO: {name}", *requests, **({"shows": shows} if shows else {}))
    for name, requests, shows in (
        ("alone", ("HELLO", _MAP), b"role"),
        ("2", ("HELLO 2", _MAP), b"*2\r\n$1\r\nf\r\n"),
        ("3", ("HELLO 3", _MAP), b"%1\r\n$1\r\nf\r\n"),
        (
            "to and fro",
            ("HELLO 3", _MAP, "HELLO 2", _MAP, "HELLO 3", _MAP, "HELLO; GET nokey"),
            b"%1\r\n$1\r\nf\r\n",
        ),
        ("inline", (b"HELLO 3\r\n", _MAP, b"hello 2\r\n", _MAP), b"%1\r\n$1\r\nf\r\n"),
        ("4", ("HELLO 4", _MAP), b"-NOPROTO unsupported protocol version\r\n"),
        ("1", ("HELLO 1", _MAP), b"-NOPROTO unsupported protocol version\r\n"),
        (
            "no number",
            ("HELLO abc", _MAP),
            b"-ERR Protocol version is not an integer or out of range\r\n",
        ),
        ("unknown option", ("HELLO 3 FOO", _MAP), b"-ERR Syntax error in HELLO option 'FOO'\r\n"),
        (
            "AUTH without password",
            ("HELLO 3 AUTH x", _MAP),
            b"-ERR Syntax error in HELLO option 'AUTH'\r\n",
        ),
        ("wrong password", ("HELLO 3 AUTH nobody x", _MAP), b"-WRONGPASS"),
        ("SETNAME", ("HELLO 3 SETNAME me; CLIENT GETNAME", _MAP), b"$2\r\nme\r\n"),
        (
            "SETNAME with a blank",
            (("HELLO", "3", "SETNAME", "a b"), "CLIENT GETNAME", _MAP),
            b"-ERR Client names",
        ),
        (
            "AUTH and SETNAME",
            ("HELLO 3 AUTH default x SETNAME me; CLIENT GETNAME", _MAP),
            b"$2\r\nme\r\n",
        ),
        (
            "the database stays",
            ("SELECT 3; SET k 3; HELLO 3; GET k; HELLO 2; GET k",),
            b"$1\r\n3\r\n",
        ),
        ("3 in a transaction", ("MULTI; HELLO 3; HGETALL h; EXEC", _MAP), b"+QUEUED\r\n"),
        ("2 in a transaction", ("HELLO 3; MULTI; HELLO 2; HGETALL h; EXEC", _MAP), b"+QUEUED\r\n"),
        ("failing in a transaction", ("MULTI; HELLO 4; HGETALL h; EXEC", _MAP), b"-NOPROTO"),
        ("3 in a transaction that is discarded", ("MULTI; HELLO 3; DISCARD", _MAP), b"+OK\r\n"),
        (
            "3 in a transaction that is refused",
            ("MULTI; HELLO 3; nosuch; EXEC", _MAP),
            b"-EXECABORT",
        ),
        (
            "nulls and doubles",
            ("HELLO 3; GET no; ZADD z 1.5 a; ZSCORE z a; HELLO 2; GET no; ZSCORE z a",),
            b",1.5\r\n",
        ),
    )
)

_CLIENT_REPLY = tuple(
    one(f"CLIENT REPLY: {name}", *requests, **({"shows": shows} if shows else {}))
    for name, requests, shows in (
        (
            "OFF and ON",
            ("PING; CLIENT REPLY OFF; PING; SET k v; GET k; CLIENT REPLY ON; GET k",),
            b"+OK\r\n$1\r\nv\r\n",
        ),
        (
            "OFF twice",
            ("CLIENT REPLY OFF; CLIENT REPLY OFF; PING; CLIENT REPLY ON; ECHO x",),
            b"+OK\r\n$1\r\nx\r\n",
        ),
        ("ON while on", ("CLIENT REPLY ON; ECHO x",), b"+OK\r\n$1\r\nx\r\n"),
        ("SKIP", ("CLIENT REPLY SKIP; ECHO 1; ECHO 2; ECHO 3",), b"$1\r\n2\r\n$1\r\n3\r\n"),
        ("SKIP twice", ("CLIENT REPLY SKIP; CLIENT REPLY SKIP; ECHO 1; ECHO 2",), b"$1\r\n2\r\n"),
        ("SKIP of an unknown command", ("CLIENT REPLY SKIP; nosuch; ECHO 2",), b"$1\r\n2\r\n"),
        (
            "SKIP of a wrong number of arguments",
            ("CLIENT REPLY SKIP; GET; ECHO 2",),
            b"$1\r\n2\r\n",
        ),
        (
            "SKIP and nothing to skip",
            ("CLIENT REPLY SKIP", b"\r\n*0\r\n", "ECHO 1; ECHO 2"),
            b"$1\r\n2\r\n",
        ),
        (
            "SKIP of MULTI",
            ("CLIENT REPLY SKIP; MULTI; SET k v; GET k; EXEC; ECHO 2",),
            b"+QUEUED\r\n",
        ),
        ("SKIP of EXEC", ("MULTI; INCR k; CLIENT REPLY SKIP; EXEC; ECHO 2",), None),
        ("SKIP of SELECT", ("CLIENT REPLY SKIP; SELECT 2; SET k 2; SELECT 0; GET k",), None),
        (
            "SKIP of HELLO",
            ("CLIENT REPLY SKIP; HELLO 3; HGETALL h; CLIENT REPLY SKIP; HELLO 2; HGETALL h",),
            b"*0\r\n",
        ),
        ("SKIP of SUBSCRIBE", ("CLIENT REPLY SKIP; SUBSCRIBE a b; PING; UNSUBSCRIBE; PING",), None),
        (
            "SKIP of CLIENT REPLY OFF",
            ("CLIENT REPLY SKIP; CLIENT REPLY OFF; ECHO 1; CLIENT REPLY ON; ECHO 2",),
            b"$1\r\n2\r\n",
        ),
        ("SKIP of CLIENT REPLY ON", ("CLIENT REPLY SKIP; CLIENT REPLY ON; ECHO 1; ECHO 2",), None),
        ("SKIP of RESET", ("CLIENT REPLY SKIP; RESET; ECHO 1; ECHO 2",), None),
        ("SKIP of QUIT", ("CLIENT REPLY SKIP; QUIT; ECHO 1",), None),
        ("SKIP of a protocol error", ("CLIENT REPLY SKIP", b"*1\r\nPING\r\n"), None),
        (
            "SKIP while off",
            ("CLIENT REPLY OFF; CLIENT REPLY SKIP; ECHO 1; CLIENT REPLY ON; ECHO 2",),
            b"$1\r\n2\r\n",
        ),
        (
            "any case",
            (
                "client reply skip; ECHO 1; Client Reply Off; ECHO 2",
                b"client reply on\r\n",
                "ECHO 3",
            ),
            b"$1\r\n3\r\n",
        ),
        ("bad argument", ("CLIENT REPLY MAYBE; CLIENT REPLY; CLIENT REPLY ON x; ECHO 1",), b"-ERR"),
        ("OFF and QUIT", ("CLIENT REPLY OFF; QUIT; PING",), None),
        ("OFF and a protocol error", ("CLIENT REPLY OFF", b"*1\r\nPING\r\n"), None),
        ("OFF and RESET", ("CLIENT REPLY OFF; PING; RESET; ECHO 1",), None),
        ("OFF and HELLO 3", ("CLIENT REPLY OFF; HELLO 3; CLIENT REPLY ON; HGETALL h",), b"%0\r\n"),
        (
            "OFF and a transaction",
            ("CLIENT REPLY OFF; MULTI; INCR k; EXEC; CLIENT REPLY ON; GET k",),
            b"$1\r\n1\r\n",
        ),
        ("OFF before, EXEC after", ("MULTI; INCR k; CLIENT REPLY OFF",), None),
        (
            "OFF and SELECT",
            ("CLIENT REPLY OFF; SELECT 4; SET k 4; CLIENT REPLY ON; GET k",),
            b"$1\r\n4\r\n",
        ),
    )
)

_CLIENT_REPLY_ELSEWHERE = (
    # What comes back is no frame any more on servers that allow this: an array that announces more than it has.
    *(
        one(
            f"CLIENT REPLY: {how} in a transaction",
            "MULTI",
            f"CLIENT REPLY {how}",
            "ECHO 1; EXEC; ECHO 2; ECHO 3",
        )
        for how in ("OFF", "SKIP", "ON")
    ),
    Script(
        "CLIENT REPLY: SKIP of a BLPOP that times out",
        (say("a", "CLIENT REPLY SKIP; BLPOP no 0.01; ECHO 2"), Hear("a", b"$1\r\n2\r\n")),
        shows=b"$1\r\n2\r\n",
    ),
    Script(
        "CLIENT REPLY: SKIP of a BLPOP that is served",
        (say("a", "CLIENT REPLY SKIP; BLPOP q 0; ECHO 2"), say("b", "RPUSH q 1")),
        shows=b"$1\r\n2\r\n",
    ),
    Script(
        "CLIENT REPLY: OFF and SUBSCRIBE",
        (
            say("a", "CLIENT REPLY OFF; SUBSCRIBE ch"),
            say("b", "PUBLISH ch hello"),
            say("a", "UNSUBSCRIBE; CLIENT REPLY ON; PING"),
        ),
        shows={"redis70": b"hello", "valkey9": b"hello"},
    ),
    Script(
        "CLIENT REPLY: SUBSCRIBE, then OFF, RESP3",
        (
            say("a", "SUBSCRIBE ch; CLIENT REPLY OFF"),
            say("b", "PUBLISH ch one"),
            say("a", "PING; CLIENT REPLY ON; PING"),
            say("b", "PUBLISH ch two"),
        ),
        resp=(3,),
        shows=b"two",
    ),
)

SCRIPTS = (*_HELLO, *_CLIENT_REPLY, *_CLIENT_REPLY_ELSEWHERE)
