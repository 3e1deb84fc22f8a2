"""A conversation as a dialogue: a client, the proxy's pure core and an upstream that the test plays.

Takes a profile's faults as YAML; gives a `Talk` that is told what each side says and what it must
hear. Time is a number that `wait` moves. On a mismatch the whole transcript is shown.

    with Talk("- {fault: disconnect, match: {commands: RPUSH}, at: after_apply}") as talk:
        talk.client("RPUSH k a")            # the client sends a command
        talk.expect_upstream("RPUSH k a")   # and just this has reached the upstream
        talk.upstream(":1")                 # which answers
        talk.expect_closed("reset")         # the client has heard nothing, and is cut off
        talk.expect_fired("disconnect", applied="yes", told="reset")

Every `expect_…` takes all that has come since the last one, so what is not expected fails sooner or
later: at the next one, or at the end of the `with`. There it is also checked that each match of each
fault was either fired or skipped, and that nothing is held that nobody waits for.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar, Self

from chaosproxy.core.addresses import Translate
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.conversation import Conversation
from chaosproxy.core.effect import (
    AskSide,
    AwaitFlush,
    CloseClient,
    CutOthers,
    Effect,
    Fired,
    HalfClose,
    KeysTouched,
    Matched,
    ProtocolFault,
    Skipped,
    Wake,
)
from chaosproxy.core.engine import Engine
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import Profile
from chaosproxy.core.slot_map import Seat
from chaosproxy.core.world import World
from chaosproxy.profile import Source, load
from tests.wire import encode

TABLE = CommandTable.bundled()

_TOKEN = re.compile(r'[*>~%|]\[|\]|"[^"]*"|[^\s\]]+')


def profile(faults: str) -> Profile:
    """Read the entries of `faults:`, as they stand in a profile's file."""
    lines = "".join(f"\n  {line}" for line in faults.strip().splitlines()) or " []"
    return load([Source("test", f"faults:{lines}\n".encode(), "test.yaml")], table=TABLE)


def command(text: str | bytes) -> bytes:
    """Encode a command written as words, as clients do; bytes are themselves."""
    return text if isinstance(text, bytes) else encode(*text.split())


def reply(text: str | bytes) -> bytes:
    r"""Encode a reply written short; bytes are themselves.

    `+OK`, `-ERR no such key`, `:1`, `$-1`, `_`, `#t` are as on the wire, without the line break; `"a b"` is a
    bulk string; `*[:1 "a" *[]]` an array, and so are `>[…]`, `~[…]`, `%[key value]` of the other types.
    """
    if isinstance(text, bytes):
        return text
    if text[:1] in {"+", "-"}:
        return text.encode() + b"\r\n"
    tokens = iter(_TOKEN.findall(text))
    value = _value(next(tokens), tokens)
    assert not list(tokens), f"more than one reply: {text!r}"
    return value


