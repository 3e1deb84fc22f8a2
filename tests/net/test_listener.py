"""Listening: the address that is told is the one that answers, and nobody else's is taken."""

import asyncio
import contextlib
import errno
import socket
import ssl

import pytest

from chaosproxy.net import listener as listener_module
from chaosproxy.net.address import Address
from chaosproxy.net.listener import Listener


class Greeter(asyncio.Protocol):
    """Says hello to everybody."""

    def connection_made(self, transport):
        transport.write(b"hello")
        transport.close()


@pytest.fixture
def listen(loop):
    """Listen somewhere; gives the address, and stops in the end."""
    started = []

    def start(address, tls=None):
        listener = Listener()
        started.append(listener)
        return loop.run(listener.start(address, Greeter, tls), 10)

    start.close = lambda: [loop.call(listener.close) for listener in started]
    yield start
    start.close()


def greeting(family, address):
    with socket.socket(family) as client:
        client.settimeout(10)
        client.connect(address)
        return client.recv(100)


def test_port_of_the_kernels_choice(listen):
    """Port 0 is a free one, and it is told which."""
    address = listen(Address("127.0.0.1", 0))
    assert address.port > 0
    assert greeting(socket.AF_INET, ("127.0.0.1", address.port)) == b"hello"


def test_no_such_port(loop):
    """A port that there is not is none on any loop: neither another one, nor any that is free."""
    for port in (65536, 70000, -1):
        for take in (
            lambda port=port: loop.run(Listener().start(Address("127.0.0.1", port), Greeter), 10),
            lambda port=port: Listener().reserve(Address("127.0.0.1", port), listen=True),
        ):
            with pytest.raises(OSError, match="Cannot assign") as caught:
                take()
            assert caught.value.errno == errno.EADDRNOTAVAIL


def test_name(listen):
    """A name is listened on at one port, whatever it stands for."""
    address = listen(Address("localhost", 0))
    with socket.create_connection(("localhost", address.port), 10) as client:
        assert client.recv(100) == b"hello"
    assert str(address) == f"localhost:{address.port}"


@pytest.fixture
def stands_for(loop, monkeypatch):
    """Have every name stand for these addresses of this machine."""

    def stand_for(*hosts):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in hosts]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_how: found)

        async def getaddrinfo(*_args, **_how):
            return found

        monkeypatch.setattr(type(loop.call(asyncio.get_running_loop)), "getaddrinfo", getaddrinfo)

    return stand_for


def test_all_of_a_name(listen, stands_for):
    """A name that stands for several addresses is listened on at one port on each of them, also on one of the kernel's choice."""
    stands_for("127.0.0.1", "127.0.0.2", "127.0.0.1")
    address = listen(Address("name", 0))
    for host in ("127.0.0.1", "127.0.0.2"):
        assert greeting(socket.AF_INET, (host, address.port)) == b"hello"


def test_an_address_that_is_not_there(listen, stands_for):
    """Of a name's addresses those are left out that this machine has not, as ::1 without IPv6; with none left it is an error."""
    stands_for("198.51.100.1", "127.0.0.1")
    address = listen(Address("name", 0))
    assert greeting(socket.AF_INET, ("127.0.0.1", address.port)) == b"hello"
    stands_for("198.51.100.1", "203.0.113.1")
    with pytest.raises(OSError, match="Cannot assign"):
        listen(Address("name", 0))


@pytest.mark.parametrize("reserved", [False, True])
def test_taken_at_the_next_address(loop, listen, stands_for, monkeypatch, reserved):
    """What the kernel gave at one address may be somebody's at the next: it is asked for another one, but not for ever."""
    stands_for("127.0.0.1", "127.0.0.2")
    bind, tried, others = listener_module._bound, [], []

    def bound(family, where):
        if where[0] == "127.0.0.2" and len(tried) < often:
            tried.append(where[1])
            with socket.socket() as theirs:
                theirs.bind(where)
                return bind(family, where)
        return bind(family, where)

    monkeypatch.setattr(listener_module, "_bound", bound)
    often = 2
    if reserved:
        listener = Listener()
        others.append(listener)
        address = listener.reserve(Address("name", 0), listen=True)
        loop.run(listener.start(address, Greeter), 10)
    else:
        address = listen(Address("name", 0))
    assert len(set(tried)) == 2
    assert address.port not in tried
    for host in ("127.0.0.1", "127.0.0.2"):
        assert greeting(socket.AF_INET, (host, address.port)) == b"hello"
    for listener in others:
        loop.call(listener.close)
    tried.clear()
    often = 1000
    with pytest.raises(OSError, match="in use"):
        listen(Address("name", 0))
    assert len(tried) == listener_module.ATTEMPTS


