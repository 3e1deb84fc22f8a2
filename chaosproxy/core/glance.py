"""What the rules make of a command at a glance: most of those that a rule is about, it leaves alone.

Takes a name, then commands of that name; gives the rules chosen for each, just as `Engine.select` would choose them, at a
fraction of the cost: what depends on the name alone is found out once, and a match that is left alone is counted in the rule
(`LiveRule.left`) instead of told.

Only for commands that nothing but such a choice keeps from being forwarded at once, which `glance` looks after, on a line on
which nothing else is under way, which the fast lane does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.effect import Effect, Matched
from chaosproxy.core.engine import Chosen, Engine, LiveRule
from chaosproxy.core.match import Exchange, LooksAt


@dataclass(frozen=True, slots=True)
class Glance:
    """What is known of all commands of one name. `key_at`: which argument is the only key, 0 for none.

    `rules`: those that may hold, in profile order, each with what its match looks at besides the name. `by_reply`: those that
    may hold if the reply is the right one. `whole`: some of them look at the whole command.
    """

    table: CommandTable
    rules: tuple[tuple[LiveRule, LooksAt], ...]
    by_reply: tuple[tuple[LiveRule, LooksAt], ...]
    key_at: int
    whole: bool

    def choose(  # noqa: PLR0917 - one call's worth of what is at hand
        self,
        args: Sequence[bytes],
        raw: bytes,
        here: Exchange,
        where: Callable[[Command], Exchange],
        now: float,
        effects: list[Effect],
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
        chosen = []
        for live, looks_at in self.rules:
            holds, by = _holds(live, looks_at, key, here)
            if not holds:
                continue
            live.matched += 1
            turn = live.counter.take(here, by, now)
            if isinstance(turn, str):
                live.skipped[turn] = live.skipped.get(turn, 0) + 1
                live.left[turn] = live.left.get(turn, 0) + 1
            else:
                effects.append(Matched(live.name))
                chosen.append(Chosen(live, turn, by))
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
    whole = any(looks_at == "command" for _, looks_at in (*rules, *by_reply))
    key_at = spec.single_key if spec is not None else 0
    return Glance(table, tuple(rules), tuple(by_reply), key_at, whole)
