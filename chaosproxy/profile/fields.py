"""The fields of a profile that belong to no single fault, declared once for loader and schema.

Takes nothing; gives frozen dataclasses of settings: `Head` for the profile, `Shared` for each of its faults.
"""

from dataclasses import dataclass

from chaosproxy.core import units
from chaosproxy.core.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a profile says beside its faults."""

    description: str | None = setting(units.TEXT, "What it does, in one sentence.", default=None)
    healthy: str | None = setting(
        units.TEXT, "What an application shows that stands it.", default=None
    )
    seed: int | None = setting(
        units.SEED,
        "What every chance and draw follows from; --seed and CHAOSPROXY_SEED win. Of several "
        "profiles the last that gives one counts. Left out: one is drawn, and printed.",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What a fault's entry says beside `fault`, `match`, `when`, `at` and its own settings."""

    name: str | None = setting(
        units.NAME,
        "Unique; what events, metrics and --set call it. Left out: the type, then type-2, type-3 …",
        default=None,
    )


MATCH_HELP = "Which exchanges: every field given must hold."
WHEN_HELP = "Which of the matching ones."
AT_HELP = (
    "Where in the exchange's life. before_forward: Redis never sees the command. after_apply: it has "
    "executed it, the client has nothing of the reply. mid_reply: the client has part of it. "
    "after_reply: the client has all of it."
)
