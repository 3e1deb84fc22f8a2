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


def describe(backend: Backend, request: Request) -> Answer:
    """This table, for programs."""
    del backend, request
    return as_json(openapi.document(ROUTES))


_AFTER: Final = "The number of the last event that is known; 0: none."

ROUTES: Final = (
    *page.ROUTES,
    Route("GET", "/healthz", health.healthz, "Alive."),
    Route(
        "GET",
        "/readyz",
        health.readyz,
        "Whether clients can be served.",
        answers={503: "Not ready; `problem` says why."},
    ),
    Route("GET", "/metrics", health.metrics, "Prometheus; OpenMetrics where it is accepted."),
    Route("GET", "/profiles", profile.list_profiles, "The profiles that ship."),
    Route(
        "GET",
        "/profiles/{name}",
        profile.show_profile,
        "One of them, as YAML.",
        answers={404: "None of that name."},
    ),
    Route(
        "GET",
        "/profile",
        profile.get_profile,
        "What is in force: name, seed, generation, since, and each fault's matched, fired and skipped.",
    ),
    Route(
        "PUT",
        "/profile",
        profile.put_profile,
        "Put a profile in force. Answered once it is so on every connection, and what the old one held is let go.",
        body=profile.SCHEMA,
        answers={422: "It has problems: all of them, by line and column. The old one stays."},
    ),
    Route(
        "POST",
        "/profile/check",
        check.check_profile,
        "What is wrong with a profile's text, if anything; nothing is put in force.",
        body=check.SCHEMA,
    ),
    Route("DELETE", "/profile", profile.delete_profile, "Calm, at once; what is held is let go."),
    Route(
        "POST",
        "/faults/{name}/trigger",
        faults.trigger,
        "A `trigger: manual` fault acts on its next match; one that lasts begins now.",
        answers={404: "No such fault.", 409: "It cannot be triggered."},
    ),
    Route(
        "PATCH",
        "/faults/{name}",
        faults.patch,
        "Switch a fault off, or on again.",
        body=faults.SCHEMA,
        answers={404: "No such fault."},
    ),
    Route(
        "GET",
        "/events",
        events.get_events,
        "What has fired: the events, the last one's number, and how many are no longer kept.",
        query={"after": _AFTER, "wait": "How long to wait for the first one: 5s, 60 s at most."},
    ),
    Route(
        "GET",
        "/events/stream",
        events.stream,
        "The same as server-sent events, for as long as the client listens.",
        query={"after": _AFTER},
    ),
    Route("DELETE", "/events", events.delete_events, "Forget them; their numbers go on."),
    Route(
        "GET",
        "/timeline",
        timeline.get_timeline,
        "The last quarter of an hour, second by second: commands, delay added, faults fired.",
        query={"after": "The number of the last second that is known; 0: none."},
    ),
    Route("GET", "/connections", connections.get_connections, "Who is connected."),
    Route(
        "DELETE",
        "/connections/{id}",
        connections.delete_connection,
        "Reset a client's connection.",
        answers={404: "None of that number."},
    ),
    Route("GET", "/openapi.json", describe, "This description."),
    *toxiproxy_api.ROUTES,
)
