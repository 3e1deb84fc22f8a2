"""Where to listen and where to dial, as users write it.

Takes `host:port`, `unix:path` and `redis://` URLs; gives Address and Upstream, or ValueError with what would be right.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
SCHEMES: Final = (
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)

#: Addresses to listen on that are none to connect to; there the loopback interface answers too.
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - read, not bound

#: The parameter that is a password.
_SECRETS: Final = re.compile(r"(?<=[?&]password=)[^&]*|(?<=_password=)[^&]*")

_EXPECTED: Final = "expected HOST:PORT with a port from 0 to 65535, an IPv6 address in brackets"

#: The parameters that a URL may have, without Sentinels and with them.
_PARAMETERS: Final = (
    ("db", "password"),
    ("db", "password", "sentinel_username", "sentinel_password"),
)


@dataclass(frozen=True, slots=True)
class Address:
    """A host (name, or IP address without brackets) and a port, or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path or self.host == "localhost":
            return True
        numeric = _numeric(self.host)
        return numeric is not None and numeric.is_loopback

    @property
    def is_numeric(self) -> bool:
        """Whether its host is an IP address: nothing has to be looked up."""
        return _numeric(self.host) is not None

    @property
    def possible(self) -> bool:
        """Whether there can be such a host and port, whoever is there; what cannot makes lookups fail otherwise than with OSError."""
        if not self.is_numeric:  # reading Python's tables of names takes half a megabyte
            try:
                self.host.encode("idna")
            except UnicodeError:
                return False
        return 0 <= self.port < 65536

    def to_tell(self) -> str:
        """How a server tells it, as in MOVED; without a host where that is the one the client knows already."""
        return f"{'' if self.host in _ANY_HOST else self.host}:{self.port}"

    def to_connect(self) -> "Address":
        """Give the address by which a client on this machine reaches what listens on this one."""
        if self.path:
            return self
        return Address(_ANY_HOST.get(self.host, self.host), self.port)

    def url(self, *, tls: bool = False, db: int = 0) -> str:
        """Give the URL that a client on this machine is configured with."""
        if self.path:
            return f"unix://{quote(self.path)}" + (f"?db={db}" if db else "")
        return f"redis{'s' if tls else ''}://{self.to_connect()}" + (f"/{db}" if db else "")


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server behind the proxy, and who the proxy's own connections to it are.

    Clients authenticate and select for themselves; `username`, `password` and `db` are never put into
    their connections. A user alone has the password that is empty. Where `service` is one of Sentinel's, `sentinels` say where it is, with credentials of their own;
    `address` is the first of them then. `cluster`: it is a node of one, and `others` are further ones.
    """

    address: Address
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    service: str = ""
    sentinels: tuple[Address, ...] = ()
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    cluster: bool = False
    others: tuple[Address, ...] = ()

    @property
    def url(self) -> str:
        """The URL as it may be shown: the password is masked."""
        url = self.address.url(tls=self.tls, db=self.db)
        if self.sentinels:
            hosts, db = ",".join(map(str, self.sentinels)), f"/{self.db}" if self.db else ""
            url = f"redis{'s' if self.tls else ''}+sentinel://{hosts}/{quote(self.service, safe='')}{db}"
        if self.cluster:
            scheme, _, rest = url.partition("://")
            where, slash, db = rest.partition("/")
            url = f"{scheme}+cluster://{','.join([where, *map(str, self.others)])}{slash}{db}"
        return _as_user(url, self.username, self.password and "***")


def _numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def with_credentials(url: str, upstream: Upstream) -> str:
    """Give the URL with the upstream's user and password in it, as an application wants it: not to be shown."""
    return _as_user(url, upstream.username, upstream.password and quote(upstream.password, safe=""))


def _as_user(url: str, name: str | None, secret: str | None) -> str:
    """Give the URL with a user and what stands in the password's place."""
    who = quote(name or "", safe="") + (f":{secret}" if secret else "")
    return url.replace("://", f"://{who}@", 1) if who else url


