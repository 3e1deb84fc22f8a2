"""The container's health check: asks a running proxy's `/healthz` and says so by its exit status.

Takes `CHAOSPROXY_CONTROL` from the environment, as `chaosproxy run` does; gives 0 when the proxy is alive, else 1 and the
reason on stderr. Standard library only and no click: a probe runs every few seconds, for the life of the container.
"""

import os
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

DEFAULT = "127.0.0.1:9380"
TIMEOUT = 3.0

#: An address to listen on that is none to ask: there the loopback interface answers too.
_EVERYWHERE = {None: "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


def main(environment: Mapping[str, str] = os.environ) -> str | None:
    """Ask once. Gives None when the proxy is alive, else the reason, as `sys.exit` takes them."""
    address = environment.get("CHAOSPROXY_CONTROL") or DEFAULT
    if address == "off":
        return "CHAOSPROXY_CONTROL is off, so there is nothing to ask: start with --no-healthcheck"
    try:
        parts = urlsplit(f"//{address}")
        host, port = _EVERYWHERE.get(parts.hostname, parts.hostname), parts.port
    except ValueError as error:
        return f"CHAOSPROXY_CONTROL={address}: {error}"
    if host is None or not port:
        return f"CHAOSPROXY_CONTROL={address} names no port that could be asked"
    connection = HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"http://{address}/healthz: {str(error) or type(error).__name__}"
    finally:
        connection.close()
    return None if status == 200 else f"http://{address}/healthz answered {status}"


if __name__ == "__main__":
    sys.exit(main())
