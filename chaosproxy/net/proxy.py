"""The proxy: its routes, its connections, and the profile that is in force on all of them.

Takes where to listen and to dial, and a profile; gives events to the journal and numbers to the counts.
"""

import asyncio
import itertools
import logging
import sys
from collections.abc import Collection, Sequence
from functools import partial
from time import monotonic
from typing import Final

from chaosproxy.core.admission import admit
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.conversation import Conversation
from chaosproxy.core.effect import AskSide, CutOthers, Effect, Fired, ProtocolFault, StartFailover
from chaosproxy.core.engine import Engine
from chaosproxy.core.match import LISTENER
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import Profile
from chaosproxy.core.world import World
from chaosproxy.counts import Countable, Counts
from chaosproxy.journal import Journal
from chaosproxy.net.address import Address
from chaosproxy.net.behind import Behind
from chaosproxy.net.bypass import Bypass
from chaosproxy.net.connection import Link
from chaosproxy.net.descriptors import Descriptors
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.net.door import Doors, strangers
from chaosproxy.net.ending import cut_off
from chaosproxy.net.entrance import Entrance
from chaosproxy.net.failover import Failovers
from chaosproxy.net.held import Held
from chaosproxy.net.plan import Plan
from chaosproxy.net.record import Record
from chaosproxy.net.refusals import Refusals
from chaosproxy.net.route import Route, Routes
from chaosproxy.net.side import MOST, Side
from chaosproxy.net.sides import ClientSide, UpstreamSide
from chaosproxy.net.survey import Survey, survey

#: How often it is looked whether the last replies have left, while stopping, in seconds.
_POLL: Final = 0.01
#: The most seconds that starting waits for a server that is down.
_SURVEY_PATIENCE: Final = 3.0

_log = logging.getLogger("chaosproxy.proxy")


