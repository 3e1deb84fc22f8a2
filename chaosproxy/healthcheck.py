"""The container's health check: asks a running proxy's `/healthz` and says so by its exit status.

Takes `CHAOSPROXY_CONTROL` from the environment, as `chaosproxy run` does; gives 0 when the proxy is alive, else 1 and the
reason on stderr. No click and no event loop: a probe runs every few seconds, for the life of the container.
"""

import os
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException

from chaosproxy.net.address import parse_address

DEFAULT = "127.0.0.1:9380"
TIMEOUT = 3.0


def main(environment: Mapping[str, str] = os.environ) -> str | None:
    """Ask once. Gives None when the proxy is alive, else the reason, as `sys.exit` takes them."""
    setting = environment.get("CHAOSPROXY_CONTROL") or DEFAULT
    if setting == "off":
        return "CHAOSPROXY_CONTROL is off, so there is nothing to ask: start with --no-healthcheck"
    try:
        address = parse_address(setting).to_connect()
    except ValueError as error:
        return f"CHAOSPROXY_CONTROL={error}"
    connection = HTTPConnection(address.host, address.port, timeout=TIMEOUT)
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
