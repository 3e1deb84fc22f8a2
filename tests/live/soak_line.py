"""One raw connection of a soak's clients: what is said is counted, what is heard is decoded, silence and ends are told apart.

Takes a port, the protocol and two Counters; gives values. Nothing of the package is in it: a mistake is not shared.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.wire import Arg, decode, encode, first_of

#: What stands for a text that no longer is one: a fault has put 0xFF into it.
TORN = "torn"
CHUNK = 1 << 16


class Cut(Exception):  # noqa: N818 - what happened, not a mistake
    """The connection is over, or could not be had."""


class Stuck(Exception):  # noqa: N818 - as Cut
    """Nothing came for longer than any profile was in force."""


class Wrong(Exception):  # noqa: N818 - as Cut
    """What came can be no answer to what was asked."""


@dataclass(slots=True)
class Line:
    """One connection. `sent` and `heard` count commands by name; `pushes` are frames that nobody asked for."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    resp: int
    patience: float
    sent: Counter[str]
    heard: Counter[str]
    buffer: bytes = b""
    pushes: list[Any] = field(default_factory=list)
    #: When it was over, by the clock that all processes share; the reader may find out much later.
    over: list[float] = field(default_factory=list)

    @classmethod
    async def open(
        cls, port: int, resp: int, patience: float, sent: Counter[str], heard: Counter[str]
    ) -> "Line":
        """Connect. Raises Cut, and Stuck."""
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except TimeoutError:
            raise Stuck("connecting") from None
        except OSError as error:
            raise Cut(type(error).__name__) from None
        line = cls(reader, writer, resp, patience, sent, heard)
        line.watch()
        return line

    def watch(self) -> None:
        """Note when it ends, in whichever way."""
        eof, broken = self.reader.feed_eof, self.reader.set_exception

        def on_eof() -> None:
            self.over.append(time.monotonic())
            eof()

        def on_broken(why: BaseException) -> None:
            self.over.append(time.monotonic())
            broken(why)

        self.reader.feed_eof, self.reader.set_exception = on_eof, on_broken

    def say(self, *args: Arg) -> None:
        """Send one command."""
        self.say_all([args])

    def say_all(self, commands: list[tuple[Arg, ...]]) -> None:
        """Send commands in one go."""
        for command in commands:
            self.sent[str(command[0])] += 1
        self.writer.write(b"".join(encode(*command) for command in commands))

    async def hear(self, name: str = "") -> Any:
        """Give the next reply's value; frames that nobody asked for are put aside. `name`: whose reply it is."""
        while True:
            raw = await self.frame(self.patience)
            value = decoded(raw)
            if raw[:1] == b">" or is_message(value):
                self.pushes.append(value)
            else:
                self.heard[name] += 1
                return value

    async def call(self, *args: Arg) -> Any:
        """Send one command and give its reply's value."""
        self.say(*args)
        return await self.hear(str(args[0]))

    async def frame(self, seconds: float) -> bytes:
        """Give the next frame's bytes. Raises Cut, and Stuck after so many seconds."""
        while True:
            raw, self.buffer = first_of(self.buffer)
            if raw:
                return raw
            try:
                async with asyncio.timeout(seconds):
                    more = await self.reader.read(CHUNK)
            except TimeoutError:
                raise Stuck("waiting") from None
            except OSError as error:
                raise Cut(type(error).__name__) from None
            if not more:
                raise Cut("FIN")
            self.buffer += more

    async def push(self, seconds: float) -> Any:
        """Give the next frame that nobody asked for, or None if there is none for so long."""
        if not self.pushes:
            try:
                self.pushes.append(decoded(await self.frame(seconds)))
            except Stuck:
                return None
        return self.pushes.pop(0)

    def close(self) -> None:
        self.writer.transport.abort()

    async def finish(self) -> None:
        """End it in peace."""
        self.writer.close()
        try:
            async with asyncio.timeout(self.patience):
                await self.writer.wait_closed()
        except OSError:
            pass


def decoded(raw: bytes) -> Any:
    """Decode a reply; one whose simple text was torn is TORN."""
    try:
        return decode(raw)
    except UnicodeDecodeError:
        return TORN


def is_message(value: Any) -> bool:
    """Whether in RESP2 this is a message, and no reply."""
    return isinstance(value, list) and len(value) == 3 and value[0] == b"message"
