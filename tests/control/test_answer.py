"""Requests are taken apart without trust, and what is wrong is said in words."""

import json
from email.message import Message
from http import HTTPStatus

import pytest

from chaosproxy.control.answer import Refused, Request, as_json


def request(body=b"", kind="application/json", **query):
    headers = Message()
    if kind:
        headers["Content-Type"] = kind
    return Request("PUT", "/x", headers, query, body)


def refusal(ask):
    """What is said, and with which status."""
    with pytest.raises(Refused) as caught:
        ask()
    return caught.value.status, str(caught.value)


def test_as_json():
    """A value, a status and headers."""
    answer = as_json({"a": 1}, HTTPStatus.ACCEPTED, {"Retry-After": "1"})
    assert (answer.status, answer.body, answer.content_type, dict(answer.headers)) == (
        202,
        b'{"a": 1}\n',
        "application/json",
        {"Retry-After": "1"},
    )


def test_a_refusal_is_an_answer():
    """In words, and with more for programs."""
    answer = Refused(HTTPStatus.CONFLICT, "no", {"X": "y"}, problems=[1]).answer()
    assert (answer.status, dict(answer.headers)) == (409, {"X": "y"})
    assert json.loads(answer.body) == {"error": "no", "problems": [1]}


def test_query():
    """What is known is given, what is not is refused: a misspelt one would be ignored otherwise."""
    assert request(after="1").only("after", "wait") == {"after": "1"}
    assert refusal(lambda: request(aftr="1").only("after", "wait")) == (
        400,
        "unknown query parameter 'aftr': it takes after, wait",
    )
    assert refusal(lambda: request(aftr="1").only())[1].endswith("it takes none")


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²", "9" * 19])
def test_numbers(text):
    """A number is digits, and not too many."""
    assert request(n="12").number("n", 7) == 12
    assert request().number("n", 7) == 7
    assert refusal(lambda: request(n=text).number("n", 7))[0] == 400


def test_fields():
    """An object with fields of these names and types."""
    known = {"name": (str, list), "on": (bool,), "seed": (int, type(None))}
    body = b'{"name": ["a"], "on": true, "seed": null}'
    assert request(body).fields(known) == {"name": ["a"], "on": True, "seed": None}
    assert request(b"{}", "Application/JSON; charset=utf-8").fields(known) == {}


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        (b"{}", "", 415, "expected a body of Content-Type application/json, got none"),
        (b"{}", "text/plain", 415, "expected a body of Content-Type application/json, got text/plain"),
        (b"", "application/json", 400, "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "application/json", 400, "expected a JSON object"),
        (b'{"nam": 1}', "application/json", 400, "unknown field 'nam': it takes name, seed"),
        (b'{"name": 1}', "application/json", 400, "name: expected a string or a list, got 1"),
        (b'{"seed": true}', "application/json", 400, "seed: expected a whole number, got True"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_body(body, kind, status, said):
    """Each mistake has its status and says what would be right."""
    known = {"name": (str, list), "seed": (int,)}
    assert refusal(lambda: request(body, kind).fields(known)) == (status, said)


@pytest.mark.parametrize("body", [b"\xff\xfe\xff", b"[" * 100_000, b"9" * 100_000])
def test_hostile_bodies(body):
    """What no parser takes is refused like anything else."""
    assert refusal(lambda: request(body).fields({}))[0] == 400
