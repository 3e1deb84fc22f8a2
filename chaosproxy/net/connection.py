"""One client's connection: its socket, the socket to the server, and the conversation between them.

Takes what both sockets receive and the time; gives it to the conversation, and carries out what that wants, one write a side.
"""

import asyncio
from collections.abc import Callable
from time import monotonic, time
from typing import TYPE_CHECKING, Literal

from chaosproxy.core.conversation import Conversation
from chaosproxy.core.effect import AskSide, AwaitFlush, CloseClient, CutOthers, HalfClose, Wake
from chaosproxy.net.alarm import UNSET, Alarm
from chaosproxy.net.ending import BRIEFLY, LINGER, RESET_PATIENCE, Farewell, Finish, Flush, reset
from chaosproxy.net.entrance import PASSED, Entrance
from chaosproxy.net.flow import drained, hold

if TYPE_CHECKING:
    from chaosproxy.core.effect import Effect
    from chaosproxy.net.proxy import Proxy
    from chaosproxy.net.route import Route


class Link:
    """Joins the two sides of one client's connection.

    The client's bytes wait at the `entrance` until the upstream side is there. Once `ended` none reaches the conversation.
    """

    __slots__ = (
        "_alarm", "_client_full", "_client_held", "_counts", "_dialling", "_draining", "_effects", "_eof",
        "_farewell", "_finish", "_flush", "_lane", "_proxy", "_to_client", "_to_upstream", "_upstream", "_upstream_full",
        "_upstream_held", "client", "conversation", "ended", "entrance", "number", "relaying", "route",
    )  # fmt: skip

    def __init__(
        self,
        proxy: "Proxy",
        number: int,
        client: asyncio.Transport,
        entrance: Entrance,
        conversation: Conversation,
        *,
        route: "Route",
    ) -> None:
        self._proxy, self._counts, self.number, self.route = proxy, proxy.counts, number, route
        self.entrance, self.conversation = entrance, conversation
        # These are the same ones for as long as the conversation lives.
        self._to_client, self._to_upstream = conversation.out_client, conversation.out_upstream
        self._effects, self._lane = conversation.effects, conversation.lane
        self._lane.close()
        self.relaying = self.ended = self._eof = self._draining = False
        self.client: asyncio.Transport | None = client
        self._upstream: asyncio.Transport | None = None
        self._alarm = UNSET
        self._finish: Finish | None = None
        self._flush: Flush | None = None
        self._farewell: Farewell | None = None
        # `full`: that side's write buffer is over its mark. `held`: that side is not being read.
        self._client_full = self._upstream_full = self._client_held = self._upstream_held = False
        self._dialling: asyncio.Task[None] | None = asyncio.create_task(self._dial())

    async def _dial(self) -> None:
        try:
            how = await self._come_in()
        except Exception as error:  # noqa: BLE001 - it ends this connection and no other
            self._crash(error)
            return
        self._dialling = None
        if how is not None:
            self.end(how)

    async def _come_in(self) -> Literal["reset", "close"] | None:
        """Admit the client and dial for it; gives how it is turned away, if it is."""
        if (refusal := await self.entrance.pass_through()) is not None:
            if refusal.raw and self.client is not None:
                self._counts.written_client += len(refusal.raw)
                self.client.write(refusal.raw)
            return "close" if refusal.what == "error" else "reset"
        # Redis clients take a closed connection for a server that is down.
        return None if await self._proxy.dial(self) else "close"

    # What happens on the sockets.

    def upstream_made(self, upstream: asyncio.Transport) -> None:
        """The server has accepted: what either side says is passed on from here."""
        if self.ended:
            upstream.abort()
            return
        self._upstream = upstream
        self.relaying = True
        self._lane.join()
        early, self.entrance = self.entrance.take(), PASSED
        if early:
            self.from_client(early)
        if self._eof:
            self.client_eof()
        self._flow()

    def from_client(self, data: bytes) -> None:
        """Bytes arrived from the client."""
        now = monotonic()
        try:
            # Nothing passes the lane while one of the two sides is not there.
            if self._lane.requests(data, now):
                self._counts.passed_up += len(data)
                self._upstream.write(data)  # type: ignore[union-attr]
            elif self.relaying:
                self._counts.read_client += len(data)
                # The clock is set now and then, or `now` stops while a machine sleeps.
                self._proxy.world.epoch = time() - now
                self.conversation.receive_from_client(data, now)
                self._settle(now)
            elif not self.ended:
                self.entrance.keep(data)
                self._flow()
            elif self._farewell is not None:
                self._farewell.heard()
        except Exception as error:  # noqa: BLE001 - it ends this connection and no other
            self._crash(error)

    def from_upstream(self, data: bytes) -> None:
        """Bytes arrived from the server."""
        now = monotonic()
        try:
            if self._lane.replies(data, now) or self._lets_by(data, now):
                self._counts.passed_down += len(data)
                self.client.write(data)  # type: ignore[union-attr]
            elif self.relaying:
                self._counts.read_upstream += len(data)
                self.conversation.receive_from_upstream(data, now)
                self._settle(now)
        except Exception as error:  # noqa: BLE001 - it ends this connection and no other
            self._crash(error)

    def _lets_by(self, data: bytes, now: float) -> bool:
        """Whether replies that are none of those that come most may pass all the same."""
        if self._finish is not None:
            self._finish.heard()
        if data.startswith(b"-MOVED "):
            self._proxy.bypass.answered(data)
        return self._lane.others(data, now)

    def client_eof(self) -> None:
        """The client has nothing more to say; it may still be reading."""
        self._eof = True
        if self._farewell is not None:
            self._farewell.heard_eof()
        elif self.relaying:
            if self._flush is not None:
                self._flush.look()
            self.tell(self.conversation.client_eof)

    def upstream_eof(self) -> None:
        """The server has nothing more to say."""
        if self.relaying:
            self.tell(self.conversation.upstream_eof)

    def client_lost(self) -> None:
        """The client is gone, and its upstream side goes with it."""
        self.client = None
        if self._farewell is not None:
            self._farewell.cancel()
        if self.relaying:
            self.tell(self.conversation.client_gone)
        self._leave()
        if self._upstream is None:
            self._proxy.gone(self)

    def upstream_lost(self, error: Exception | None) -> None:
        """The upstream side is gone; what the client still gets is the conversation's to say."""
        if self._upstream is None:
            return
        self._upstream = None
        if error is not None:
            self._proxy.upstream_broke(self, error)
        if self.relaying:
            self.tell(self.conversation.upstream_gone)
        if self.client is None:
            self._proxy.gone(self)

    def client_full(self, full: bool) -> None:
        """The client reads slower than the server writes, or has caught up."""
        self._client_full = full
        if self.conversation.clogged(full) and self.relaying:
            self.tell(self.conversation.wake)
        self._flow()

    def upstream_full(self, full: bool) -> None:
        """The server reads slower than the client writes, or has caught up."""
        self._upstream_full = full
        self._flow()

    def side_answer(self, token: int, replies: list[bytes] | None) -> None:
        """What the side connection was asked is done, or could not be (None)."""
        if self.relaying:
            self.tell(lambda now: self.conversation.side_answer(token, replies, now))

    # What the conversation wants.

    def tell(self, what: Callable[[float], None], now: float | None = None) -> None:
        """Call a method of the conversation with the time, and do what it then wants. Not for one that has ended."""
        now = monotonic() if now is None else now
        try:
            what(now)
            self._settle(now)
        except Exception as error:  # noqa: BLE001 - it ends this connection and no other
            self._crash(error)

    def _settle(self, now: float) -> None:
        """Carry out what the conversation wants: bytes first, then effects, the timer and the flow."""
        conversation = self.conversation
        if (data := drained(self._to_upstream)) and self._upstream is not None:
            self._counts.written_upstream += len(data)
            self._upstream.write(data)
        if (data := drained(self._to_client)) and self.client is not None:
            self._counts.written_client += len(data)
            self.client.write(data)
        if self._effects:
            effects, self._effects[:] = self._effects[:], []
            for effect in effects:
                self._carry_out(effect, now)
            if self.ended:
                return
        if conversation.due != self._alarm.due:
            if self._alarm is UNSET:
                self._alarm = Alarm(lambda now: self.tell(self.conversation.wake, now))
            self._alarm.set(conversation.due, now)
        self._flow()

    def _carry_out(self, effect: "Effect", now: float) -> None:
        match effect:
            case CloseClient(how):
                self.end(how)
            case HalfClose(side):
                if side == "client":
                    # Only a server that has left has nothing more to say: nobody is left to hear the client.
                    self.end("close")
                elif self._upstream is not None:
                    self._finish = Finish(self._upstream)
            case AwaitFlush():
                self._await_flush()
            case AskSide():
                self._proxy.ask_side(self, effect)
            case Wake(connections):
                self._proxy.wake(connections, now)
            case CutOthers():
                self._proxy.cut_others(self, effect, now)
            case _:  # all others say that something has happened; mypy knows if one does not
                self._proxy.record(self, effect, now)

    def _await_flush(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
        if self.client is not None and not self.ended:
            self._flush = Flush(self.client, self._flushed)

    def _flushed(self, _flushed: bool) -> None:
        self._flush = None
        self.tell(self.conversation.flushed)

    def _flow(self) -> None:
        """Read from each side just if the other one keeps up and the conversation has room."""
        talk, full = self.conversation, self.entrance.is_full
        if self.relaying:
            full = talk.client_paused or talk.busy or self._upstream_full or self._draining
        if self.client is not None and full != self._client_held:
            self._client_held = hold(self.client, full)
            self._proxy.watch(self, held=full)
        full = self.relaying and (talk.upstream_paused or self._client_full)
        if self._upstream is not None and full != self._upstream_held:
            self._upstream_held = hold(self._upstream, full)
            self._proxy.counts.limits.reached("server", full and talk.upstream_paused)

    # How it ends.

    def end(self, how: Literal["reset", "close"]) -> None:
        """End the client's connection, after what was written to it; the upstream side goes at once."""
        if self.ended:
            return
        self._leave()
        if self.client is None:
            return
        if how == "close":
            linger = BRIEFLY if self._draining else LINGER
            self._farewell = Farewell(self.client, eof=self._eof, linger=linger)
        else:
            self._flush = Flush(self.client, self._reset, RESET_PATIENCE)

    def _reset(self, flushed: bool) -> None:
        self._flush = None
        if self.client is not None and flushed:
            reset(self.client)
        elif self.client is not None:  # it reads nothing: of the two promises the bytes come first
            self._farewell = Farewell(self.client, eof=self._eof)

    def drain(self) -> None:
        """Read nothing more from the client; the replies it waits for still come."""
        self._draining = True
        self._flow()

    def abort(self) -> None:
        """End both sides now, whatever is on its way."""
        if self.relaying:
            self.tell(self.conversation.client_gone)
        self._leave()
        if self.client is not None:
            self.client.abort()

    def _crash(self, error: Exception) -> None:
        self.relaying = False
        self.abort()
        self._proxy.crashed(self, error)

    def _leave(self) -> None:
        """From here on nothing reaches the conversation, and the server has lost its client."""
        self.ended, self.relaying = True, False
        self._lane.close()
        self.entrance.take()
        self.entrance.left()
        if self._upstream is not None:
            self._upstream.abort()
        self._alarm.set(None, 0)
        # Who has dialled might, cancelled now, close the transport without our hearing of it.
        dialling = self._dialling if self._upstream is None else None
        for waiting in (self._finish, self._flush, dialling):
            if waiting is not None:
                waiting.cancel()
        self._finish = self._flush = self._dialling = None
        self._flow()
