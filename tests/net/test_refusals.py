"""Clients that do not get in are counted; those too many are told so, and of those that are told there can be so many and no more."""

import asyncio
import gc
import socket
import ssl
import struct

import pytest

from chaosproxy.counts import Counts
from chaosproxy.net import listener, refusals
from chaosproxy.net.address import Address
from chaosproxy.net.refusals import TOO_MANY, Refusals
from chaosproxy.net.tls import server_context, upstream_context
from tests.proxying import wait_for


async def came(count, refuse):
    """Let so many come to who refuses them; gives what each has read, until it was ended."""

    class Side(asyncio.Protocol):
        def connection_made(self, transport):
            refuse(transport)

    server = await asyncio.get_running_loop().create_server(Side, "127.0.0.1", 0)
    said = []
    async with server:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                said.append(await asyncio.wait_for(reader.read(), 20))
            except ConnectionResetError:
                said.append(b"reset")
            writer.close()
    return said


async def test_told_and_counted(monkeypatch):
    """The first ones can read why, those beyond are closed without a word; of all it is counted, and which limit it was."""
    monkeypatch.setattr(refusals, "MOST", 3)
    monkeypatch.setattr(refusals, "LINGER", 3600)
    counts = Counts()
    turned_away = Refusals(counts)
    said = await came(4, lambda client: turned_away.refuse(client, True))
    assert said == [TOO_MANY] * 3 + [b""]
    assert counts.connections["max_clients"] == 4
    assert dict(counts.limits.items())["connections"] == 4


async def test_there_is_room_again(monkeypatch):
    """Once those that were told have had their moment others have theirs; what is scarce may be something else."""
    monkeypatch.setattr(refusals, "MOST", 1)
    monkeypatch.setattr(refusals, "LINGER", 0)
    counts = Counts()
    turned_away = Refusals(counts)
    assert await came(3, lambda client: turned_away.refuse(client, False)) == [TOO_MANY] * 3
    assert dict(counts.limits.items())["connections"] == 0


def shake_hands(where, ca, *, trusts):
    """Come with TLS, as a client that trusts an authority, and go; it says so to the server if it does not trust it."""
    context = upstream_context(ca, None, None, insecure=False)
    with socket.create_connection(where, 20) as plain:
        if trusts:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                secured.unwrap().close()
        else:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(plain, server_hostname="127.0.0.1")


def told(caplog):
    return [record for record in caplog.records if record.name == "chaosproxy.refusals"]


@pytest.mark.parametrize("how", ["leaves", "resets", "half", "says nothing"])
def test_no_handshake(loop, certificates, caplog, monkeypatch, how):
    """Who leaves before the handshake or in the middle of it, or says nothing, is counted too; a warning is for those that do speak."""
    monkeypatch.setattr(listener, "TLS_HELLO", 0.05)
    caplog.set_level("DEBUG")
    counts = Counts()
    context = Refusals(counts).over_tls(server_context(certificates.cert, certificates.key, None))
    entrance = listener.Listener()
    where = loop.run(entrance.start(Address("127.0.0.1", 0), asyncio.Protocol, context))
    there = (where.host, where.port)
    for number in (1, 2):
        with socket.create_connection(there, 20) as plain:
            if how == "half":
                plain.sendall(b"\x16\x03\x01\x02\x00\x01")
            if how == "resets":
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if how == "says nothing":
                assert plain.recv(1) == b""
        # asyncio's own loop lets go of it when garbage is collected.
        wait_for(
            lambda number=number: gc.collect() >= 0 and counts.connections["no_tls"] == number, how
        )
    with socket.create_connection(there, 20) as plain:
        plain.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert plain.recv(1) == b""
    loop.call(entrance.close)
    loop.run(asyncio.sleep(0))
    assert counts.connections == {"no_tls": 3}
    (record,) = told(caplog)
    assert (record.levelname, record.message[-21:]) == ("WARNING", " WRONG_VERSION_NUMBER")


async def test_no_tls(certificates, caplog):
    """Who speaks none, and who does not trust us, is counted and told of, the first one in a warning; who gets in is not."""
    caplog.set_level("DEBUG")
    counts = Counts()
    assert Refusals(counts).over_tls(None) is None
    context = Refusals(counts).over_tls(server_context(certificates.cert, certificates.key, None))
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, "127.0.0.1", 0, ssl=context
    )
    async with server:
        where = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*where)
        writer.write(b"*1\r\n$4\r\nPING\r\n")
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        for ca in (certificates.foreign_ca, certificates.ca):
            await asyncio.to_thread(shake_hands, where, ca, trusts=ca == certificates.ca)
    # The second has said what it had to say before the third one came.
    assert counts.connections == {"no_tls": 2}
    first, second = told(caplog)
    assert (first.levelname, second.levelname) == ("WARNING", "DEBUG")
    assert first.message == "no TLS with a client: WRONG_VERSION_NUMBER"
    assert second.message == "no TLS with a client: TLSV1_ALERT_UNKNOWN_CA"
