"""Faults of the tests' own, so that messages do not change with the catalogue."""

from dataclasses import dataclass

import pytest

from chaosproxy import faults
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.distribution import DISTRIBUTION, Distribution
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import SIGNED_INT, choice
from chaosproxy.profile import ProfileError, Source, load


@dataclass(frozen=True)
class Disconnect(Fault):
    """Cut the connection."""

    type = "disconnect"
    positions = tuple(Position)
    outcome = "fail / unknown"
    how: str = setting(choice("how", "reset", "close"), "How it ends.", default="reset")
    bytes: int | None = setting(SIGNED_INT, "How much still arrives.", default=None)

    def check(self, at):
        if self.bytes is not None and at is not Position.MID_REPLY:
            raise Invalid("only at mid_reply is a part delivered", ("bytes",))


@dataclass(frozen=True)
class Latency(Fault):
    """Wait."""

    type = "latency"
    positions = (Position.BEFORE_FORWARD, Position.AFTER_APPLY)
    on_pushes = True
    outcome = "ok"
    delay: Distribution = setting(DISTRIBUTION, "How long.")


@dataclass(frozen=True)
class DropWrite(Fault):
    """Swallow a write."""

    type = "drop_write"
    positions = (Position.BEFORE_FORWARD,)
    outcome = "false ok / fail"
    writes_only = True
    tell: str = setting(choice("tell", "ok", "error"), "What the client is told.")


@pytest.fixture(autouse=True)
def own_faults(monkeypatch):
    faults.register()  # what is registered by now is not registered again
    for name in tuple(FAULTS):
        monkeypatch.delitem(FAULTS, name)
    for cls in (Disconnect, Latency, DropWrite):
        monkeypatch.setitem(FAULTS, cls.type, cls)


def _load(*yamls, overrides=(), table=None):
    """Load texts as files a.yaml, b.yaml and so on."""
    sources = [
        Source(name, yaml.encode(), f"{name}.yaml")
        for name, yaml in zip("abcdef", yamls, strict=False)
    ]
    return load(sources, table=table or CommandTable.bundled(), overrides=overrides)


@pytest.fixture(name="load")
def load_fixture():
    """Give a function that loads texts, named a, b and so on; `overrides` as `--set` takes them."""
    return _load


@pytest.fixture
def told():
    """Give a function that loads bad texts, and gives what each problem's first line says."""

    def told(*yamls, **how):
        with pytest.raises(ProfileError) as raised:
            _load(*yamls, **how)
        return [problem.render().partition("\n")[0] for problem in raised.value.problems]

    return told
