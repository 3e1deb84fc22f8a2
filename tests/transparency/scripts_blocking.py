"""Wire scripts about commands that wait: served, timed out, let go, and what waits behind them.

Gives SCRIPTS.
"""

from tests.transparency.script import SINCE_70, Hear, Learn, Script, one, say

_BLOCKING = (
    Script(
        "BLPOP, served",
        (say("a", "BLPOP q r 0"), say("b", "RPUSH r 1"), say("a", "PING")),
        shows=b"*2\r\n$1\r\nr\r\n$1\r\n1\r\n",
    ),
    Script(
        "BLPOP, requests behind",
        (
            say("a", "BLPOP q 0; PING; BLPOP q 0; ECHO x"),
            say("b", "RPUSH q 1"),
            say("b", "RPUSH q 2 3"),
            say("b", "LLEN q"),
        ),
        shows=b"$1\r\nx\r\n",
    ),
    Script(
        "BLPOP, timed out",
        (say("a", "BLPOP q 0.01; PING"), Hear("a", b"+PONG")),
        shows=b"+PONG\r\n",
    ),
    one(
        "BLPOP, nothing to wait for",
        "RPUSH q 1 2 3; BLPOP q 0; BRPOP q 0; LPOP q",
        shows=b"*2\r\n$1\r\nq\r\n$1\r\n1\r\n",
    ),
    one(
        "bad timeouts", "BLPOP q -1; BLPOP q abc; BLPOP q; BLPOP q 1e400; BLMPOP -1 1 q LEFT; PING"
    ),
    Script(
        "all that block, served",
        (
            say(
                "a",
                "BRPOP q 0; BRPOPLPUSH q r 0; BLMOVE q r LEFT RIGHT 0; BZPOPMIN z 0; BZPOPMAX z 0; XREAD BLOCK 0 STREAMS s 0; XGROUP CREATE s g 0; XREADGROUP GROUP g c BLOCK 0 STREAMS s >; PING",
            ),
            say("b", "RPUSH q 1"),
            say("b", "RPUSH q 2"),
            say("b", "RPUSH q 3"),
            say("b", "ZADD z 1.5 m"),
            say("b", "ZADD z 2.5 n"),
            say("b", "XADD s 1-1 f v"),
        ),
        shows=b"+PONG\r\n",
    ),
    Script(
        "all that block since 7.0, served",
        (
            say("a", "BLMPOP 0 2 q r LEFT COUNT 2; BZMPOP 0 1 z MIN COUNT 2; PING"),
            say("b", "RPUSH r 1 2 3"),
            say("b", "ZADD z 1 m 2 n 3 o"),
        ),
        servers=SINCE_70,
        shows=b"+PONG\r\n",
    ),
    Script(
        "all that block, timed out",
        (
            say(
                "a",
                "BRPOP q 0.01; BRPOPLPUSH q r 0.01; BLMOVE q r LEFT RIGHT 0.01; BZPOPMIN z 0.01; BZPOPMAX z 0.01; XREAD BLOCK 5 STREAMS s $; XGROUP CREATE s g $ MKSTREAM; XREADGROUP GROUP g c BLOCK 5 STREAMS s >; PING",
            ),
            Hear("a", b"+PONG"),
        ),
    ),
    Script(
        "XREAD without BLOCK",
        (
            say(
                "a",
                "XREAD STREAMS s 0; XADD s 1-1 f v; XREAD COUNT 1 STREAMS s 0; XREAD BLOCK 0 STREAMS s 0; XREAD BLOCK x STREAMS s 0",
            ),
        ),
    ),
    Script(
        "served by a transaction",
        (say("a", "BLPOP q 0; PING"), say("b", "MULTI; RPUSH q 1; RPUSH q 2; EXEC; LRANGE q 0 -1")),
    ),
    Script(
        "served by a script",
        (
            say("a", "BLPOP q 0; PING"),
            say("b", ("EVAL", "return redis.call('rpush', KEYS[1], 1, 2)", 1, "q")),
        ),
    ),
    Script(
        "several wait for one key",
        (
            say("a", "BLPOP q 0"),
            say("c", "BLPOP q 0"),
            say("d", "BRPOP q 0"),
            say("b", "RPUSH q 1"),
            say("b", "RPUSH q 2"),
            say("b", "RPUSH q 3"),
        ),
    ),
    Script(
        "one hands on to another",
        (say("a", "BLMOVE q r LEFT LEFT 0"), say("c", "BLPOP r 0"), say("b", "RPUSH q 1")),
    ),
    Script(
        "the key becomes another type",
        (say("a", "BLPOP q 0; PING"), say("b", "SET q v"), say("b", "DEL q; RPUSH q 1")),
        shows=b"+PONG\r\n",
    ),
    Script(
        "CLIENT UNBLOCK",
        (
            Learn("a", "id"),
            say("a", "BLPOP q 0"),
            say("b", ("CLIENT", "UNBLOCK", "$id", "ERROR")),
            say("a", "BLPOP q 0; PING"),
            say("b", ("CLIENT", "UNBLOCK", "$id")),
            say(
                "b",
                ("CLIENT", "UNBLOCK", "$id"),
                "CLIENT UNBLOCK 999999999",
                ("CLIENT", "UNBLOCK", "$id", "MAYBE"),
            ),
        ),
        shows=b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
    ),
    Script(
        "a stream is deleted under its reader",
        (
            say("b", "XGROUP CREATE s g $ MKSTREAM"),
            say("a", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"),
            say("b", "DEL s"),
            say("b", "XADD s 1-1 f v"),
        ),
        shows={
            "redis70": b"-UNBLOCKED the stream key no longer exists\r\n",
            "valkey9": b"-NOGROUP",
        },
    ),
    Script(
        "a replica-to-be lets go of who waits",
        (say("a", "BLPOP q 0; PING"), say("b", "REPLICAOF 127.0.0.1 1; REPLICAOF NO ONE; PING")),
        shows=b"-UNBLOCKED",
    ),
    Script("QUIT behind", (say("a", "BLPOP q 0; QUIT"), say("b", "RPUSH q 1")), shows=b"+OK\r\n"),
    Script(
        "a protocol error behind",
        (say("a", "BLPOP q 0", b"*1\r\nPING\r\n"), say("b", "RPUSH q 1")),
        shows={"redis70": b"got 'P'", "valkey9": b"got 'P'"},
    ),
)

SCRIPTS = tuple(script.only(name=f"blocking: {script.name}") for script in _BLOCKING)
