"""A seeded mix of what clients do, for two connections that belong together: steps that do not depend on any reply.

Takes a chance, a name for its keys and the protocol; gives steps whose every reply is determined, whoever else is at work on
the server: keys, channels, scripts and functions are the pair's own, times are absolute, ids of streams are given, sets
are small enough to be kept in order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

Who = Literal["a", "b"]
Word = bytes | str | int
Command = tuple[Word, ...]

#: A time to live's end that no test sees.
FAR = 4_000_000_000


@dataclass(frozen=True, slots=True)
class Send:
    """One connection sends these in one go; bytes are sent as they are."""

    who: Who
    commands: tuple[Command | bytes, ...]


@dataclass(frozen=True, slots=True)
class Hear:
    """Go on once this connection has got so many more frames, of whatever kind."""

    who: Who
    frames: int


@dataclass(frozen=True, slots=True)
class Over:
    """The server ends this connection now."""

    who: Who


Step = Send | Hear | Over


class Mix:
    """Steps in the making. `name` begins all that is the pair's."""

    def __init__(self, random: Random, name: str, resp: int) -> None:
        self.random = random
        self.name = name
        self.resp = resp
        self.steps: list[Step] = []
        self.number = 0

    def make(self) -> list[Step]:
        """Make some."""
        for _ in range(self.random.randint(1, 4)):
            self.random.choice(KINDS)(self)
        return self.steps

    # -- parts

    def key(self, kind: str) -> str:
        return f"{self.name}:{kind}:{self.random.randint(1, 3)}"

    def text(self) -> bytes:
        size = self.random.choice([0, 1, 5, 40, 40, 500, 5000, 20_000])
        if self.random.random() < 0.01:
            size = self.random.choice([70_000, 400_000])
        begin = self.random.choice([b"", "héllo 🎉".encode(), b"\r\n$3\r\n", b"\0\xff", b"*1\r\n"])
        return begin + bytes([97 + self.random.randrange(26)]) * size

    def small(self) -> str:
        return f"m{self.random.randint(1, 12)}"

    def sides(self) -> tuple[Who, Who]:
        return self.random.choice((("a", "b"), ("b", "a")))

    def say(self, who: Who, *commands: Command | bytes, hear: int | None = None) -> None:
        """Send, and wait for as many frames as there are commands, or `hear`."""
        self.steps.append(Send(who, commands))
        frames = len(commands) if hear is None else hear
        if frames:
            self.steps.append(Hear(who, frames))

    def some(self, who: Who, of: Callable[[], Command], least: int = 1, most: int = 6) -> None:
        """Send a few, one by one or in one go."""
        commands = [of() for _ in range(self.random.randint(least, most))]
        if self.random.random() < 0.5:
            self.say(who, *commands)
        else:
            for command in commands:
                self.say(who, command)

    # -- single commands

    def simple(self) -> Command:
        """Any command with one reply that is known."""
        return self.random.choice(SIMPLE)(self)

    def string(self) -> Command:
        key, pick = self.key("s"), self.random.randrange(14)
        return (
            ("SET", key, self.text()),
            ("SET", key, self.text(), "EXAT", FAR, "GET"),
            ("SET", key, 5, "NX"),
            ("GET", key),
            ("GETSET", key, self.text()),
            ("GETDEL", key),
            ("APPEND", key, self.text()[:100]),
            ("STRLEN", key),
            ("GETRANGE", key, 1, -2),
            ("SETRANGE", key, 3, "xyz"),
            ("MSET", key, self.text(), self.key("s"), 1),
            ("MGET", key, self.key("s"), self.key("none"), self.key("l")),
            ("EXPIREAT", key, FAR, "NX"),
            ("OBJECT", "ENCODING", key),
        )[pick]

    def count(self) -> Command:
        key, pick = self.key("n"), self.random.randrange(8)
        return (
            ("INCR", key),
            ("INCRBY", key, self.random.randint(-5, 5)),
            ("DECR", key),
            ("GET", key),
            ("INCRBYFLOAT", self.key("f"), "0.5"),
            ("SETBIT", self.key("bits"), self.random.randrange(64), 1),
            ("BITFIELD", self.key("bits"), "GET", "u8", 0, "INCRBY", "i5", 16, 3),
            ("BITCOUNT", self.key("bits")),
        )[pick]

    def queue(self) -> Command:
        key, pick = self.key("l"), self.random.randrange(11)
        return (
            ("RPUSH", key, self.text(), self.small()),
            ("LPUSH", key, self.small()),
            ("LPUSHX", key, self.small()),
            ("LRANGE", key, 0, -1),
            ("LTRIM", key, 0, 6),
            ("LPOP", key),
            ("RPOP", key, 2),
            ("LLEN", key),
            ("LINSERT", key, "BEFORE", self.small(), "x"),
            ("LMOVE", key, self.key("l"), "LEFT", "RIGHT"),
            ("LPOS", key, self.small(), "COUNT", 0),
        )[pick]

    def table(self) -> Command:
        key, pick = self.key("h"), self.random.randrange(9)
        return (
            ("HSET", key, self.small(), self.text()[:60], self.small(), 1),
            ("HGETALL", key),
            ("HGET", key, self.small()),
            ("HMGET", key, self.small(), self.small()),
            ("HINCRBY", key, "count", 2),
            ("HINCRBYFLOAT", key, "float", "1.5"),
            ("HDEL", key, self.small()),
            ("HKEYS", key),
            ("HSCAN", key, 0),
        )[pick]

    def crowd(self) -> Command:
        key, pick = self.key("set"), self.random.randrange(7)
        return (
            ("SADD", key, self.random.randint(1, 9), self.random.randint(1, 9)),
            ("SREM", key, self.random.randint(1, 9)),
            ("SMEMBERS", key),
            ("SISMEMBER", key, 3),
            ("SMISMEMBER", key, 3, 4),
            ("SINTER", key, self.key("set")),
            ("SORT", key, "DESC"),
        )[pick]

    def ranks(self) -> Command:
        key, pick = self.key("z"), self.random.randrange(10)
        return (
            ("ZADD", key, self.random.randint(-9, 9) / 2, self.small()),
            ("ZADD", key, "INCR", "0.25", self.small()),
            ("ZADD", key, "GT", "CH", "1e10", self.small(), "-inf", self.small()),
            ("ZRANGE", key, 0, -1, "WITHSCORES"),
            ("ZRANGEBYSCORE", key, "-inf", "(3"),
            ("ZSCORE", key, self.small()),
            ("ZMSCORE", key, self.small(), "none"),
            ("ZRANK", key, self.small()),
            ("ZPOPMIN", key),
            ("ZREM", key, self.small()),
        )[pick]

    def stream(self) -> Command:
        # Later ones have later ids, within a connection's whole life and from one to the next.
        key, pick = self.key("x"), self.random.randrange(9)
        at = f"{self.random.randint(1, 10**9)}-{self.random.randint(0, 9)}"
        return (
            ("XADD", key, "MAXLEN", 8, at, "field", self.text()[:200]),
            ("XADD", key, "MAXLEN", 8, at, "field", self.small(), "other", 1),
            ("XLEN", key),
            ("XRANGE", key, "-", "+"),
            ("XREVRANGE", key, "+", "-", "COUNT", 2),
            ("XREAD", "COUNT", 2, "STREAMS", key, self.key("x"), "0", "0"),
            ("XDEL", key, at),
            ("XTRIM", key, "MAXLEN", 4),
            ("XINFO", "GROUPS", key),
        )[pick]

    def wrong(self) -> Command:
        """Refused, each in another way."""
        return self.random.choice(
            (
                ("GET", self.key("l")),
                ("INCR", self.key("h")),
                ("NOSUCH", self.small(), self.text()[:50]),
                ("GET",),
                ("SET", self.key("s"), 1, "EX", "never"),
                ("EVAL", "return redis.call('nosuch')", 0),
                ("EVAL", "return {err='MADE up'}", 0),
                ("EVALSHA", "0" * 40, 0),
                ("XADD", self.key("x"), "0-0", "f", "v"),
                ("OBJECT", "NOSUCH", "x"),
                ("LSET", self.key("none"), 0, "x"),
                ("EXEC",),
                ("SELECT", 999),
            )
        )

    def script(self) -> Command:
        key = self.key("s")
        return self.random.choice(
            (
                ("EVAL", "return {KEYS[1], ARGV[1], 1, {2, false, 'x'}}", 1, key, self.text()),
                ("EVAL", "return redis.call('INCR', KEYS[1])", 1, self.key("n")),
                ("EVAL", "redis.setresp(3) return redis.call('HGETALL', KEYS[1])", 1, self.key("h")),
                ("EVAL", "return {double=1.5}", 0),
                ("EVAL", "return redis.status_reply('FINE')", 0),
                ("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, key),
                ("EVAL", "return redis.pcall('LPUSH', KEYS[1], 'x')", 1, self.key("s")),
            )
        )  # fmt: skip

    # -- scenes

    def alone(self) -> None:
        """One connection by itself, in one go or one by one."""
        self.some(self.sides()[0], self.simple, most=12)

    def both(self) -> None:
        """Both at once."""
        first, second = self.sides()
        one, two = ([self.mine(who) for _ in range(self.random.randint(1, 8))] for who in "ab")
        self.steps += [Send(first, tuple(one)), Send(second, tuple(two))]
        self.steps += [Hear(first, len(one)), Hear(second, len(two))]

    def mine(self, who: str) -> Command:
        """A command on nobody else's key."""
        return self.random.choice(
            (
                ("ECHO", self.text()),
                ("INCR", f"{self.name}:own:{who}"),
                ("EVAL", "return ARGV", 0, self.small(), who),
                ("PING",),
            )
        )

    def inline(self) -> None:
        """As a person types it."""
        line = self.random.choice(
            (b"PING\r\n", b"ECHO 'a b'\n", b'  ECHO "\\x41\\n"  \r\n', b"ECHO unquoted\r\n")
        )
        self.say(self.sides()[0], line, ("ECHO", "between"), line)

    def transaction(self) -> None:
        who, other = self.sides()
        watched = self.random.random() < 0.5
        key = self.key("s")
        if watched:
            self.say(who, ("WATCH", key, self.key("n")))
            if self.random.random() < 0.5:
                self.say(other, ("SET", key, self.text()))
        inside = [self.simple() for _ in range(self.random.randint(0, 6))]
        # Neither leaves the transaction, nor is it known to be one before it is queued.
        inside = [each for each in inside if each[0] not in ("EXEC", "SELECT")]
        end = self.random.choice((("EXEC",), ("EXEC",), ("EXEC",), ("DISCARD",)))
        whole: list[Command] = [("MULTI",), *inside, end]
        if self.random.random() < 0.5:
            self.say(who, *whole)
        else:
            for command in whole:
                self.say(who, command)

    def blocking(self) -> None:
        """One waits for what the other brings, or has brought; or nothing comes."""
        waits, brings = self.sides()
        key, other = f"{self.name}:q", f"{self.name}:q2"
        value = self.text()
        wait, bring = self.random.choice(
            (
                (("BLPOP", key, other, 0), ("RPUSH", key, value)),
                (("BRPOP", other, key, 0), ("LPUSH", key, value)),
                (("BLMOVE", key, other, "LEFT", "RIGHT", 0), ("RPUSH", key, value)),
                (("BRPOPLPUSH", key, other, 0), ("RPUSH", key, value)),
                (("BZPOPMIN", f"{key}z", 0), ("ZADD", f"{key}z", "1.5", value)),
                (("BLMPOP", 0, 2, key, other, "LEFT"), ("RPUSH", other, value)),
                (("XREAD", "BLOCK", 0, "STREAMS", f"{key}x", "$"), ("XADD", f"{key}x", "5-*", "f", value)),
            )
        )  # fmt: skip
        clear = ("DEL", key, other, f"{key}z", f"{key}x")
        self.say(brings, clear)
        case = self.random.randrange(3)
        if case == 0 and wait[0] != "XREAD":
            self.say(brings, bring)
            self.say(waits, wait)
        elif case == 1 or wait[0] == "XREAD":
            if wait[0] == "XREAD":
                # From where there is none, whoever comes first.
                wait = (*wait[:-1], "0")
            # What comes behind it waits too.
            behind = ("ECHO", self.small())
            self.say(waits, wait, behind, hear=0)
            self.say(brings, bring)
            self.steps.append(Hear(waits, 2))
        else:
            self.say(waits, ("BLPOP", key, "0.01"), ("BRPOP", other, "0.02"), ("PING",))
        self.say(brings, clear)

    def group(self) -> None:
        """A consumer group: waiting for an entry, acknowledging it."""
        waits, brings = self.sides()
        key = f"{self.name}:g"
        self.say(brings, ("DEL", key), ("XGROUP", "CREATE", key, "g", "$", "MKSTREAM"))
        read = ("XREADGROUP", "GROUP", "g", "me", "COUNT", 3, "BLOCK", 0, "STREAMS", key, ">")
        self.say(waits, read, hear=0)
        self.say(brings, ("XADD", key, "7-1", "f", self.text()[:100]))
        self.steps.append(Hear(waits, 1))
        self.say(brings, ("XADD", key, "7-2", "f", 2), ("XADD", key, "7-3", "f", 3))
        self.say(
            waits, read, ("XACK", key, "g", "7-1", "7-2"), ("XPENDING", key, "g"), ("XLEN", key)
        )

    def publishing(self) -> None:
        hears, tells = self.sides()
        channel, other = f"{self.name}:ch:1", f"{self.name}:ch:2"
        how = self.random.choice(("", "P", "S"))
        names = (f"{self.name}:ch:*",) if how == "P" else (channel, other)
        self.say(hears, (f"{how}SUBSCRIBE", *names), hear=len(names))
        publish = "SPUBLISH" if how == "S" else "PUBLISH"
        texts = [self.text() for _ in range(self.random.randint(1, 5))]
        if self.random.random() < 0.5:
            self.say(tells, *((publish, channel, text) for text in texts))
        else:
            for text in texts:
                self.say(tells, (publish, other if how == "P" else channel, text))
        self.steps.append(Hear(hears, len(texts)))
        if self.resp == 3:
            self.some(hears, self.simple)
        else:
            # Refused in this state, and one that is not.
            self.say(hears, ("GET", "x"), ("PING",))
        if self.random.random() < 0.3:
            self.say(tells, ("PUBSUB", "NUMSUB", channel), ("PUBSUB", "CHANNELS", channel))
        # Of several it is each server's own order.
        all_ = len(names) == 1 and self.random.random() < 0.5
        self.say(hears, (f"{how}UNSUBSCRIBE", *(() if all_ else names)), hear=len(names))

    def tracking(self) -> None:
        """A client-side cache is told what no longer holds."""
        if self.resp == 2:
            self.alone()
            return
        caches, writes = self.sides()
        key = self.key("s")
        if self.random.random() < 0.5:
            self.say(caches, ("CLIENT", "TRACKING", "ON"), ("GET", key))
        else:
            self.say(caches, ("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", key))
        self.say(writes, ("SET", key, self.text()))
        self.steps.append(Hear(caches, 1))
        self.say(caches, ("CLIENT", "TRACKING", "OFF"), ("GET", key))

    def quiet(self) -> None:
        """CLIENT REPLY: what is not answered, and what is."""
        who, _ = self.sides()
        skip, off = ("CLIENT", "REPLY", "SKIP"), ("CLIENT", "REPLY", "OFF")
        self.say(who, skip, self.count(), ("ECHO", "heard"), hear=1)
        self.say(who, off, self.count(), self.queue(), ("CLIENT", "REPLY", "ON"), hear=1)

    def state(self) -> None:
        """Another database, another name, another protocol, and back."""
        who, _ = self.sides()
        hello = ("HELLO", self.resp)
        self.say(
            who,
            ("SELECT", self.random.randint(1, 3)),
            ("SET", f"{self.name}:elsewhere", self.text()),
            ("GET", f"{self.name}:elsewhere"),
            ("SELECT", 0),
        )
        self.say(who, ("CLIENT", "SETNAME", self.small()), ("CLIENT", "GETNAME"))
        self.say(who, ("HELLO", 5 - self.resp), self.table(), self.ranks(), hello, self.table())
        if self.random.random() < 0.3:
            self.say(who, ("MULTI",), self.string(), ("RESET",), hello, ("CLIENT", "GETNAME"))

    def function(self) -> None:
        """A library of the pair's own."""
        who, other = self.sides()
        name = self.name.replace(":", "_")
        body = f"redis.register_function('f_{name}', function(k, a) return {{k[1], a[1]}} end)"
        self.say(who, ("FUNCTION", "LOAD", "REPLACE", f"#!lua name=l_{name}\n{body}"))
        self.say(other, ("FCALL", f"f_{name}", 1, self.key("s"), self.text()))
        text = f"return '{self.name}{self.random.randint(1, 4)}'"
        self.say(who, ("SCRIPT", "LOAD", text), ("EVAL", text, 0))

    def leaving(self) -> None:
        """Both say goodbye, one with something asked before."""
        for who in "ab":
            self.say(who, self.simple(), ("QUIT",))
            self.steps.append(Over(who))


SIMPLE: tuple[Callable[[Mix], Command], ...] = (
    Mix.string, Mix.string, Mix.count, Mix.queue, Mix.table, Mix.crowd, Mix.ranks, Mix.stream, Mix.wrong, Mix.script,
)  # fmt: skip
KINDS: tuple[Callable[[Mix], None], ...] = (
    Mix.alone, Mix.alone, Mix.both, Mix.inline, Mix.transaction, Mix.transaction, Mix.blocking, Mix.blocking, Mix.group,
    Mix.publishing, Mix.publishing, Mix.tracking, Mix.quiet, Mix.state, Mix.function,
)  # fmt: skip
