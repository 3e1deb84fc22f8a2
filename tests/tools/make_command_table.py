"""Makes chaosproxy/core/commands.json from what four real servers say of their commands.

Takes nothing but servers it starts itself; gives the file. Run it from the repository's root:
`python -m tests.tools.make_command_table`; `--check` only says whether the file is up to date.

Names, arities, flags, categories and key specs are the union of the servers' COMMAND, the newest
server's word counting. What COMMAND does not say, the shapes of replies, stands here, in the code of
chaosproxy/core/reply_shape.py; the tests hold it against what the servers really answer.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import hiredis

from chaosproxy.core import reply_shape
from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.key_spec import KeySpec
from tests import servers

FILE = Path(__file__).parents[2] / "chaosproxy" / "core" / "commands.json"

# No commands: their names are a trap for HTTP requests, and end the connection.
TRAPS = {"POST", "HOST:"}

# Key specs came with 7.0; these commands were gone by then.
OLD_KEY_SPECS = {"STRALGO": "RO access; keyword KEYS 1; range 1 1 0"}

_ENTRY = "[id [bulk...]|nil[]|nil]"

# What a write answers when it succeeds, by shape code.
REPLY = {
    "OK": """FLUSHALL FLUSHDB FUNCTION|DELETE FUNCTION|FLUSH FUNCTION|RESTORE HMSET LSET LTRIM MSET PFMERGE
        PSETEX RENAME RESTORE RESTORE-ASKING SETEX SWAPDB XGROUP|CREATE XGROUP|SETID XSETID
        CLUSTER|FLUSHSLOT""",
    "OK|NOKEY": "MIGRATE",
    "1|0": """COPY DELIFEQ EXPIRE EXPIREAT HSETEX HSETNX MOVE MSETEX MSETNX PERSIST PEXPIRE PEXPIREAT
        PFADD RENAMENX SETNX SMOVE XGROUP|CREATECONSUMER XGROUP|DESTROY""",
    "0|1": "SETBIT",
    "int": """BITOP DECR GEOADD INCR LINSERT LREM SDIFFSTORE SETRANGE SINTERSTORE SUNIONSTORE
        XGROUP|DELCONSUMER ZDIFFSTORE ZINTERSTORE ZRANGESTORE ZUNIONSTORE""",
    "int=keys": "DEL UNLINK",
    "int=n2": "HDEL LPUSH LPUSHX RPUSH RPUSHX SADD SREM XDEL ZREM",
    "int=n2/2": "HSET",
    "int=n3": "XACK",
    "int=@2": "DECRBY INCRBY",
    "int=@3": "HINCRBY",
    "0|int": "GEOSEARCHSTORE XTRIM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE",
    "int=l2": "APPEND",
    "bulk=@2": "INCRBYFLOAT",
    "bulk=@3": "HINCRBYFLOAT",
    "bulk": "FUNCTION|LOAD",
    "nil|bulk": "GETDEL GETEX GETSET LMOVE RPOPLPUSH",
    "nil[]|bulk": "BLMOVE BRPOPLPUSH",
    "GET@3: nil|bulk; OK|nil": "SET",
    "3+: nil[]|nil|[bulk...]; nil|bulk": "LPOP RPOP",
    "3+: (bulk...); nil|bulk": "SPOP",
    "nil[]|[bulk bulk]": "BLPOP BRPOP",
    "nil[]|[bulk [bulk...]]": "BLMPOP LMPOP",
    "nil[]|[bulk [[bulk score]...]]": "BZMPOP ZMPOP",
    "nil[]|[bulk bulk score]": "BZPOPMAX BZPOPMIN",
    "3+: [<bulk score>...]; []|[bulk score]": "ZPOPMAX ZPOPMIN",
    "INCR@2: score=@-2|nil; int=n2/2": "ZADD",
    "score=@2": "ZINCRBY",
    "[int|nil...#GET,SET,INCRBY]": "BITFIELD",
    "STORE,STOREDIST@5: int; [bulk|[any...]...]": "GEORADIUS GEORADIUSBYMEMBER",
    "STORE@2: int; [bulk|nil...]": "SORT",
    "[1|0|2|-2...@FIELDS]": "HEXPIRE HEXPIREAT HPEXPIRE HPEXPIREAT",
    "[1|-1|-2...@FIELDS]": "HPERSIST",
    "[nil|bulk...@FIELDS]": "HGETDEL HGETEX",
    "[1|2|-1...@IDS]": "XACKDEL XDELEX",
    "NOMKSTREAM@2: id|nil; id": "XADD",
    f'JUSTID@6: ["0-0"|id [id...] [id...]]|["0-0"|id [id...]]; '
    f'["0-0"|id [{_ENTRY}...] [id...]]|["0-0"|id [{_ENTRY}|nil...]]': "XAUTOCLAIM",
    f"JUSTID@5: [id...]; [{_ENTRY}|nil...]": "XCLAIM",
    f"nil[]|{{<bulk [{_ENTRY}...]>...}}": "XREADGROUP",
    "bool|false": "VADD VREM VSETATTR",
    "any": "EVAL EVALSHA FCALL PFDEBUG",
}

_NO_KEY = (
    "!ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the "
    "MKSTREAM option to create an empty stream automatically."
)
_NO_GROUP = "!NOGROUP No such key '{key}' or consumer group '{2}'"

# What reads, and writes that need something to be there, answer when none of their keys exists.
MISS = {
    "0": """BITCOUNT COPY DEL DELIFEQ EXISTS EXPIRE EXPIREAT GETBIT HDEL HEXISTS HLEN HSTRLEN LINSERT
        LLEN LPUSHX LREM MOVE PERSIST PEXPIRE PEXPIREAT PFCOUNT RPUSHX SCARD SINTERCARD SISMEMBER SMOVE
        SREM STRLEN TOUCH UNLINK VCARD XACK XDEL XLEN XTRIM ZCARD ZCOUNT ZINTERCARD ZLEXCOUNT ZREM
        ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE""",
    "0 stored": "BITOP GEOSEARCHSTORE SDIFFSTORE SINTERSTORE SUNIONSTORE ZDIFFSTORE ZINTERSTORE "
    "ZRANGESTORE ZUNIONSTORE",
    "-2": "EXPIRETIME PEXPIRETIME PTTL TTL",
    "2=0: 0; -1": "BITPOS",
    "none": "TYPE",
    "OK": "LTRIM",
    "NOKEY": "MIGRATE",
    "nil": """DUMP GEODIST GET GETDEL GETEX GETSET HGET LINDEX LMOVE MEMORY|USAGE OBJECT|ENCODING
        OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT RPOPLPUSH VEMB VGETATTR VLINKS ZSCORE""",
    "nil[]": """BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN LMPOP VINFO XREAD ZMPOP""",
    '""': "GETRANGE SUBSTR",
    "[]": """GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH HKEYS HVALS LRANGE SORT_RO VSIM XRANGE XREVRANGE
        ZDIFF ZINTER ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX
        ZREVRANGEBYSCORE ZUNION""",
    "()": "SDIFF SINTER SMEMBERS SUNION",
    "{}": "HGETALL",
    "3+: []; nil": "HRANDFIELD SRANDMEMBER VRANDMEMBER ZRANDMEMBER",
    "3+: (); nil": "SPOP",
    "3+: nil[]; nil": "LPOP RPOP",
    "COUNT@3: []; nil": "LPOS",
    "WITHSCORE@3: nil[]; nil": "ZRANK ZREVRANK",
    "STORE@2: 0; []": "SORT",
    "STORE,STOREDIST@5: 0; []": "GEORADIUS GEORADIUSBYMEMBER",
    'LEN@3: 0; IDX@3: {"matches" [] "len" 0}; ""': "LCS",
    '["0" []]': "HSCAN SSCAN ZSCAN",
    "[nil...keys]": "MGET",
    "[nil...n2]": "GEOHASH HMGET ZMSCORE",
    "[nil[]...n2]": "GEOPOS",
    "[0...n2]": "SMISMEMBER",
    "[0...#GET]": "BITFIELD_RO",
    "[nil...@FIELDS]": "HGETDEL HGETEX",
    "[-2...@FIELDS]": """HEXPIRE HEXPIREAT HEXPIRETIME HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL
        HTTL""",
    "[-1...@IDS]": "XACKDEL XDELEX",
    "false": "VISMEMBER VREM VSETATTR",
    "!ERR no such key": """LSET RENAME RENAMENX XINFO|CONSUMERS XINFO|GROUPS XINFO|STREAM XSETID""",
    "!ERR key does not exist": "VDIM",
    _NO_KEY: "XGROUP|CREATECONSUMER XGROUP|DELCONSUMER XGROUP|DESTROY XGROUP|SETID",
    _NO_GROUP: "XAUTOCLAIM XCLAIM XPENDING",
    f"{_NO_GROUP} in XREADGROUP with GROUP option": "XREADGROUP",
}


def by_name(table: dict[str, str]) -> dict[str, str]:
    """Turn code -> names into name -> code; a name twice and a code that cannot be read are mistakes."""
    codes: dict[str, str] = {}
    for key, names in table.items():
        code = key.removesuffix(" stored")
        reply_shape.parse(code)
        for name in names.split():
            assert name not in codes, f"{name} twice"
            codes[name] = code
    return codes


def command_reply(server: servers.Server) -> object:
    """Give a server's COMMAND reply decoded as the proxy's own connection decodes it."""
    reader = hiredis.Reader()
    reader.feed(server.control.raw("COMMAND"))
    return reader.gets()


def union() -> dict[str, CommandSpec]:
    """Ask every server for its commands; the newest that knows one has the last word."""
    nothing = CommandTable(MappingProxyType({}))
    specs: dict[str, CommandSpec] = {}
    for name in servers.NAMES:
        reason = servers.available(name)
        if reason is not None:
            sys.exit(reason)
        server = servers.start(name)
        specs |= CommandTable.from_reply(command_reply(server), nothing).specs
        server.stop()
    for name, text in OLD_KEY_SPECS.items():
        specs[name] = replace(specs[name], key_specs=(KeySpec.parse(text),))
    return {name: spec for name, spec in sorted(specs.items()) if name not in TRAPS}


def text_of(specs: dict[str, CommandSpec]) -> str:
    """Write the file: JSON, one command a line, so that a change can be read."""
    reply, miss = by_name(REPLY), by_name(MISS)
    assert not (unknown := (reply.keys() | miss.keys()) - specs.keys()), unknown
    assert not (missing := {s.name for s in specs.values() if s.is_write} - reply.keys()), missing
    lines = []
    for name, spec in specs.items():
        entry: dict[str, object] = {
            "arity": spec.arity,
            "flags": " ".join(sorted(spec.flags)),
            "categories": " ".join(sorted(spec.categories)),
        }
        if spec.key_specs:
            entry["keys"] = [str(key) for key in spec.key_specs]
        for field, codes in (("reply", reply), ("miss", miss)):
            if name in codes:
                entry[field] = codes[name]
        lines.append(f" {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}")
    return '{"commands": {\n' + ",\n".join(lines) + "\n}}\n"


def main() -> None:
    """Write the file, or check it."""
    text = text_of(union())
    if "--check" not in sys.argv:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE} is not what the servers say: run python -m {__spec__.name}")


if __name__ == "__main__":
    main()
