"""The clients of a soak, in a process of their own: pairs of raw connections that know whose every reply is.

Takes a port, how many pairs, a seed, how long a silence is too long, and how long a pair rests between two rounds; then words
on stdin: `go` (any fault may be in force), `settle` (rounds end), `rounds N`, `strict N` (every reply exact), `close`. Gives a
line of JSON for each word but `go`, once it is done: what was sent and heard, by command, when somebody was cut off, and all
that was wrong.

Each value carries its key, its client and a number of its own, so that a reply for somebody else's request is found at once,
and so is one for an earlier request of the same client.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tests.live.soak_line import TORN, Cut, Line, Stuck, Wrong
from tests.wire import WireError

#: What a generated profile puts in place of replies.
MADE = b"made up"
#: How long a message is waited for that a fault may have lost, in seconds.
SHORT = 0.3
MOST_TOLD = 20
#: Why a client itself has ended its connection.
NO_PROTOCOL = "HELLO was answered otherwise"
EMOJI = "héllo 🎉 ".encode()


def like(got: Any, wanted: bytes) -> bool:
    """Whether a text is this one, or what is left of it once shortened or torn."""
    if not isinstance(got, bytes):
        return False
    return all(mine in (0xFF, its) for mine, its in zip(got, wanted, strict=False)) and len(
        got
    ) <= len(wanted)


def carries(got: Any, stem: bytes) -> bool:
    """Whether a text begins as all of this key's values do."""
    return isinstance(got, bytes) and like(got[: len(stem)], stem)


class Check:
    """What a reply must be (`exact`), and what it may be under faults (`may`)."""

    def __init__(self, exact: Any, may: Callable[[Any], bool] | None = None) -> None:
        self.exact = exact
        self.may = may

    def holds(self, got: Any, *, strict: bool) -> bool:
        if strict:
            exact: bool = self.exact(got) if callable(self.exact) else got == self.exact
            return exact
        if got is None or got in (MADE, TORN) or isinstance(got, WireError):
            return True
        # What a command answers for a key that is not there.
        if not isinstance(got, bool) and got in (0, b"", [], {}):
            return True
        if self.may is not None:
            return self.may(got)
        if isinstance(self.exact, bytes):
            return like(got, self.exact)
        if isinstance(self.exact, str):
            return isinstance(got, str) and self.exact.startswith(got)
        return type(got) is type(self.exact)


OK = Check("OK")
NUMBER = Check(lambda got: isinstance(got, int), lambda got: isinstance(got, int))
TEXT = Check(lambda got: isinstance(got, bytes), lambda got: isinstance(got, (bytes, list, dict)))


