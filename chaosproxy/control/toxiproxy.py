"""Toxiproxy's proxies, held by a chaosproxy: each is a listener of its own, its toxics are faults for that listener.

Takes what Toxiproxy's clients ask; gives their proxies, or raises Refused as Toxiproxy does. All toxics together are the
profile `toxiproxy`: another one that is put in force ends them, and a toxic ends it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import RLock
from typing import Any, Final, Protocol

from chaosproxy.control.answer import Refused
from chaosproxy.control.toxics import Toxic, ToxicError, faults_of, read_toxic
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.counts import Limits
from chaosproxy.net.address import Address, parse_address
from chaosproxy.net.loop import BusyError, in_time
from chaosproxy.profile import ProfileError, Source, load

#: What the profile is called that all toxics make.
PROFILE: Final = "toxiproxy"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
_LONGEST: Final = 50
_LONGEST_NAME: Final = 100
#: So many proxies there may be: each is a listener of its own.
MOST_PROXIES: Final = 100
#: How long one request may wait for another, in seconds.
_PATIENCE: Final = 5.0


class Listeners(Protocol):
    """What is asked of the proxy behind it; from any thread."""

    @property
    def generation(self) -> int:
        """Which profile is in force, by number."""

    @property
    def limits(self) -> Limits:
        """Where it is counted that a limit was reached."""

    def put(self, profile: Profile, seed: int | None, later: Sequence[str]) -> dict[str, Any]:
        """Put a profile in force on every connection; `later`: listeners that may come yet."""

    def add_listener(self, name: str, listen: str, upstream: str) -> str:
        """Listen there too, with that server behind; give where. Raises OSError and ValueError."""

    def remove_listener(self, name: str) -> None:
        """Listen there no more, and end who came by it."""


def freely(control: Address | None, token: str | None, listen: Address) -> bool:
    """Whether listeners may be had that other machines reach: the proxy's own is one, or who asks is let in beyond loopback."""
    opened = control is not None and not control.is_local
    return token is not None or opened or not listen.is_local


@dataclass(slots=True)
class _Proxy:
    name: str
    listener: str
    listen: str
    upstream: str
    enabled: bool = False
    toxics: dict[str, Toxic] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": [toxic.as_dict() for toxic in self.toxics.values()],
        }