def _value(token: str, tokens: Iterator[str]) -> bytes:
    if token.startswith('"'):
        text = token[1:-1].encode()
        return b"$%d\r\n%s\r\n" % (len(text), text)
    if not token.endswith("["):
        return token.encode() + b"\r\n"
    items = [_value(inner, tokens) for inner in iter(lambda: next(tokens), "]")]
    pairs = 2 if token[0] in "%|" else 1
    return b"%s%d\r\n%s" % (token[:1].encode(), len(items) // pairs, b"".join(items))


#: What goes ahead of a computation, and the answer that proves the scratch database.
GATE = ("MULTI", "SELECT 15", "DBSIZE", "SELECT 0", "EXEC")
PROVEN = ("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[+OK :0 +OK]")
#: What asks, before a MULTI is forwarded, whether copies may take the place of what is swallowed in it; and the replies of a server where they may.
PROBES = (
    "SELECT 15",
    "DBSIZE",
    "SELECT 0",
    "COPY chaosproxy:probe chaosproxy:probe",
    "DEL chaosproxy:probe",
)
GRANTED = ("+OK", ":0", "+OK", ":0", ":0")


def begin(talk: "Talk", *replies: str) -> None:
    """Let the client begin a transaction, before which it is found out what there is; `replies` are to that, else GRANTED."""
    talk.client("MULTI")
    talk.expect_upstream(*PROBES)
    talk.upstream(*(replies or GRANTED))
    talk.expect_upstream("MULTI")
    talk.upstream("+OK")
    talk.expect_client("+OK")


def show(raw: bytes) -> str:
    """Bytes as a line of a transcript."""
    text = raw.decode("utf-8", "backslashreplace").replace("\r\n", "⏎")
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= 200 else f"{text[:150]} … {text[-30:]} ({len(raw)} bytes)"


class Talk:
    """One client's conversation. `talk.another()` is another client of the same proxy, on the same clock.

    `protocol` 3: the client has said HELLO 3 before the test begins. `at` is the time it begins. What the fast lane takes goes
    by it, as in `net/`, unless `fast` says that all is to go the long way.
    """

    fast: ClassVar[bool] = True

    def __init__(
        self,
        faults: str = "",
        *,
        protocol: int = 2,
        seed: int = 7,
        at: float = 100.0,
        address: str = "10.0.0.9",
        server: ServerInfo | None = None,
        max_buffer: int = 16 << 20,
        recording: Recording | None = None,
        translate: Translate | None = None,
        seat: Seat | None = None,
        _world: World | None = None,
        _clock: "_Clock | None" = None,
    ) -> None:
        self.clock = _clock or _Clock(at)
        if _world is None:
            engine = Engine(profile(faults), TABLE, seed, 1, at, recording=recording)
            _world = World(engine, TABLE, server or ServerInfo(), max_buffer, epoch=1e9)
            _world.translates = translate is not None
            _world.pretends = seat is not None and seat.slots is not None
        self.world = _world
        self.clock.talks.append(self)
        self.connection = len(self.clock.talks)
        self.conversation = Conversation(
            _world, self.connection, address, self.now, translate=translate, seat=seat
        )
        self.protocol = protocol
        self.effects: list[Effect] = []
        self._told = 0
        self._heard = {"client": b"", "upstream": b""}
        self._asked: list[AskSide] = []
        self._awaited: list[Effect] = []
        self._over = False
        self._transcript: list[str] = []
        if protocol == 3:
            self.handshake("HELLO 3", '%["server" "redis" "proto" :3]')

    def another(self, **how: Any) -> "Talk":
        """Another client of the same proxy."""
        return Talk(_world=self.world, _clock=self.clock, **how)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    @property
    def now(self) -> float:
        """What time it is."""
        return self.clock.now

    # -- what the two sides say

    def client(self, *commands: str | bytes) -> None:
        """Let the client send these commands, in one piece; bytes go as they are."""
        raw = b"".join(map(command, commands))
        self._say("client   ──▶", raw)
        if self.fast and self.conversation.lane.requests(raw, self.now):
            self.conversation.out_upstream.append(raw)
        else:
            self.conversation.receive_from_client(raw, self.now)
        self._look()

    def upstream(self, *replies: str | bytes) -> None:
        """Let the upstream send these replies, in one piece; bytes go as they are."""
        raw = b"".join(map(reply, replies))
        self._say("                ◀── upstream", raw)
        lane = self.conversation.lane
        if self.fast and (lane.replies(raw, self.now) or lane.others(raw, self.now)):
            self.conversation.out_client.append(raw)
        else:
            self.conversation.receive_from_upstream(raw, self.now)
        self._look()

    def handshake(self, sent: str, answer: str, *, late: float = 0.0) -> None:
        """Let the client send a command, which goes on so many seconds later, and the upstream answer it, with nothing between them."""
        self.client(sent)
        if late:
            self.wait(late)
        self.expect_upstream(sent)
        self.upstream(answer)
        self.expect_client(answer)

    def client_eof(self) -> None:
        """Let the client half-close."""
        self._say("client   ──▶ FIN")
        self.conversation.client_eof(self.now)
        self._look()

    def client_gone(self) -> None:
        """Let the client's connection end."""
        self._say("client   ──▶ gone")
        self.conversation.client_gone(self.now)
        self._look()

    def upstream_eof(self) -> None:
        """Let the upstream half-close."""
        self._say("                ◀── upstream FIN")
        self.conversation.upstream_eof(self.now)
        self._look()

    def upstream_gone(self) -> None:
        """Let the upstream's connection end."""
        self._say("                ◀── upstream gone")
        self.conversation.upstream_gone(self.now)
        self._look()

    # -- what happens around them

    def wait(self, seconds: float) -> None:
        """Let time pass; who wants to be woken is."""
        self.clock.wait(seconds)

    def wake(self) -> None:
        """Wake the conversation, as when another one did what it waits for."""
        self.conversation.wake(self.now)
        self._look()

    def flushed(self) -> None:
        """Let the client's stack acknowledge all bytes, as was asked for."""
        self._take(AwaitFlush)
        self._say("client   ──▶ all acknowledged")
        self.conversation.flushed(self.now)
        self._look()

    def side(self, *replies: str | bytes) -> None:
        """Let the side connection answer what it was asked first; no replies: it fails."""
        assert self._asked, self._failed("the side connection was asked nothing")
        ask = self._asked.pop(0)
        answers = [reply(text) for text in replies] if replies else None
        self._say("                ◀── side", b"".join(answers) if answers else b"failed")
        self.conversation.side_answer(ask.token, answers, self.now)
        self._look()

    def switch(self, faults: str = "", *, seed: int = 7) -> None:
        """Put another profile in force, for every client of this proxy."""
        old = self.world.engine
        for talk in self.clock.talks:
            talk._say("profile  ──▶ " + (faults.strip() or "calm"))
        new = Engine(profile(faults), TABLE, seed, old.generation + 1, self.now)
        self.world.switch(new)
        for talk in self.clock.talks:
            talk.conversation.switch(self.now)
            talk._look()

    def learn(self, *names: str) -> None:
        """Let the server have these commands of modules too, writes of one key each."""
        entries = [
            [name.encode(), -2, [b"write", b"module"], 1, 1, 1, [], [], [], []] for name in names
        ]
        live = CommandTable.from_reply(entries, TABLE)
        self.world.learn(CommandTable(self.world.table.specs | live.specs))

    def cut(self, how: str) -> None:
        """Let another conversation's fault cut this one."""
        self.conversation.cut(how, self.now)
        self._look()

    # -- what must have been heard

    def expect_upstream(self, *commands: str | bytes) -> None:
        """Check that just these commands have reached the upstream."""
        self._expect("upstream", b"".join(map(command, commands)))

    def expect_client(self, *replies: str | bytes) -> None:
        """Check that just these replies have reached the client."""
        self._expect("client", b"".join(map(reply, replies)))

    def heard(self, side: str) -> bytes:
        """Take all that has reached a side, whatever it is."""
        raw, self._heard[side] = self._heard[side], b""
        return raw

    def expect_silence(self) -> None:
        """Check that neither side has heard anything."""
        self._expect("upstream", b"")
        self._expect("client", b"")

    def expect_closed(self, how: str) -> None:
        """Check that the client's connection was ended, and that it got nothing but what was expected."""
        self._expect("client", b"")
        effect = self._take(CloseClient)
        assert effect.how == how, self._failed(f"expected {how}, not {effect.how}")
        assert self.conversation.due is None, self._failed("it still waits")

    def expect_cut_others(self, who: str, how: str = "reset") -> None:
        """Check that other connections are to be cut."""
        effect = self._take(CutOthers)
        assert (effect.who, effect.how) == (who, how), self._failed(f"not {effect}")

    def expect_half_close(self) -> None:
        """Check that the client's FIN was passed on."""
        self._take(HalfClose)

    def expect_raw(self, side: str) -> str:
        """Check that this side was found to send what is not understood; gives the text that says why."""
        effect = self._take(ProtocolFault)
        assert effect.side == side, self._failed(f"not {effect}")
        assert self.conversation.raw, self._failed("it is not raw")
        return effect.text

    def expect_side(self, *commands: str | bytes, **how: Any) -> None:
        """Check what the side connection was asked last, and `db`, `protocol` or `where` of it."""
        assert self._asked, self._failed("the side connection was asked nothing")
        ask = self._asked[-1]
        asked = tuple(map(command, commands))
        assert ask.requests == asked, self._failed(f"expected on the side {asked}, not {ask}")
        for name, value in how.items():
            assert getattr(ask, name) == value, self._failed(f"{name}={value!r}, not {ask}")

    def expect_fired(self, fault: str, **fields: Any) -> Fired:
        """Check the next event: whose it is, and these fields of it. Gives it."""
        fired = self.events()
        assert len(fired) > self._told, self._failed(f"{fault} has not fired")
        event = fired[self._told]
        self._told += 1
        found = {"fault": event.fault, **{name: getattr(event, name) for name in fields}}
        wanted = {"fault": fault, **fields}
        assert found == wanted, self._failed(f"expected the event {wanted}, not {found}")
        return event

    def expect_nothing_fired(self) -> None:
        """Check that there is no event that was not expected."""
        events = self.events()[self._told :]
        assert not events, self._failed(f"{events[0].fault} has fired")

    # -- what was counted

    def events(self) -> list[Fired]:
        """All events so far."""
        return [effect for effect in self.effects if isinstance(effect, Fired)]

    def matched(self, fault: str) -> int:
        """How often this fault matched in this conversation."""
        return self.effects.count(Matched(fault))

    def skipped(self, fault: str) -> list[str]:
        """Why this fault did not act, each time it did not."""
        effects = (effect for effect in self.effects if isinstance(effect, Skipped))
        return [effect.reason for effect in effects if effect.fault == fault]

    def touched(self) -> list[KeysTouched]:
        """The keys changed behind the client's back."""
        return [effect for effect in self.effects if isinstance(effect, KeysTouched)]

    # -- the end

    def close(self) -> None:
        """End it: check that nothing unexpected was heard, and that every match has become something."""
        for side, heard in self._heard.items():
            assert not heard, self._failed(f"not expected at the {side}: {show(heard)}")
        assert not self._awaited, self._failed(f"not expected: {self._awaited[0]}")
        if not self._over:
            self.client_gone()
            self.expect_silence()
        for talk in self.clock.talks:
            talk._check_counts()
        if all(talk._over for talk in self.clock.talks):
            for live in self.world.engine.rules:
                became = live.fired + sum(live.skipped.values())
                assert live.matched == became, self._failed(f"{live.name} is counted wrong")

    def _check_counts(self) -> None:
        """Every match is fired or skipped, as events and as the rules count themselves."""
        if not self._over:
            return
        sums = Counter(e.fault for e in self.effects if isinstance(e, Fired | Skipped))
        matched = Counter(e.fault for e in self.effects if isinstance(e, Matched))
        assert sums == matched, self._failed(f"matched {matched}, fired and skipped {sums}")

    def _look(self) -> None:
        """Take what the conversation wants done, as `net/` does, and check that it adds up."""
        conversation = self.conversation
        for side, out in (
            ("upstream", conversation.out_upstream),
            ("client", conversation.out_client),
        ):
            if out:
                raw = b"".join(out)
                out.clear()
                assert not self._over, self._failed(f"after its end, to the {side}: {show(raw)}")
                ended = HalfClose(side) in self.effects
                assert not ended, self._failed(f"after its FIN, to the {side}: {show(raw)}")
                self._heard[side] += raw
                arrow = "         ◀──" if side == "client" else "                ──▶ upstream"
                self._say(arrow, raw)
        effects = [*self._left_alone(), *conversation.effects]
        conversation.effects.clear()
        woken: list[int] = []
        for effect in effects:
            self._say(f"         {effect}")
            match effect:
                case AskSide():
                    self._asked.append(effect)
                case AwaitFlush() | CloseClient() | CutOthers() | HalfClose() | ProtocolFault():
                    self._awaited.append(effect)
                case Wake(connections):
                    woken += connections
                case _:
                    pass
        self.effects += effects
        line = conversation._line
        self._over = line.closed
        if not self._over:
            slots = {id(slot): slot for slot in (*line.slots, *line.expect)}.values()
            pieces = [
                (*s.before, *s.parts, *s.behind, *(raw for _, raw in s.pieces or ())) for s in slots
            ]
            pieces.append(tuple(self.conversation._returns._kept))
            held = sum(len(raw) for each in pieces for raw in each)
            assert line.held == held, self._failed(f"{held} bytes are held, counted {line.held}")
        for number in woken:
            self.clock.talks[number - 1].wake()

    def _left_alone(self) -> Iterator[Effect]:
        """What rules have left alone without a word, told as if they had said so."""
        for live in self.world.engine.rules:
            told = self.clock.told.setdefault(live, {})
            matched, left = live.unsaid()
            for _ in range(matched - told.get("", 0)):
                yield Matched(live.name)
            told[""] = matched
            for reason, times in left.items():
                for _ in range(times - told.get(reason, 0)):
                    yield Skipped(live.name, reason)
                told[reason] = times

    def _expect(self, side: str, wanted: bytes) -> None:
        heard = self.heard(side)
        if heard != wanted:
            lines = (
                f"at the {side}",
                f"expected: {show(wanted) or 'nothing'}",
                f"heard:    {show(heard) or 'nothing'}",
            )
            raise AssertionError(self._failed("\n".join(lines)))

    def _take(self, kind: type) -> Any:
        """Take the next effect that must be expected; it has to be one of this kind."""
        got = self._awaited.pop(0) if self._awaited else "nothing"
        assert isinstance(got, kind), self._failed(f"expected {kind.__name__}, not {got}")
        return got

    def _say(self, arrow: str, raw: bytes = b"") -> None:
        self._transcript.append(f"{self.now:9.3f}  {arrow} {show(raw)}".rstrip())

    def _failed(self, why: str) -> str:
        return "\n".join((why, "", *self._transcript))


class _Clock:
    """The one clock of a proxy and its clients."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.talks: list[Talk] = []
        #: What each rule had left alone when it was last told.
        self.told: dict[LiveRule, dict[str, int]] = {}

    def wait(self, seconds: float) -> None:
        """Go on, waking in order whoever wants to be."""
        end = self.now + seconds
        for turns in count():
            due = [(talk.conversation.due, talk) for talk in self.talks]
            waiting = [(at, talk) for at, talk in due if at is not None and at <= end]
            if not waiting:
                break
            at, talk = min(waiting, key=lambda pair: pair[0])
            assert turns < 1000, talk._failed("it wants to be woken again and again")
            self.now = max(self.now, at)
            talk._say("⏰")
            talk.wake()
        self.now = end