class Pair:
    """Two connections of one client, and the keys, queues and channels that are its own."""

    def __init__(self, load: "Load", number: int) -> None:
        self.load = load
        self.number = number
        self.random = Random(f"{load.seed}/{number}")
        self.resp = 2 + number % 2
        self.lines: dict[str, Line] = {}
        self.serial = itertools.count(1)
        self.opened = itertools.count(1)
        self.doing = "nothing"
        self.rounds = 0

    # -- what it says

    def stem(self, key: str) -> bytes:
        return f"{key}|c{self.number}|".encode()

    def key(self, kind: str) -> str:
        return f"{kind}:{self.number}"

    def one_of(self, key: str) -> Callable[[Any], bool]:
        return lambda got: carries(got, self.stem(key))

    def value(self, key: str, size: int = 0) -> bytes:
        return self.stem(key) + b"%d|" % next(self.serial) + EMOJI + b"x" * size

    def insist(self, name: object, got: Any, wanted: Check) -> None:
        if not wanted.holds(got, strict=self.load.strict):
            kind = "exact" if self.load.strict else "possible"
            wanted_text = wanted.exact if not callable(wanted.exact) else "its own"
            raise Wrong(f"{name}: got {got!r:.300}, {kind} would be {wanted_text!r:.200}")

    async def ask(self, line: Line, wanted: Check, *args: Any) -> Any:
        """Send a command and look at the reply."""
        got = await line.call(*args)
        self.insist(args, got, wanted)
        return got

    async def batch(self, line: Line, commands: list[tuple[tuple[Any, ...], Check]]) -> list[Any]:
        """Send commands in one go and look at each reply."""
        line.say_all([args for args, _ in commands])
        replies = []
        for args, wanted in commands:
            got = await line.hear(str(args[0]))
            self.insist(args, got, wanted)
            replies.append(got)
        return replies

    async def line(self, side: str) -> Line:
        if side not in self.lines:
            load = self.load
            line = await Line.open(load.port, self.resp, load.patience, load.sent, load.heard)
            self.lines[side] = line
            if self.resp == 3:
                hello = await line.call("HELLO", 3)
                self.insist("HELLO", hello, Check(lambda got: got[b"proto"] == 3, lambda _: True))
                if not isinstance(hello, dict):
                    # It is not known in which protocol the others would come.
                    raise Cut(NO_PROTOCOL)
            name = f"c{self.number}{side}{next(self.opened)}"
            await self.ask(line, OK, "CLIENT", "SETNAME", name)
        return self.lines[side]

    def drop(self, side: str) -> None:
        line = self.lines.pop(side, None)
        if line is not None:
            line.close()

    # -- rounds; each gives whether its connections are as they were

    async def plain(self, side: str) -> bool:
        line, key = await self.line(side), self.key("k" + side)
        value = self.value(key, self.random.choice([0, 0, 0, 10, 300, 20_000]))
        mine = self.one_of(key)
        await self.ask(line, OK, "SET", key, value)
        await self.ask(line, Check(value, mine), "GET", key)
        token = self.value("echo")
        await self.ask(line, Check(token), "ECHO", token)
        await self.ask(line, NUMBER, "EXPIRE", key, 100)
        await self.ask(line, NUMBER, "TTL", key)
        return True

    async def count(self, side: str) -> bool:
        line, key = await self.line(side), self.key("n" + side)
        first = await self.ask(line, NUMBER, "INCR", key)
        wanted = first + 1 if isinstance(first, int) else 0
        await self.ask(line, Check(wanted), "INCR", key)
        await self.ask(line, Check(b"%d" % wanted, lambda got: isinstance(got, bytes)), "GET", key)
        return True

    async def pipeline(self, side: str) -> bool:
        line, key = await self.line(side), self.key("p" + side)
        commands: list[tuple[tuple[Any, ...], Check]] = []
        mine = self.one_of(key)
        for _ in range(self.random.randint(2, 12)):
            value, token = self.value(key), self.value("echo")
            commands += [
                (("SET", key, value), OK),
                (("GET", key), Check(value, mine)),
                (("ECHO", token), Check(token)),
            ]
        await self.batch(line, commands)
        return True

    async def queue(self, side: str) -> bool:
        line, key = await self.line(side), self.key("l" + side)
        value = self.value(key)

        def mine(got: Any) -> bool:
            return isinstance(got, list) and all(carries(each, self.stem(key)) for each in got)

        await self.ask(line, NUMBER, "RPUSH", key, value)
        await self.ask(
            line, Check(lambda got: mine(got) and got[-1] == value, mine), "LRANGE", key, 0, -1
        )
        await self.ask(line, OK, "LTRIM", key, -5, -1)
        return True

    async def stream(self, side: str) -> bool:
        line, key = await self.line(side), self.key("x" + side)
        value = self.value(key)

        def mine(got: Any) -> bool:
            return all(
                got is None or got == MADE or carries(got, self.stem(key))
                for entry in got
                for got in entry[1][1:]
            )

        added = await self.ask(line, TEXT, "XADD", key, "MAXLEN", 5, "*", "field", value)
        last = Check(lambda got: got == [[added, [b"field", value]]], mine)
        await self.ask(line, last, "XREVRANGE", key, "+", "-", "COUNT", 1)
        return True

    async def script(self, side: str) -> bool:
        line, key, token = await self.line(side), self.key("s" + side), self.value("token")
        text = "redis.call('INCR', KEYS[1]) return {KEYS[1], ARGV[1]}"

        def mine(got: Any) -> bool:
            return (
                isinstance(got, list)
                and len(got) == 2
                and all(
                    each in (None, MADE) or like(each, its)
                    for each, its in zip(got, (key.encode(), token), strict=True)
                )
            )

        await self.ask(line, Check([key.encode(), token], mine), "EVAL", text, 1, key, token)
        return True

    async def transaction(self, side: str) -> bool:
        line, key, other = await self.line(side), self.key("t" + side), self.key("tn" + side)
        value, token = self.value(key), self.value("echo")
        mine = self.one_of(key)
        inside = [
            (("SET", key, value), OK),
            (("GET", key), Check(value, mine)),
            (("INCR", other), NUMBER),
            (("ECHO", token), Check(token)),
        ]
        queued = Check("QUEUED", lambda _: True)
        watched = self.random.random() < 0.3
        if watched:
            await self.ask(line, OK, "WATCH", key)
        whole: list[tuple[tuple[Any, ...], Check]] = [(("MULTI",), OK)]
        # Where MULTI was not done each is answered as it is.
        whole += [
            (args, queued if self.load.strict else Check("", self.either(each)))
            for args, each in inside
        ]
        whole.append(
            (("EXEC",), Check(lambda got: isinstance(got, list), lambda got: isinstance(got, list)))
        )
        replies = await self.batch(line, whole)
        done = replies[-1]
        if isinstance(done, list) and done:
            if len(done) != len(inside):
                raise Wrong(f"EXEC: got {done!r:.300} for {len(inside)} commands")
            for (args, wanted), got in zip(inside, done, strict=True):
                self.insist(("in EXEC", *args), got, wanted)
        return bool(done) and isinstance(done, list) and replies[:-1] == ["OK"] + ["QUEUED"] * 4

    def either(self, wanted: Check) -> Callable[[Any], bool]:
        return lambda got: got == "QUEUED" or wanted.holds(got, strict=False)

    async def blocking(self, side: str) -> bool:
        other = "b" if side == "a" else "a"
        waits, pushes = await self.line(side), await self.line(other)
        key = self.key("q" + side)
        value = self.value(key)
        patience = self.load.patience if self.load.strict else SHORT
        # What a fault, or an end, has left there would be popped instead.
        await self.ask(pushes, NUMBER, "DEL", key)
        waits.say("BLPOP", key, patience)
        await self.ask(pushes, NUMBER, "RPUSH", key, value)
        got = await waits.hear("BLPOP")

        def mine(got: Any) -> bool:
            return (
                isinstance(got, list)
                and len(got) == 2
                and (got[0] in (None, MADE) or like(got[0], key.encode()))
                and (got[1] in (None, MADE) or carries(got[1], self.stem(key)))
            )

        self.insist("BLPOP", got, Check([key.encode(), value], mine))
        return True

    async def pubsub(self, side: str) -> bool:
        other = "b" if side == "a" else "a"
        hears, tells = await self.line(side), await self.line(other)
        channel = f"ch{self.resp}:{self.number}{side}".encode()
        hears.pushes.clear()
        hears.say("SUBSCRIBE", channel)
        told = await self.confirmed(hears, b"subscribe", channel)
        values = [self.value(channel.decode()) for _ in range(self.random.randint(1, 3))]
        for value in values:
            await self.ask(tells, Check(1), "PUBLISH", channel, value)
        heard = []
        while len(heard) < len(values):
            got = await hears.push(self.load.patience if self.load.strict else SHORT)
            if got is None:
                break
            self.look_at_push(got, channel)
            heard.append(got)
        if self.load.strict and [each[2] for each in heard] != values:
            raise Wrong(f"heard {heard!r:.300} of {values!r:.300}")
        hears.say("UNSUBSCRIBE", channel)
        return told and await self.confirmed(hears, b"unsubscribe", channel) and not hears.pushes

    async def confirmed(self, line: Line, word: bytes, channel: bytes) -> bool:
        """Read until a subscription is confirmed, or it is clear that it will not be."""
        name = word.decode().upper()
        while True:
            got = await line.push(line.patience)
            if got is None:
                raise Stuck(f"{name} unanswered")
            if isinstance(got, list) and len(got) == 3 and got[0] == word:
                line.heard[name] += 1
                self.insist(name, got[1], Check(channel))
                return True
            if self.load.strict:
                raise Wrong(f"{name}: {got!r:.300}")
            if isinstance(got, list) and got and got[0] in (b"message", b"invalidate", MADE):
                self.look_at_push(got, channel)
                continue
            # Another answer than a confirmation: what follows can be anything.
            return False

    def look_at_push(self, got: Any, channel: bytes) -> None:
        if not self.load.strict and isinstance(got, list) and MADE in got:
            return
        message = isinstance(got, list) and got[0] == b"message" and got[1] == channel
        if message and carries(got[2], self.stem(channel.decode())):
            return
        if self.load.strict or not isinstance(got, list):
            raise Wrong(f"on {channel!r}: {got!r:.300}")
        if got[0] == b"invalidate" and got[1] is not None:
            self.look_at_invalid(got)

    def look_at_invalid(self, got: Any) -> None:
        mine = f":{self.number}".encode()
        if not all(key.endswith(mine) for key in got[1]):
            raise Wrong(f"invalidated are {got!r:.300}")

    async def tracking(self, side: str) -> bool:
        if self.resp == 2:
            return await self.plain(side)
        other = "b" if side == "a" else "a"
        caches, writes = await self.line(side), await self.line(other)
        key = self.key("k" + side)
        caches.pushes.clear()
        await self.ask(caches, OK, "CLIENT", "TRACKING", "ON")
        mine = Check(lambda _: True, lambda got: carries(got, self.stem(key)))
        await self.ask(caches, mine, "GET", key)
        await self.ask(writes, OK, "SET", key, self.value(key))
        got = await caches.push(self.load.patience if self.load.strict else SHORT)
        if self.load.strict and got != [b"invalidate", [key.encode()]]:
            raise Wrong(f"invalidation: {got!r:.300}")
        if got is not None and MADE not in got and got[1] is not None:
            self.look_at_invalid(got)
        off = await self.ask(caches, OK, "CLIENT", "TRACKING", "OFF")
        return off == "OK"

    # -- its life

    async def round(self) -> None:
        """One round of something; what is over is opened anew in the next one."""
        kind, side = self.random.choice(self.KINDS), self.random.choice("ab")
        self.doing = kind.__name__
        load = self.load
        clean = False
        try:
            clean = await kind(self, side)
            self.rounds += 1
            if load.strict and not clean:
                self.fail(Wrong("not as it was"))
        except Cut as why:
            if str(why) != NO_PROTOCOL:
                ends = [line.over[0] for line in self.lines.values() if line.over]
                load.cuts.append(min(ends, default=time.monotonic()))
            if load.strict:
                self.fail(why)
        except (Stuck, Wrong) as why:
            self.fail(why)
        except Exception as error:  # noqa: BLE001 - told to who started it
            self.fail(error)
        finally:
            self.doing = "nothing"
            if not clean:
                self.drop("a")
                self.drop("b")
                await asyncio.sleep(self.random.uniform(0.01, 0.1))

    async def look(self) -> None:
        """Find out which of its connections have ended while nothing was asked on them."""
        for side, line in list(self.lines.items()):
            self.doing = "looking"
            try:
                self.insist("PING", await line.call("PING"), Check("PONG"))
            except Cut:
                self.drop(side)
            except (Stuck, Wrong) as why:
                self.fail(why)

    def fail(self, why: Exception) -> None:
        load = self.load
        strict = "strict " if load.strict else ""
        load.wrong.append(
            f"{load.clock():.2f} client {self.number} RESP{self.resp} {strict}{self.doing}: "
            f"{type(why).__name__} {why}"
        )

    KINDS: tuple[Callable[["Pair", str], Awaitable[bool]], ...] = (
        plain, count, pipeline, queue, stream, script, transaction, blocking, pubsub, tracking,
    )  # fmt: skip


