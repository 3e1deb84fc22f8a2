"""Real clients in named versions connect with their defaults and work, as they do without the proxy.

Takes pip's and npm's packages; gives proof that an everyday conversation gives the same direct, through a proxy that does
nothing, and through one whose faults look at everything and act on nothing.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import installs
from tests.proxying import RunningProxy, start_proxy

PROGRAMS = Path(__file__).with_name("programs")
ARMED = Path(__file__).parent.parent / "transparency" / "armed.yaml"
EMOJI = "héllo 🎉"

#: The clients' words for the same things.
REDIS_PY = {
    "ping": True,
    "get": EMOJI,
    "missing": None,
    "push": 3,
    "range": ["a", "b", "c"],
    "hash": {"f": "1", "g": "2"},
    "pipeline": [1, 2, "2"],
    "transaction": [3, 4, 4],
    "script": ["k", "v"],
    "subscribed": "subscribe",
    "message": ["message", "channel", "hello"],
    "blocking": ["queue", "job"],
    "timed out": None,
}
IOREDIS = {
    "ping": "PONG",
    "get": EMOJI,
    "missing": None,
    "push": 3,
    "range": ["a", "b", "c"],
    "hash": {"f": "1", "g": "2"},
    "pipeline": [[None, 1], [None, 2], [None, "2"]],
    "transaction": [[None, 3], [None, 4], [None, 4]],
    "script": ["k", "v"],
    "error": "ERR value is not an integer or out of range",
    "message": ["channel", "hello"],
    "blocking": ["queue", "job"],
    "timed out": None,
}
NODE_REDIS = IOREDIS | {
    "pipeline": [1, 2, "2"],
    "transaction": [3, 4, 4],
    "blocking": {"key": "queue", "element": "job"},
}

CLIENTS: dict[str, tuple[Callable[..., installs.Install], str, str, dict[str, Any]]] = {
    "redis-py 8.1.0": (installs.python, "redis==8.1.0", "everyday.py", REDIS_PY),
    "redis-py 5.2.1": (installs.python, "redis==5.2.1", "everyday.py", REDIS_PY),
    "ioredis 5.11.1": (installs.npm, "ioredis@5.11.1", "everyday_ioredis.cjs", IOREDIS),
    "npm redis 5.9.0": (installs.npm, "redis@5.9.0", "everyday_node_redis.cjs", NODE_REDIS),
}

REDIS_CLI = """\
PING
SET greeting "h\\xc3\\xa9llo"
GET greeting
GET missing
RPUSH list a b c
LRANGE list 0 -1
HSET hash f 1 g 2
HGETALL hash
MULTI
INCR n
RPUSH list d
EXEC
EVAL "return {KEYS[1], ARGV[1]}" 1 k v
INCR greeting
SUBSCRIBE
BLPOP list 1
BLPOP nothing 0.05
"""


@pytest.fixture(scope="module")
def before() -> Callable[[Any], tuple[RunningProxy, RunningProxy]]:
    """Give a function that gives the proxies before a server: one with nothing in force, one armed."""
    running: dict[int, tuple[RunningProxy, RunningProxy]] = {}

    def give(server: Any) -> tuple[RunningProxy, RunningProxy]:
        if server.pid not in running:
            running[server.pid] = (start_proxy(server.url), start_proxy(server.url, str(ARMED)))
        return running[server.pid]

    yield give
    for pair in running.values():
        for proxy in pair:
            proxy.stop()


def install(name: str) -> installs.Install:
    make, requirement, *_ = CLIENTS[name]
    try:
        return make(requirement)
    except installs.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.servers("redis70", "valkey9")
def test_an_everyday_conversation(server, before, name: str):
    """Strings, lists, a pipeline, a transaction, pub/sub, a blocking pop and a script: all as without the proxy."""
    client, (_, _, program, wanted) = install(name), CLIENTS[name]
    direct = client.run(PROGRAMS / program, server.port)
    assert direct["version"] == name.rpartition(" ")[2]
    assert wanted.items() <= direct["everyday"].items()
    for proxy in before(server):
        server.ask("FLUSHALL")
        assert client.run(PROGRAMS / program, proxy.port) == direct
        assert proxy.metric("protocol_errors_total") == 0


def redis_cli(*args: object, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            ["redis-cli", *map(str, args)],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("needs redis-cli: apt-get install redis-tools")
    return done.stdout + done.stderr


@pytest.mark.parametrize("protocol", ["-2", "-3"])
@pytest.mark.servers("redis70", "valkey9")
def test_redis_cli(server, before, protocol: str):
    """redis-cli, in RESP2 and RESP3: the same words as without the proxy, also from its own modes."""
    modes = (["--bigkeys"], ["--scan"], ["--raw", "GET", "greeting"], ["-n", "3", "DBSIZE"])

    def converse(port: int) -> list[str]:
        server.ask("FLUSHALL")
        said = [redis_cli("-p", port, protocol, text=REDIS_CLI)]
        return said + [redis_cli("-p", port, protocol, *mode) for mode in modes]

    direct = converse(server.port)
    for part in (
        "PONG",
        "héllo",
        "QUEUED",
        "wrong number of arguments",
        "not an integer",
    ):
        assert part in direct[0]
    for proxy in before(server):
        assert converse(proxy.port) == direct
