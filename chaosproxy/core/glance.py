"""What the rules make of a command at a glance: most of those that a rule is about, it leaves alone.

Takes a name, then commands of that name; gives the rules chosen for each, just as `Engine.select` would choose them, at a
fraction of the cost: what depends on the name alone is found out once, and a match that is left alone is counted in the rule
(`Counter.allowance`) instead of told.

Only for commands that nothing but such a choice keeps from being forwarded at once, which `glance` looks after, on a line on
which nothing else is under way, which the fast lane does.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.engine import Engine
from chaosproxy.core.live_rule import Chosen, LiveRule
from chaosproxy.core.match import Exchange, LooksAt
from chaosproxy.core.resp import encode_bulk
from chaosproxy.core.when import Counter

#: Of so many keys it is kept which rules hold for them.
MOST_KEYS: Final = 4096


@dataclass(frozen=True, slots=True)
class Glance:
    """What is known of all commands of one name. `key_at`: which argument is the only key, 0 for none.

    `rules`: those that may hold, in profile order, each with what its match looks at besides the name. `by_reply`: those that
    may hold if the reply is the right one. `whole`: some of them look at the whole command; `keyed`: at the key at most.
    `quick`: `pass_over` can do it. Keys are as they were sent, header and all: `held` keeps which of the rules (by number)
    hold for a key, `free` the keys for which none of those does that look at keys. `named`: those that look at the name alone.
    """

    table: CommandTable
    rules: tuple[tuple[LiveRule, LooksAt], ...]
    by_reply: tuple[tuple[LiveRule, LooksAt], ...]
    key_at: int
    whole: bool
    keyed: bool
    quick: bool
    named: tuple[Counter, ...]
    held: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    free: set[bytes] = field(default_factory=set)

    def lets_by(self, keys: Collection[bytes], times: int) -> bool:
        """Whether it is known already that all rules leave so many commands alone; then they are counted. Only if `quick`.

        `keys`: each one's, if they are `keyed`.
        """
        if self.keyed and not self.free.issuperset(keys):
            return False
        for counter in self.named:
            allowance = counter.allowance
            if allowance.passed + times > allowance.most:
                return False
        for counter in self.named:
            counter.allowance.passed += times
        return True

    def pass_over(self, keys: Sequence[bytes], times: int, now: float) -> int:
        """How many of so many commands, from the first on, all rules leave alone; they are counted. Only if `quick`.

        `keys`: as for `lets_by`; what follows is not looked at. At 0 the first one has to be looked at.
        """
        keys = keys[:times]
        if self.lets_by(keys, times):
            return times
        free, known = times, self.held.get
        holding = [known(key) or self._look(key) for key in keys] if self.keyed else ()
        found = []
        for number, (live, looks_at) in enumerate(self.rules):
            here = None
            if looks_at != "name":
                here = [at for at, numbers in enumerate(holding) if number in numbers]
                if not here:
                    continue
            allowance = live.counter.look_ahead(now)
            ahead = allowance.most - allowance.passed
            if here is None:
                free = min(free, ahead)
            elif ahead < len(here):
                free = min(free, here[ahead])
            found.append((live.counter, here))
        for counter, here in found:
            counter.allowance.passed += free if here is None else sum(at < free for at in here)
            counter.expire()
        return free

    def lets_begin(self, args: Sequence[bytes | None], arguments: int, now: float) -> bool:
        """Whether all rules leave a command alone of which only the first arguments are here, its name first; then it is counted.

        `arguments`: how many it has besides its name. False, too, if that is not told by what is here.
        """
        if not self.quick:
            return False
        keys: list[bytes] = []
        if self.keyed and self.key_at <= arguments:
            key = args[self.key_at] if self.key_at < len(args) else None
            if key is None:
                return False
            keys.append(encode_bulk(key))
        return self.pass_over(keys, 1, now) == 1

    def _look(self, sent: bytes) -> tuple[int, ...]:
        """Which rules hold for a key, as it was sent, by number; -1 ahead of them: an empty answer would be looked for again."""
        key = sent[sent.index(b"\n") + 1 : -2]
        numbers = tuple(
            number
            for number, (live, looks_at) in enumerate(self.rules)
            if looks_at == "key" and live.match.key_holds(key)
        )
        if len(self.held) >= MOST_KEYS:
            self.held.clear()
            self.free.clear()
        found = self.held[sent] = (-1, *numbers)
        if not numbers:
            self.free.add(sent)
        return found

    def choose(
        self,
        args: Sequence[bytes],
        raw: bytes,
        here: Exchange,
        where: Callable[[Command], Exchange],
        now: float,
    ) -> list[Chosen] | None:
        """Count a command's matches; give the rules chosen for it, or None, nothing counted, where its reply has to be seen.

        `raw`: its bytes, if `whole`. `here`: any exchange of the connection; `where` makes one of a command.
        """
        key = args[self.key_at] if 0 < self.key_at < len(args) else None
        if self.whole:
            here = where(Command.parse(self.table, args, raw))
        for live, looks_at in self.by_reply:
            if _holds(live, looks_at, key, here)[0]:
                return None
        chosen: list[Chosen] = []
        for live, looks_at in self.rules:
            holds, by = _holds(live, looks_at, key, here)
            if not holds:
                continue
            chosen += live.glance(here, by, now)
        return chosen


def _holds(
    live: LiveRule, looks_at: LooksAt, key: bytes | None, exchange: Exchange
) -> tuple[bool, bytes | None]:
    """Whether a rule holds for a command whose name it is about, and the key it holds for."""
    if looks_at == "name":
        return True, key
    if looks_at == "key":
        return key is not None and live.match.key_holds(key), key
    return live.match.holds(exchange)


def glance(engine: Engine, table: CommandTable, name: str) -> Glance | None:
    """What can be known of all commands whose first argument is `name` (upper case); None: too little."""
    if engine.looks_back or engine.rememberers or engine.failovers or engine.recording:
        return None
    if engine.watches(name):
        return None
    if any(other.startswith(name + "|") for other in table.specs):
        return None
    spec = table.specs.get(name)
    single = spec is None or bool(spec.single_key) or not spec.key_specs
    rules: list[tuple[LiveRule, LooksAt]] = []
    by_reply: list[tuple[LiveRule, LooksAt]] = []
    for live in engine.interest(name):
        looks_at = live.match.looks_at
        if looks_at == "around":
            return None
        if not single:
            looks_at = "command"
        if live.match.names_hold(name, spec):
            (rules if live.rule.match.reply is None else by_reply).append((live, looks_at))
    looked_at = {looks_at for _, looks_at in (*rules, *by_reply)}
    key_at = spec.single_key if spec is not None else 0
    return Glance(
        table,
        tuple(rules),
        tuple(by_reply),
        key_at,
        whole="command" in looked_at,
        keyed="key" in looked_at,
        named=tuple(live.counter for live, looks_at in rules if looks_at == "name"),
        quick=not by_reply
        and "command" not in looked_at
        and ("key" not in looked_at or key_at > 0)
        and all(live.counter.counts_all_alike for live, _ in rules),
    )
