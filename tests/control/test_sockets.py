"""Connections of the control address: nobody can occupy it, and whoever is slow costs a buffer and nothing else."""

import socket
import threading
from contextlib import ExitStack, suppress
from time import monotonic

import pytest

from chaosproxy.control import sockets, visitor
from chaosproxy.control.sockets import MOST_CONNECTIONS, MOST_REQUESTS
from tests.busy import measured, within
from tests.control.asking import request
from tests.proxying import wait_for

HEAD = b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def impatient(patient, monkeypatch):
    """Nobody is waited for long, but as long as a busy machine takes to say something."""
    monkeypatch.setattr(sockets, "PATIENCE", 1.5)
    monkeypatch.setattr(sockets, "UNREAD", 0.3)
    monkeypatch.setattr(visitor, "PATIENCE", 1.5)
    monkeypatch.setattr(sockets, "LINGER", 0.3)


@pytest.fixture
def link(serve):
    """Connect to one server; gives the connection."""
    server = serve()
    with ExitStack() as stack:

        def connect(sent=b""):
            made = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.address.port), 60)
            )
            made.sendall(sent)
            return made

        connect.server = server
        yield connect


def to_end(link):
    """All that comes until the other side ends it."""
    said = b""
    try:
        while more := link.recv(1 << 16):
            said += more
    except ConnectionResetError:
        said += b"<reset>"
    return said


def times(backend, limit):
    return dict(backend.limits.items())[limit]


def test_any_pieces(link):
    """A request may come byte by byte, and several in one packet; each is answered, in order."""
    one = HEAD + b'Content-Length: 16\r\n\r\n{"name": "calm"}'
    slow = link()
    for at in range(len(one)):
        slow.sendall(one[at : at + 1])
    assert slow.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    unknown = b"\r\nGET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    many = link(unknown * 1000 + one + b"GET /healthz HTTP/1.0\r\n\r\n")
    said = to_end(many)
    assert said.count(b"HTTP/1.1 404 ") == 1000
    assert said.count(b"HTTP/1.1 200 ") == 2
    assert said.index(b'"generation"') > said.rindex(b"HTTP/1.1 404 ")


def test_more_than_is_read_at_once(link):
    """Of many requests that are sent before the first one is answered each is answered, and once."""

    def ask(path, version=b"1.1"):
        return b"GET %s HTTP/%s\r\nHost: localhost\r\nA: %s\r\n\r\n" % (path, version, b"x" * 1000)

    some = ask(b"/nowhere") * 2 + ask(b"/healthz")
    said = to_end(link(some * 100 + ask(b"/healthz", b"1.0")))
    assert said.count(b"HTTP/1.1 404 ") == 200
    assert said.count(b"HTTP/1.1 200 ") == 101


def test_all_said_at_once(link):
    """Who says all of it and then that there is no more gets an answer to each."""
    unknown = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    several = link(unknown * 50)
    several.shutdown(socket.SHUT_WR)
    said = to_end(several)
    assert said.count(b"HTTP/1.1 404 ") == said.count(b"HTTP/1.1 ") == 50


def test_no_thread_left(link, monkeypatch):
    """Where the system has no more threads who asks is told so, and is answered once it has."""
    start, broken = threading.Thread.start, threading.Event()

    def refuse(thread):
        if thread.name == "chaosproxy-control-request" and not broken.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(MOST_REQUESTS + 1):
        assert request(link.server, "GET", "/healthz").status == 503
    broken.set()
    assert request(link.server, "GET", "/healthz").status == 200


@within(1.0)
def test_silent_ones_go(impatient, link, backend):
    """Who says nothing is closed without a word, and who says half a request is told what is missing."""
    before = times(backend, "control_time")
    silent, half = link(), link(b"GET /healthz HTTP/1.1\r\n")
    body = link(HEAD + b"Content-Length: 9\r\n\r\n{")
    assert to_end(silent) == b""
    for each in (half, body):
        said = to_end(each)
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"did not come in time" in said
    assert times(backend, "control_time") == before + 2


def test_steady_drops_do_not_help(impatient, link):
    """A request has its time from its first byte: one byte now and then does not prolong it."""
    slow = link(b"GET /healthz HTTP/1.1\r\nA: ")
    began = monotonic()
    try:
        while monotonic() - began < 15:
            slow.sendall(b"x")
            threading.Event().wait(0.02)
    except OSError:
        pass
    assert monotonic() - began < 14


def test_slow_ones_stop_nobody(link, backend):
    """Many more than there may be, all of them slow: the oldest go, and whoever asks a whole question is answered."""
    for _ in range(MOST_CONNECTIONS + 50):
        link(b"GET /healthz HTTP/1.1\r\nHost:")
    for _ in range(20):
        with measured() as busy:
            began = monotonic()
            assert request(link.server, "GET", "/healthz").status == 200
            assert monotonic() - began < 5 + busy.lost
    assert times(backend, "control_connections") >= 50


