"""Wire scripts about what a connection keeps: database, name, user; about MONITOR, pauses, and a server that refuses.

Gives SCRIPTS.
"""

from tests.transparency.script import (
    SINCE_70,
    SINCE_72,
    End,
    Hear,
    Learn,
    Script,
    Sleep,
    alone,
    one,
    say,
)

_MAP = "HSET h f v; HGETALL h"

_SELECT = (
    one("SELECT", "SET k 0; SELECT 1; GET k; SET k 1; SELECT 0; GET k; SELECT 15; GET k"),
    one(
        "SELECT that fails",
        "SELECT 1; SET k 1; SELECT 16; SELECT -1; SELECT abc; SELECT; GET k",
        shows=b"$1\r\n1\r\n",
    ),
    one("SELECT in a transaction", "MULTI; SELECT 2; SET k 2; EXEC; GET k; SELECT 0; GET k"),
    one("SELECT that fails in a transaction", "MULTI; SELECT 99; SET k 2; EXEC; GET k"),
    one(
        "SELECT in a refused transaction", "MULTI; SELECT 2; nosuch; EXEC; SET k 0; SELECT 2; GET k"
    ),
    one("SELECT in a discarded transaction", "MULTI; SELECT 2; DISCARD; SET k 0; SELECT 2; GET k"),
    one(
        "SELECT in a script stays there",
        ("EVAL", "redis.call('select', 5) return redis.call('set', 'k', '5')", 0),
        "GET k; SELECT 5; GET k",
    ),
    one(
        "SWAPDB, MOVE, COPY",
        "SET k 0; SWAPDB 0 1; GET k; SELECT 1; GET k; MOVE k 2; GET k; SELECT 2; COPY k k DB 3; SWAPDB 0 99",
    ),
)

_RESET = (
    one(
        "RESET",
        "SELECT 3; CLIENT SETNAME me; RESET; CLIENT GETNAME; SET k 0; SELECT 0; GET k",
        shows=b"+RESET\r\n",
    ),
    one("RESET from RESP3", "HELLO 3", _MAP, "RESET", _MAP, shows=b"+RESET\r\n"),
    one(
        "RESET in a transaction",
        "MULTI; SET k v; RESET; GET k; EXEC",
        shows=b"-ERR EXEC without MULTI\r\n",
    ),
    one("RESET while watching", "WATCH k; RESET; SET k v; MULTI; GET k; EXEC"),
    one("RESET with arguments", "MULTI; RESET now; EXEC; PING"),
    alone(
        "RESET while subscribed",
        "SUBSCRIBE a b",
        "PSUBSCRIBE p*",
        "RESET",
        "GET no",
        "PUBLISH a x",
        shows=b"+RESET\r\n",
    ),
    alone(
        "RESET while tracking",
        "HELLO 3",
        "CLIENT TRACKING ON",
        "GET k",
        "RESET",
        "HELLO 3",
        "SET k v",
        shows=b"+RESET\r\n",
    ),
)

_USERS = (
    # One at a time: in one go 8.2.3 loses an answer.
    alone("AUTH without a password set", "AUTH x", "AUTH default x", "AUTH nobody x", "PING"),
    Script(
        "a user with few rights",
        (
            say("b", "ACL SETUSER lim on >pw ~a:* +get +set +multi +exec +ping &ch"),
            say(
                "a",
                "AUTH lim pw; SET a:1 v; GET a:1; GET b:1; DEL a:1; SUBSCRIBE ch; PUBLISH x y; COMMAND COUNT",
            ),
            say("a", "MULTI; SET a:1 w; GET b:1; EXEC; GET a:1; HELLO 3; CLIENT ID; SELECT 1"),
            say("b", "ACL DELUSER lim"),
        ),
        servers=SINCE_70,
        shows=b"-NOPERM",
    ),
    Script(
        "a user that is switched off stays connected, one that is removed does not",
        (
            say("b", "ACL SETUSER lim on >pw ~* +@all"),
            say("a", "AUTH lim pw; PING"),
            say("b", "ACL SETUSER lim off"),
            say("a", "PING"),
            say("b", "ACL DELUSER lim"),
        ),
    ),
    Script(
        "a subscriber loses its channel",
        (
            say("b", "ACL SETUSER sub on >pw allchannels +@all"),
            say("a", "AUTH sub pw; SUBSCRIBE ch"),
            say("b", "ACL SETUSER sub resetchannels; ACL DELUSER sub"),
        ),
    ),
)

