"""The least a Python proxy can do: bytes from one side to the other, one Protocol a side.

Takes two loopback ports and the name of an event loop, gives a relay that runs until a signal.
"""

import argparse
import asyncio
from typing import cast

HOST = "127.0.0.1"


class Upstream(asyncio.Protocol):
    """The side towards Redis."""

    __slots__ = ("client", "transport")

    def __init__(self, client: "Client") -> None:
        self.client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.client.join(self)

    def data_received(self, data: bytes) -> None:
        self.client.transport.write(data)

    def pause_writing(self) -> None:
        self.client.transport.pause_reading()

    def resume_writing(self) -> None:
        self.client.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.client.transport.close()


class Client(asyncio.Protocol):
    """The side towards the client; dials upstream when it is accepted."""

    __slots__ = ("dial", "early", "port", "transport", "upstream")

    def __init__(self, port: int) -> None:
        self.port = port
        # What arrives before the dial is done: loops ignore pause_reading() in connection_made.
        self.early: list[bytes] = []
        self.upstream: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.dial: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(
            self.connect()
        )

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: Upstream(self), HOST, self.port)
        except OSError:
            self.transport.close()
        self.dial = None

    def join(self, upstream: Upstream) -> None:
        self.upstream = upstream.transport
        self.upstream.writelines(self.early)
        self.early.clear()

    def data_received(self, data: bytes) -> None:
        if self.upstream is None:
            self.early.append(data)
        else:
            self.upstream.write(data)

    def pause_writing(self) -> None:
        if self.upstream is not None:
            self.upstream.pause_reading()

    def resume_writing(self) -> None:
        if self.upstream is not None:
            self.upstream.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.dial is not None:
            self.dial.cancel()
        if self.upstream is not None:
            self.upstream.close()


async def serve(listen: int, upstream: int) -> None:
    """Relay until cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Client(upstream), HOST, listen, backlog=4096)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run the relay that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), required=True)
    parser.add_argument("--listen", type=int, required=True, metavar="PORT")
    parser.add_argument("--upstream", type=int, required=True, metavar="PORT")
    args = parser.parse_args()
    factory = asyncio.new_event_loop
    if args.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(args.listen, args.upstream))


if __name__ == "__main__":
    main()
