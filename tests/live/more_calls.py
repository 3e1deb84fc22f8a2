"""Write calls beyond tests/calls.py: what servers refuse, keys of every spelling, one key twice, scripts, long ones.

Takes nothing; gives lists of calls and the data they are about.
"""

from tests.calls import Call

MORE_SETUP: tuple[Call, ...] = (
    ("SET", "watched_", "1"),
    *(("SET", f"w_{n}", f"{9 - n}") for n in (1, 2, 3)),
    *(("SET", f"o_{n}", f"object {n}") for n in (1, 2, 3)),
    ("HSET", "h_1", "w", "2", "o", "first"),
    ("HSET", "h_2", "w", "1", "o", "second"),
    ("SET", "w_a", "no number"),
    ("SET", "most", "9223372036854775807"),
    ("XADD", "x2", "1-1", "a", "1"),
    ("XGROUP", "CREATE", "x2", "grp", "0"),
)


def _lines(text: str) -> tuple[Call, ...]:
    return tuple(tuple(line.split()) for line in text.strip().splitlines())


#: Options and results that tests/calls.py has no call for.
ACCEPTED = _lines(
    """
    incr n
    InCr n
    COPY str n
    COPY str n REPLACE
    COPY str new DB 3
    DEL none
    EXPIRE str -1
    EXPIRE l2 10 GT
    EXPIRE l2 10 LT
    EXPIRE str 0
    GETEX l2 PERSIST
    GETEX str PXAT 33177117420000
    HSET h
    LINSERT l AFTER zzz x
    LPOP l 0
    LREM l -1 a
    MSETNX new 1 new2 2
    PEXPIREAT l2 1
    SET l2 v KEEPTTL
    SET l2 v GET KEEPTTL
    SET none v NX
    SET none v NX GET
    SET str v NX GET
    SET str v XX GET
    SETBIT none 1000 1
    SETRANGE none 5 x
    SETRANGE none 0
    SMOVE s s2 b
    SORT digits BY w_* DESC
    SORT digits BY w_* GET o_* GET #
    SORT digits BY w_* GET o_* GET # STORE dst
    SORT digits BY h_*->w GET h_*->o
    SORT digits BY nosort GET # STORE dst
    SORT l ALPHA LIMIT 1 2
    SORT l BY w_* STORE dst ALPHA
    SORT l BY w_*
    SORT none STORE str
    SINTERSTORE s s none
    XADD x 9-* f v
    XADD x NOMKSTREAM 3-2 f v
    XAUTOCLAIM x grp other 0 1-2
    XCLAIM x grp other 100000 1-1
    XCLAIM x grp other 0 7-7 FORCE JUSTID
    XGROUP CREATE x grp3 $
    XREADGROUP GROUP grp con STREAMS x x2 > >
    XREADGROUP GROUP grp new STREAMS x x2 0 >
    XTRIM x MINID 2-1
    ZADD z GT CH 5 a 1 b 9 c
    ZADD z NX 5 a 5 new
    ZADD z LT INCR 9 a
    ZMPOP 1 z MAX COUNT 9
    ZRANGESTORE dst z (1 3 BYSCORE LIMIT 0 1
    ZUNIONSTORE dst 2 z s WEIGHTS 2 3
    """
)

#: One key in two places, or the destination among the sources.
TWICE = _lines(
    """
    BITOP NOT str str
    BITOP XOR str str n
    COPY str str
    DEL str str none none
    GEOSEARCHSTORE geo geo FROMLONLAT 15 37 BYRADIUS 200 km
    LMOVE l l LEFT RIGHT
    LMPOP 2 l l LEFT
    MSET new 1 new 2
    MSETNX new 1 new 2
    PFMERGE p1 p1 p2
    RENAME str str
    RENAMENX str str
    RPOPLPUSH l l
    SDIFFSTORE s s s
    SMOVE s s a
    SORT digits STORE digits
    SUNIONSTORE s s2 s
    UNLINK str str
    ZDIFFSTORE z 2 z z2
    ZUNIONSTORE z 2 z z
    XREADGROUP GROUP grp con STREAMS x x > 0
    """
)

