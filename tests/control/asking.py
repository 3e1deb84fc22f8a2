"""Asking the control API, of a proxy that is none.

Takes a method, a path and a body; gives the answer.
"""

import http.client
import json
from contextlib import closing
from dataclasses import dataclass, field
from time import monotonic

from chaosproxy.control.toxiproxy import Toxiproxy
from chaosproxy.core.steering import CannotTriggerError, UnknownFaultError
from chaosproxy.counts import Limits
from chaosproxy.journal import Journal
from chaosproxy.net.loop import BusyError
from chaosproxy.profile import find, load


@dataclass
class Backend:
    """What is asked of a proxy, answered from plain fields."""

    problem: str | None = None
    busy: bool = False
    profile: object = field(default_factory=lambda: load([find("calm")]))
    seed: int = 7
    generation: int = 1
    journal: Journal = field(default_factory=lambda: Journal(monotonic()))
    strange: list = field(default_factory=list)
    faults: dict = field(default_factory=dict)
    links: dict = field(default_factory=dict)
    listeners: dict = field(default_factory=dict)
    looks: list = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self):
        self.toxiproxy = Toxiproxy(self, freely=False)

    def _has_time(self):
        if self.busy:
            raise BusyError

    def add_listener(self, name, listen, upstream):
        self._has_time()
        if ":" not in upstream:
            raise ValueError(f"{upstream}: expected HOST:PORT")
        host, _, port = listen.rpartition(":")
        if port == "1":
            raise OSError("address already in use")
        if port == "2":
            raise TimeoutError
        port = port if port != "0" else str(40000 + len(self.listeners))
        self.listeners[name] = (f"{host}:{port}", upstream)
        return f"{host}:{port}"

    def remove_listener(self, name):
        self._has_time()
        del self.listeners[name]

    def unready(self):
        return self.problem

    def metrics(self, accept):
        return f"text/plain; accept={accept}", b"numbers\n"

    def in_force(self):
        return {"name": self.profile.name, "seed": self.seed, "generation": self.generation}

    def put(self, profile, seed, later=()):
        self._has_time()
        self.profile, self.generation = profile, self.generation + 1
        self.seed = self.seed if seed is None else seed
        return self.in_force()

    def strangers(self, sources, overrides):
        return self.strange

    def trigger(self, name):
        self._has_time()
        if name not in self.faults:
            raise UnknownFaultError(f"no fault {name}")
        if self.faults[name] is None:
            raise CannotTriggerError("it acts by itself")
        return {"name": name, "requested": 1}

    def enable(self, name, enabled):
        if name not in self.faults:
            raise UnknownFaultError(f"no fault {name}")
        return {"name": name, "enabled": enabled}

    def timeline(self):
        return self.looks

    def connections(self):
        return list(self.links.values())

    def cut(self, connection):
        return self.links.pop(connection, None) is not None


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    headers: object
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def request(server, method, path, body=None, /, **headers):
    """Ask once; a body that is not bytes goes as JSON. Gives what is said."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        named = {"Content-Type": "application/json"} | named
    with closing(http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=60)) as link:
        link.request(method, path, body, named)
        answer = link.getresponse()
        return Said(answer.status, answer.headers, answer.read())
