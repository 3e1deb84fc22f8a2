"""Fixtures for what has sockets and clocks: every test that asks for a loop runs on both."""

import pytest

from chaosproxy.net.loop import CHOICE, LoopThread
from tests.net import certificates as certificates_module
from tests.net.harness import Harness


@pytest.fixture(params=["uvloop", "asyncio"])
def either_loop(request, monkeypatch) -> str:
    """Make new loops of each kind in turn."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop", reason="needs uvloop: pip install 'chaosproxy[fast]'")
    monkeypatch.setenv(CHOICE, request.param)
    return request.param


@pytest.fixture
def loop(either_loop):
    """A running loop of each kind."""
    thread = LoopThread()
    yield thread
    thread.stop()


@pytest.fixture
def harness(either_loop, monkeypatch):
    """A proxy with scripted conversations, on each loop."""
    harness = Harness(monkeypatch)
    yield harness
    harness.close()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """An authority, a server's certificate and a client's, as PEM files."""
    return certificates_module.make(tmp_path_factory.mktemp("tls"))
