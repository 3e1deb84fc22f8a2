"""Wire scripts about transactions: queued, run, refused, discarded, and what is different inside.

Gives SCRIPTS.
"""

from tests.transparency.script import End, Hear, Script, alone, one, say

_TRANSACTIONS = (
    one("MULTI, EXEC", "MULTI; SET k 1; INCR k; GET k; EXEC; GET k", shows=b"+QUEUED\r\n"),
    alone(
        "MULTI, EXEC, one at a time",
        "MULTI",
        "SET k 1",
        "INCR k",
        "GET k",
        "EXEC",
        "GET k",
        shows=b"+QUEUED\r\n",
    ),
    one("inline", b"MULTI\r\nSET k 1\r\nGET k\r\nEXEC\r\n", shows=b"+QUEUED\r\n"),
    one("nothing queued", "MULTI; EXEC; PING", shows=b"*0\r\n"),
    one(
        "DISCARD",
        "MULTI; SET k 1; DISCARD; GET k; DISCARD; EXEC",
        shows=b"-ERR DISCARD without MULTI\r\n",
    ),
    one("EXEC without MULTI", "EXEC; PING", shows=b"-ERR EXEC without MULTI\r\n"),
    one(
        "wrong numbers of arguments",
        "MULTI x; EXEC x; MULTI; EXEC x; DISCARD x; WATCH; EXEC",
        shows=b"-EXECABORT",
    ),
    one(
        "an unknown command in it",
        "MULTI; SET k 1; nosuch; GET k; EXEC; GET k",
        shows=b"-EXECABORT Transaction discarded because of previous errors.\r\n",
    ),
    one("a wrong number of arguments in it", "MULTI; SET k; EXEC; GET k", shows=b"-EXECABORT"),
    one("an unknown subcommand in it", "MULTI; CLIENT NOSUCH; EXEC; GET k"),
    one(
        "commands that fail when run",
        "SET k abc; MULTI; INCR k; LPUSH k x; GET k; EXEC",
        shows=b"-WRONGTYPE",
    ),
    one("MULTI in it", "MULTI; MULTI; SET k 1; EXEC; PING", shows=b"-ERR"),
    one("WATCH in it", "MULTI; WATCH k; SET k 1; EXEC; PING", shows=b"-ERR"),
    one("UNWATCH in it", "WATCH k; MULTI; UNWATCH; SET k 1; EXEC; PING"),
    one("not allowed in it", "MULTI; WAIT 0 0; SAVE; MONITOR; EXEC; PING"),
    Script(
        "WATCH, untouched and touched",
        (
            say("a", "WATCH k; MULTI; SET k 1; EXEC"),
            say("a", "WATCH k; GET k"),
            say("b", "SET k 2"),
            say("a", "MULTI; SET k 3; EXEC; GET k"),
            say("a", "WATCH k; UNWATCH"),
            say("b", "SET k 4"),
            say("a", "MULTI; GET k; EXEC"),
            say("a", "WATCH k; SET k 5; MULTI; GET k; EXEC; MULTI; GET k; EXEC"),
        ),
        shows=b"+QUEUED\r\n",
    ),
    Script(
        "WATCH, touched between MULTI and EXEC",
        (
            say("a", "WATCH k j; MULTI; SET k 3"),
            say("b", "DEL j; SET j 1"),
            say("a", "EXEC; GET k"),
        ),
    ),
    Script(
        "WATCH and a flush, another database",
        (
            say("a", "SET k 1; WATCH k"),
            say("b", "SELECT 1; SET k 2; SELECT 0; FLUSHDB"),
            # Since Redis 8 it is done aside, and its client waits.
            Hear("b", b"+OK\r\n" * 4),
            say("a", "MULTI; GET k; EXEC"),
        ),
    ),
    one(
        "blocking commands do not block in it",
        "MULTI; BLPOP q 0; BRPOPLPUSH q r 0; XREAD BLOCK 0 STREAMS s $; RPUSH q 1 2; BLPOP q 0; BZPOPMIN z 0; EXEC; LRANGE q 0 -1",
    ),
    one(
        "scripts and every shape in it",
        "MULTI",
        ("EVAL", "return {1,{2,'x'},false}", 0),
        "HSET h f v; HGETALL h; ZADD z 1.5 a; ZSCORE z a; ZRANGE z 0 -1 WITHSCORES; SMEMBERS no; GET no; COMMAND INFO get; EXEC; PING",
    ),
    one(
        "transactions in a row",
        *["MULTI", "INCR k", "INCR j", "EXEC"] * 25,
        shows=b":25\r\n:25\r\n",
    ),
    one(
        "a large transaction",
        "MULTI",
        *(f"SET k{i} {i}" for i in range(1000)),
        *(f"GET k{i}" for i in range(1000)),
        "EXEC; PING",
        modes=("whole", "split"),
        shows=b"$3\r\n999\r\n",
    ),
    one(
        "a large value in a transaction", "MULTI", ("SET", "k", "x" * 300_000), "GET k; EXEC; PING"
    ),
    one("any case", "multi; sEt k 1", b"exec\r\n", "Multi; Discard"),
    Script(
        "a protocol error in it", (say("a", "MULTI; SET k 1", b"*1\r\nPING\r\n"), say("b", "GET k"))
    ),
    Script("FIN in it", (say("a", "MULTI; SET k 1"), End("a", "fin"), say("b", "GET k"))),
    one(
        "out of memory in it",
        "MULTI; GET k; SET k v; GET k; EXEC",
        settings=(("maxmemory", "1"),),
        shows=b"-EXECABORT",
    ),
)

SCRIPTS = tuple(script.only(name=f"transaction: {script.name}") for script in _TRANSACTIONS)
