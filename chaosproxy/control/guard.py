"""Who may ask: the token, and no page of another site.

Takes a request's headers; raises Refused for who may not. A browser sends what any page tells it to, also to this
machine: a page of another site is known by Origin and Sec-Fetch-Site, and one whose name was pointed at 127.0.0.1 in the
meantime (DNS rebinding) by the name it puts into Host.
"""

import hmac
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from chaosproxy.control import page
from chaosproxy.control.answer import Refused
from chaosproxy.net.address import Address

#: What anybody may ask: it changes nothing, and probes and scrapers come under any name.
OPEN_ROUTES: Final = frozenset({"/healthz", "/readyz", "/metrics"}) | page.PATHS
_CALLED_LOCAL: Final = frozenset({"localhost", "ip6-localhost"})


@dataclass(frozen=True, slots=True)
class Guard:
    """Knows the token, if there is one, and whether only this machine can ask."""

    token: str | None = field(repr=False)
    local: bool

    def check(self, path: str, headers: Message) -> None:
        """Raise Refused unless whoever asks may."""
        if path in OPEN_ROUTES:
            return
        self._same_site(headers)
        if self.token is None:
            return
        # The bytes as they came: the base reads them as latin-1.
        given = headers.get("Authorization", "").encode("latin-1", "replace")
        # RFC 7235: the scheme in any case, blanks, and what the scheme makes of the rest.
        scheme, _, said = given.partition(b" ")
        known = hmac.compare_digest(said.lstrip(b" "), self.token.encode().lstrip(b" "))
        if not known or scheme.lower() != b"bearer":
            what = "that is not the token" if given else "a token is needed"
            raise Refused(HTTPStatus.UNAUTHORIZED, what, {"WWW-Authenticate": "Bearer"})

    def _same_site(self, headers: Message) -> None:
        host = headers.get("Host")
        if self.local and host is not None and not _names_this_machine(host):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                f"asked as {host!r:.80}: this address answers to localhost, 127.0.0.1 and [::1] only",
            )
        origin = headers.get("Origin")
        foreign = origin is not None and _place(origin) != (host or "").lower()
        if foreign or headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
            raise Refused(HTTPStatus.FORBIDDEN, "asked by a page of another site")


def _place(origin: str) -> str | None:
    """An origin's host and port; None if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _names_this_machine(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name in _CALLED_LOCAL or Address(name).is_local
