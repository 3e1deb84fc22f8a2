"""What a proxy is started with: where to listen and to dial, and how much is too much.

Takes what users have said; gives frozen data.
"""

import ssl
from dataclasses import dataclass

from chaosproxy.net.address import Address, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where to listen and to dial, and how much is too much.

    `announce`: what a cluster's clients are told in place of where the first node listens; port 0: that port.
    `cluster_nodes`: as how many nodes of a cluster one server is to appear, 0: as itself.
    `listen_sentinel`: where clients find a Sentinel, None: at a port of the kernel's choice, if there is one. `sentinel_service`:
    what that calls the upstream, if there is no real Sentinel; "": then there is none. `disposable`: upstream and standby were started for this
    proxy and end with it.
    """

    listen: Address
    upstream: Upstream
    listen_tls: ssl.SSLContext | None = None
    upstream_tls: ssl.SSLContext | None = None
    standby: Upstream | None = None
    standby_tls: ssl.SSLContext | None = None
    disposable: bool = False
    listen_sentinel: Address | None = None
    sentinel_service: str = ""
    announce: Address | None = None
    cluster_nodes: int = 0
    max_connections: int = 8192
    max_buffer: int = 16 << 20
    connect_timeout: float = 5.0