def test_an_answer_that_nobody_reads(impatient, link, backend, monkeypatch):
    """It is held for a while, others are answered meanwhile, and then it is over."""
    monkeypatch.setattr(
        backend, "in_force", lambda: {"name": "x" * (20 << 20), "generation": 1}, raising=False
    )
    slow = link()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(b"GET /profile HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert request(link.server, "GET", "/healthz").status == 200
    wait_for(lambda: times(backend, "control_time") == 1, "it to be given up")


def test_a_large_answer_is_read_whole(link, backend, monkeypatch):
    """However large, and in whatever pieces it goes out."""
    monkeypatch.setattr(
        backend, "in_force", lambda: {"name": "x" * (20 << 20), "generation": 1}, raising=False
    )
    assert len(request(link.server, "GET", "/profile").json["name"]) == 20 << 20


def test_too_much_at_once(link, backend, monkeypatch):
    """All connections together hold so much and no more."""
    monkeypatch.setattr(sockets, "MOST_HELD", 100_000)
    announced = HEAD + b"Content-Length: 90000\r\n\r\n"
    first = link(announced + b" " * 80_000)
    second = link(announced + b" " * 80_000)
    answers = [None, None]

    def told():
        for at, each in enumerate((first, second)):
            each.settimeout(0.05)
            with suppress(TimeoutError):
                answers[at] = answers[at] or each.recv(1000)
        return any(answers)

    wait_for(told, "one of them to be refused")
    said = next(filter(None, answers))
    assert said.startswith(b"HTTP/1.1 503 ")
    assert times(backend, "control_bytes") >= 1
    assert request(link.server, "GET", "/healthz").status == 200


def test_slow_questions_do_not_stop_others(link, backend, monkeypatch):
    """Those that take long are nobody else's problem, until there are as many as may be worked on."""
    asked, answer = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(
        backend, "unready", lambda: (asked.release(), answer.wait(90), None)[-1], raising=False
    )
    slow = [link(b"GET /readyz HTTP/1.1\r\n\r\n") for _ in range(MOST_REQUESTS - 1)]
    for _ in slow:
        assert asked.acquire(timeout=60)
    assert request(link.server, "GET", "/healthz").status == 200
    slow.append(link(b"GET /readyz HTTP/1.1\r\n\r\n"))
    assert asked.acquire(timeout=60)
    late = link(b"GET /healthz HTTP/1.1\r\n\r\n")
    late.settimeout(0.2)
    with pytest.raises(TimeoutError):
        late.recv(100)
    late.settimeout(60)
    answer.set()
    for each in (*slow, late):
        assert each.recv(100).startswith(b"HTTP/1.1 200 ")


def test_all_worked_for(link, backend, monkeypatch):
    """Where nobody can go, one more is told to come back."""
    monkeypatch.setattr(sockets, "MOST_CONNECTIONS", 3)
    asked, answer = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(
        backend, "unready", lambda: (asked.release(), answer.wait(90), None)[-1], raising=False
    )
    slow = [link(b"GET /readyz HTTP/1.1\r\n\r\n") for _ in range(3)]
    for _ in slow:
        assert asked.acquire(timeout=60)
    assert to_end(link()).startswith(b"HTTP/1.1 503 ")
    answer.set()
    for each in slow:
        assert each.recv(100).startswith(b"HTTP/1.1 200 ")


def test_hears_the_refusal_of_what_it_still_sends(link):
    """Who is refused in the middle of a body can read why."""
    sender = link(HEAD + b"Content-Length: 99999999\r\n\r\n")
    sender.sendall(b" " * (3 << 20))
    assert to_end(sender).startswith(b"HTTP/1.1 413 ")


def test_who_hangs_up(link):
    """Those who hang up, at whatever moment, disturb nobody."""
    link().close()
    link(b"GET /healthz HTTP/1.1\r\n").close()
    link(b"GET /events?wait=5s HTTP/1.1\r\nHost: localhost\r\n\r\n").close()
    reset = link(b"GET /profile HTTP/1.1\r\nHost: localhost\r\n\r\n")
    reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    reset.close()
    assert request(link.server, "GET", "/healthz").status == 200


def test_no_file_left(link, monkeypatch):
    """Where the process may open no more files, who comes then is served once it may."""
    accept, broken = sockets.accept, threading.Event()

    def refuse(listening):
        if not broken.is_set():
            raise OSError(24, "Too many open files")
        return accept(listening)

    monkeypatch.setattr(sockets, "accept", refuse)
    late = link(b"GET /healthz HTTP/1.1\r\n\r\n")
    late.settimeout(0.3)
    with pytest.raises(TimeoutError):
        late.recv(100)
    broken.set()
    late.settimeout(60)
    assert late.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_stream_ends_in_order(link, backend, monkeypatch):
    """Events that were written are there to be read, also by one that has said more than it should have."""
    # A busy machine may be late to see that it is over.
    monkeypatch.setattr(sockets, "_GRACE", 20.0)
    listener = link(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"and more")
    said = b""
    while b"retry" not in said:
        said += listener.recv(1000)
    assert b"text/event-stream" in said
    link.server.stop()
    assert b"<reset>" not in to_end(listener)
