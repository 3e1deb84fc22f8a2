"""Clients too many: each is told so, counted, and of those that are told there can be so many and no more."""

import asyncio

from chaosproxy.counts import Counts
from chaosproxy.net import refusals
from chaosproxy.net.refusals import TOO_MANY, Refusals


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
