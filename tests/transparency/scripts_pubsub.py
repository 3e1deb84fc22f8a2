"""Wire scripts about pub/sub: confirmations that are as many as arguments, and messages that nobody asked for.

Gives SCRIPTS.
"""

from tests.transparency.script import SINCE_70, Script, alone, one, say

_CONFIRMATIONS = (
    one(
        "SUBSCRIBE: one frame an argument, doubles too",
        "SUBSCRIBE a b a; PSUBSCRIBE p* q*; SUBSCRIBE c",
        shows=b":5\r\n",
    ),
    one(
        "UNSUBSCRIBE without arguments, nothing subscribed",
        "UNSUBSCRIBE; PUNSUBSCRIBE; PING",
        shows=b"unsubscribe",
    ),
    one(
        "UNSUBSCRIBE of what is not subscribed",
        "UNSUBSCRIBE x y; PUNSUBSCRIBE x y; PING",
        shows=b"unsubscribe",
    ),
    one(
        "UNSUBSCRIBE without arguments, some subscribed",
        "SUBSCRIBE a b c; PSUBSCRIBE p* q*; UNSUBSCRIBE; PUNSUBSCRIBE; ECHO x",
        shows=b"$1\r\nx\r\n",
    ),
    one(
        "UNSUBSCRIBE of some",
        "SUBSCRIBE a b c; UNSUBSCRIBE b x a; UNSUBSCRIBE; UNSUBSCRIBE; ECHO x",
        shows=b"$1\r\nx\r\n",
    ),
    one(
        "subscriptions without arguments",
        "SUBSCRIBE; PSUBSCRIBE; ECHO x",
        shows=b"-ERR wrong number of arguments",
    ),
    one(
        "binary channels",
        ("SUBSCRIBE", b"\x00\r\n\xff", b"", b"$1"),
        ("UNSUBSCRIBE", b"\x00\r\n\xff"),
        ("UNSUBSCRIBE", b""),
        "UNSUBSCRIBE",
    ),
    one(
        "sharded",
        "SSUBSCRIBE a b a; SUBSCRIBE c; SUNSUBSCRIBE a x; SUNSUBSCRIBE; SUNSUBSCRIBE; UNSUBSCRIBE; ECHO x",
        servers=SINCE_70,
        shows=b"ssubscribe",
    ),
    one("sharded, unknown to the oldest", "SSUBSCRIBE a; SUNSUBSCRIBE; SPUBLISH a x; PING"),
    one(
        "requests before and behind",
        "ECHO 1; SUBSCRIBE a; PING; UNSUBSCRIBE a; ECHO 2",
        b"SUBSCRIBE b\r\nUNSUBSCRIBE\r\nPING\r\n",
        shows=b"$1\r\n2\r\n",
    ),
    one(
        "many subscriptions",
        ("SUBSCRIBE", *(f"ch{i}" for i in range(500))),
        "UNSUBSCRIBE; ECHO x",
        modes=("whole", "split"),
        shows=b"$1\r\nx\r\n",
    ),
    alone("QUIT while subscribed", "SUBSCRIBE a", "QUIT", shows=b"+OK\r\n"),
    alone("a protocol error while subscribed", "SUBSCRIBE a", b"*1\r\nPING\r\n"),
    alone("HELLO 3 while subscribed", "SUBSCRIBE a", "HELLO 3", "PING", "GET k"),
    alone(
        "HELLO 2 while subscribed",
        "HELLO 3",
        "SUBSCRIBE a",
        "GET k",
        "HELLO 2",
        "GET k",
        "PING",
        "UNSUBSCRIBE",
        "GET k",
    ),
    alone("AUTH while subscribed", "SUBSCRIBE a", "AUTH x", "PING"),
    alone(
        "what a subscriber may say",
        "SUBSCRIBE a",
        "GET k",
        "PING",
        "PING hello",
        b"PING\r\n",
        "nosuch",
        "GET",
        "MULTI",
        "EXEC",
        "SELECT 1",
        "CLIENT ID X",
        "PUBLISH a x",
        "PSUBSCRIBE p*",
        "UNSUBSCRIBE",
        "GET k",
        "PUNSUBSCRIBE",
        "GET k",
    ),
    alone(
        "what a shard subscriber may say",
        "SSUBSCRIBE a",
        "GET k",
        "PING",
        "SUNSUBSCRIBE",
        "GET k",
        servers=SINCE_70,
    ),
    one(
        "introspection",
        "SUBSCRIBE a; UNSUBSCRIBE; PUBSUB CHANNELS; PUBSUB NUMSUB a b; PUBSUB NUMPAT; PUBSUB SHARDCHANNELS; PUBSUB NOSUCH; PUBSUB",
    ),
)

