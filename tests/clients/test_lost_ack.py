"""The main story: redis-py sends again what was done already, and the proxy can prove it.

Takes redis-py as pip brings it; gives what the caller saw, what Redis holds, and what the proxy says happened.
"""

from pathlib import Path

import pytest

from tests.clients import installs
from tests.proxying import start_proxy

PROGRAM = Path(__file__).with_name("programs") / "lost_ack.py"
BEFORE = ("--set", "lost-ack.at=before_forward")


def redis_py(version: str) -> installs.Install:
    try:
        return installs.python(f"redis=={version}")
    except installs.Unavailable as reason:
        pytest.skip(str(reason))


def story(server, version: str, kind: str, form: str, *options: str) -> tuple[dict, list, dict]:
    """Give what the caller saw, what the list holds, and the one event; the counter says one, too."""
    client = redis_py(version)
    with start_proxy(server.url, "lost-ack", *options) as proxy:
        seen = client.run(PROGRAM, proxy.port, kind, form)
        (event,) = proxy.wait_events()
        labels = {"fault": "lost-ack", "type": "disconnect", "command": "RPUSH"}
        labels |= {"position": event["position"], "outcome": event["outcome"]}
        assert proxy.metric("faults_fired_total", **labels) == 1
        assert proxy.metric("faults_fired_total") == 1
    assert seen["version"] == version
    assert (event["fault"], event["command"], event["keys"]) == ("lost-ack", "RPUSH", ["chat"])
    return seen, server.ask("LRANGE", "chat", 0, -1), event


@pytest.mark.parametrize("form", ["plain", "multi"])
@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_a_lost_acknowledgement_is_stored_twice(valkey9, kind: str, form: str):
    """redis-py 8.1.0 says nothing and returns 2: the message is in the list twice. The event says it was applied."""
    seen, stored, event = story(valkey9, "8.1.0", kind, form)
    assert seen["raised"] is None
    assert seen["returned"] == (2 if form == "plain" else [2, True])
    assert stored == [b"m1", b"m1"]
    assert (event["applied"], event["outcome"], event["told"]) == ("yes", "unknown", "reset")


@pytest.mark.parametrize("form", ["plain", "multi"])
@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_a_lost_request_is_stored_once(valkey9, kind: str, form: str):
    """The control: what Redis never saw may be sent again, and the event says that it was not applied."""
    seen, stored, event = story(valkey9, "8.1.0", kind, form, *BEFORE)
    assert seen["raised"] is None
    assert seen["returned"] == (1 if form == "plain" else [1, True])
    assert stored == [b"m1"]
    assert (event["applied"], event["outcome"], event["told"]) == ("no", "fail", "reset")


@pytest.mark.parametrize("form", ["plain", "multi"])
@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_an_older_client_tells_its_caller(valkey9, kind: str, form: str):
    """redis-py 5.2.1 raises, and the message is there once."""
    seen, stored, event = story(valkey9, "5.2.1", kind, form)
    assert (seen["raised"], seen["returned"]) == ("ConnectionError", None)
    assert stored == [b"m1"]
    assert (event["applied"], event["outcome"]) == ("yes", "unknown")