#: What a server answers with an error of its own: when it is sent, when it is queued, or when it is carried out.
REFUSED = _lines(
    """
    APPEND l x
    BITFIELD str SET u8 0
    BITFIELD l SET u8 0 1
    BITOP NOT dst str n
    DECRBY n 9223372036854775808
    DEL
    EXPIRE str soon
    EXPIRE str 100 NX XX
    EVAL return 2
    EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 str
    FCALL nosuch 1 str
    GEOADD geo 999 999 nowhere
    GEOADD l 1 1 x
    GETDEL l
    GETEX str EX 0
    GETSET l v
    HINCRBY h f 1
    HINCRBY h g x
    HINCRBYFLOAT h f 1
    HSET h f
    HSET str f v
    INCR l
    INCR most
    INCR str
    INCR n n
    INCRBYFLOAT str 1
    LINSERT l BESIDE b x
    LMOVE l dst UP DOWN
    LMOVE l str LEFT RIGHT
    LPOP l -1
    LPUSH str x
    LSET l 99 x
    LSET none 0 x
    MSET new
    MSET new 1 new2
    PFADD str x
    PFADD l x
    PFMERGE p1 str
    RENAME none dst
    RENAMENX none dst
    RESTORE new 0 garbage
    RESTORE str 0 garbage
    RPOPLPUSH l str
    SADD l x
    SET
    SET str
    SET str v EX 0
    SET str v NX XX
    SETBIT str -1 1
    SETBIT str 0 2
    SETEX str 0 v
    SETRANGE l 0 x
    SETRANGE str 536870912 x
    SINTERSTORE dst s l
    SMOVE s l a
    SORT l
    SORT s BY w_*
    SUNIONSTORE l s l
    XADD x 1-1 f v
    XADD x 9-9 f
    XADD str 9-9 f v
    XAUTOCLAIM x nogrp con 0 0
    XCLAIM x nogrp con 0 1-1
    XCLAIM none grp con 0 1-1
    XGROUP CREATE x grp 0
    XGROUP CREATE none grp 0
    XGROUP CREATECONSUMER x nogrp con
    XGROUP CREATECONSUMER none grp con
    XGROUP DELCONSUMER x nogrp con
    XGROUP DESTROY none grp
    XGROUP NOSUCH x grp
    XGROUP SETID x nogrp 0
    XREADGROUP GROUP nogrp con STREAMS x >
    XREADGROUP GROUP grp con STREAMS none >
    XREADGROUP GROUP grp con STREAMS x none > >
    XREADGROUP GROUP nogrp con BLOCK 1 STREAMS x >
    XSETID x 1-1
    XSETID none 1-1
    ZADD l 1 a
    ZADD z NX XX 1 a
    ZADD z x a
    ZADD z 1
    ZADD z INCR 1 a 2 b
    ZINCRBY z x a
    ZINTERSTORE dst 0
    ZINTERSTORE dst 2 z l
    ZUNIONSTORE dst 2 z
    BLPOP str 1
    BLPOP l soon
    BLPOP l -1
    BZPOPMIN l 1
    """
)

SCRIPTS: tuple[Call, ...] = (
    ("EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"),
    ("EVAL", "return redis.call('INCR', KEYS[1])", "1", "str"),
    ("EVAL", "return redis.pcall('INCR', KEYS[1])", "1", "l"),
    ("EVAL", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])", "1", "str", "v"),
    ("EVAL", "redis.call('SET', KEYS[1], 'v') error('after the write')", "1", "str"),
    ("EVAL", "redis.call('DEL', KEYS[1]) return redis.error_reply('MINE own')", "1", "str"),
    ("EVAL", "return {1, {'a', false, {}}, 'b', redis.status_reply('S')}", "1", "str"),
    ("EVAL", "redis.setresp(3) return {double = 1.5}", "1", "str"),
    ("EVAL", "redis.setresp(3) return redis.call('ZINCRBY', KEYS[1], 1, 'a')", "1", "z"),
    ("EVAL", "local removed = redis.call('LPOP', KEYS[1]) return removed", "1", "l"),
    ("EVAL", "return redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT')", "2", "l", "dst"),
    ("EVAL", "return redis.call('RENAME', KEYS[1], KEYS[2])", "2", "str", "n"),
    ("EVAL", "syntax error", "1", "str"),
    ("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "str"),
    ("FCALL", "lib0_f", "1", "str"),
)  # fmt: skip

