"""What comes in and what goes out: a request that was read, and the answer to it.

Takes a request's parts as they came; gives them checked, or raises Refused, which is an answer too.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Any, Final, Protocol

JSON: Final = "application/json"
#: The largest body, in bytes: a profile of the largest size, every character escaped.
MOST_BODY: Final = 2 << 20


class Chunks(Protocol):
    """A body that is written piece by piece; an empty piece is a moment to look whether anybody listens."""

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces."""

    def close(self) -> None:
        """Nobody wants more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `chunks` instead of a body: it goes on until they end or the client goes."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Chunks | None = None


def as_json(
    value: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Answer:
    """Give an answer that says this."""
    return Answer(status, json.dumps(value).encode() + b"\n", headers=headers or {})


class Refused(Exception):  # noqa: N818 - it is an answer, not a mistake
    """A request that is not done: its status, what is wrong in words, and more for programs."""

    def __init__(
        self,
        status: HTTPStatus,
        error: str,
        headers: Mapping[str, str] | None = None,
        /,
        **more: object,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers or {}
        self.more = more

    def answer(self) -> Answer:
        """Say it."""
        return as_json({"error": str(self), **self.more}, self.status, self.headers)


def whole_number(text: str) -> int | None:
    """Read a whole number, not negative; None: it is none, or has more digits than any that is meant."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `params` are the path's parts by name, `query` what stands behind the question mark."""

    method: str
    path: str
    headers: Message
    query: Mapping[str, str]
    body: bytes = b""
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What its body is said to be, in lower case, without parameters; "" where nothing is said."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def only(self, *known: str) -> Mapping[str, str]:
        """Give the query. Raises Refused if there is more in it than these."""
        for name in self.query:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise Refused(HTTPStatus.BAD_REQUEST, f"unknown query parameter '{name}': {takes}")
        return self.query

    def number(self, name: str, default: int) -> int:
        """Give a whole number from the query, not negative. Raises Refused."""
        text = self.query.get(name, str(default))
        number = whole_number(text)
        if number is None:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: expected a whole number, got {text!r}")
        return number

    def fields(self, known: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
        """Give the body's JSON object. Raises Refused if it is none, or has other fields, or of another type than these."""
        if (kind := self.kind) != JSON:
            raise Refused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"expected a body of Content-Type {JSON}, got {kind or 'none'}",
            )
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        for name, given in value.items():
            types = known.get(name)
            if types is None:
                message = f"unknown field '{name}': it takes {', '.join(known)}"
                raise Refused(HTTPStatus.BAD_REQUEST, message)
            # A bool is an int to Python, and to nobody else.
            if not isinstance(given, types) or (isinstance(given, bool) and bool not in types):
                wanted = " or ".join(_WORDS[each] for each in types)
                raise Refused(
                    HTTPStatus.BAD_REQUEST, f"{name}: expected {wanted}, got {given!r:.60}"
                )
        return value


_WORDS: Final = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}
