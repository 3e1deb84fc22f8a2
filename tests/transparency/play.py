"""Performs wire scripts against an endpoint and tells what each client got, byte for byte, and how it ended.

Takes a Script, a port and a mode of sending; gives a Transcript that can be compared with another one.

Nothing here sleeps to be sure. A step has settled when a probe connection to the same endpoint has had its answer
twice without anything new arriving meanwhile: whoever stands between has then read what was sent before, and so has
the server. Against the proxy it also waits for as many bytes as the direct run had got by then.
"""

import hashlib
import random
import re
import select
import socket
import time
from dataclasses import dataclass, field

from tests.transparency.script import End, Hear, Learn, Mode, Say, Script, Sleep

PATIENCE = 60.0
BYTE_GAP = 0.00005
SPLIT_GAP = 0.0003
ARRIVING = 8
"""How many answers more are waited for where a connection is new: it is accepted, and dialled for, meanwhile."""
LONG = 150
"""Of a longer request only so many bytes at its beginning and its end are sent one by one."""

_MASKS_SHORTEN = 4096
"""A masked text is at most so much longer than what it stands for: the names are short, the lines few."""

# Unknown to every server, so it is in no MONITOR, no statistics, waits for no CLIENT PAUSE; and answered before AUTH.
_PROBE = b"*1\r\n$4\r\nxyzz\r\n"

# Timestamps, ids and addresses: what differs between two direct runs.
_MASKED = (
    # MONITOR: when, and from where.
    rb"\+\d{10}\.\d{6} \[(?P<keep>\d+) (?:127\.0\.0\.1:\d+|lua)\]",
    # HELLO's answer: the connection's id.
    rb"\$2\r\nid\r\n:\d+",
)


@dataclass(slots=True)
class Line:
    """One client connection and all it got."""

    socket: socket.socket
    got: bytearray = field(default_factory=bytearray)
    end: str = "open"

    def drain(self) -> bool:
        """Take what is there; whether there was anything, an end included."""
        if self.end != "open":
            return False
        before = len(self.got)
        self.socket.settimeout(0)
        try:
            while more := self.socket.recv(1 << 20):
                self.got += more
            self.end = "FIN"
        except BlockingIOError:
            return len(self.got) > before
        except ConnectionResetError:
            self.end = "RST"
        finally:
            self.socket.settimeout(PATIENCE)
        return True


@dataclass(frozen=True, slots=True)
class Transcript:
    """What each client got: its bytes, masked, and how its connection ended."""

    lines: dict[str, tuple[bytes, str]]
    progress: tuple[dict[str, tuple[int, str]], ...]
    """After each step: how much each client had got by then (masked bytes), and whether it was over."""

    def readable(self) -> list[str]:
        """One item a line of the protocol, for a comparison a person can read."""
        shown = []
        for who, (got, end) in self.lines.items():
            for part in got.split(b"\r\n"):
                text = (
                    part
                    if len(part) <= 300
                    else b"%s...(%d bytes, %s)"
                    % (part[:60], len(part), hashlib.sha256(part).hexdigest()[:16].encode())
                )
                shown.append(f"{who}: {text!r}"[:400])
            shown.append(f"{who} <{end}>")
        return shown

    def contains(self, part: bytes) -> bool:
        return any(part in got for got, _ in self.lines.values())


def masked(got: bytes, known: dict[str, bytes]) -> bytes:
    """Put a name in place of what differs from run to run by nature."""
    for pattern in _MASKED:
        got = re.sub(pattern, _mask, got)
    for name, value in known.items():
        got = got.replace(b":%s\r\n" % value, b":<%s>\r\n" % name.encode())
    return got


def _mask(found: re.Match[bytes]) -> bytes:
    kept = found.groupdict().get("keep", b"")
    return b"<masked %s>" % kept


def perform(
    script: Script, port: int, *, resp: int, mode: Mode, expected: Transcript | None = None
) -> Transcript:
    """Perform it and give what the clients got.

    `expected`: a transcript whose progress is waited for after each step (bounded); the result may still differ.
    """
    return _Performance(script, port, resp, mode, expected).run()


