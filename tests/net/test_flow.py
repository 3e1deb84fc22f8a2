"""A socket is held and read again, while it closes neither means anything; an outbox is emptied."""

import asyncio
import socket

import pytest

from chaosproxy.net.flow import drained, hold
from chaosproxy.net.loop import new_loop


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_loop])
def test_hold(loop):
    """What comes while it is held comes afterwards, and a transport that is closing takes either."""

    class Reader(asyncio.Protocol):
        def __init__(self):
            self.heard, self.more = b"", asyncio.Event()

        def data_received(self, data):
            self.heard += data
            self.more.set()

    async def go():
        ours, theirs = socket.socketpair()
        with theirs:
            transport, reader = await asyncio.get_running_loop().create_connection(
                Reader, sock=ours
            )
            assert hold(transport, held=True) is True
            theirs.sendall(b"x")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.more.wait(), 0.05)
            assert hold(transport, held=False) is False
            await asyncio.wait_for(reader.more.wait(), 10)
            transport.close()
            assert hold(transport, held=True) is True
            assert hold(transport, held=False) is False
        return reader.heard

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(go()) == b"x"


@pytest.mark.parametrize("outbox", [[], [b"x"], [b"x", b"", b"yz"]])
def test_drained(outbox):
    """All of it in one piece, and a single piece is not copied."""
    pieces = outbox[:]
    data = drained(outbox)
    assert data == b"".join(pieces)
    assert outbox == []
    assert len(pieces) != 1 or data is pieces[0]
