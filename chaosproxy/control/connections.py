"""`/connections`: who is connected, and cutting one off.

Takes a connection's number, as events and this list have it; gives what is known of each.
"""

from http import HTTPStatus

from chaosproxy.control.answer import Answer, Refused, Request, as_json, whole_number
from chaosproxy.control.backend import Backend


def get_connections(backend: Backend, request: Request) -> Answer:
    """All that are open."""
    del request
    return as_json({"connections": backend.connections()})


def delete_connection(backend: Backend, request: Request) -> Answer:
    """Reset one: client and server both lose it."""
    text = request.params["id"]
    number = whole_number(text)
    if not (number and backend.cut(number)):
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no connection {text!r:.40}")
    return as_json({"id": number, "cut": "reset"})
