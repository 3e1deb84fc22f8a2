"""The table of routes: the control API, a line each.

Takes nothing; gives ROUTES for the handler and for openapi.json.
"""

from typing import Final

from chaosproxy.control import (
    check,
    connections,
    events,
    faults,
    health,
    openapi,
    page,
    profile,
    timeline,
    toxiproxy_api,
)
from chaosproxy.control.answer import Answer, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.control.routing import Route
from chaosproxy.control.shapes import Schema
from chaosproxy.core import units


def describe(backend: Backend, request: Request) -> Answer:
    """This table, for programs."""
    del backend, request
    return as_json(openapi.document(ROUTES))


_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_AFTER: Final = "The number of the last event that is known; 0: none.", _NUMBER
_WAIT: Final = (
    "How long to wait for the first one: 5s, 60 s at most.",
    units.DURATION.schema,
)

ROUTES: Final = (
    *page.ROUTES,
    Route("GET", "/healthz", health.healthz, "Alive.", gives="Health"),
    Route(
        "GET",
        "/readyz",
        health.readyz,
        "Whether clients can be served.",
        gives="Ready",
        answers={503: "Not ready; `problem` says why."},
        shapes={503: "NotReady"},
    ),
    Route(
        "GET",
        "/metrics",
        health.metrics,
        "Prometheus; OpenMetrics where it is accepted.",
        content_type="text/plain",
    ),
    Route("GET", "/profiles", profile.list_profiles, "The profiles that ship.", gives="Profiles"),
    Route(
        "GET",
        "/profiles/{name}",
        profile.show_profile,
        "One of them, as YAML.",
        content_type="application/yaml",
        answers={404: "None of that name."},
    ),
    Route(
        "GET",
        "/profile",
        profile.get_profile,
        "What is in force: name, seed, generation, since, and each fault's matched, fired and skipped.",
        gives="InForce",
    ),
    Route(
        "PUT",
        "/profile",
        profile.put_profile,
        "Put a profile in force. Answered once it is so on every connection, and what the old one held is let go.",
        body=profile.SCHEMA,
        gives="Put",
        answers={422: "It has problems: all of them, by line and column. The old one stays."},
    ),
    Route(
        "POST",
        "/profile/check",
        check.check_profile,
        "What is wrong with a profile's text, if anything; nothing is put in force.",
        body=check.SCHEMA,
        gives="Problems",
    ),
    Route(
        "DELETE",
        "/profile",
        profile.delete_profile,
        "Calm, at once; what is held is let go.",
        gives="InForce",
    ),
    Route(
        "POST",
        "/faults/{name}/trigger",
        faults.trigger,
        "A `trigger: manual` fault acts on its next match; one that lasts begins now.",
        gives="Fault",
        answers={404: "No such fault.", 409: "It cannot be triggered."},
    ),
    Route(
        "PATCH",
        "/faults/{name}",
        faults.patch,
        "Switch a fault off, or on again.",
        body=faults.SCHEMA,
        gives="Fault",
        answers={404: "No such fault."},
    ),
    Route(
        "GET",
        "/events",
        events.get_events,
        "What has fired: the events, the last one's number, how many are no longer kept, and the run whose they are.",
        query={"after": _AFTER, "wait": _WAIT},
        gives="Events",
    ),
    Route(
        "GET",
        "/events/stream",
        events.stream,
        "The same as server-sent events, for as long as the client listens.",
        query={"after": _AFTER},
        content_type="text/event-stream",
    ),
    Route(
        "DELETE",
        "/events",
        events.delete_events,
        "Forget them; their numbers go on.",
        gives="Last",
    ),
    Route(
        "GET",
        "/timeline",
        timeline.get_timeline,
        "The last quarter of an hour, second by second: commands, delay added, faults fired.",
        query={"after": ("The number of the last second that is known; 0: none.", _NUMBER)},
        gives="Timeline",
    ),
    Route(
        "GET", "/connections", connections.get_connections, "Who is connected.", gives="Connections"
    ),
    Route(
        "DELETE",
        "/connections/{id}",
        connections.delete_connection,
        "Reset a client's connection.",
        gives="Cut",
        answers={404: "None of that number."},
    ),
    Route("GET", "/openapi.json", describe, "This description.", gives="Document"),
    *toxiproxy_api.ROUTES,
)
