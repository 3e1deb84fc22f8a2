"""`/profiles` and `/profile`: what ships, what is in force, and putting something else in force.

Takes a profile by its shipped name or as YAML, never as a path; gives what is in force, or 422 with all of its problems.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, Final

from chaosproxy import profile as profiles
from chaosproxy.control.answer import Answer, Refused, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.scalar import MOST
from chaosproxy.profile import Problem, ProfileError, Source

CALM: Final = "calm"
#: What a profile is called that was sent without a name.
SENT: Final = "sent"
#: A line of a profile that is longer is not repeated with each of its problems.
_LONGEST_LINE: Final = 4096
_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "name": (str, list),
    "yaml": (str,),
    "seed": (int, type(None)),
    "set": (dict,),
}
#: What PUT takes, as JSON Schema.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        "name": {
            "description": "A shipped profile's name, or several: their faults are joined. Beside yaml: what to call it.",
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ],
        },
        "yaml": {"type": "string", "description": "A profile's text."},
        "seed": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST,
            "description": "Left out: the profile's, or the one in force.",
        },
        "set": {
            "type": "object",
            "description": 'Single values: {"lost-ack.when.nth": 3}.',
        },
    },
}


def list_profiles(backend: Backend, request: Request) -> Answer:
    """The shipped ones, each with its first line."""
    del backend, request
    listed = [{"name": name, "summary": profiles.first_line(name)} for name in profiles.names()]
    return as_json({"profiles": listed})


def show_profile(backend: Backend, request: Request) -> Answer:
    """One, as it ships."""
    del backend
    try:
        source = profiles.shipped(request.params["name"])
    except ProfileError as error:
        raise Refused(HTTPStatus.NOT_FOUND, error.problems[0].render()) from None
    return Answer(HTTPStatus.OK, source.raw, "application/yaml")


def get_profile(backend: Backend, request: Request) -> Answer:
    """What is in force."""
    del request
    return as_json(backend.in_force())


def put_profile(backend: Backend, request: Request) -> Answer:
    """Put another one in force; answered once it is so on every connection."""
    given = request.fields(_FIELDS)
    sources = _sources(given)
    seed = given.get("seed")
    if seed is not None and not 0 <= seed <= MOST:
        said = f"seed: expected a whole number from 0 to {MOST}, got {seed!r:.60}"
        raise Refused(HTTPStatus.BAD_REQUEST, said)
    # JSON is YAML, which is what an override's value is read as.
    overrides = [f"{path}={json.dumps(value)}" for path, value in given.get("set", {}).items()]
    try:
        found = [
            profiles.shipped(source) if isinstance(source, str) else source for source in sources
        ]
        profile = profiles.load(found, table=CommandTable.bundled(), overrides=overrides)
    except ProfileError as error:
        raise _unusable(error) from None
    return as_json(backend.put(profile, seed) | {"warnings": backend.strangers(found, overrides)})


def delete_profile(backend: Backend, request: Request) -> Answer:
    """Calm, at once: everything that is held is let go."""
    del request
    return as_json(backend.put(profiles.load([profiles.shipped(CALM)]), None))


def _sources(given: dict[str, Any]) -> list[str | Source]:
    """Give shipped profiles' names, or the one that was sent."""
    name, text = given.get("name"), given.get("yaml")
    if text is not None:
        called = SENT if name is None else name
        # It becomes a label and a line's beginning, and may not look like something else there.
        if not (isinstance(called, str) and called.isprintable() and 0 < len(called) <= 100):
            raise Refused(HTTPStatus.BAD_REQUEST, "name: expected up to 100 printable characters")
        return [sent(text, called)]
    names = [name] if isinstance(name, str) else name
    if not (names and all(isinstance(each, str) for each in names)):
        raise Refused(
            HTTPStatus.BAD_REQUEST, "expected a shipped profile's `name`, several, or `yaml`"
        )
    return names


def sent(text: str, called: str) -> Source:
    """A profile's text that came over HTTP; what is no Unicode in it is the loader's to refuse."""
    return Source(called, text.encode("utf-8", "surrogatepass"), f"{called}.yaml")


def told(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Problems for programs, and each as text; a line that is none is left out."""
    return [
        asdict(each)
        | {"text": each.render()}
        | ({"source_line": ""} if len(each.source_line) > _LONGEST_LINE else {})
        for each in problems
    ]


def _unusable(error: ProfileError) -> Refused:
    count = len(error.problems)
    listed = told(error.problems)
    return Refused(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "the profile has 1 problem" if count == 1 else f"the profile has {count} problems",
        problems=listed,
    )
