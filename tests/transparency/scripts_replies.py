"""Wire scripts about replies: every type, from scripts, from DEBUG PROTOCOL and from the commands that have it.

Gives SCRIPTS.
"""

from tests.transparency.script import SINCE_70, one
from tests.wire import encode

_SHAPES = (
    ("integer and its limits", "return 9223372036854775807"),
    ("nothing", "return nil"),
    ("false", "return false"),
    ("status", "return {ok='FINE'}"),
    ("error", "return {err='MINE it is'}"),
    ("text with line ends", "return 'a\\r\\nb\\r\\n+OK\\r\\n'"),
    ("nested arrays", "return {1,{2,{3,{4,{5,'x',{}}}}},'y'}"),
    # Deeper ones overflow a stack in 6.2.5, which then ends at the next SCRIPT FLUSH.
    ("deep", "local t = 'x' for i = 1, 10 do t = {t} end return t"),
    ("wide", "local t = {} for i = 1, 5000 do t[i] = i end return t"),
    ("errors in an array", "return {1,{err='MINE a'},{ok='b'}}"),
    ("map", "redis.setresp(3) return {map={a=1}}"),
    ("map of maps", "redis.setresp(3) return {map={a={map={b={1,2}}}}}"),
    ("set", "redis.setresp(3) return {set={x=true}}"),
    ("double", "redis.setresp(3) return {double=1.25}"),
    (
        "doubles at the edge",
        "redis.setresp(3) return {{double=1/0},{double=-1/0},{double=1e300},{double=0}}",
    ),
    ("true and false", "redis.setresp(3) return {true,false,1}"),
    (
        "a reply of a command",
        "redis.setresp(3) redis.call('hset','h','f','v') return redis.call('hgetall','h')",
    ),
    (
        "a score",
        "redis.setresp(3) redis.call('zadd','z','1.5','m') return redis.call('zscore','z','m')",
    ),
    (
        "big number",
        "redis.setresp(3) return {big_number='1234567890123456789012345678901234567890'}",
    ),
    (
        "verbatim",
        "redis.setresp(3) return {verbatim_string={string='text\\r\\nhere',format='txt'}}",
    ),
)

_SCRIPTS = (
    *(one(f"EVAL: {name}", ("EVAL", text, 0), "PING") for name, text in _SHAPES),
    one(
        "EVAL: deeper",
        ("EVAL", "local t = 'x' for i = 1, 200 do t = {t} end return t", 0),
        "PING",
        servers=SINCE_70,
    ),
    one(
        "EVAL: all of them in a transaction",
        "MULTI",
        *(("EVAL", text, 0) for _, text in _SHAPES),
        "EXEC; PING",
    ),
    one(
        "EVAL: errors",
        ("EVAL", "return redis.call('nosuch')", 0),
        ("EVAL", "syntax error", 0),
        ("EVAL", "return redis.call('lpush', KEYS[1])", 1, "k"),
        ("EVAL", "error('x')", 0),
        ("EVAL", "return 1", 5, "k"),
        ("EVAL", "return 1", -1),
        "EVAL",
        ("EVAL", "return 1", "x"),
        "PING",
    ),
    one(
        "EVAL: a call that fails inside",
        "SET k v",
        ("EVAL", "return redis.call('lpush', KEYS[1], 'x')", 1, "k"),
        ("EVAL", "return redis.pcall('lpush', KEYS[1], 'x')", 1, "k"),
        "PING",
        shows=b"WRONGTYPE",
    ),
    one(
        "SCRIPT and EVALSHA",
        "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
        ("SCRIPT", "LOAD", "return KEYS[1]"),
        "EVALSHA 4a2267357833227dd98abdedb8cf24b15a986445 1 k; SCRIPT EXISTS 4a2267357833227dd98abdedb8cf24b15a986445 00; SCRIPT FLUSH; EVALSHA 4a2267357833227dd98abdedb8cf24b15a986445 1 k; SCRIPT KILL; SCRIPT NOSUCH; SCRIPT FLUSH MAYBE",
        shows=b"-NOSCRIPT No matching script.",
    ),
    one(
        "EVAL_RO",
        ("EVAL_RO", "return redis.call('get', KEYS[1])", 1, "k"),
        ("EVAL_RO", "return redis.call('set', KEYS[1], 1)", 1, "k"),
        servers=SINCE_70,
    ),
    one(
        "FUNCTION and FCALL",
        (
            "FUNCTION",
            "LOAD",
            "#!lua name=lib\nredis.register_function('f', function(k, a) return {k, a} end)",
        ),
        "FCALL f 1 k a b; FCALL nosuch 0; FUNCTION LIST; FUNCTION DELETE lib; FUNCTION DELETE lib; FCALL f 0; FUNCTION FLUSH",
        servers=SINCE_70,
        shows=b"-ERR Function not found\r\n",
    ),
)