class Load:
    """All pairs, what they have in common, and the words that move them."""

    def __init__(self, port: int, pairs: int, seed: str, patience: float, rest: float) -> None:
        self.port = port
        self.seed = seed
        self.patience = patience
        self.rest = rest
        self.strict = False
        self.sent: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self.wrong: list[str] = []
        #: When somebody was cut off or turned away, by the clock that all processes share.
        self.cuts: list[float] = []
        self.pairs = [Pair(self, number) for number in range(pairs)]
        self.began = 0.0
        self.going = False

    def clock(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    async def live(self, pair: Pair) -> None:
        while self.going:
            await pair.round()
            await asyncio.sleep(pair.random.uniform(0, 2 * self.rest))

    async def some(self, pair: Pair, rounds: int) -> None:
        for _ in range(rounds):
            await pair.round()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        words = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
        tasks: list[asyncio.Task[None]] = []
        while line := await words.readline():
            word, *args = line.decode().split()
            match word:
                case "go":
                    self.going = True
                    tasks = [loop.create_task(self.live(pair)) for pair in self.pairs]
                    continue
                case "settle":
                    self.going = False
                    await asyncio.gather(*tasks)
                    await asyncio.gather(*(pair.look() for pair in self.pairs))
                case "strict" | "rounds":
                    self.strict = word == "strict"
                    await asyncio.gather(*(self.some(pair, int(args[0])) for pair in self.pairs))
                    self.strict = False
                case "close":
                    lines = [line for pair in self.pairs for line in pair.lines.values()]
                    for pair in self.pairs:
                        pair.lines.clear()
                    await asyncio.gather(*(line.finish() for line in lines))
            self.tell()

    def tell(self) -> None:
        told, self.wrong = self.wrong, []
        said = {
            "sent": self.sent,
            "heard": self.heard,
            "wrong": told[:MOST_TOLD],
            "wrongs": len(told),
            "rounds": sum(pair.rounds for pair in self.pairs),
            "cuts": self.cuts,
            "open": sum(len(pair.lines) for pair in self.pairs),
            "unserved": [pair.number for pair in self.pairs if not pair.rounds],
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    port, pairs, seed, patience, rest = sys.argv[1:6]
    asyncio.run(Load(int(port), int(pairs), seed, float(patience), float(rest)).run())
