"""Where commands wait for others: held until so many others were applied, or until so many wait, then let go in an order.

Takes tickets of held commands and news of applied ones; gives the connections that may go on.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from chaosproxy.core.match import Exchange, NameTest

Order = Literal["as_given", "reversed", "shuffled"]


@dataclass(slots=True, eq=False)
class Ticket:
    """One held command, from `since` to `due` at most. `open`: it may go on; `why` says what opened it."""

    exchange: Exchange
    key: bytes | None
    random: Random
    since: float
    due: float
    open: bool = False
    why: str = ""
    seen: int = 0

    @property
    def connection(self) -> int:
        """Whose command it is."""
        return self.exchange.connection


@dataclass(slots=True)
class Barrier:
    """One rule's barrier. Either `others` (with `applied`, `same_key`) or `crowd` says what opens it."""

    others: NameTest | None = None
    applied: int = 1
    same_key: bool = True
    crowd: int = 0
    order: Order = "as_given"
    _held: list[Ticket] = field(default_factory=list)
    _leaving: list[Ticket] = field(default_factory=list)

    def join(self, ticket: Ticket) -> list[int]:
        """A command is held; give the connections that may go on because of that."""
        self._held.append(ticket)
        if not self.crowd or len(self._held) < self.crowd:
            return []
        crowd, self._held = self._held, []
        if self.order == "reversed":
            crowd.reverse()
        elif self.order == "shuffled":
            ticket.random.shuffle(crowd)
        self._leaving += crowd
        return self._next()

    def _next(self) -> list[int]:
        """Let the next of a crowd go, if none of it is under way."""
        if not self._leaving or self._leaving[0].open:
            return []
        self._leaving[0].open = True
        self._leaving[0].why = f"let go {self.order}, once {self.crowd} were waiting"
        return [self._leaving[0].connection]

    def leave(self, ticket: Ticket) -> list[int]:
        """A command waits no more, was applied or is lost; give the connections that may go on because of that."""
        if ticket in self._held:
            self._held.remove(ticket)
        if ticket in self._leaving:
            self._leaving.remove(ticket)
        return self._next()

    def hear(self, exchange: Exchange) -> list[int]:
        """A command was applied; give the connections that may go on because of that."""
        command = exchange.command
        if self.others is None or not self.others.holds(command.name, command.spec):
            return []
        opened = []
        for ticket in self._held:
            same = not self.same_key or (
                ticket.exchange.db == exchange.db and ticket.key in command.keys
            )
            if ticket.open or ticket.connection == exchange.connection or not same:
                continue
            ticket.seen += 1
            if ticket.seen >= self.applied:
                ticket.open = True
                ticket.why = f"let go once {command.name} had been applied"
                if self.applied > 1:
                    ticket.why = f"let go once {self.applied} had been applied, {command.name} last"
                opened.append(ticket.connection)
        return opened
