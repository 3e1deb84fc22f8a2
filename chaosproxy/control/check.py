"""`/profile/check`: what is wrong with a profile's text, while somebody writes it.

Takes YAML; gives all of its problems, by line and column, and puts nothing in force.
"""

from http import HTTPStatus
from typing import Final

from chaosproxy import profile as profiles
from chaosproxy.control.answer import Answer, Refused, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.control.profile import SENT, sent, told
from chaosproxy.control.shapes import of
from chaosproxy.core.command_table import CommandTable
from chaosproxy.profile import ProfileError

#: What POST takes, as JSON Schema.
SCHEMA: Final = of({"yaml": {"type": "string", "description": "A profile's text."}})


def check_profile(backend: Backend, request: Request) -> Answer:
    """Say all that is wrong with it; no problem: it could be put in force."""
    del backend
    text = request.fields({"yaml": (str,)}).get("yaml")
    if text is None:
        raise Refused(HTTPStatus.BAD_REQUEST, "expected a profile's text as `yaml`")
    problems = []
    try:
        profiles.load([sent(text, SENT)], table=CommandTable.bundled())
    except ProfileError as error:
        problems = told(error.problems)
    return as_json({"problems": problems})
