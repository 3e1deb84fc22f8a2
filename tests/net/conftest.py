"""Fixtures for what has sockets and clocks: every test that asks for a loop runs on both."""

import pytest

from chaosproxy.net import cluster, guided
from chaosproxy.net import proxy as proxy_module
from chaosproxy.net.loop import CHOICE, LoopThread
from tests.net import certificates as certificates_module
from tests.net.harness import Harness
from tests.proxying import serve_proxy


@pytest.fixture(params=["uvloop", "asyncio"])
def either_loop(request, monkeypatch) -> str:
    """Make new loops of each kind in turn."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop", reason="needs uvloop: pip install 'chaosproxy[fast]'")
    monkeypatch.setenv(CHOICE, request.param)
    return request.param


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Who is asked at a proxy's start, and answers, is waited for, however long a busy machine keeps it from that."""
    for module, name in (
        (proxy_module, "_SURVEY_PATIENCE"),
        (cluster, "_PATIENCE"),
        (guided, "PATIENCE"),
    ):
        monkeypatch.setattr(module, name, 30.0)


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


@pytest.fixture
def serve_here(either_loop):
    """Start proxies in this process; all are stopped in the end."""
    started = []

    def start(*args, **kwargs):
        proxy = serve_proxy(*args, **kwargs)
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.stop()
