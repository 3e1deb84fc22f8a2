"""Performs the same steps on two ways to two servers at once, and compares every byte.

Takes two ports and steps of `mix`; gives what differs. Each way sends in pieces of its own; what comes is compared frame by
frame, as it came.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.transparency.mix import Hear, Mix, Over, Send, Step, Who
from tests.wire import encode, first_of

PATIENCE = 60.0
#: What differs between two servers by nature. HELLO: each counts its own connections.
MASKED: Final = (re.compile(rb"(\$2\r\nid\r\n):\d+"),)


class Missing(Exception):  # noqa: N818 - what happened, not a mistake
    """What had to come has not, or an end came instead."""


@dataclass(slots=True)
class Client:
    """One connection: all frames that it got since it was last asked for them."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    buffer: bytes = b""
    frames: list[bytes] = field(default_factory=list)

    async def frame(self) -> bytes:
        while True:
            raw, self.buffer = first_of(self.buffer)
            if raw:
                self.frames.append(raw)
                return raw
            try:
                async with asyncio.timeout(PATIENCE):
                    more = await self.reader.read(1 << 20)
            except TimeoutError:
                raise Missing(f"nothing in {PATIENCE} s") from None
            except ConnectionResetError:
                raise Missing("RST") from None
            if not more:
                raise Missing("FIN")
            self.buffer += more


class Way:
    """One way to one server, direct or not: the pair's two connections."""

    def __init__(self, port: int, random: Random) -> None:
        self.port = port
        self.random = random
        self.clients: dict[Who, Client] = {}

    async def perform(
        self, steps: Sequence[Step], resp: int, fence: bytes
    ) -> dict[Who, list[bytes]]:
        """Take these steps; give the frames that each connection has got by then, and last how it ended if it did."""
        got: dict[Who, list[bytes]] = {"a": [], "b": []}
        try:
            for who in got:
                if who not in self.clients:
                    await self.open(who, resp)
            for step in steps:
                await self.take(step)
            for client in self.clients.values():
                # What was said before is heard before it.
                client.writer.write(encode("PING", fence))
            for client in self.clients.values():
                while fence not in await client.frame():
                    pass
        except Missing as why:
            got["a"].append(f"<{why}>".encode())
        for who, client in self.clients.items():
            got[who] = client.frames + got[who]
            client.frames = []
        for who in [who for who, client in self.clients.items() if client.reader.at_eof()]:
            self.clients.pop(who).writer.close()
            got[who].append(b"<FIN>")
        return got

    async def open(self, who: Who, resp: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        client = self.clients[who] = Client(reader, writer)
        if resp == 3:
            writer.write(encode("HELLO", 3))
            await client.frame()

    async def take(self, step: Step) -> None:
        client = self.clients[step.who]
        match step:
            case Send(_, commands):
                raw = b"".join(
                    each if isinstance(each, bytes) else encode(*each) for each in commands
                )
                for piece in self.pieces(raw):
                    client.writer.write(piece)
                    await asyncio.sleep(0)
                await client.writer.drain()
            case Hear(_, frames):
                for _ in range(frames):
                    await client.frame()
            case Over():
                try:
                    await client.frame()
                except Missing as why:
                    if str(why) != "FIN":
                        raise
                else:
                    raise Missing("a frame after its end")

    def pieces(self, raw: bytes) -> list[bytes]:
        """Cut here and there, or not."""
        if self.random.random() < 0.6:
            return [raw]
        cuts = sorted(self.random.randrange(len(raw) + 1) for _ in range(self.random.randint(1, 4)))
        return [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) if a < b]

    def close(self) -> None:
        for client in self.clients.values():
            client.writer.close()
        self.clients.clear()


def masked(frame: bytes) -> bytes:
    for pattern in MASKED:
        frame = pattern.sub(rb"\1<masked>", frame)
    return frame


@dataclass(slots=True)
class Outcome:
    """What was compared, and what differs."""

    scenes: int = 0
    frames: int = 0
    bytes: int = 0
    connections: int = 0
    differences: list[str] = field(default_factory=list)


async def compare(
    seed: str, pairs: int, seconds: float, ways: Sequence[tuple[int, int]]
) -> Outcome:
    """Let so many pairs of connections be at work for so long, the n-th on the n-th two ways, and again from the first."""
    outcome = Outcome()
    end = asyncio.get_running_loop().time() + seconds
    await asyncio.gather(
        *(_pair(seed, number, ways[number % len(ways)], end, outcome) for number in range(pairs))
    )
    return outcome


async def _pair(
    seed: str, number: int, ports: tuple[int, int], end: float, outcome: Outcome
) -> None:
    loop = asyncio.get_running_loop()
    ways = [Way(port, Random(f"{seed}/{number}/{port}")) for port in ports]
    resp, scene = 2, 0
    try:
        while loop.time() < end and not outcome.differences:
            random = Random(f"{seed}/{number}/{scene}")
            if not ways[0].clients:
                resp = random.choice((2, 3))
                outcome.connections += 2
            mix = Mix(random, f"pair:{number}", resp)
            steps = mix.make()
            if random.random() < 0.1:
                mix.leaving()
            fence = f"fence:{number}:{scene}".encode()
            one, other = await asyncio.gather(*(way.perform(steps, resp, fence) for way in ways))
            outcome.scenes += 1
            for who, frames in one.items():
                outcome.frames += len(frames)
                outcome.bytes += sum(map(len, frames))
                if [*map(masked, frames)] != [*map(masked, other[who])]:
                    what = f"seed {seed!r}, pair {number}, scene {scene}, RESP{resp}, {who}"
                    outcome.differences.append(_told(what, steps, frames, other[who]))
            scene += 1
    finally:
        for way in ways:
            way.close()


def _told(what: str, steps: Sequence[Step], direct: list[bytes], proxied: list[bytes]) -> str:
    """The first frames that differ, after those before, and what was done."""
    same = 0
    while same < min(len(direct), len(proxied)) and masked(direct[same]) == masked(proxied[same]):
        same += 1
    lines = [f"{what}: {same} frames are the same, then"]
    lines += [f"  direct {frame!r:.200}" for frame in direct[same : same + 3]]
    lines += [f"  proxy  {frame!r:.200}" for frame in proxied[same : same + 3]]
    lines += [f"  {step!r:.300}" for step in steps]
    return "\n".join(lines)
