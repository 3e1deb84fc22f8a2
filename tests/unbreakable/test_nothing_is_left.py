"""What a proxy in this process has of those who have gone: no task, no connection, no answer that is waited for.

Takes phases in which a connection can be, one after the other; gives proof by counting what the loop still has.
"""

import asyncio

import pytest

from tests import servers
from tests.proxying import serve_proxy
from tests.unbreakable.phases import PHASES
from tests.unbreakable.stand import Stand, until


@pytest.mark.parametrize("third", range(3))
def test_tasks(third):
    """Clients are reset, closed, or lose their server, in each phase in turn; then the loop has what it had before."""
    port = servers.free_port()
    server = servers.start_on(port, "redis70")
    proxy = serve_proxy(server.url)
    stand = Stand("redis70", (), port, server, proxy)
    inner, loop = proxy.service._proxy, proxy.service._loop
    tasks = lambda: loop.call(lambda: len(asyncio.all_tasks()))  # noqa: E731

    def left() -> tuple[object, ...]:
        return dict(inner.links), inner.world.held, dict(inner.world.vanishing), tasks()

    try:
        with proxy.connect() as client:
            client.ask("PING")
        until(lambda: not inner.links, "the client to be gone")
        before = left()
        for number, phase in enumerate(PHASES[third::3]):
            stand.last = proxy.service.journal.last
            stand.put(phase.profile)
            wires = phase.enter(stand)
            if number % 3 == 2:
                stand.kill()
            for wire in wires:
                (wire.close if number % 3 == 1 else wire.reset)()
            stand.mend()
            stand.put("calm")
            until(lambda: not inner.links, f"{phase}: all to be gone")
        until(lambda: left() == before, f"only {before} to be left")
        assert proxy.metric("connections_total", result="crashed") == 0
    finally:
        proxy.stop()
        if stand._stopped:
            stand.go_on()
        stand.server.stop()
