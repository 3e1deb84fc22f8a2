"""A listener beside the routes: who comes is kept count of, and all end with it."""

import asyncio
import socket

import pytest

from chaosproxy.net import reception as reception_module
from chaosproxy.net.address import Address
from chaosproxy.net.reception import Reception, own_host


class Guest(asyncio.Protocol):
    def __init__(self, reception):
        self.reception = reception

    def connection_made(self, transport):
        self.transport = transport
        self.host = own_host(transport)
        self.reception.admit(self, transport)

    def data_received(self, data):
        self.transport.write(self.host.encode())

    def end(self):
        self.transport.close()


@pytest.mark.parametrize("where", ["tcp", "unix"])
async def test_who_comes(where, tmp_path):
    """It tells its address, a guest this machine's on its connection; closing ends the guests, and nobody comes any more."""
    reception = Reception(lambda: Guest(reception))
    path = str(tmp_path / "socket")
    await reception.open(Address("127.0.0.1", 0) if where == "tcp" else Address(path=path), None)
    if where == "tcp":
        came = asyncio.open_connection("127.0.0.1", reception.address.port)
    else:
        came = asyncio.open_unix_connection(path)
    reader, writer = await came
    writer.write(b"?")
    assert await reader.read(100) == b"127.0.0.1"
    (guest,) = reception.guests
    assert isinstance(guest, Guest)
    reception.close()
    assert await reader.read() == b""
    writer.close()
    if where == "tcp":
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", reception.address.port), 5)


async def test_so_many_and_no_more(monkeypatch):
    """One too many is closed without a word, and comes in once another one has gone."""
    monkeypatch.setattr(reception_module, "MOST", 1)
    reception = Reception(lambda: Guest(reception))
    await reception.open(Address("127.0.0.1", 0), None)

    async def come():
        reader, writer = await asyncio.open_connection("127.0.0.1", reception.address.port)
        writer.write(b"?")
        try:
            return await reader.read(100), writer
        except ConnectionResetError:
            return b"", writer  # what it has said came before it was closed, and was not read

    said, first = await come()
    assert said == b"127.0.0.1"
    said, second = await come()
    assert said == b""
    reception.guests.clear()
    said, third = await come()
    assert said == b"127.0.0.1"
    reception.close()
    for writer in (first, second, third):
        writer.close()