class Toxiproxy:
    """All proxies and toxics. Everything may be called from any thread, and is done when it returns.

    `freely`: they may listen anywhere; else for this machine only, as then anybody on it may ask.
    """

    def __init__(self, behind: Listeners, freely: bool) -> None:
        self._behind = behind
        self._freely = freely
        self._proxies: dict[str, _Proxy] = {}
        self._count = 0
        self._generation = 0
        self._lock = RLock()

    def _alone(self) -> AbstractContextManager[None]:
        """Whoever asks waits for those who asked before. Raises BusyError if that takes too long."""
        return in_time(self._lock, _PATIENCE)

    def proxies(self) -> dict[str, dict[str, Any]]:
        """All of them, by name."""
        with self._alone():
            self._forget_what_is_over()
            return {name: proxy.as_dict() for name, proxy in self._proxies.items()}

    def proxy(self, name: str) -> dict[str, Any]:
        """One of them."""
        with self._alone():
            return self._find(name).as_dict()

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make one: name, upstream, listen, enabled."""
        with self._alone():
            name, upstream = _text(body, "name"), _text(body, "upstream")
            if len(name) > _LONGEST_NAME:
                raise _bad(f"name: expected up to {_LONGEST_NAME} characters")
            if name in self._proxies:
                raise Refused(HTTPStatus.CONFLICT, "proxy already exists", status=409)
            if len(self._proxies) >= MOST_PROXIES:
                self._behind.limits.reached("toxiproxy")
                raise _bad(f"there are {MOST_PROXIES} proxies already")
            self._count += 1
            # What a profile can call it.
            listener = name if _NAME.fullmatch(name) else PROFILE
            proxy = _Proxy(name, f"{listener}-{self._count}", _listen(body), upstream)
            if _enabled(body, True):
                self._enable(proxy)
            self._proxies[name] = proxy
            return proxy.as_dict()

    def populate(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Make several; one that is there as asked for stays, one that is there otherwise is made anew."""
        with self._alone():
            made = []
            for body in bodies:
                old = self._proxies.get(_text(body, "name"))
                if old is not None and old.upstream == body.get("upstream") and _same(old, body):
                    made.append(self.update(old.name, {"enabled": _enabled(body, True)}))
                    continue
                if old is not None:
                    self.delete(old.name)
                made.append(self.create(body))
            return made

    def update(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change listen or upstream, which ends who is connected, or enable or disable it."""
        with self._alone():
            proxy = self._find(name)
            upstream = _text(body, "upstream") if body.get("upstream") else proxy.upstream
            listen = proxy.listen if _same(proxy, body) else _listen(body)
            wanted = _enabled(body, proxy.enabled)
            if (listen, upstream) != (proxy.listen, proxy.upstream):
                self._disable(proxy)
                proxy.listen, proxy.upstream = listen, upstream
            (self._enable if wanted else self._disable)(proxy)
            return proxy.as_dict()

    def delete(self, name: str) -> None:
        """End it and who is connected by it."""
        with self._alone():
            proxy = self._find(name)
            if proxy.toxics:
                self._set(proxy, {})
            self._disable(proxy)
            del self._proxies[name]

    def reset(self) -> None:
        """Enable all of them, and remove all toxics."""
        with self._alone():
            self._forget_what_is_over()
            before = [(proxy, proxy.toxics) for proxy in self._proxies.values() if proxy.toxics]
            try:
                for proxy, _ in before:
                    proxy.toxics = {}
                if before:
                    self._apply()
            except BusyError:
                for proxy, toxics in before:
                    proxy.toxics = toxics
                raise
            for proxy in self._proxies.values():
                self._enable(proxy)

    def toxic(self, name: str, toxic: str) -> dict[str, Any]:
        """One toxic of a proxy."""
        with self._alone():
            return self._find_toxic(self._find(name), toxic).as_dict()

    def add_toxic(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Have one more, in force on every connection when this returns."""
        with self._alone():
            proxy = self._find(name)
            toxic = self._read(body, None)
            if toxic.name in proxy.toxics:
                raise Refused(HTTPStatus.CONFLICT, "toxic already exists", status=409)
            self._set(proxy, {**proxy.toxics, toxic.name: toxic})
            return toxic.as_dict()

    def update_toxic(self, name: str, toxic: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change its attributes and its toxicity."""
        with self._alone():
            proxy = self._find(name)
            new = self._read(body, self._find_toxic(proxy, toxic))
            self._set(proxy, {**proxy.toxics, toxic: new})
            return new.as_dict()

    def delete_toxic(self, name: str, toxic: str) -> None:
        """Have one less."""
        with self._alone():
            proxy = self._find(name)
            self._find_toxic(proxy, toxic)
            self._set(proxy, {key: each for key, each in proxy.toxics.items() if key != toxic})

    def _find(self, name: str) -> _Proxy:
        self._forget_what_is_over()
        proxy = self._proxies.get(name)
        if proxy is None:
            raise Refused(HTTPStatus.NOT_FOUND, "proxy not found", status=404)
        return proxy

    def _find_toxic(self, proxy: _Proxy, name: str) -> Toxic:
        toxic = proxy.toxics.get(name)
        if toxic is None:
            raise Refused(HTTPStatus.NOT_FOUND, "toxic not found", status=404)
        return toxic

    def _read(self, body: Mapping[str, Any], old: Toxic | None) -> Toxic:
        try:
            return read_toxic(body, old)
        except ToxicError as error:
            raise _bad(str(error)) from None

    def _forget_what_is_over(self) -> None:
        """Another profile has been put in force since: no toxic is any more."""
        if self._generation != self._behind.generation:
            for proxy in self._proxies.values():
                proxy.toxics.clear()

    def _set(self, proxy: _Proxy, toxics: dict[str, Toxic]) -> None:
        """Put these in force; what cannot be changes nothing."""
        before, proxy.toxics = proxy.toxics, toxics
        try:
            self._apply()
        except BaseException:
            proxy.toxics = before
            raise

    def _apply(self) -> None:
        entries: list[dict[str, Any]] = []
        try:
            for proxy in self._proxies.values():
                for number, toxic in enumerate(proxy.toxics.values()):
                    name = re.sub(r"[^A-Za-z0-9_-]", "-", f"{proxy.listener}-{toxic.name}")
                    entries += faults_of(toxic, proxy.listener, f"{name[:_LONGEST]}-{number}")
            # JSON is YAML.
            text = json.dumps({"faults": entries}, indent=1)
            source = Source(PROFILE, text.encode(), f"{PROFILE}.yaml")
            profile = load([source], table=CommandTable.bundled())
        except ToxicError as error:
            raise _bad(str(error)) from None
        except ProfileError as error:
            raise _bad("; ".join(problem.message for problem in error.problems)) from None
        # Of one that is disabled the toxics wait for it.
        later = [proxy.listener for proxy in self._proxies.values() if not proxy.enabled]
        self._generation = self._behind.put(profile, None, later)["generation"]

    def _enable(self, proxy: _Proxy) -> None:
        if proxy.enabled:
            return
        try:
            self._check(proxy)
            proxy.listen = self._behind.add_listener(proxy.listener, proxy.listen, proxy.upstream)
        except BusyError:
            raise
        except (OSError, ValueError) as error:
            raise _bad(str(error) or f"{proxy.listen}: no answer in time") from None
        proxy.enabled = True

    def _check(self, proxy: _Proxy) -> None:
        """Raise ValueError for an address that who asks over HTTP may not have."""
        listen, upstream = parse_address(proxy.listen), parse_address(proxy.upstream)
        if listen.path or upstream.path:
            raise ValueError("a unix socket cannot be had over HTTP")
        if not (self._freely or listen.is_local):
            raise ValueError(
                f"{listen}: other machines would reach it; that needs a --control-token, or a --listen that they reach too"
            )

    def _disable(self, proxy: _Proxy) -> None:
        if proxy.enabled:
            self._behind.remove_listener(proxy.listener)
            proxy.enabled = False


def _bad(text: str) -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, text, status=400)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not (isinstance(value, str) and value):
        raise _bad(f"missing required field: {name}")
    return value


def _listen(body: Mapping[str, Any]) -> str:
    value = body.get("listen") or "127.0.0.1:0"
    if not isinstance(value, str):
        raise _bad("listen: expected host:port")
    return value.replace("localhost:", "127.0.0.1:", 1)


def _same(proxy: _Proxy, body: Mapping[str, Any]) -> bool:
    """Whether it listens where it should already; a port that the kernel chose is as good as any."""
    if not body.get("listen"):
        return True
    wanted = _listen(body)
    host, _, port = wanted.rpartition(":")
    return wanted == proxy.listen or (port == "0" and proxy.listen.rpartition(":")[0] == host)


def _enabled(body: Mapping[str, Any], otherwise: bool) -> bool:
    value = body.get("enabled")
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise _bad("enabled: expected true or false")
    return value