class Proxy:
    """Its routes and all that came by them. Everything is called in its loop."""

    def __init__(
        self,
        plan: Plan,
        profile: Profile,
        seed: int,
        journal: Journal,
        recording: Recording | None = None,
    ) -> None:
        self.plan = plan
        self.counts = Counts()
        self.links: dict[int, Link] = {}
        self._numbers = itertools.count(1)
        self._held = Held(self.counts.limits)
        self._refusals = Refusals(self.counts)
        self._stopping = False
        self._descriptors = Descriptors(lambda: self.counts.limits.reached("open_files"))
        self._surveying: asyncio.Task[Survey] | None = None
        self._survey_is_due = True
        table = CommandTable.bundled()
        engine = Engine(profile, table, seed, 1, monotonic(), recording=recording)
        self.world = World(engine, table)
        self.world.max_buffer = plan.max_buffer
        if plan.upstream.password is not None:
            self.world.user = (plan.upstream.username or "default").encode()
        self._record = Record(journal, self.counts, self.world)
        self.routes = Routes(lambda route: ClientSide(self, route))
        self.behind = Behind(self)
        self.bypass = Bypass(plan.upstream)
        self.door = Doors(lambda: self.world.engine, self.routes, self.write_down)
        self.failovers = Failovers(self)
        # One for all: there may be thousands of clients.
        self._at_the_entrance = lambda effect: self.write_down(effect, monotonic())

    @property
    def address(self) -> Address:
        """Where its first route listens."""
        return self.routes.first.address if len(self.routes) else self.plan.listen

    def route(self, name: str, listen: Address, target: Address) -> Route:
        """Make a route to a server that is like the upstream in all but its address; `routes.add` puts it in force."""
        plan = self.plan
        dialler = Dialler(target, plan.upstream_tls, plan.connect_timeout)
        who, most = plan.upstream, max(MOST, plan.max_buffer)
        side = Side(dialler, who.username, who.password, most=most, limits=self.counts.limits)
        return Route(name, listen, dialler, side, self._refusals.over_tls(plan.listen_tls))

    # Its life.

    async def start(self) -> Survey:
        """Ask the server what it is, as far as it is there, and listen. Raises OSError if that is not possible."""
        self._descriptors.watch(asyncio.get_running_loop())
        await self.behind.start()
        try:
            async with asyncio.timeout(_SURVEY_PATIENCE):
                found = await asyncio.shield(self._survey())
        except TimeoutError:
            found = Survey(False, self.world.server, self.world.table, "no answer in time")
        await self.routes.open()
        self.world.address = self.address.to_tell()
        self._warn_of_strangers()
        self.steered()
        return found

    async def stop(self, grace: float) -> None:
        """Accept no more, let replies on their way arrive, for so many seconds at most, and end all connections."""
        self._stopping = True
        self.door.stop()
        self.failovers.stop()
        self.routes.close()
        for link in list(self.links.values()):
            link.drain()
        end = monotonic() + grace
        while self.links and monotonic() < end:
            for link in list(self.links.values()):
                if _is_idle(link):
                    cut_off(link, "close")
            await asyncio.sleep(_POLL)
        # However late it is by now: what is aborted is gone within a second, or is no reason to stay.
        end = monotonic() + 1
        for link in list(self.links.values()):
            link.abort()
        while self.links and monotonic() < end:  # noqa: ASYNC110 - as above
            await asyncio.sleep(_POLL)
        if self._surveying is not None:
            self._surveying.cancel()
        await self.behind.stop()
        # Last of all: whoever asks once more would open another one.
        self.routes.close_sides()

    async def answers(self) -> bool:
        """Whether the server behind the proxy is there and serves commands."""
        reply = await self.behind.asked.side.request(b"PING")
        return reply is not None and not reply.startswith((b"-LOADING", b"-MASTERDOWN"))

    def use(self, profile: Profile, seed: int, later: Collection[str] = ()) -> int:
        """Put a profile in force on every connection, from the next command on; gives its generation. `later`: listeners to come."""
        world = self.world
        generation = world.engine.generation + 1
        first = next(self._numbers)
        self._numbers = itertools.count(first)
        now = monotonic()
        engine = Engine(profile, world.table, seed, generation, now, first_connection=first)
        self.failovers.coming(engine)
        world.switch(engine)
        self._record.declare(engine)
        for link in list(self.links.values()):
            link.entrance.let_in()
            if not link.ended:
                link.tell(link.conversation.switch)
        self.behind.mind()
        self._warn_of_strangers(later)
        self.steered()
        return generation

    def _warn_of_strangers(self, later: Collection[str] = ()) -> None:
        for problem in strangers(self.world.engine, self.routes, later):
            _log.warning("%s", problem)

    def steered(self) -> None:
        """Which rules act by themselves may have changed: one may want nobody to listen, or a failover to begin."""
        self.door.mind(monotonic())
        self.failovers.mind(monotonic())

    def moved(self) -> None:
        """Another server is behind the first route now."""
        self._survey_is_due = True

    async def _survey(self) -> Survey:
        self._survey_is_due = False
        found = await survey(self.behind.asked.side)
        if not found.answered:
            self._survey_is_due = True
        else:
            if found.table_problem:
                _log.warning(
                    "the server's COMMAND is of no use (%s): the table that ships is",
                    found.table_problem,
                )
            self.bypass.surveyed(found)
            self.world.server = found.server
            self.world.learn(found.table)
        return found

    # What its connections ask of it.

    def accept(self, client: asyncio.Transport, route: Route) -> Link | None:
        """A client has come by a route: give its link, or None if there are too many."""
        if self._stopping:
            # It was accepted before the listener was closed, and is told just now.
            client.abort()
            return None
        full = len(self.links) >= self.plan.max_connections
        if full or self._descriptors.are_scarce():
            self._refusals.refuse(client, full)
            return None
        number, now, host = next(self._numbers), monotonic(), _host_of(client, route.address)
        # Counting takes a while: only where a rule asks.
        others = self.links.values() if self.world.engine.connection_rules else ()
        count = sum(not link.ended for link in others)
        admitted, effects = admit(
            self.world.engine,
            self.world.server,
            number,
            host,
            now,
            open_connections=count,
            listener=route.name,
        )
        for effect in effects:
            self.write_down(effect, now)
        translate, seat = self.behind.translate(client, route), self.behind.seat(client, route)
        conversation = Conversation(
            self.world, number, host, now, route.name, translate=translate, seat=seat
        )
        entrance = Entrance(admitted, self._at_the_entrance)
        link = self.links[number] = Link(self, number, client, entrance, conversation, route=route)
        return link

    async def dial(self, link: Link) -> bool:
        """Connect a link's upstream side to its route's server; False if that cannot be done now."""
        route = link.route
        await self.behind.settled()
        where = "" if route.name == LISTENER else f"{route.name}: "
        try:
            await route.dialler.dial(lambda: UpstreamSide(link))
        except DialError as error:
            self.counts.upstream_errors[error.reason] += 1
            self.counts.connections["no_upstream"] += 1
            self._survey_is_due = True
            if route.up is not False:
                route.up = False
                _log.warning("%sno connection to the server: %s", where, error)
            return False
        self.counts.connections["connected"] += 1
        if route.up is False:
            _log.warning("%sthe server is there again", where)
        route.up = True
        if self._survey_is_due:
            # It was down: another one may have come back.
            self._survey_is_due = False
            self._surveying = asyncio.get_running_loop().create_task(self._survey())
        return True

    def record(self, link: Link, effect: Countable | StartFailover, now: float) -> None:
        """Write down and count what a conversation says has happened; a failover that has begun goes on from here."""
        if isinstance(effect, StartFailover):
            self.failovers.start(effect.rule)
            return
        if isinstance(effect, ProtocolFault):
            _log.info(
                "connection %d goes on as raw bytes: %s: %s", link.number, effect.side, effect.text
            )
        self.write_down(effect, now)

    def write_down(self, effect: Effect, now: float) -> None:
        """Put an effect into the journal and the counts; what waits for a fault to fire may act now."""
        self._record.write(effect, now)
        engine = self.world.engine
        if isinstance(effect, Fired) and (engine.connection_rules or engine.failovers):
            self.steered()

    def ask_side(self, link: Link, effect: AskSide) -> None:
        """Have it done on the side connection to the link's own server, or to the standby."""
        done = partial(link.side_answer, effect.token)
        side = self.behind.side if effect.where == "standby" else link.route.side
        if side is None:
            asyncio.get_running_loop().call_soon(done, None)
        else:
            side.ask(effect.requests, effect.db, effect.protocol, done)

    def wake(self, connections: Sequence[int], now: float) -> None:
        """What commands of these connections are held for has happened."""
        for number in connections:
            link = self.links.get(number)
            if link is not None and link.relaying:
                link.tell(link.conversation.wake, now)

    def cut_others(self, link: Link, effect: CutOthers, now: float) -> None:
        """End other clients' connections."""
        for other in list(self.links.values()):
            if other is link or other.ended:
                continue
            if effect.who == "all" or other.conversation.matches_client(effect.rule):
                other.tell(partial(other.conversation.cut, effect.how), now)

    def upstream_broke(self, _link: Link, error: Exception) -> None:
        """A link's upstream side ended with an error."""
        reset = isinstance(error, ConnectionResetError | BrokenPipeError)
        self.counts.upstream_errors["reset" if reset else "broken"] += 1

    def crashed(self, link: Link, error: Exception) -> None:
        """A mistake of ours: that connection ends, the others go on."""
        self.counts.connections["crashed"] += 1
        if self.counts.connections["crashed"] == 1:
            _log.error("connection %d: a mistake in chaosproxy", link.number, exc_info=error)

    def gone(self, link: Link) -> None:
        """Both sides of a link are closed."""
        self.links.pop(link.number, None)
        self._held.discard(link)

    def watch(self, link: Link, *, held: bool) -> None:
        """A link's client is no longer read, or is again."""
        (self._held.add if held else self._held.discard)(link)


def _is_idle(link: Link) -> bool:
    """Whether the client waits for nothing that is going to come by itself."""
    talk = link.conversation
    return talk.raw or not (talk.waits if link.relaying else link.entrance.waits)


def _host_of(client: asyncio.Transport, listening: Address) -> str:
    peer = client.get_extra_info("peername")
    return sys.intern(str(peer[0])) if isinstance(peer, tuple) else listening.path