_CLIENT = (
    one(
        "CLIENT: names",
        "CLIENT GETNAME; CLIENT SETNAME me; CLIENT GETNAME",
        ("CLIENT", "SETNAME", "a b"),
        ("CLIENT", "SETNAME", ""),
        "CLIENT GETNAME",
    ),
    one(
        "CLIENT: what clients say when they connect",
        "CLIENT SETINFO LIB-NAME x; CLIENT SETINFO LIB-VER 1; CLIENT MAINT_NOTIFICATIONS ON; CLIENT NO-EVICT ON; CLIENT NO-TOUCH ON; CLIENT NO-EVICT OFF; CLIENT CAPA redirect; PING",
    ),
    one(
        "CLIENT: bad arguments",
        "CLIENT; CLIENT NOSUCH; CLIENT SETNAME; CLIENT KILL; CLIENT KILL ID abc; CLIENT UNBLOCK; CLIENT TRACKING MAYBE; CLIENT GETREDIR; CLIENT TRACKINGINFO",
    ),
    one("CLIENT: help", "CLIENT HELP; CLUSTER INFO; READONLY; READWRITE; ASKING; PING"),
    Script(
        "CLIENT KILL of itself",
        (
            Learn("a", "me"),
            say("a", "PING", ("CLIENT", "KILL", "ID", "$me", "SKIPME", "no"), "PING"),
        ),
        shows=b":1\r\n",
    ),
    Script(
        "CLIENT KILL that skips itself",
        (Learn("a", "me"), say("a", ("CLIENT", "KILL", "ID", "$me"), "PING")),
        shows=b":0\r\n+PONG\r\n",
    ),
    Script(
        "CLIENT KILL of another, idle",
        (Learn("a", "other"), say("b", ("CLIENT", "KILL", "ID", "$other"), "PING")),
        shows=b":1\r\n+PONG\r\n",
    ),
    Script(
        "CLIENT KILL of another, blocked",
        (Learn("a", "other"), say("a", "BLPOP no 0"), say("b", ("CLIENT", "KILL", "ID", "$other"))),
    ),
    Script(
        "CLIENT KILL of another, subscribed",
        (
            Learn("a", "other"),
            say("a", "SUBSCRIBE ch"),
            say("b", ("CLIENT", "KILL", "ID", "$other"), "PUBLISH ch x"),
        ),
    ),
    Script(
        "CLIENT KILL of another, in a transaction",
        (
            Learn("a", "other"),
            say("a", "MULTI; SET k v"),
            say("b", ("CLIENT", "KILL", "ID", "$other"), "GET k"),
        ),
    ),
    Script(
        "CLIENT KILL of subscribers",
        (say("a", "SUBSCRIBE ch"), say("b", "CLIENT KILL TYPE pubsub; PING")),
        shows=b":1\r\n",
    ),
    Script(
        "CLIENT PAUSE of writes",
        (
            say("b", "CLIENT PAUSE 10000 WRITE"),
            say("a", "GET k; SET k v; GET k"),
            say("b", "CLIENT UNPAUSE"),
        ),
        shows=b"$1\r\nv\r\n",
    ),
    Script(
        "CLIENT PAUSE of all, that runs out",
        (
            say("b", "CLIENT PAUSE 30 ALL"),
            say("a", "GET k; SET k v; GET k"),
            Hear("a", b"$1\r\nv\r\n"),
        ),
        # In 6.2.5 a pause that was lifted still says how long the next one lasts.
        servers=SINCE_70,
        shows=b"$1\r\nv\r\n",
    ),
    Script(
        "CLIENT PAUSE and a client that goes",
        (
            say("b", "CLIENT PAUSE 10000 WRITE"),
            say("a", "SET k v; PING"),
            End("a", "close"),
            say("b", "CLIENT UNPAUSE; GET k"),
        ),
    ),
)

