"""Real calls of every command that has keys: what the command table is held against on live servers.

Takes a server to set up; gives lists of calls. None of them needs a second server.
"""

from tests.servers import Server

Call = tuple[str | bytes, ...]

_LIBRARY = "#!lua name=%s\nredis.register_function('%s_f', function(keys, args) return 1 end)"


def _calls(text: str, *more: Call) -> tuple[Call, ...]:
    """Split each line at its blanks; `more` are calls that have blanks of their own."""
    return (*(tuple(line.split()) for line in text.strip().splitlines()), *more)


# Every kind of value, each under a name of its own.
SETUP = _calls(
    """
    SET str hello
    SET n 7
    SET f 1.5
    RPUSH l a b c a
    RPUSH l2 x
    SADD s a b c
    SADD s2 b c d
    SADD digits 3 1 2
    ZADD z 1 a 2 b 3 c
    ZADD z2 2 b 3 c 4 d
    HSET h f v g 5 h 1.5
    XADD x 1-1 a 1
    XADD x 2-1 b 2
    XADD x 3-1 c 3
    XGROUP CREATE x grp 0
    XREADGROUP GROUP grp con COUNT 2 STREAMS x >
    PFADD p1 a b
    PFADD p2 b c
    GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
    EXPIRE l2 1000
    """,
    ("SCRIPT", "LOAD", "return 1"),
)
# What only some servers know; refused by the others, which is fine.
SETUP_NEWER = _calls(
    """
    HSET ht f v g w
    HEXPIRE ht 1000 FIELDS 1 f
    VADD v VALUES 3 1 0 0 one
    VADD v VALUES 3 0 1 0 two
    """,
    ("FUNCTION", "LOAD", _LIBRARY % ("lib0", "lib0")),
)