#: Keys as nobody would name them: hash tags of every form, control and non-UTF-8 bytes, RESP itself, none at all.
ODD_KEYS = (
    b"",
    b" ",
    b"k e y",
    b"\x00",
    b"a\x00b",
    b"line\r\nend",
    b"\xff\xfe\x80",
    "schlüssel \N{SNOWMAN}".encode(),
    b"{",
    b"}",
    b"{}",
    b"}{",
    b"{}x",
    b"{}{x}",
    b"a{b",
    b"a}b",
    b"a{}b",
    b"{a}b{c}",
    b"a{b}c",
    b"{{a}}",
    b"{a\r\n}b",
    b"'quoted' \"twice\"",
    b"$5\r\nhello\r\n",
    b"*1\r\n",
    b"-ERR",
    b"GET",
    b"{a}:chaosproxy:1-1",
    b"x" * 1000,
    b"{" * 1000,
)
ODD_SETUP: tuple[Call, ...] = tuple(("RPUSH", key, "a", "b") for key in ODD_KEYS)
ODD: tuple[Call, ...] = tuple(
    call
    for key in ODD_KEYS
    for call in (
        ("RPUSH", key, "c"),
        ("LPOP", key),
        ("SET", key, "v", "GET"),
        ("DEL", key),
        ("RENAME", key, key),
        # Replies with the key in them: a value, and an error.
        ("LMPOP", "1", key, "LEFT"),
        ("XREADGROUP", "GROUP", "no group", "con", "STREAMS", key + b"?", ">"),
    )
)

#: One of each kind: with and without keys, growing and shrinking, several keys, scripts, errors.
SOME: tuple[Call, ...] = (
    ("INCR", "n"),
    ("SET", "str", "v", "GET"),
    ("DEL", "str", "none"),
    ("LPUSH", "l", "x"),
    ("LPOP", "l"),
    ("LMOVE", "l", "dst", "LEFT", "RIGHT"),
    ("SUNIONSTORE", "dst", "s", "s2"),
    ("XREADGROUP", "GROUP", "grp", "con", "STREAMS", "x", ">"),
    ("XREADGROUP", "GROUP", "nogrp", "con", "STREAMS", "x", ">"),
    ("ZINCRBY", "z", "2.5", "a"),
    ("INCR", "l"),
    ("INCR", "n", "n"),
    ("SORT", "digits", "BY", "w_*", "STORE", "dst"),
    ("EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"),
    ("FLUSHALL",),
    ("SWAPDB", "0"),
)

MANY = tuple(f"many:{number}" for number in range(1000))
BIG = b"0123456789abcdef" * 65536
BIG_SETUP: tuple[Call, ...] = (
    ("SET", "big", BIG),
    ("RPUSH", "biglist", BIG, "x"),
    *(("SADD", key, key, "x") for key in MANY[::2]),
)
#: A thousand keys; a megabyte in the request, in the key, in the reply.
LARGE: tuple[Call, ...] = (
    ("DEL", *MANY),
    ("UNLINK", *MANY[:500], "str"),
    ("MSET", *(word for key in MANY for word in (key, "v"))),
    ("MSETNX", *(word for key in MANY for word in (key, "v"))),
    ("SUNIONSTORE", "dst", *MANY),
    ("SINTERSTORE", "dst", *MANY),
    ("ZUNIONSTORE", "dst", "1000", *MANY, "AGGREGATE", "MAX"),
    ("EVAL", "return redis.call('DEL', unpack(KEYS))", "1000", *MANY),
    ("EVAL", "return #ARGV[1]", "1", "str", BIG),
    ("SET", "str", BIG),
    ("SET", "big", "v", "GET"),
    ("SET", "big", BIG, "GET"),
    ("GETDEL", "big"),
    ("GETSET", "big", BIG),
    ("APPEND", "big", BIG),
    ("APPEND", "str", BIG),
    ("RPUSH", "l", BIG, BIG),
    ("LPOP", "biglist"),
    ("LPOP", "biglist", "2"),
    ("SETRANGE", "big", "1048570", "across the end"),
    ("HSET", "h", BIG, BIG),
    ("INCR", BIG),
    ("SET", BIG, BIG),
    ("RENAME", "big", BIG),
)
