"""`/faults/{name}`: one fault of the profile in force is asked to act, or switched off and on.

Takes its name; gives its status, or 404 with the names there are, or 409 with why it cannot be asked.
"""

from http import HTTPStatus
from typing import Final

from chaosproxy.control.answer import Answer, Refused, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.control.shapes import of
from chaosproxy.core.steering import CannotTriggerError, UnknownFaultError

#: What PATCH takes, as JSON Schema.
SCHEMA: Final = of({"enabled": {"type": "boolean"}})


def trigger(backend: Backend, request: Request) -> Answer:
    """A `trigger: manual` fault acts on its next match, or begins its time."""
    try:
        return as_json(backend.trigger(request.params["name"]))
    except UnknownFaultError as error:
        raise Refused(HTTPStatus.NOT_FOUND, str(error)) from None
    except CannotTriggerError as error:
        raise Refused(HTTPStatus.CONFLICT, str(error)) from None


def patch(backend: Backend, request: Request) -> Answer:
    """Switch it off, or on again."""
    enabled = request.fields({"enabled": (bool,)}).get("enabled")
    if enabled is None:
        raise Refused(HTTPStatus.BAD_REQUEST, "expected `enabled`, true or false")
    try:
        return as_json(backend.enable(request.params["name"], enabled))
    except UnknownFaultError as error:
        raise Refused(HTTPStatus.NOT_FOUND, str(error)) from None