def parse_address(text: str) -> Address:
    """Read `host:port`, `[::1]:port`, `:port`, `port` or `unix:path`."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError(f"{text}: a path is missing after unix:")
        return Address(path=path)
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text}: an IPv6 address stands in brackets: [{host}]:{port}")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{text}: expected HOST:PORT with a port from 0 to 65535, or unix:PATH")
    address = Address(host or "0.0.0.0", int(port))  # noqa: S104 - `:6380` means everywhere
    if not address.possible:
        raise ValueError(f"{text}: {host} cannot be a host's name")
    return address


def parse_upstream(url: str) -> Upstream:
    """Read `redis://[user:pass@]host:port[/db]`, `rediss://…`, `unix://path[?db=n]`, `redis+sentinel://h1,h2/service[/db]` or `redis+cluster://h1,h2`."""
    scheme, separator, _ = url.partition("://")
    shown = _masked(url)
    if not separator or scheme not in SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ValueError(f"{shown}: an upstream URL begins with one of {schemes}")
    try:
        parts = urlsplit(url)
    except ValueError:
        # What it says would quote what may be a password.
        raise ValueError(f"{shown}: this is no URL") from None
    who, _, where = parts.netloc.rpartition("@")
    name, _, secret = who.partition(":")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _PARAMETERS[scheme.endswith("+sentinel")]
    for key in given:
        if key not in known:
            names = f"{', '.join(known[:-1])} and {known[-1]}"
            what = "an unknown parameter" if "@" in key else f"unknown parameter {key!r}"
            raise ValueError(f"{shown}: {what}; only {names} are read")
    db, secret = given.get("db", ""), given.get("password", secret)
    service, cluster = "", scheme.endswith("+cluster")
    others: list[Address] = []
    sentinels: tuple[Address, ...] = ()
    if scheme.endswith("+sentinel"):
        sentinels = _sentinels(where, shown)
        address = sentinels[0]
        service, _, path = parts.path.strip("/").partition("/")
        if not service:
            raise ValueError(
                f"{shown}: the service's name is missing behind the Sentinels' addresses"
            )
        service, db = unquote(service), path or db
    elif scheme == "unix":
        address = Address(path=unquote(where + parts.path))
        if not address.path:
            raise ValueError(f"{shown}: a path is missing after unix://")
    else:
        places = where.split(",") if cluster else [where]
        address, *others = (_place(each, shown) for each in places)
        db = parts.path.strip("/") or db
    if db and not (db.isascii() and db.isdigit()):
        got = "" if "@" in db else f", not {db!r}"
        raise ValueError(f"{shown}: the database must be a number{got}")
    return Upstream(
        address,
        scheme.startswith("rediss"),
        unquote(name) or None,
        unquote(secret) if secret else "" if name else None,
        int(db or 0),
        service,
        sentinels,
        given.get("sentinel_username") or None,
        given.get("sentinel_password") or None,
        cluster,
        tuple(others),
    )


def _masked(url: str) -> str:
    """A URL as it may be shown. A password that was mistyped is a password all the same.

    Masked is all before the last @, whatever is in it; what stands in a port's place and is none, for it may be a
    password that lacks its @ and host; and what a parameter says.
    """
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    who, at, where = rest.rpartition("@")
    end = next((place for place, char in enumerate(where) if char in "/?#"), len(where))
    places = ",".join(map(_without_odd_port, where[:end].split(",")))
    where = _SECRETS.sub("***", places + where[end:])
    return f"{scheme}{separator}{'***' if who else ''}{at}{where}"


def _without_odd_port(place: str) -> str:
    host, colon, port = place.rpartition(":")
    odd = port and not port.isdigit() and not port.endswith("]")
    return f"{host}:***" if colon and odd else place


def _place(where: str, shown: str) -> Address:
    """Read a URL's `host:port`, of which either may be left out."""
    try:
        parts = urlsplit(f"//{where}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"{shown}: {_EXPECTED}") from None
    address = Address(host or "127.0.0.1", DEFAULT_PORT if port is None else port)
    if not address.possible:
        raise ValueError(f"{shown}: {_EXPECTED}")
    return address


def _sentinels(where: str, shown: str) -> tuple[Address, ...]:
    """Read `h1:p1,h2,[::1]:p3`."""
    found = []
    for part in filter(None, where.split(",")):
        bare = part.endswith("]") or ":" not in part
        try:
            found.append(parse_address(f"{part}:{SENTINEL_PORT}" if bare else part))
        except ValueError:
            raise ValueError(f"{shown}: {_EXPECTED}") from None
    if not found:
        raise ValueError(f"{shown}: no Sentinel's address is given")
    return tuple(found)
