"""Wire scripts for a cluster's node: what it refuses, and what it says unasked when a slot goes elsewhere.

Gives SCRIPTS. The slot of every key and channel is that of `foo`.
"""

from tests.transparency.script import SINCE_70, Hear, Script, alone, one, say

#: With a slot gone the others are served, so that what is answered does not hang on when that is noticed.
_PARTIAL = (("cluster-require-full-coverage", "no"),)

SCRIPTS = (
    one(
        "cluster: what one node refuses",
        "MSET a 1 b 2; MGET {foo}a {foo}b; SELECT 1; SELECT 0; MULTI; MSET a 1 b 2; EXEC",
        ("EVAL", "return redis.call('mget', KEYS[1], KEYS[2])", 2, "a", "b"),
        "CLUSTER KEYSLOT foo; CLUSTER COUNTKEYSINSLOT 12182; CLUSTER NOSUCH; PING",
        servers=SINCE_70,
        shows=b"-CROSSSLOT",
    ),
    one(
        "cluster: ASKING, READONLY, READWRITE",
        "ASKING; GET foo; GET foo; ASKING; MULTI; GET foo; EXEC; READONLY; GET foo; READWRITE; GET foo",
        servers=SINCE_70,
    ),
    alone(
        "cluster: shard channels of several slots",
        "SSUBSCRIBE a b",
        "SSUBSCRIBE {foo}a {foo}b",
        "SUNSUBSCRIBE",
        "ECHO done",
        servers=SINCE_70,
        shows=b"-CROSSSLOT",
    ),
    Script(
        "cluster: shard subscriptions end when their slot goes",
        (
            say("a", "SSUBSCRIBE {foo}a {foo}b; SUBSCRIBE c"),
            say("b", "CLUSTER DELSLOTS 12182"),
            Hear("a", b"sunsubscribe"),
            say("a", "PING"),
            say(
                "b",
                "GET {foo}k; MULTI; GET {foo}k; EXEC; SPUBLISH {foo}a x; CLUSTER ADDSLOTS 12182",
            ),
            say("b", "GET {foo}k; SPUBLISH {foo}a x; PUBLISH c x"),
            say("a", "UNSUBSCRIBE; SUNSUBSCRIBE; ECHO done"),
        ),
        servers=SINCE_70,
        settings=_PARTIAL,
        shows=b"-CLUSTERDOWN Hash slot not served\r\n",
    ),
    Script(
        "cluster: who waits for a key is let go when its slot goes",
        (
            say("a", "BLPOP {foo}q 0; ECHO behind"),
            say("b", "CLUSTER DELSLOTS 12182"),
            Hear("a", b"behind"),
            say("b", "CLUSTER ADDSLOTS 12182"),
        ),
        servers=SINCE_70,
        settings=_PARTIAL,
        shows=b"-CLUSTERDOWN Hash slot not served\r\n",
    ),
)