WRITES = _calls(
    """
    APPEND str xyz
    APPEND new xyz
    BITFIELD str SET u8 0 97 GET u8 8 INCRBY u8 16 1
    BITFIELD str OVERFLOW FAIL INCRBY u2 0 5
    BITOP AND dst str n
    BLMOVE l dst LEFT RIGHT 0.01
    BLMOVE none dst LEFT RIGHT 0.01
    BLMPOP 0.01 1 l LEFT COUNT 2
    BLMPOP 0.01 1 none LEFT
    BLPOP none l 0.01
    BLPOP none 0.01
    BRPOP l 0.01
    BRPOP none 0.01
    BRPOPLPUSH l dst 0.01
    BRPOPLPUSH none dst 0.01
    BZMPOP 0.01 1 z MIN COUNT 2
    BZMPOP 0.01 1 none MIN
    BZPOPMAX z 0.01
    BZPOPMAX none 0.01
    BZPOPMIN none z 0.01
    BZPOPMIN none 0.01
    COPY str dst
    COPY none dst
    DECR n
    DECRBY n 3
    DEL str l none
    DELIFEQ str hello
    DELIFEQ str other
    EVAL return{1,redis.call('SET',KEYS[1],'v')} 1 k
    EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
    EXPIRE str 100
    EXPIRE none 100
    EXPIREAT str 33177117420
    FCALL lib0_f 0
    FLUSHALL
    FLUSHDB
    FUNCTION DELETE lib0
    FUNCTION FLUSH
    GEOADD geo 1 1 there
    GEOADD geo XX CH 1 1 Palermo
    GEORADIUS geo 15 37 200 km
    GEORADIUS geo 15 37 200 km WITHDIST WITHCOORD WITHHASH
    GEORADIUS geo 15 37 200 km STORE dst
    GEORADIUSBYMEMBER geo Palermo 200 km
    GEORADIUSBYMEMBER geo Palermo 200 km WITHDIST
    GEORADIUSBYMEMBER geo Palermo 200 km STOREDIST dst
    GEOSEARCHSTORE dst geo FROMLONLAT 15 37 BYRADIUS 200 km
    GETDEL str
    GETDEL none
    GETEX str EX 100
    GETEX none
    GETSET str v
    GETSET none v
    HDEL h f none
    HEXPIRE h 100 FIELDS 2 f none
    HEXPIREAT h 33177117420 FIELDS 1 f
    HGETDEL h FIELDS 2 f none
    HGETEX h EX 100 FIELDS 2 f none
    HINCRBY h g 3
    HINCRBYFLOAT h h 0.5
    HMSET h a 1 b 2
    HPERSIST ht FIELDS 3 f g none
    HPEXPIRE h 100000 NX FIELDS 1 f
    HPEXPIREAT h 33177117420000 FIELDS 1 f
    HSET h a 1 f 2
    HSETEX h EX 100 FIELDS 1 a 1
    HSETEX h FXX FIELDS 1 none 1
    HSETNX h f v
    HSETNX h new v
    INCR n
    INCR new
    INCRBY n 5
    INCRBYFLOAT f 0.25
    LINSERT l BEFORE b x
    LINSERT l BEFORE none x
    LMOVE l dst LEFT RIGHT
    LMOVE none dst LEFT RIGHT
    LMPOP 2 none l RIGHT COUNT 2
    LMPOP 1 none LEFT
    LPOP l
    LPOP l 2
    LPOP none
    LPOP none 2
    LPUSH l x y
    LPUSHX l x
    LPUSHX none x
    LREM l 0 a
    LSET l 0 x
    LTRIM l 0 0
    MIGRATE 127.0.0.1 1 none 0 10
    MOVE str 1
    MSET a 1 b 2
    MSETEX 2 a 1 b 2 EX 100
    MSETNX a 1 b 2
    MSETNX a 1 str 2
    PERSIST l2
    PERSIST str
    PEXPIRE str 100000
    PEXPIREAT str 33177117420000
    PFADD p1 z
    PFADD p1 a
    PFDEBUG GETREG p1
    PFMERGE p1 p2
    PSETEX str 100000 v
    RENAME str dst
    RENAMENX str dst
    RENAMENX str n
    RPOP l
    RPOP l 2
    RPOP none
    RPOP none 2
    RPOPLPUSH l dst
    RPOPLPUSH none dst
    RPUSH l x y
    RPUSHX l x
    SADD s a x y
    SDIFFSTORE dst s s2
    SET str v
    SET str v GET
    SET none v GET
    SET str v NX
    SET none v XX
    SET str v EX 100
    SETBIT str 0 1
    SETEX str 100 v
    SETNX str v
    SETNX new v
    SETRANGE str 2 xx
    SINTERSTORE dst s s2
    SMOVE s dst a
    SMOVE s dst none
    SORT digits
    SORT digits BY none GET # GET none* LIMIT 0 2
    SORT digits STORE dst
    SPOP s
    SPOP s 2
    SPOP none
    SPOP none 2
    SREM s a none
    SUNIONSTORE dst s s2
    SWAPDB 0 1
    UNLINK str l
    VADD v VALUES 3 0 0 1 three
    VADD v VALUES 3 0 0 1 one
    VREM v one
    VREM v none
    VSETATTR v one {}
    XACK x grp 1-1 9-9
    XACKDEL x grp IDS 2 1-1 9-9
    XADD x * f v
    XADD x 9-9 f v
    XADD x MAXLEN ~ 2 9-9 f v
    XADD none NOMKSTREAM * f v
    XAUTOCLAIM x grp other 0 0
    XAUTOCLAIM x grp other 0 0 COUNT 1 JUSTID
    XCLAIM x grp other 0 1-1 2-1
    XCLAIM x grp other 0 1-1 JUSTID
    XDEL x 1-1 9-9
    XDELEX x IDS 2 1-1 9-9
    XGROUP CREATE x grp2 0
    XGROUP CREATE new grp2 0 MKSTREAM
    XGROUP CREATECONSUMER x grp con2
    XGROUP CREATECONSUMER x grp con
    XGROUP DELCONSUMER x grp con
    XGROUP DESTROY x grp
    XGROUP DESTROY x none
    XGROUP SETID x grp 0
    XREADGROUP GROUP grp con COUNT 1 STREAMS x >
    XREADGROUP GROUP grp con STREAMS x 0
    XREADGROUP GROUP grp other BLOCK 1 STREAMS x 0
    XREADGROUP GROUP grp con NOACK BLOCK 1 STREAMS x 99
    XSETID x 99-99
    XTRIM x MAXLEN 1
    ZADD z 9 new 1 a
    ZADD z XX CH 9 a
    ZADD z INCR 2 a
    ZADD z XX INCR 2 none
    ZDIFFSTORE dst 2 z z2
    ZINCRBY z 2.5 a
    ZINTERSTORE dst 2 z z2 WEIGHTS 1 2
    ZMPOP 2 none z MIN COUNT 2
    ZMPOP 1 none MIN
    ZPOPMAX z
    ZPOPMAX z 2
    ZPOPMIN z
    ZPOPMIN none
    ZPOPMIN z 2
    ZRANGESTORE dst z 0 -1
    ZREM z a none
    ZREMRANGEBYLEX z - +
    ZREMRANGEBYRANK z 0 0
    ZREMRANGEBYSCORE z 1 2
    ZUNIONSTORE dst 2 z z2 AGGREGATE MAX
    """,
    ("FUNCTION", "LOAD", _LIBRARY % ("lib", "lib")),
)