_TYPES = (
    "string",
    "integer",
    "double",
    "null",
    "array",
    "set",
    "map",
    "verbatim",
    "true",
    "false",
    "bignum",
)

_REPLIES = (
    *(
        one(f"DEBUG PROTOCOL {kind}", "ECHO before", f"DEBUG PROTOCOL {kind}", "ECHO behind")
        for kind in _TYPES
    ),
    one(
        "DEBUG PROTOCOL attrib",
        "ECHO before; DEBUG PROTOCOL attrib; ECHO behind",
        shows=b"$6\r\nbehind\r\n",
    ),
    one(
        "DEBUG PROTOCOL push",
        "ECHO before; DEBUG PROTOCOL push; ECHO behind",
        resp=(3,),
        shows=b">",
    ),
    one(
        "DEBUG PROTOCOL push, RESP2",
        "ECHO before; DEBUG PROTOCOL push; ECHO behind",
        resp=(2,),
        servers=SINCE_70,
        shows=b"-ERR",
    ),
    one(
        "DEBUG PROTOCOL in a transaction",
        "MULTI",
        *(f"DEBUG PROTOCOL {kind}" for kind in (*_TYPES, "attrib")),
        "EXEC; ECHO behind",
        shows=b"$6\r\nbehind\r\n",
    ),
    one(
        "DEBUG PROTOCOL push in a transaction",
        "MULTI; ECHO 1; DEBUG PROTOCOL push; ECHO 2; EXEC; ECHO behind",
        resp=(3,),
        shows=b"$6\r\nbehind\r\n",
    ),
    one(
        "errors of commands",
        "nosuch",
        ("nosuch", "x" * 200, "y" * 200),
        "GET; GET a b; SET k v XX YY; CONFIG; CONFIG NOSUCH; OBJECT NOSUCH k; OBJECT HELP; HGET",
        shows=b"unknown command",
    ),
    one(
        "errors of types",
        "SET k v; LPUSH k x; HGETALL k; INCR k; ZADD k 1 a; SADD k a; XADD k 1-1 a b; LRANGE k 0 -1",
        shows=b"-WRONGTYPE",
    ),
    one(
        "an error with line ends in it",
        ("EVAL", "return redis.error_reply('MY a\\r\\nb')", 0),
        ("CONFIG", "SET", "a\r\nb", "x"),
        "PING",
    ),
    one(
        "strings",
        "SET k v; GET k; GET no; GETSET k w; APPEND k x; INCRBYFLOAT f 1.5; SETRANGE k 3 z; MGET k no f; SET k v NX; SET k v GET; STRLEN k; GETDEL k; SETNX k v; LCS k f IDX",
    ),
    one(
        "lists",
        "RPUSH l a b c; LRANGE l 0 -1; LPOP l; LPOP l 2; LPOP l; LPOP l 2; LPOS l x; LINSERT l BEFORE x y; RPOPLPUSH l m; LMPOP 1 l LEFT",
    ),
    one(
        "hashes",
        "HSET h a 1 b 2; HGETALL h; HGETALL no; HMGET h a c; HINCRBYFLOAT h a 1.5; HRANDFIELD h 0; HKEYS h; HVALS h; HSCAN h 0; HSTRLEN h a",
    ),
    one(
        "sets",
        "SADD s a; SMEMBERS s; SISMEMBER s a; SMISMEMBER s a b; SPOP s; SPOP s 2; SPOP s; SINTER s t; SSCAN s 0; SRANDMEMBER s 2",
    ),
    one(
        "sorted sets",
        "ZADD z 1 a 2.5 b 3 c; ZRANGE z 0 -1 WITHSCORES; ZSCORE z a; ZMSCORE z a x; ZADD z INCR 2 a; ZRANK z a; ZRANK z x; ZPOPMIN z; ZPOPMAX z 2; ZPOPMIN z; ZINCRBY z 1.5 q; ZRANDMEMBER z 1 WITHSCORES; ZDIFF 1 z WITHSCORES",
    ),
    one(
        "streams",
        "XADD s 1-1 a 1 b 2; XADD s 1-1 a 1; XRANGE s - +; XREAD STREAMS s 0; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >; XACK s g 1-1; XPENDING s g; XPENDING s g - + 10; XLEN s; XREAD STREAMS s 9; XCLAIM s g c 0 1-1; XAUTOCLAIM s g c 0 0",
    ),
    one(
        "geo, bits, counters",
        "GEOADD g 13.361389 38.115556 a; GEOPOS g a x; GEODIST g a a; GEOSEARCH g FROMMEMBER a BYRADIUS 1 km ASC WITHCOORD WITHDIST; GEOHASH g a; SETBIT b 7 1; BITCOUNT b; BITFIELD b GET u8 0 OVERFLOW FAIL INCRBY u2 0 3 INCRBY u2 0 3; BITPOS b 1; PFADD p a b; PFCOUNT p; PFMERGE q p",
    ),
    one(
        "keys",
        "SET k v; TYPE k; TYPE no; TTL k; TTL no; EXPIREAT k 4102444800; EXPIRETIME k; PERSIST k; TTL k; RENAME k j; RENAME k j; COPY j k; KEYS *; SCAN 0; EXISTS k j no; TOUCH k; OBJECT ENCODING k; OBJECT REFCOUNT no; DUMP no; SORT no; DEL k j; DBSIZE; UNLINK k; SET k v; RANDOMKEY",
    ),
    one(
        "a dumped value there and back",
        "RPUSH l a b; DUMP l",
        ("RESTORE", "m", 0, b"bad"),
        "LRANGE l 0 -1",
    ),
    one(
        "the server",
        "SLOWLOG RESET; COMMAND COUNT; COMMAND INFO get nosuch mget; COMMAND GETKEYS MSET a 1 b 2; COMMAND GETKEYS GET; COMMAND DOCS get; CONFIG GET maxmemory*; CONFIG GET nosuch; CONFIG SET nosuch 1; LATENCY LATEST; LATENCY DOCTOR; MEMORY USAGE no; SLOWLOG LEN; ACL WHOAMI; ACL LIST; ACL GETUSER default; ACL CAT string; MODULE LIST; ROLE; LASTSAVE x; TIME x; ECHO; LOLWUT VERSION 0",
        # On a busy machine any command can be slow.
        settings=(("slowlog-log-slower-than", "-1"),),
    ),
    one("all of COMMAND", "COMMAND; PING"),
    one("all of the settings", "CONFIG GET *; PING"),
    one(
        "long lists",
        ("RPUSH", "l", *range(20_000)),
        "LRANGE l 0 -1; PING",
        modes=("whole", "split"),
    ),
    one(
        "ARGV that looks like keys",
        ("SET", b"*3", b"$-1"),
        ("GET", b"*3"),
        ("SET", b"\r\n", encode("GET", "x")),
        ("GET", b"\r\n"),
    ),
)

SCRIPTS = (*_SCRIPTS, *_REPLIES)
