"""Vulnerability services that say what a test wants them to, as what a real pip-audit reaches by its network's proxy.

Takes what is answered for each package, or that nobody is there; gives the environment in which pip-audit finds them. Whatever
host is asked for is played, with a certificate of an authority that is made for it.
"""

import json
import re
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trustme

#: From a package's name to a service's JSON; None: it does not know it, OSError: it hangs up.
Says = Callable[[str], object]


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with suppress(OSError):
            self._handle()

    def _handle(self) -> None:
        host = self.rfile.readline().split()[1].decode().rpartition(":")[0]
        self._headers(self.rfile)
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.authority.issue_cert(host).configure_cert(context)
        with context.wrap_socket(self.request, server_side=True) as inner:
            while self._answer(inner):
                pass

    def _answer(self, inner: ssl.SSLSocket) -> bool:
        with inner.makefile("rb") as file:
            words = file.readline().split()
            if not words:
                return False
            length = self._headers(file)
            body = file.read(length)
        if words[0] == b"POST":
            name = json.loads(body)["package"]["name"]
        else:
            name = re.search(rb"/([^/]+)/[^/]+/json", words[1])[1].decode()
        said = self.server.says(name)
        status, text = (404, b"") if said is None else (200, json.dumps(said).encode())
        inner.sendall(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))
        return True

    @staticmethod
    def _headers(file: object) -> int:
        length = 0
        while line := file.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return length


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def services(says: Says, folder: Path) -> Iterator[dict[str, str]]:
    """Give the environment variables by which they are found."""
    authority = trustme.CA()
    trusted = folder / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.says, server.authority = says, authority
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield {
            "HTTPS_PROXY": f"http://127.0.0.1:{server.server_address[1]}",
            "https_proxy": f"http://127.0.0.1:{server.server_address[1]}",
            "NO_PROXY": "",
            "no_proxy": "",
            "REQUESTS_CA_BUNDLE": str(trusted),
            # What it has heard is kept; not for others.
            "PIP_CACHE_DIR": str(folder / "cache"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        server.shutdown()
