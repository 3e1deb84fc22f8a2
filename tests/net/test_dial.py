"""Dialling: every way it fails has its reason, and a name is looked up each time."""

import asyncio
import re
import socket
import ssl

import pytest

from chaosproxy.net.address import Address
from chaosproxy.net.dial import DialError, Dialler
from tests.servers import free_port


class Kept(asyncio.Protocol):
    """Remembers its transport."""

    def connection_made(self, transport):
        self.transport = transport


@pytest.fixture
def listening():
    # Nobody else is given its port once it does not listen there.
    with socket.create_server(("127.0.0.1", free_port())) as server:
        server.settimeout(10)
        yield server


def dial(loop, address, *, tls=None, timeout=5.0):
    """Dial and close again; give how it went: None, or the reason and the text."""

    async def go():
        try:
            transport, _ = await Dialler(address, tls, timeout).dial(Kept)
        except DialError as error:
            return error.reason, str(error)
        transport.abort()
        return None

    return loop.run(go(), 20)


def port_of(server):
    return server.getsockname()[1]


def test_connects(loop, listening):
    """By address and by name."""
    port = port_of(listening)
    assert dial(loop, Address("127.0.0.1", port)) is None
    assert dial(loop, Address("localhost", port)) is None


def test_every_address_of_a_name_is_tried(loop, listening, monkeypatch):
    """A name with several addresses is as good as its best one; the last one's error is told."""
    port = port_of(listening)
    found = [["127.0.0.9", "127.0.0.1"]]

    async def resolve(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found[0]]

    monkeypatch.setattr(type(loop.loop), "getaddrinfo", resolve_for(resolve), raising=False)
    assert dial(loop, Address("redis", port)) is None
    found[0] = ["127.0.0.9", "127.0.0.8"]
    assert dial(loop, Address("redis", port)) == ("refused", f"redis:{port}: Connection refused")


def test_an_address_that_does_not_answer(loop, listening, monkeypatch):
    """It takes its share of the time, and the next one is tried."""
    port = port_of(listening)

    async def resolve(host, port, **_):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in ("127.0.0.9", "127.0.0.1")
        ]

    monkeypatch.setattr(type(loop.loop), "getaddrinfo", resolve_for(resolve), raising=False)
    with socket.create_server(("127.0.0.9", port), backlog=0) as full:
        waiting = []
        while True:
            # Whoever comes when the queue is full is not answered.
            waiting.append(socket.socket())
            waiting[-1].settimeout(0.5)
            try:
                waiting[-1].connect(full.getsockname())
            except TimeoutError:
                break
        assert dial(loop, Address("redis.internal", port), timeout=3.0) is None
        for each in waiting:
            each.close()


def resolve_for(resolve):
    async def getaddrinfo(self, *args, **kwargs):
        return await resolve(*args, **kwargs)

    return getaddrinfo


def test_refused(loop, listening):
    """Nobody listens there."""
    port = port_of(listening)
    listening.close()
    said = dial(loop, Address("127.0.0.1", port))
    assert said == ("refused", f"127.0.0.1:{port}: Connection refused")


def test_unix(loop, tmp_path):
    """A unix socket, there and not there."""
    path = tmp_path / "s"
    said = dial(loop, Address(path=str(path)))
    assert said == ("refused", f"unix:{path}: No such file or directory")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert dial(loop, Address(path=str(path))) is None


def test_unknown_name(loop):
    """A name that does not exist; one that no name server is asked for, which may be slow or not there."""
    reason, text = dial(loop, Address("1::2::3", 1))
    assert reason == "name"
    assert re.fullmatch(r"\[?1::2::3\]?:1: .+", text)


@pytest.mark.parametrize(
    "address",
    [
        Address("a..b", 1),
        Address("x" * 64, 1),
        Address("\udcff", 1),
        Address("127.0.0.1", 70000),
        Address("h", -1),
    ],
    ids=ascii,
)
def test_what_cannot_be(loop, address):
    """Servers name others, and may name what no lookup takes, or a port that some loops take for another one."""
    assert dial(loop, address) == ("name", f"{address}: there is no such host or port")


def test_timeout(loop, listening, certificates):
    """A server that never answers the TLS handshake is given up in time."""
    context = ssl.create_default_context(cafile=certificates.ca)
    address = Address("127.0.0.1", port_of(listening))
    said = dial(loop, address, tls=context, timeout=0.2)
    assert said == ("timeout", f"{address}: no connection within 0.2 s")


def test_certificate_of_somebody_else(loop, certificates):
    """A certificate that is not trusted is a TLS error, and says why."""

    async def go():
        server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server_tls.load_cert_chain(certificates.cert, certificates.key)
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, "127.0.0.1", 0, ssl=server_tls
        )
        port = server.sockets[0].getsockname()[1]
        results = []
        for authority in (certificates.foreign_ca, certificates.ca):
            context = ssl.create_default_context(cafile=authority)
            try:
                transport, _ = await Dialler(Address("127.0.0.1", port), context, 5).dial(Kept)
            except DialError as error:
                results.append((error.reason, "certificate" in str(error)))
            else:
                results.append(transport.get_extra_info("cipher") is not None)
                transport.abort()
        server.close()
        return results

    assert loop.run(go(), 20) == [("tls", True), True]


def test_no_tls_there(loop, listening, certificates):
    """A server that ends the handshake instead of answering it."""
    context = ssl.create_default_context(cafile=certificates.ca)
    address = Address("127.0.0.1", port_of(listening))

    async def go():
        dialling = asyncio.ensure_future(Dialler(address, context, 5).dial(Kept))
        connection, _ = await asyncio.get_running_loop().run_in_executor(None, listening.accept)
        connection.close()
        try:
            await dialling
        except DialError as error:
            return error.reason

    assert loop.run(go(), 20) == "tls"
