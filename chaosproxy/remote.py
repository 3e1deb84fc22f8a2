"""A proxy that runs elsewhere, asked through its control API.

Takes its URL and, where it wants one, its token; gives what it answers as plain data, or raises RemoteError.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, TypeGuard
from urllib.parse import quote, urlsplit

#: How long an answer may take, in seconds; each comes within one, a change within five, but for the network.
TIMEOUT: Final = 10.0
#: How long `follow` waits for an event before it asks again, in seconds.
_POLL: Final = 20.0
#: What is read of a profile in force.
_IN_FORCE: Final = ("name", "seed", "generation", "since", "faults")


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


def _texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _coded(value: object) -> bool:
    if not _texts(value):
        return False
    try:
        for each in value:
            base64.b64decode(each)
    except ValueError:
        return False
    return True


#: What is read of each item of a list in an answer.
_ITEMS: Final[Mapping[str, Mapping[str, Callable[[object], bool]]]] = {
    "faults": {
        **dict.fromkeys(("name", "type"), _is(str)),
        **dict.fromkeys(("matched", "fired"), _is(int)),
        "skipped": _is(dict),
    },
    "connections": {},
    "events": {
        **dict.fromkeys(("at", "fault", "command", "applied", "told", "outcome"), _is(str)),
        "n": _is(int),
    },
    "problems": {
        **dict.fromkeys(("file", "message", "suggestion", "source_line"), _is(str)),
        **dict.fromkeys(("line", "column"), _is(int)),
    },
}
#: What of them may be left out.
_OPTIONAL: Final = {"delay": _is(int, float), "keys": _texts, "keys_b64": _coded}


class RemoteError(Exception):
    """It did not answer, or not with what was asked for.

    `status` is HTTP's, 0 where there was no answer; `problems` are a profile's, as the API gives them.
    """

    def __init__(
        self, message: str, status: int = 0, problems: tuple[Mapping[str, Any], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problems = problems


class Remote:
    """One proxy's control API. `url` is `http://host:port`, or `host:port`. Raises ValueError if it is no such thing."""

    def __init__(self, url: str, token: str | None = None) -> None:
        if "://" not in url:
            url = f"http://{url}"
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(
                f"{url}: expected the control API's URL, such as http://127.0.0.1:9380"
            )
        # A port that is none raises ValueError by itself.
        self._host, self._port = parts.hostname, parts.port
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._base = parts.path.rstrip("/")
        self._token = token
        self.url = url

    def ask(self, method: str, path: str, body: object = None, *, timeout: float = TIMEOUT) -> Any:
        """Ask once; gives the answer's JSON. Raises RemoteError."""
        headers: dict[str, str | bytes] = {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}".encode()
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        try:
            with closing(self._connect(self._host, self._port, timeout=timeout)) as link:
                link.request(method, self._base + path, data, headers)
                answer = link.getresponse()
                status, text = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RemoteError(f"no chaosproxy answers at {self.url}: {reason}") from None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if status >= 400 or value is None:
            raise _refused(self.url, status, value)
        return value

    def profile(self) -> dict[str, Any]:
        """What is in force."""
        return self._object(_IN_FORCE, "GET", "/profile")

    def use(self, **body: Any) -> dict[str, Any]:
        """Put a profile in force: `name` or `yaml`, `seed`, `set` (path -> value); those that are None are left out."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._object((*_IN_FORCE, "warnings"), "PUT", "/profile", given)

    def calm(self) -> dict[str, Any]:
        """Nothing is in force any more, and nothing is held."""
        return self._object(_IN_FORCE, "DELETE", "/profile")

    def trigger(self, fault: str) -> dict[str, Any]:
        """Ask a `trigger: manual` fault to act; gives its status."""
        path = f"/faults/{quote(fault, safe='')}/trigger"
        return self._object(("name", "requested"), "POST", path)

    def connections(self) -> list[dict[str, Any]]:
        """Who is connected."""
        return list(self._object(("connections",), "GET", "/connections")["connections"])

    def events(self, after: int = 0, wait: float = 0.0) -> list[dict[str, Any]]:
        """The events after a number, waiting so many seconds for the first of them."""
        return list(self._events(after, wait)["events"])

    def follow(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every event after a number, for ever, as it happens; from another run, at the same address, all of them."""
        run: object = None
        while True:
            said = self._events(after, _POLL)
            before, run = run, said.get("run")
            if before is not None and run != before:
                after = 0
                continue
            for event in said["events"]:
                after = event["n"]
                yield event

    def _events(self, after: int, wait: float) -> dict[str, Any]:
        path = f"/events?after={after}&wait={wait}"
        return self._object(("events",), "GET", path, timeout=wait + TIMEOUT)

    def _object(
        self,
        names: tuple[str, ...],
        method: str,
        path: str,
        body: object = None,
        *,
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """Ask for an object that has these fields. Raises RemoteError for anything else: who answers may be somebody else."""
        value = self.ask(method, path, body, timeout=timeout)
        if not (
            isinstance(value, dict)
            and value.keys() >= set(names)
            and all(_is_list_of(name, value[name]) for name in {"warnings", *_ITEMS} & set(names))
        ):
            raise _refused(self.url, 200, None)
        return value


def _is_list_of(name: str, value: object) -> bool:
    """Whether it is a list of what answers call so."""
    if name == "warnings":
        return _texts(value)
    return isinstance(value, list) and all(_is_one(_ITEMS[name], item) for item in value)


def _is_one(fields: Mapping[str, Callable[[object], bool]], item: object) -> bool:
    return (
        isinstance(item, dict)
        and all(name in item and holds(item[name]) for name, holds in fields.items())
        and all(holds(item[name]) for name, holds in _OPTIONAL.items() if name in item)
    )


def _refused(url: str, status: int, value: object) -> RemoteError:
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        problems = value.get("problems") or []
        if _is_list_of("problems", problems):
            return RemoteError(value["error"], status, tuple(problems))
    return RemoteError(f"{url} answered {status}, and not as chaosproxy does", status)