@dataclass(slots=True)
class _Performance:
    script: Script
    port: int
    resp: int
    mode: Mode
    expected: Transcript | None
    lines: dict[str, Line] = field(default_factory=dict)
    known: dict[str, bytes] = field(default_factory=dict)
    progress: list[dict[str, tuple[int, str]]] = field(default_factory=list)
    probe: socket.socket | None = None
    arriving: bool = False

    def run(self) -> Transcript:
        try:
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as self.probe:
                for number, step in enumerate(self.script.steps):
                    self.take(number, step)
            for line in self.lines.values():
                self.finish(line)
            return Transcript(
                {who: (self.masked(line), line.end) for who, line in self.lines.items()},
                tuple(self.progress),
            )
        finally:
            for line in self.lines.values():
                line.socket.close()

    def masked(self, line: Line) -> bytes:
        return masked(bytes(line.got), self.known)

    def take(self, number: int, step: object) -> None:
        match step:
            case Say(who, _, settle):
                raw = step.raw(self.known)
                self.send(self.line(who), raw, f"{self.script.name}/{number}")
                if settle:
                    self.settle(len(raw))
            case Hear(who, part):
                line = self.line(who)
                self.wait_for(lambda: part in line.got or line.end != "open")
                self.settle()
            case Learn(who, name):
                line = self.line(who)
                before = len(line.got)
                line.socket.sendall(b"CLIENT ID\r\n")
                self.wait_for(lambda: line.got.endswith(b"\r\n", before))
                self.known[name] = bytes(line.got[before + 1 : -2])
            case End(who, how):
                self.end(self.line(who), how)
                self.settle()
            case Sleep(seconds):
                time.sleep(seconds)
                self.settle()
        self.progress.append(
            {who: (len(self.masked(line)), line.end) for who, line in self.lines.items()}
        )
        self.catch_up()

    def line(self, who: str) -> Line:
        if who not in self.lines:
            connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line = self.lines[who] = Line(connection)
            self.arriving = True
            if self.resp == 3:
                connection.sendall(b"HELLO 3\r\n")
                self.wait_for(lambda: bool(line.got))
                self.settle()
        return self.lines[who]

    def send(self, line: Line, raw: bytes, seed: str) -> None:
        try:
            for gap, part in pieces(raw, self.mode, seed):
                line.socket.sendall(part)
                if gap:
                    time.sleep(gap)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was ended while there was more to send: what it had said is still to be read

    def end(self, line: Line, how: str) -> None:
        try:
            if how == "fin":
                line.socket.shutdown(socket.SHUT_WR)
                return
        except OSError:
            return  # it was reset already, which is what will be read
        if how == "reset":
            line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        line.socket.close()
        line.end = "gone"

    def settle(self, sent: int = 0) -> None:
        """Wait until all that was caused so far has been seen; `sent`: how many bytes were just sent."""
        quiet = 0
        # A server turns to the others after each read, and reads 16 KiB at a time.
        enough = 2 + sent // 8192 + (ARRIVING if self.arriving else 0)
        self.arriving = False
        while quiet < enough:
            self.probe.sendall(_PROBE)
            answer = b""
            while not answer.endswith(b"\r\n"):
                more = self.probe.recv(4096)
                assert more, f"the probe was cut off after {answer!r}"
                answer += more
            news = [line.drain() for line in self.lines.values()]
            quiet = 0 if any(news) else quiet + 1

    def catch_up(self) -> None:
        """Wait until every client has got as much as the expected transcript says it had by now."""
        if self.expected is None or len(self.progress) > len(self.expected.progress):
            return
        aims = self.expected.progress[len(self.progress) - 1]

        def reached() -> bool:
            return all(
                line.end != "open" or (aims[who][1] == "open" and self.has(line, aims[who][0]))
                for who, line in self.lines.items()
                if who in aims
            )

        if not self.wait_for(reached, required=False):
            # It differs already: the rest need not be waited for.
            self.expected = None

    def has(self, line: Line, count: int) -> bool:
        """Whether it got so many bytes, masked; masking takes long where there are millions."""
        return len(line.got) + _MASKS_SHORTEN >= count and len(self.masked(line)) >= count

    def wait_for(self, done: "callable", *, required: bool = True) -> bool:
        deadline = time.monotonic() + PATIENCE
        while not done():
            waiting = [line.socket for line in self.lines.values() if line.end == "open"]
            left = deadline - time.monotonic()
            if left <= 0 or not waiting:
                assert not required, f"nothing came in {PATIENCE} s: {self.lines}"
                return False
            select.select(waiting, [], [], left)
            for line in self.lines.values():
                line.drain()
        return True

    def finish(self, line: Line) -> None:
        """Say that no more will come, and read on to the end: a server then ends what it has left to say."""
        if line.end == "open":
            self.end(line, "fin")
            self.wait_for(lambda: line.end != "open", required=False)


def pieces(raw: bytes, mode: Mode, seed: str) -> list[tuple[float, bytes]]:
    """Cut a request for sending: (pause after it in seconds, part)."""
    match mode:
        case "whole":
            return [(0, raw)]
        case "split":
            draw = random.Random(seed)
            cuts = sorted(draw.randrange(1, len(raw)) for _ in range(min(4, len(raw) - 1)))
            return [
                (SPLIT_GAP, raw[a:b])
                for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)
                if a < b
            ]
        case "bytewise":
            if len(raw) <= 2 * LONG:
                return [(BYTE_GAP, raw[i : i + 1]) for i in range(len(raw))]
            head, middle, tail = raw[:LONG], raw[LONG:-LONG], raw[-LONG:]
            single = [
                [(BYTE_GAP, part[i : i + 1]) for i in range(len(part))] for part in (head, tail)
            ]
            return [*single[0], (SPLIT_GAP, middle), *single[1]]