def test_port_taken(listen):
    """A port that somebody listens on is an error that says so."""
    taken = listen(Address("127.0.0.1", 0))
    with pytest.raises(OSError, match="in use") as caught:
        listen(taken)
    assert caught.value.errno == errno.EADDRINUSE


def test_unix(listen, tmp_path):
    """A unix socket is there while it is listened on, and gone afterwards."""
    path = tmp_path / "proxy.sock"
    assert listen(Address(path=str(path))) == Address(path=str(path))
    assert greeting(socket.AF_UNIX, str(path)) == b"hello"
    listen.close()
    assert not path.exists()


def test_unix_left_behind(listen, tmp_path):
    """A socket that a killed process left behind is in nobody's way."""
    path = tmp_path / "proxy.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    listen(Address(path=str(path)))
    assert greeting(socket.AF_UNIX, str(path)) == b"hello"


def test_unix_in_use(listen, tmp_path):
    """A socket that somebody listens on is theirs, and so is a file that is no socket."""
    path = tmp_path / "proxy.sock"
    listen(Address(path=str(path)))
    with pytest.raises(OSError, match="in use"):
        listen(Address(path=str(path)))
    assert greeting(socket.AF_UNIX, str(path)) == b"hello"
    text = tmp_path / "text"
    text.write_text("mine")
    with pytest.raises(OSError, match=r"in use|exist"):
        listen(Address(path=str(text)))
    assert text.read_text() == "mine"


def test_tls(listen, certificates):
    """With TLS the clients get the certificate, and only they get in."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificates.cert, certificates.key)
    address = listen(Address("127.0.0.1", 0), server)
    context = ssl.create_default_context(cafile=certificates.ca)
    with (
        socket.create_connection(("127.0.0.1", address.port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        assert client.recv(100) == b"hello"
    with socket.create_connection(("127.0.0.1", address.port), 10) as plain:
        plain.sendall(b"PING\r\n" * 100)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while more := plain.recv(100):
                said += more
        assert b"hello" not in said


def test_tls_clients_that_say_nothing_go(listen, certificates, monkeypatch):
    """Who is expected to speak TLS and does not is not waited for."""
    monkeypatch.setattr(listener_module, "TLS_HELLO", 0.3)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificates.cert, certificates.key)
    address = listen(Address("127.0.0.1", 0), server)
    for said in (b"", b"\x16\x03\x01\x02\x00\x01"):
        with socket.create_connection(("127.0.0.1", address.port), 20) as client:
            client.sendall(said)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(100) == b""


def test_reserved(loop):
    """A port that is reserved is taken at once; who connects before it is listened on is served later, or refused."""
    listener = Listener()
    address = listener.reserve(Address("127.0.0.1", 0), listen=True)
    try:
        with pytest.raises(OSError, match="in use"):
            Listener().reserve(address, listen=True)
        with socket.create_connection(("127.0.0.1", address.port), 10) as early:
            assert loop.run(listener.start(address, Greeter), 10) == address
            assert early.recv(100) == b"hello"
        assert listener.listening
    finally:
        loop.call(listener.close)
    silent = Listener()
    address = silent.reserve(Address("localhost", 0), listen=False)
    try:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("localhost", address.port), 10)
        assert not silent.listening
    finally:
        loop.call(silent.close)
    again = loop.run(silent.start(address, Greeter), 10)
    assert again == address
    loop.call(silent.close)


@pytest.mark.parametrize("listen", [False, True])
def test_a_port_of_the_kernels_is_nobody_elses(listen):
    """One that is taken and not listened on yet is given to no other, even to one that would share it."""
    listener = Listener()
    address = listener.reserve(Address("127.0.0.1", 0), listen=listen)
    try:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", address.port))
    finally:
        listener.close()
