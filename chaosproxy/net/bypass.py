"""Says that clients will walk around the proxy, if they will: a node of a cluster sends them on to the others.

Takes what a survey has found, and what servers answer; gives one warning, with what to do about it.
"""

import logging
import re
from dataclasses import replace
from typing import Final

from chaosproxy.net.address import Upstream
from chaosproxy.net.survey import Survey

_MOVED: Final = re.compile(rb"-MOVED \d{1,5} \S*:\d{1,5}\r\n")

_log = logging.getLogger("chaosproxy.proxy")


def advice(upstream: Upstream) -> str:
    """What to do about it."""
    url = "redis+cluster://HOST:PORT"
    if not upstream.address.path:
        url = replace(upstream, cluster=True).url
    return (
        "it sends clients to the cluster's other nodes, around this proxy, where no fault reaches them: "
        f"use --upstream {url}"
    )


class Bypass:
    """Watches one upstream, and warns once. `upstream` of a cluster needs no warning: nobody can leave."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.told = upstream.cluster

    def surveyed(self, found: Survey) -> None:
        """A server has said what it is."""
        if found.cluster:
            self._tell("the server is a node of a cluster")

    def answered(self, data: bytes) -> None:
        """Bytes that look like a redirection have come from a server."""
        if not self.told and _MOVED.match(data):
            self._tell("the server has answered MOVED")

    def _tell(self, what: str) -> None:
        if not self.told:
            self.told = True
            _log.warning("%s; %s", what, advice(self._upstream))
