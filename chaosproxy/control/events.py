"""`/events`: what has fired, at once, as soon as something does, or as a stream.

Takes the number of the last event that is known; gives the events after it.
"""

import json
from collections.abc import Iterator
from http import HTTPStatus
from threading import BoundedSemaphore
from time import monotonic
from typing import Final

from chaosproxy.control.answer import Answer, Refused, Request, as_json, whole_number
from chaosproxy.control.backend import Backend
from chaosproxy.core import units
from chaosproxy.core.setting import Invalid
from chaosproxy.journal import Journal

#: How long one request may wait for an event, in seconds.
LONGEST_WAIT: Final = 60.0
#: How many may wait or stream at once; so there is always somebody left who answers.
MOST_WAITING: Final = 32
#: How often a stream without events says that it is still there, in seconds.
HEARTBEAT: Final = 10.0
#: How soon a stream notices that the server stops, in seconds.
_BEAT: Final = 0.5

_waiting = BoundedSemaphore(MOST_WAITING)


def get_events(backend: Backend, request: Request) -> Answer:
    """Those after `after`; with `wait`, the first of them is waited for."""
    query = request.only("after", "wait")
    after, wait = request.number("after", 0), _seconds(query.get("wait", "0"))
    journal = backend.journal
    if wait and journal.last <= after:
        if not _waiting.acquire(blocking=False):
            raise _too_many(backend)
        try:
            events, last, dropped = journal.since(after, wait)
        finally:
            _waiting.release()
    else:
        events, last, dropped = journal.since(after)
    return as_json({"events": events, "last": last, "dropped": dropped, "run": journal.run})


def stream(backend: Backend, request: Request) -> Answer:
    """All after `after` (or Last-Event-ID) and from now on, as server-sent events."""
    request.only("after")
    after = request.number("after", 0)
    heard = _heard(request.headers.get("Last-Event-ID", ""), backend.journal.run)
    after = after if heard is None else heard
    if request.method == "HEAD":
        return Answer(HTTPStatus.OK, content_type="text/event-stream")
    if not _waiting.acquire(blocking=False):
        raise _too_many(backend)
    return Answer(
        HTTPStatus.OK, content_type="text/event-stream", chunks=_Chunks(backend.journal, after)
    )


def delete_events(backend: Backend, request: Request) -> Answer:
    """Forget them; the numbers go on, and the file keeps them."""
    del request
    return as_json({"last": backend.journal.clear()})


def _heard(text: str, run: str) -> int | None:
    """Read the id of the last event that somebody has heard: of another run it is none of this one's. None: it is no id."""
    number, _, whose = text.partition("@")
    found = whole_number(number)
    return 0 if found is not None and whose not in {"", run} else found


class _Chunks(Iterator[bytes]):
    """The stream's text, in pieces; an empty one now and then lets the server look whether to go on. Close it."""

    def __init__(self, journal: Journal, after: int) -> None:
        self._journal = journal
        self._after = after
        self._said = 0.0
        self._open = True

    def __next__(self) -> bytes:
        now = monotonic()
        if not self._said:
            self._said = now
            return b"retry: 1000\n\n"
        events = self._journal.events(self._after, _BEAT)
        if events:
            self._after, self._said = events[-1]["n"], monotonic()
            return b"".join(
                b"id: %d@%s\ndata: %s\n\n"
                % (event["n"], self._journal.run.encode(), json.dumps(event).encode())
                for event in events
            )
        if now - self._said < HEARTBEAT:
            return b""
        self._said = now
        return b":\n\n"

    def close(self) -> None:
        """Somebody else may stream."""
        if self._open:
            self._open = False
            _waiting.release()


def _seconds(text: str) -> float:
    """Read a duration: 5s, 500ms, or a number of seconds."""
    try:
        wait = float(units.DURATION.parse(float(text) if text.replace(".", "").isdigit() else text))
    except (Invalid, ValueError) as error:
        said = error.message if isinstance(error, Invalid) else str(error)
        raise Refused(HTTPStatus.BAD_REQUEST, f"wait: {said}") from None
    return min(wait, LONGEST_WAIT)


def _too_many(backend: Backend) -> Refused:
    backend.limits.reached("control_waiting")
    return Refused(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"{MOST_WAITING} are waiting for events already",
        {"Retry-After": "1"},
    )
