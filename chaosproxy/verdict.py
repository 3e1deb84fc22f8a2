"""How a run under a proxy ended: which faults had to fire, and whether they did.

Takes a profile, what was asked to be required, and each fault's counts; gives what is missing and the exit status.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chaosproxy.core.rule import Profile
from chaosproxy.core.scalar import closest

ALL: Final = "all"
NONE: Final = "none"
#: COMMAND passed, and a fault that must fire never did.
NEVER_FIRED: Final = 3
#: Of so many commands that came it is said where a fault met none of its own.
_TOLD: Final = 8


class NoSuchFaultError(ValueError):
    """A fault that is required is not in the profile; the text says what is."""


def required_faults(profile: Profile, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """Give the names of the faults that must fire.

    `asked` are names, or `all`, or `none`. Without any: each fault that acts for sure once its command comes, which is all
    but those with `chance` and those that are triggered by hand. Raises NoSuchFaultError.
    """
    names = tuple(rule.name for rule in profile.rules)
    if not asked:
        return tuple(
            rule.name
            for rule in profile.rules
            if rule.when.chance is None and rule.when.trigger is None
        )
    found: list[str] = []
    for name in asked:
        if name in names:
            found.append(name)
        elif name == ALL:
            found += names
        elif name != NONE:
            near = closest(name, (*names, ALL, NONE))
            meant = f"did you mean '{near}'?" if near else f"it has {', '.join(names) or 'none'}"
            raise NoSuchFaultError(
                f"no fault of profile {profile.name} is called '{name}'; {meant}"
            )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, ended. `seconds` is how long it took, `started` ISO time; `status` COMMAND's own.

    `faults` are totals as Service.totals gives them; `events` those that are kept, `recorded` how many there were, `lost` how many of
    them the events file lacks;
    `came` are how many commands of each name there were; `timeline` as Service.timeline gives it. `again` is the command that repeats it, `replay` the one that fires just the same.
    """

    version: str
    profile: str
    profile_sha256: str
    description: str
    healthy: str
    seed: int
    upstream: str
    command: tuple[str, ...]
    status: int
    started: str
    seconds: float
    commands: int
    faults: Sequence[Mapping[str, Any]]
    required: tuple[str, ...]
    came: Mapping[str, int] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    recorded: int = 0
    lost: int = 0
    timeline: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    again: str = ""
    replay: str = ""
    divergence: str = ""

    def of(self, name: str) -> Mapping[str, Any]:
        """Give the totals of a fault of the profile that the run began with."""
        for fault in self.faults:
            if (fault["profile"], fault["name"]) == (self.profile, name):
                return fault
        return {"name": name, "type": "", "matched": 0, "fired": 0, "skipped": {}}

    @property
    def missing(self) -> tuple[str, ...]:
        """The faults that had to fire and never did."""
        return tuple(name for name in self.required if not self.of(name)["fired"])

    @property
    def exit_status(self) -> int:
        """COMMAND's own where not 0; 1: a replay went otherwise, or the file lacks events; 3: a fault never fired; else 0."""
        if self.status:
            return self.status
        if self.divergence or self.lost:
            return 1
        return NEVER_FIRED if self.missing else 0

    @property
    def incomplete(self) -> str:
        """Say what the events file lacks; nothing: it has all."""
        if not self.lost:
            return ""
        return f"{self.lost} of {self.recorded} events could not be written: their numbers are missing in the file"

    def why_missing(self, name: str) -> str:
        """Say what is known of why a fault never fired."""
        fault = self.of(name)
        if not fault["matched"]:
            most = sorted(self.came.items(), key=lambda item: (-item[1], item[0]))
            told = ", ".join(f"{name} {count}" for name, count in most[:_TOLD] if count)
            instead = f"; most that came: {told}" if told else ""
            return f"nothing that it matches ever came{instead}"
        reasons = ", ".join(f"{reason} {count}" for reason, count in fault["skipped"].items())
        times = "once" if fault["matched"] == 1 else f"{fault['matched']} times"
        return f"it matched {times} and was skipped: {reasons or 'it was still under way'}"

    def as_dict(self) -> dict[str, Any]:
        """All but the events themselves, for report.json."""
        return {
            "chaosproxy": self.version,
            "profile": self.profile,
            "profile_sha256": self.profile_sha256,
            "seed": self.seed,
            "upstream": self.upstream,
            "command": list(self.command),
            "command_status": self.status,
            "exit_status": self.exit_status,
            "started": self.started,
            "seconds": self.seconds,
            "commands": self.commands,
            "faults": [
                dict(fault) | {"required": self._is_required(fault)} for fault in self.faults
            ],
            "missing": list(self.missing),
            "events": self.recorded,
            "events_lost": self.lost,
            "again": self.again,
            "replay": self.replay,
            "divergence": self.divergence or None,
        }

    def _is_required(self, fault: Mapping[str, Any]) -> bool:
        return fault["profile"] == self.profile and fault["name"] in self.required
