"""Clients that will walk around the proxy: said once, loudly, with what to do."""

import logging
import socket
import threading
from contextlib import suppress

import pytest

from chaosproxy.net.address import parse_upstream
from chaosproxy.net.bypass import Bypass, advice
from tests import servers
from tests.proxying import serve_proxy, wait_for


@pytest.fixture(scope="module", params=["redis70", "valkey9"])
def node(request):
    server = servers.start_cluster_node(request.param)
    yield server
    server.stop()


def warnings(caplog):
    return [r.message for r in caplog.records if "around this proxy" in r.message]


def test_a_node_that_is_taken_for_a_server(node, caplog):
    """Found out at the start; said once, with the URL that would be right."""
    with caplog.at_level(logging.WARNING), serve_proxy(f"{node.url}/0") as proxy:
        assert proxy.service.survey.cluster
        proxy.service._loop.run(proxy.service._proxy._survey())
    (said,) = warnings(caplog)
    assert said.startswith("the server is a node of a cluster; ")
    assert said.endswith(f"use --upstream redis+cluster://127.0.0.1:{node.port}")


def test_a_cluster_that_is_taken_for_one(node, redis70, caplog):
    """No word where nobody can leave: the cluster's nodes all have listeners, or there is no cluster."""
    with serve_proxy(f"redis+cluster://127.0.0.1:{node.port}"), serve_proxy(redis70.url) as proxy:
        assert not proxy.service.survey.cluster
        with proxy.connect() as client:
            client.send("ECHO", b"-MOVED 1 h:1\r\n")
            assert client.read() == [b"$14\r\n-MOVED 1 h:1\r\n\r\n"]
    assert warnings(caplog) == []


def test_a_server_that_answers_moved(caplog, either_loop):
    """A server that does not say what it is gives itself away when a client asks it for the wrong key."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer(one):
            with one, suppress(OSError):  # who asked may have hung up before it has all
                while data := one.recv(1000):
                    moved = b"GET" in data
                    one.sendall(b"-MOVED 16287 127.0.0.1:1\r\n" if moved else b"-ERR no\r\n")

        def accept():
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=[one], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        port = listening.getsockname()[1]
        with serve_proxy(f"redis://127.0.0.1:{port}") as proxy:
            for _ in range(2):
                with proxy.connect() as client:
                    assert client.raw("GET", "x") == b"-MOVED 16287 127.0.0.1:1\r\n"
            wait_for(lambda: warnings(caplog), "the warning")
        listening.shutdown(socket.SHUT_RDWR)
    (said,) = warnings(caplog)
    assert said.startswith("the server has answered MOVED; ")


@pytest.mark.parametrize("data", [b"-MOVED x h:1\r\n", b"-MOVED 1 h:1", b"-MOVED 1 h\r\n"])
def test_what_only_looks_like_it(data, caplog):
    """Bytes in the middle of something else are not taken for an answer."""
    bypass = Bypass(parse_upstream("redis://h"))
    bypass.answered(data)
    assert warnings(caplog) == []


def test_the_advice():
    """The URL that would be right, without a password; for a unix socket there is none."""
    url = advice(parse_upstream("rediss://me:pw@h:7000/0")).rpartition(" ")[2]
    assert url == "rediss+cluster://me:***@h:7000"
    assert advice(parse_upstream("unix:///s")).endswith("--upstream redis+cluster://HOST:PORT")
