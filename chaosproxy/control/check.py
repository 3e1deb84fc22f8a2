"""`/profile/check`: what is wrong with a profile's text, while somebody writes it.

Takes YAML; gives all of its problems, by line and column, and puts nothing in force.
"""

from http import HTTPStatus
from typing import Any, Final

from chaosproxy import profile as profiles
from chaosproxy.control.answer import Answer, Refused, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.control.profile import told
from chaosproxy.core.command_table import CommandTable
from chaosproxy.profile import ProfileError, Source

#: What POST takes, as JSON Schema.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["yaml"],
    "properties": {"yaml": {"type": "string", "description": "A profile's text."}},
}


def check_profile(backend: Backend, request: Request) -> Answer:
    """Say all that is wrong with it; no problem: it could be put in force."""
    del backend
    text = request.fields({"yaml": (str,)}).get("yaml")
    if text is None:
        raise Refused(HTTPStatus.BAD_REQUEST, "expected a profile's text as `yaml`")
    source = Source("sent", text.encode("utf-8", "surrogatepass"), "sent.yaml")
    problems = []
    try:
        profiles.load([source], table=CommandTable.bundled())
    except ProfileError as error:
        problems = told(error.problems)
    return as_json({"problems": problems})