_MONITOR = (
    Script(
        "MONITOR",
        (
            say("a", "PING; MONITOR"),
            say("b", ("SET", "k", b'a"b\\\n\r\x00\xff'), "GET k; nosuch; SELECT 3; PING"),
            say("a", "PING"),
            say("b", b"PING\r\nECHO 'a b'\r\n"),
            say("a", "GET k; SUBSCRIBE ch"),
            say("b", "PUBLISH ch hello"),
            say("a", "RESET"),
            say("b", "PING"),
            say("a", "GET k"),
        ),
        shows=b'"SET" "k" "a\\"b\\\\\\n\\r\\x00\\xff"',
    ),
    Script(
        "MONITOR, requests behind",
        (say("a", "MONITOR; PING; MONITOR; ECHO x"), say("b", "PING"), say("a", "QUIT")),
        shows=b'"PING"',
    ),
    Script(
        "MONITOR in a transaction", (say("a", "MULTI; MONITOR; PING; EXEC; PING"), say("b", "PING"))
    ),
    Script(
        "MONITOR of a transaction and a script",
        (
            say("a", "MONITOR"),
            say(
                "b",
                "MULTI; SET k v; GET k; EXEC",
                ("EVAL", "return redis.call('get', KEYS[1])", 1, "k"),
            ),
        ),
        shows=b'"EXEC"',
        # Before a MULTI in which a write may be swallowed the proxy looks at the scratch database.
        only_calm=True,
    ),
    Script(
        "MONITOR and CLIENT REPLY",
        (
            say("a", "CLIENT REPLY SKIP; MONITOR; PING"),
            say("b", "ECHO 1"),
            say("a", "CLIENT REPLY OFF"),
            say("b", "ECHO 2"),
        ),
    ),
)

_WAITS = (
    one("WAIT", "SET k v; WAIT 0 0; WAIT 0 10; WAIT -1 0; WAIT a b; WAIT"),
    Script(
        "WAIT that times out",
        (say("a", "SET k v; WAIT 1 10; PING"), Hear("a", b"+PONG")),
        shows=b":0\r\n+PONG\r\n",
    ),
    Script("WAIT in a transaction", (say("a", "MULTI; SET k v; WAIT 1 0; EXEC"),)),
    Script(
        "WAITAOF",
        (
            say("a", "SET k v; WAITAOF 0 0 0; WAITAOF 0 1 10; WAITAOF 1 0 0; PING"),
            Hear("a", b"+PONG"),
        ),
        servers=SINCE_72,
        shows=b"*2\r\n:0\r\n:0\r\n",
    ),
    one("DEBUG SLEEP", "PING; DEBUG SLEEP 0.02; PING"),
)

_SERVER_STATES = (
    one(
        "out of memory",
        "GET k; SET k v; DEL k; MULTI; GET k; SET k v; EXEC",
        ("EVAL", "return redis.call('set', KEYS[1], 'v')", 1, "k"),
        "BLPOP k 0; CONFIG SET maxmemory 0; SET k v",
        settings=(("maxmemory", "1"),),
        shows=b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    ),
    one(
        "too few replicas",
        "GET k; SET k v; MULTI; SET k v; EXEC",
        ("EVAL", "return redis.call('set', KEYS[1], 'v')", 1, "k"),
        "PUBLISH ch x",
        settings=(("min-replicas-to-write", "1"),),
        shows=b"-NOREPLICAS Not enough good replicas to write.\r\n",
    ),
    Script(
        "a primary becomes a replica and a primary again",
        (
            say("a", "BLPOP q 0"),
            say("c", "SUBSCRIBE ch"),
            say("d", "WATCH k; MULTI; SET k v"),
            say("b", "REPLICAOF 127.0.0.1 1"),
            say(
                "b",
                "SET k v; GET k; PUBLISH ch x; MULTI; SET k v; EXEC; CONFIG SET replica-serve-stale-data no; GET k; PING; SET k v",
            ),
            say("d", "EXEC"),
            say("b", "CONFIG SET replica-serve-stale-data yes; REPLICAOF NO ONE; SET k v"),
            say("c", "UNSUBSCRIBE"),
        ),
        shows=b"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n",
    ),
    Script(
        "a script that does not end, and is killed",
        (
            say("a", ("EVAL", "while true do end", 0), "PING", settle=False),
            Sleep(0.05),
            say(
                "b",
                "PING; GET k; MULTI; GET k; EXEC; WATCH k; HELLO 2; SUBSCRIBE ch; RESET; FUNCTION KILL; SCRIPT KILL",
            ),
            Hear("a", b"+PONG"),
        ),
        settings=(("lua-time-limit", "5"),),
        resp=(2,),
        shows=b" is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    ),
)

SCRIPTS = (*_SELECT, *_RESET, *_USERS, *_CLIENT, *_MONITOR, *_WAITS, *_SERVER_STATES)
