"""Wire scripts about what a server says when keys change: invalidations and keyspace events.

Gives SCRIPTS.
"""

from tests.transparency.script import End, Hear, Learn, Script, one, say

_TRACKING = (
    Script(
        "tracking: another's write, an own write, a flush",
        (
            say("a", "CLIENT TRACKING ON; GET k"),
            say("b", "SET k 1"),
            say("a", "GET k; SET k 2; ECHO x; GET k"),
            say("b", "FLUSHALL"),
            # Since Redis 8 it is done aside, and its client waits.
            Hear("b", b"+OK\r\n" * 2),
            say("a", "MGET k j; CLIENT TRACKING OFF"),
            say("b", "SET k 3"),
            say("a", "PING"),
        ),
        resp=(3,),
        shows=b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
    ),
    one(
        "tracking: own writes in a transaction",
        "CLIENT TRACKING ON; GET k; GET j; MULTI; SET k 1; GET k; SET j 1; EXEC; ECHO done",
        resp=(3,),
        shows=b"invalidate",
    ),
    one(
        "tracking: own writes in one go",
        "CLIENT TRACKING ON",
        *["GET k", "INCR k"] * 20,
        "ECHO done",
        resp=(3,),
        shows=b"invalidate",
    ),
    one(
        "tracking: a script's own writes",
        "CLIENT TRACKING ON",
        (
            "EVAL",
            "redis.call('get', KEYS[1]) redis.call('set', KEYS[1], 1) return redis.call('get', KEYS[1])",
            1,
            "k",
        ),
        "SET k 2; ECHO done",
        resp=(3,),
    ),
    Script(
        "tracking: a key expires",
        (
            # So long that it is still there when it is asked for, byte by byte on a busy machine.
            say("a", "CLIENT TRACKING ON; SET k v PX 2500; GET k"),
            Hear("a", b"invalidate"),
            say("a", "GET k"),
        ),
        resp=(3,),
        shows=b"invalidate",
    ),
    Script(
        "tracking: by prefix",
        (
            say("a", "CLIENT TRACKING ON BCAST PREFIX u: PREFIX v:; CLIENT TRACKINGINFO"),
            say("b", "MSET u:1 a u:2 b w:1 c"),
            say("b", "SET v:1 1"),
            # These pushes come when the server has nothing else to do, so nothing is asked with it.
            say("a", "SET u:3 own"),
            say("a", "PING"),
        ),
        resp=(3,),
        shows=b"invalidate",
    ),
    Script(
        "tracking: NOLOOP, OPTIN, OPTOUT",
        (
            say("a", "CLIENT TRACKING ON NOLOOP; GET k; SET k own"),
            say(
                "c", "CLIENT TRACKING ON OPTIN; GET k; CLIENT CACHING YES; GET j; CLIENT CACHING NO"
            ),
            say(
                "d",
                "CLIENT TRACKING ON OPTOUT; GET k; CLIENT CACHING NO; GET j; CLIENT CACHING YES",
            ),
            say("b", "SET k 1"),
            say("b", "SET j 1"),
        ),
        resp=(3,),
        shows=b"invalidate",
    ),
    Script(
        "tracking: while blocked",
        (
            say("a", "CLIENT TRACKING ON; GET k; BLPOP q 0; ECHO behind"),
            say("b", "SET k 1"),
            say("b", "RPUSH q 1"),
        ),
        resp=(3,),
        shows=b"behind",
    ),
    Script(
        "tracking: redirected to a RESP2 subscriber",
        (
            Learn("r", "target"),
            say("r", "SUBSCRIBE __redis__:invalidate"),
            say("a", ("CLIENT", "TRACKING", "ON", "REDIRECT", "$target"), "CLIENT GETREDIR; GET k"),
            say("b", "SET k 1"),
            say("a", "GET k; GET j"),
            say("b", "FLUSHALL"),
            # Since Redis 8 it is done aside, and its client waits.
            Hear("b", b"+OK\r\n" * 2),
            say("r", "UNSUBSCRIBE"),
        ),
        resp=(2,),
        shows=b"$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n",
    ),
    Script(
        "tracking: redirected to one that goes",
        (
            Learn("r", "target"),
            say("a", ("CLIENT", "TRACKING", "ON", "REDIRECT", "$target"), "GET k"),
            End("r", "close"),
            say("b", "SET k 1"),
            say("a", "PING"),
        ),
        resp=(3,),
        shows=b"tracking-redir-broken",
    ),
    one(
        "tracking: refused",
        "CLIENT TRACKING ON; CLIENT TRACKING ON REDIRECT 999999999; CLIENT TRACKING ON OPTIN OPTOUT; CLIENT CACHING YES; CLIENT TRACKING ON BCAST PREFIX a PREFIX ab; PING",
    ),
)

_EVENTS = (
    Script(
        "keyspace events",
        (
            say("a", "PSUBSCRIBE __key*__:*"),
            say(
                "b",
                "SET k v EX 100; EXPIRE k 50; PERSIST k; RPUSH l 1 2; LPOP l; UNLINK k; HSET h f v; HDEL h f; SELECT 2; XADD s 1-1 f v",
            ),
            say("b", "SELECT 0; SET k v; PEXPIREAT k 1; SET k v PXAT 1; GET k"),
            say("a", "PUNSUBSCRIBE; PING"),
        ),
        settings=(("notify-keyspace-events", "KEA"),),
        shows=b"__keyevent@0__:expire",
    ),
    Script(
        "keyspace events: a key expires",
        (
            say("a", "SUBSCRIBE __keyevent@0__:expired"),
            say("b", "SET k v PX 10"),
            Hear("a", b"message"),
            say("a", "UNSUBSCRIBE"),
        ),
        settings=(("notify-keyspace-events", "Ex"),),
        shows=b"__keyevent@0__:expired",
    ),
    Script(
        "keyspace events of its own writes",
        (
            say(
                "a", "SUBSCRIBE __keyevent@0__:set; SET k v; MULTI; SET k w; GET k; EXEC; ECHO done"
            ),
        ),
        settings=(("notify-keyspace-events", "KEA"),),
        resp=(3,),
        shows=b"$4\r\ndone\r\n",
    ),
)

SCRIPTS = (*_TRACKING, *_EVENTS)