_MESSAGES = (
    Script(
        "messages",
        (
            say("a", "SUBSCRIBE ch c2; PSUBSCRIBE c* *"),
            say(
                "b",
                "PUBLISH ch hello",
                ("PUBLISH", "c2", b"\x00\r\n+OK\r\n"),
                "PUBLISH zz pattern; PUBLISH ch",
                ("PUBLISH", "ch", ""),
            ),
            say("a", "UNSUBSCRIBE ch; PUNSUBSCRIBE *"),
            say("b", "PUBLISH ch again"),
            say("a", "UNSUBSCRIBE; PUNSUBSCRIBE; ECHO done"),
        ),
        shows=b"pmessage",
    ),
    Script(
        "sharded messages",
        (
            say("a", "SSUBSCRIBE ch; SUBSCRIBE ch"),
            say("b", "SPUBLISH ch hello; PUBLISH ch other"),
            say("a", "SUNSUBSCRIBE; UNSUBSCRIBE; ECHO done"),
        ),
        servers=SINCE_70,
        shows=b"smessage",
    ),
    Script(
        "messages that look like confirmations and replies",
        (
            say("a", "SUBSCRIBE subscribe unsubscribe message invalidate"),
            say(
                "b",
                "PUBLISH subscribe subscribe; PUBLISH unsubscribe unsubscribe; PUBLISH message message; PUBLISH invalidate x",
            ),
            say("a", "UNSUBSCRIBE unsubscribe; UNSUBSCRIBE; ECHO done"),
        ),
        shows=b"$4\r\ndone\r\n",
    ),
    Script(
        "large messages",
        (
            say("a", "SUBSCRIBE ch"),
            say("b", ("PUBLISH", "ch", "x" * 100_000), ("PUBLISH", "ch", "y" * 100_000)),
            say("a", "UNSUBSCRIBE; PING"),
        ),
        shows=b"y" * 100_000,
    ),
    Script(
        "many messages to many",
        (
            *(say(who, "SUBSCRIBE ch") for who in "acde"),
            say("b", *[("PUBLISH", "ch", f"m{i}") for i in range(200)]),
            *(say(who, "UNSUBSCRIBE; PING") for who in "acde"),
        ),
        modes=("whole", "split"),
        shows=b"m199",
    ),
    one(
        "messages to itself",
        "SUBSCRIBE ch; ECHO 1; PUBLISH ch hello; ECHO 2; UNSUBSCRIBE; PUBLISH ch none",
        resp=(3,),
        shows=b"hello",
    ),
    one(
        "a message to itself from a transaction",
        "SUBSCRIBE ch; MULTI; PUBLISH ch hello; ECHO 2; EXEC; ECHO 3",
        resp=(3,),
        shows=b"hello",
    ),
    one(
        "a message to itself from a script",
        "SUBSCRIBE ch",
        ("EVAL", "redis.call('publish', 'ch', 'hello') return 7", 0),
        "ECHO 3",
        resp=(3,),
        shows=b"hello",
    ),
    Script(
        "messages between replies",
        (
            say("a", "SUBSCRIBE ch"),
            *(
                step
                for i in range(5)
                for step in (say("a", f"SET k {i}", "GET k"), say("b", f"PUBLISH ch {i}"))
            ),
            say("a", "UNSUBSCRIBE; GET k"),
        ),
        resp=(3,),
        shows=b"message",
    ),
    Script(
        "messages while blocked",
        (
            say("a", "SUBSCRIBE ch; BLPOP q 0; ECHO behind"),
            say("b", "PUBLISH ch hello"),
            say("b", "RPUSH q 1"),
            say("b", "PUBLISH ch again"),
        ),
        resp=(3,),
        shows=b"behind",
    ),
    Script(
        "messages in a transaction",
        (
            say("a", "SUBSCRIBE ch; MULTI; GET k"),
            say("b", "PUBLISH ch hello"),
            say("a", "GET k; EXEC"),
        ),
        resp=(3,),
        shows=b"hello",
    ),
)

_IN_TRANSACTIONS = (
    one(
        "SUBSCRIBE in a transaction",
        "MULTI; SUBSCRIBE a b; PING; EXEC; PING; UNSUBSCRIBE; ECHO done",
        shows=b"+QUEUED\r\n",
    ),
    one(
        "SUBSCRIBE alone in a transaction",
        "MULTI; SUBSCRIBE a; EXEC; UNSUBSCRIBE; ECHO done",
        shows=b"+QUEUED\r\n",
    ),
    one(
        "several kinds in a transaction",
        "MULTI; SUBSCRIBE a b; PSUBSCRIBE p*; UNSUBSCRIBE; ECHO x; PUNSUBSCRIBE; EXEC; UNSUBSCRIBE; ECHO done",
        shows=b"+QUEUED\r\n",
    ),
    one(
        "UNSUBSCRIBE in a transaction, nothing subscribed",
        "MULTI; UNSUBSCRIBE; UNSUBSCRIBE x y; EXEC; ECHO done",
        shows=b"$4\r\ndone\r\n",
    ),
    one(
        "UNSUBSCRIBE in a transaction",
        "SUBSCRIBE a b c; MULTI; ECHO 1; UNSUBSCRIBE; ECHO 2; EXEC; ECHO done",
        resp=(3,),
        shows=b"$4\r\ndone\r\n",
    ),
    one(
        "SUBSCRIBE in a transaction that is discarded",
        "MULTI; SUBSCRIBE a; DISCARD; ECHO done",
        shows=b"$4\r\ndone\r\n",
    ),
    one(
        "SUBSCRIBE in a transaction that is refused",
        "MULTI; SUBSCRIBE a; nosuch; EXEC; ECHO done",
        shows=b"$4\r\ndone\r\n",
    ),
    one(
        "sharded, in a transaction",
        "MULTI; SSUBSCRIBE a b; EXEC; SUNSUBSCRIBE; ECHO done",
        servers=SINCE_70,
    ),
)

SCRIPTS = (*_CONFIRMATIONS, *_MESSAGES, *_IN_TRANSACTIONS)
