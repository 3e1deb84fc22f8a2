"""Fixtures of the security tests: a web site that means ill, a browser that visits it, and a proxy that it looks for.

Takes nothing; gives `visitor` and `site`, whose name leads to this machine, as a name does that an attacker has pointed there.
"""

import http.server
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.chromium import launched

#: The attacker's name: to the browser it is this machine.
EVIL = "evil.example"


@dataclass
class Site:
    """The attacker's own web server. `got` are the paths that were asked for: what has been learned may be sent there."""

    port: int = 0
    got: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://{EVIL}:{self.port}"


@pytest.fixture
def site() -> Iterator[Site]:
    """A page that says nothing, at any path."""
    made = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.got.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        server.shutdown()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def visitor() -> AsyncIterator[Browser]:
    """Lend a Chromium for which the attacker's name is this machine."""
    async with launched(EVIL) as browser:
        yield browser
