"""Events over HTTP: after a number, waited for, as a stream; and that waiting occupies nobody else's place."""

import http.client
import json
import socket
import threading
from contextlib import closing
from dataclasses import replace
from time import monotonic

import pytest

from chaosproxy.control import events as events_module
from chaosproxy.control.events import MOST_WAITING
from chaosproxy.journal import Journal
from tests.control.asking import request
from tests.proxying import wait_for
from tests.test_journal import FIRED


def fire(backend, fault="lost-ack"):
    backend.journal.record(replace(FIRED, fault=fault), monotonic())
    return backend.journal.events()[-1]


def test_after(ask, backend):
    """Those after a number, the last one's number, how many are gone, and whose they are."""
    run = backend.journal.run
    assert ask("GET", "/events").json == {"events": [], "last": 0, "dropped": 0, "run": run}
    for name in ("a", "b", "c"):
        fire(backend, name)
    said = ask("GET", "/events").json
    assert [event["fault"] for event in said["events"]] == ["a", "b", "c"]
    said = ask("GET", "/events?after=2").json
    assert [event["n"] for event in said["events"]] == [3]
    assert said["last"] == 3


@pytest.mark.parametrize("wait", ["20s", "20", "20000ms", "20.0"])
def test_waited_for(ask, backend, wait):
    """With `wait` the answer comes as soon as there is something."""
    timer = threading.Timer(0.1, fire, [backend])
    timer.start()
    began = monotonic()
    said = ask("GET", f"/events?after=0&wait={wait}").json
    timer.join()
    assert [event["n"] for event in said["events"]] == [1]
    assert monotonic() - began < 15


def test_waited_in_vain(ask):
    """And with nothing when that time is over."""
    began = monotonic()
    assert ask("GET", "/events?wait=50ms").json["events"] == []
    assert monotonic() - began >= 0.05


class Busy(Journal):
    """One in which something happens whenever it was just read."""

    def since(self, after=0, wait=0.0):
        found = super().since(after, wait)
        self.record(FIRED, 0)
        return found


def test_who_goes_on_from_the_last_one_misses_none(ask, backend):
    """`last` is the last event's of those that are told, or were before; what happens meanwhile is told next."""
    backend.journal = Busy(0)
    known, last = [], 0
    for _ in range(4):
        said = ask("GET", f"/events?after={last}").json
        known += [event["n"] for event in said["events"]]
        last = said["last"]
    assert known == [1, 2, 3]


@pytest.mark.parametrize(
    "query", ["after=x", "after=-1", "wait=soon", "wait=-1s", "wait=1.2.3", "aftr=1"]
)
def test_bad_queries(ask, query):
    """What is not understood is refused, not passed over."""
    said = ask("GET", f"/events?{query}")
    assert said.status == 400
    assert said.json["error"]


def test_forget(ask, backend):
    """Forgotten they are gone; numbers go on."""
    fire(backend)
    assert ask("DELETE", "/events").json == {"last": 1}
    said = ask("GET", "/events").json
    assert said == {"events": [], "last": 1, "dropped": 1, "run": backend.journal.run}
    assert fire(backend)["n"] == 2


def frames(answer):
    """Read a stream's frames, one after the other, without heartbeats."""
    lines = []
    while line := answer.readline():
        if line.strip():
            lines.append(line.decode().rstrip("\n"))
        elif lines:
            yield dict(each.split(": ", 1) for each in lines if not each.startswith(":"))
            lines = []


def stream(server, path="/events/stream", **headers):
    link = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=60)
    link.request(
        "GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )
    answer = link.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    return link, answer


def test_stream(serve, backend):
    """Those that are there, then each as it happens, each with its number and its run as the id to come back with."""
    server = serve()
    fire(backend, "a")
    link, answer = stream(server)
    with closing(link):
        said = frames(answer)
        assert next(said) == {"retry": "1000"}
        first = next(said)
        assert (first["id"], json.loads(first["data"])["fault"]) == (
            f"1@{backend.journal.run}",
            "a",
        )
        fire(backend, "b")
        fire(backend, "c")
        assert [json.loads(next(said)["data"])["fault"] for _ in range(2)] == ["b", "c"]


@pytest.mark.parametrize(
    ("after", "heard", "number"),
    [
        ("?after=2", None, 3),
        ("?after=1", "2", 3),
        ("", "2@RUN", 3),
        ("?after=2", "", 3),
        ("?after=2", "nonsense@RUN", 3),
        # Of a proxy that ran before, at the same address: none of these was heard.
        ("", "2@another", 1),
        ("?after=1", "99@another", 1),
    ],
)
def test_stream_goes_on(serve, backend, after, heard, number):
    """Who comes back gets what was missed, and nothing twice; after a restart all that there is."""
    for name in ("a", "b", "c"):
        fire(backend, name)
    run = backend.journal.run
    headers = {} if heard is None else {"Last_Event_ID": heard.replace("RUN", run)}
    link, answer = stream(serve(), f"/events/stream{after}", **headers)
    with closing(link):
        said = frames(answer)
        next(said)
        assert next(said)["id"] == f"{number}@{run}"


def test_heartbeat(serve, monkeypatch):
    """A stream without events says now and then that it is there."""
    monkeypatch.setattr(events_module, "HEARTBEAT", 0.0)
    link, answer = stream(serve())
    with closing(link):
        assert [answer.readline() for _ in range(3)] == [b"retry: 1000\n", b"\n", b":\n"]


def test_head_of_a_stream(ask):
    """HEAD ends at once."""
    said = ask("HEAD", "/events/stream")
    assert (said.status, said.headers["Content-Type"], said.body) == (200, "text/event-stream", b"")


def test_stop_ends_streams(serve):
    """A server that stops ends them."""
    server = serve()
    link, answer = stream(server)
    with closing(link):
        server.stop()
        assert answer.read().replace(b":\n\n", b"") == b"retry: 1000\n\n"


def test_waiting_is_bounded(serve):
    """So many may wait; one more is told to come back, everything else is answered, and who leaves makes room."""
    server = serve()
    # Those of other tests' servers, which have stopped, may not all have noticed.
    wait_for(all_have_left, "room for all")
    # With its answer: without that nobody holds the connection, and it has left.
    streams = [stream(server) for _ in range(MOST_WAITING)]
    try:
        for path in ("/events/stream", "/events?wait=5s"):
            said = request(server, "GET", path)
            assert (said.status, said.headers["Retry-After"]) == (503, "1")
        assert request(server, "GET", "/events").status == 200
        assert request(server, "GET", "/healthz").status == 200
        leave(*streams.pop())
        wait_for(lambda: request(server, "GET", "/events?wait=1ms").status == 200, "room")
    finally:
        for each in streams:
            leave(*each)
    wait_for(all_have_left, "all to have left")


def leave(link, answer):
    answer.close()
    link.close()


def all_have_left():
    return events_module._waiting._value == MOST_WAITING


def test_who_listens_and_talks(serve, backend):
    """What a listening client says is passed over."""
    server = serve()
    with socket.create_connection(("127.0.0.1", server.address.port), 60) as link:
        link.sendall(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with link.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            link.sendall(b"more")
            fire(backend)
            said = frames(answer)
            next(said)
            assert next(said)["id"].startswith("1@")