def set_up(server: Server) -> None:
    """Empty the server and put SETUP's data there, with what newer servers know where it is known."""
    server.ask("FLUSHALL")
    server.ask("FUNCTION", "FLUSH")
    for call in (*SETUP, *SETUP_NEWER):
        server.ask(*call)


def writes(server: Server) -> tuple[Call, ...]:
    """Give WRITES and those calls whose payload only this very server can make."""
    set_up(server)
    value, functions = server.ask("DUMP", "str"), server.ask("FUNCTION", "DUMP")
    calls: tuple[Call, ...] = (
        ("RESTORE", "new", "0", value),
        ("RESTORE-ASKING", "new", "0", value),
    )
    if isinstance(functions, bytes):
        calls += (("FUNCTION", "RESTORE", functions, "REPLACE"),)
    return WRITES + calls


# Reads and refused writes on keys that are not there: what `miss` is about.
MISSES = _calls(
    """
    BITCOUNT k
    BITCOUNT k 0 -1
    BITFIELD_RO k GET u8 0 GET u8 8
    BITPOS k 0
    BITPOS k 1
    BITPOS k 1 0
    BITOP NOT d k
    BLMOVE k l LEFT LEFT 0.01
    BLMPOP 0.01 1 k LEFT
    BLPOP k l 0.01
    BRPOP k l 0.01
    BRPOPLPUSH k l 0.01
    BZMPOP 0.01 1 k MIN
    BZPOPMAX k 0.01
    BZPOPMIN k 0.01
    COPY k l
    DEL k l
    DELIFEQ k v
    DUMP k
    EXISTS k l
    EXPIRE k 1
    EXPIREAT k 33177117420
    EXPIRETIME k
    GEODIST k a b
    GEOHASH k a b
    GEOPOS k a b
    GEORADIUS k 1 1 1 km
    GEORADIUS k 1 1 1 km STORE d
    GEORADIUSBYMEMBER k m 1 km
    GEORADIUSBYMEMBER k m 1 km STOREDIST d
    GEORADIUSBYMEMBER_RO k m 1 km
    GEORADIUS_RO k 1 1 1 km
    GEOSEARCH k FROMLONLAT 1 1 BYRADIUS 1 km
    GEOSEARCH k FROMMEMBER m BYBOX 1 1 km WITHDIST
    GEOSEARCHSTORE d k FROMLONLAT 1 1 BYRADIUS 1 km
    GET k
    GETBIT k 1
    GETDEL k
    GETEX k
    GETRANGE k 0 -1
    GETSET k v
    HDEL k a b
    HEXISTS k f
    HEXPIRE k 1 FIELDS 2 a b
    HEXPIREAT k 33177117420 FIELDS 2 a b
    HEXPIRETIME k FIELDS 2 a b
    HGET k f
    HGETALL k
    HGETDEL k FIELDS 2 a b
    HGETEX k FIELDS 2 a b
    HKEYS k
    HLEN k
    HMGET k a b c
    HPERSIST k FIELDS 2 a b
    HPEXPIRE k 1 NX FIELDS 2 a b
    HPEXPIREAT k 33177117420000 FIELDS 2 a b
    HPEXPIRETIME k FIELDS 2 a b
    HPTTL k FIELDS 2 a b
    HRANDFIELD k
    HRANDFIELD k 2
    HRANDFIELD k 2 WITHVALUES
    HSCAN k 0
    HSCAN k 0 COUNT 5 MATCH a*
    HSTRLEN k f
    HTTL k FIELDS 1 a
    HVALS k
    LCS k l
    LCS k l LEN
    LCS k l IDX
    LINDEX k 0
    LINSERT k BEFORE a b
    LLEN k
    LMOVE k l LEFT LEFT
    LMPOP 1 k LEFT
    LPOP k
    LPOP k 2
    LPOS k a
    LPOS k a COUNT 1
    LPUSHX k a
    LRANGE k 0 -1
    LREM k 0 a
    LSET k 0 a
    LTRIM k 0 1
    MEMORY USAGE k
    MEMORY USAGE k SAMPLES 5
    MGET k l m
    MIGRATE 127.0.0.1 1 k 0 1
    MOVE k 1
    OBJECT ENCODING k
    OBJECT FREQ k
    OBJECT IDLETIME k
    OBJECT REFCOUNT k
    PERSIST k
    PEXPIRE k 1
    PEXPIREAT k 33177117420000
    PEXPIRETIME k
    PFCOUNT k l
    PTTL k
    RENAME k l
    RENAMENX k l
    RPOP k
    RPOP k 2
    RPOPLPUSH k l
    RPUSHX k a
    SCARD k
    SDIFF k l
    SDIFFSTORE d k l
    SINTER k l
    SINTERCARD 2 k l
    SINTERSTORE d k l
    SISMEMBER k a
    SMEMBERS k
    SMISMEMBER k a b
    SMOVE k l a
    SORT k
    SORT k STORE d
    SORT_RO k
    SPOP k
    SPOP k 2
    SRANDMEMBER k
    SRANDMEMBER k 2
    SREM k a
    SSCAN k 0
    STRLEN k
    SUBSTR k 0 -1
    SUNION k l
    SUNIONSTORE d k l
    TOUCH k l
    TTL k
    TYPE k
    UNLINK k l
    VCARD k
    VDIM k
    VEMB k e
    VGETATTR k e
    VINFO k
    VISMEMBER k e
    VLINKS k e
    VLINKS k e WITHSCORES
    VRANDMEMBER k
    VRANDMEMBER k 2
    VREM k e
    VSETATTR k e {}
    VSIM k VALUES 1 1
    VSIM k ELE e WITHSCORES
    XACK k g 1-1
    XACKDEL k g IDS 2 1-1 2-2
    XAUTOCLAIM k g c 0 0
    XCLAIM k g c 0 1-1
    XDEL k 1-1
    XDELEX k IDS 2 1-1 2-2
    XGROUP CREATECONSUMER k g c
    XGROUP DELCONSUMER k g c
    XGROUP DESTROY k g
    XGROUP SETID k g 0
    XINFO CONSUMERS k g
    XINFO GROUPS k
    XINFO STREAM k
    XINFO STREAM k FULL
    XLEN k
    XPENDING k g
    XPENDING k g - + 1
    XRANGE k - +
    XREAD STREAMS k l 0 0
    XREAD COUNT 1 BLOCK 1 STREAMS k $
    XREADGROUP GROUP g c STREAMS k >
    XREVRANGE k + -
    XSETID k 1-1
    XTRIM k MAXLEN 1
    ZCARD k
    ZCOUNT k 0 1
    ZDIFF 2 k l
    ZDIFF 2 k l WITHSCORES
    ZDIFFSTORE d 2 k l
    ZINTER 2 k l
    ZINTERCARD 2 k l
    ZINTERSTORE d 2 k l
    ZLEXCOUNT k - +
    ZMPOP 1 k MIN
    ZMSCORE k a b
    ZPOPMAX k
    ZPOPMAX k 2
    ZPOPMIN k
    ZPOPMIN k 2
    ZRANDMEMBER k
    ZRANDMEMBER k 2
    ZRANDMEMBER k 2 WITHSCORES
    ZRANGE k 0 -1
    ZRANGE k 0 1 BYSCORE WITHSCORES
    ZRANGEBYLEX k - +
    ZRANGEBYSCORE k 0 1
    ZRANGESTORE d k 0 -1
    ZRANK k m
    ZRANK k m WITHSCORE
    ZREM k a
    ZREMRANGEBYLEX k - +
    ZREMRANGEBYRANK k 0 1
    ZREMRANGEBYSCORE k 0 1
    ZREVRANGE k 0 -1
    ZREVRANGEBYLEX k + -
    ZREVRANGEBYSCORE k 1 0
    ZREVRANK k m
    ZREVRANK k m WITHSCORE
    ZSCAN k 0
    ZSCORE k m
    ZUNION 2 k l
    ZUNIONSTORE d 2 k l
    """
)

# Where keys stand in odd places, in odd spellings, and calls that have none.
KEYS = _calls(
    """
    ping
    set A b
    Get A
    config get maxmemory
    client setname a
    script load return
    publish ch hello
    spublish ch hello
    subscribe a b
    watch a b c
    eval return 0
    eval return 1 a
    eval return 2 a b c d
    eval return 0 a b
    evalsha abc 1 a b
    evalsha_ro abc 1 a b
    clusterscan 0
    eval_ro return 2 a b
    fcall f 2 a b c
    fcall_ro f 1 a b
    sort a
    sort a by w_* get o_* get # limit 0 5 desc alpha store d
    sort a store d store e
    sort a get store by store store d
    sort_ro a by w_* get #
    migrate h 1 k 0 100
    migrate h 1 k 0 100 copy replace
    migrate h 1 k 0 100 auth keys
    migrate h 1 k 0 100 auth2 user keys
    xread count 1 streams a b 0-0 0-0
    xread block 0 streams streams $
    xreadgroup group g c streams a b > >
    xreadgroup group streams c count 1 noack streams a >
    xgroup create a g 0 mkstream
    XGROUP Create a g 0
    xinfo stream a full
    object encoding a
    memory usage a samples 5
    bitop and d a b c
    bitfield a get u8 0
    zunionstore d 2 a b weights 1 2
    zinterstore d 1 a aggregate max
    zdiffstore d 2 a b
    zunion 3 a b c withscores
    zinter 2 a b
    zintercard 2 a b limit 1
    sintercard 3 a b c
    zmpop 2 a b max
    lmpop 1 a left
    bzmpop 0 2 a b min
    blmpop 0.5 2 a b left count 3
    blpop a b c 0
    bzpopmin a b 0
    brpoplpush a b 0
    blmove a b left right 0
    mset a 1 b 2
    msetnx a 1 b 2 c 3
    msetex 2 a 1 b 2 ex 100
    mget a b c
    del a b
    rename a b
    copy a b db 3 replace
    smove a b m
    geosearchstore d a fromlonlat 1 1 byradius 1 km
    georadius a 1 1 1 km
    georadius a 1 1 1 km count 5 store d
    georadius a 1 1 1 km withdist storedist d
    georadiusbymember a m 1 km store d
    pfmerge d a b
    pfcount a b
    zrangestore d a 0 -1
    lcs a b idx
    stralgo lcs keys a b
    stralgo lcs strings a b
    scan 0
    hset a f v
    hexpire a 10 fields 1 f
    restore a 0 payload
    touch a b
    vadd a values 2 1 2 e
    vsim a ele e
    flushall
    multi
    wait 0 0
    randomkey
    dump a
    swapdb 0 1
    """
)
