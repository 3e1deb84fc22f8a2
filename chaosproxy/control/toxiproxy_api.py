"""Toxiproxy's own routes: its clients switch by changing a URL.

Takes requests as Toxiproxy's clients send them; gives answers in its shapes.
"""

import json
from http import HTTPStatus
from typing import Any, Final

from chaosproxy import __version__
from chaosproxy.control.answer import Answer, Refused, Request, as_json
from chaosproxy.control.backend import Backend
from chaosproxy.control.routing import Route
from chaosproxy.control.shapes import list_of, of

#: What its clients take the version for: which routes there are.
VERSION: Final = f"2.9.0+chaosproxy.{__version__}"
_DONE: Final = Answer(HTTPStatus.NO_CONTENT)


def _body(request: Request) -> Any:
    """Read JSON, whatever it is called: Toxiproxy never looked. But not what any page's form can send."""
    if request.kind in {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json", status=415)
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError) as error:
        message = f"bad request body: {error}"
        raise Refused(HTTPStatus.BAD_REQUEST, message, status=400) from None


def _object(request: Request) -> dict[str, Any]:
    value = _body(request)
    if not isinstance(value, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "bad request body: no object", status=400)
    return value


def _proxies(backend: Backend, request: Request) -> Answer:
    del request
    return as_json(backend.toxiproxy.proxies())


def _create(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.create(_object(request)), HTTPStatus.CREATED)


def _populate(backend: Backend, request: Request) -> Answer:
    value = _body(request)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Refused(HTTPStatus.BAD_REQUEST, "bad request body: no list of proxies", status=400)
    return as_json({"proxies": backend.toxiproxy.populate(value)}, HTTPStatus.CREATED)


def _proxy(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.proxy(request.params["proxy"]))


def _update(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.update(request.params["proxy"], _object(request)))


def _delete(backend: Backend, request: Request) -> Answer:
    backend.toxiproxy.delete(request.params["proxy"])
    return _DONE


def _toxics(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.proxy(request.params["proxy"])["toxics"])


def _add_toxic(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.add_toxic(request.params["proxy"], _object(request)))


def _toxic(backend: Backend, request: Request) -> Answer:
    return as_json(backend.toxiproxy.toxic(request.params["proxy"], request.params["toxic"]))


def _update_toxic(backend: Backend, request: Request) -> Answer:
    proxy, toxic = request.params["proxy"], request.params["toxic"]
    return as_json(backend.toxiproxy.update_toxic(proxy, toxic, _object(request)))


def _delete_toxic(backend: Backend, request: Request) -> Answer:
    backend.toxiproxy.delete_toxic(request.params["proxy"], request.params["toxic"])
    return _DONE


def _reset(backend: Backend, request: Request) -> Answer:
    del request
    backend.toxiproxy.reset()
    return _DONE


def _version(backend: Backend, request: Request) -> Answer:
    del backend, request
    return as_json({"version": VERSION})


_PROXY: Final = of(
    {"name": {"type": "string"}, "upstream": {"type": "string"}},
    listen={"type": "string"},
    enabled={"type": "boolean"},
) | {"additionalProperties": True}
_CHANGE: Final = _PROXY | {"required": []}
_TOXIC: Final = of(
    {"type": {"type": "string"}},
    name={"type": "string"},
    stream={"enum": ["upstream", "downstream"]},
    toxicity={"type": "number", "minimum": 0, "maximum": 1},
    attributes={"type": "object"},
) | {"additionalProperties": True}
_OTHER: Final = _TOXIC | {"required": []}
_OF_PROXY, _OF_TOXIC = "/proxies/{proxy}", "/proxies/{proxy}/toxics/{toxic}"
_NONE: Final = {404: "There is none of that name."}
_THERE: Final = {409: "There is one of that name."}
ROUTES: Final = (
    Route("GET", "/proxies", _proxies, "As Toxiproxy: its proxies, with their toxics.", gives="Proxies"),
    Route("POST", "/proxies", _create, "As Toxiproxy: make a proxy.", body=_PROXY, gives="Proxy", status=201, answers=_THERE),
    Route("POST", "/populate", _populate, "As Toxiproxy: make several.", body=list_of(_PROXY), gives="Populated", status=201),
    Route("GET", _OF_PROXY, _proxy, "As Toxiproxy: one proxy.", gives="Proxy", answers=_NONE),
    Route("POST", _OF_PROXY, _update, "As Toxiproxy: change a proxy.", body=_CHANGE, gives="Proxy", answers=_NONE),
    Route("PATCH", _OF_PROXY, _update, "As Toxiproxy: change a proxy.", body=_CHANGE, gives="Proxy", answers=_NONE),
    Route("DELETE", _OF_PROXY, _delete, "As Toxiproxy: end a proxy.", status=204, answers=_NONE),
    Route("GET", f"{_OF_PROXY}/toxics", _toxics, "As Toxiproxy: a proxy's toxics.", gives="Toxics", answers=_NONE),
    Route("POST", f"{_OF_PROXY}/toxics", _add_toxic, "As Toxiproxy: one more toxic.", body=_TOXIC, gives="Toxic", answers=_NONE | _THERE),
    Route("GET", _OF_TOXIC, _toxic, "As Toxiproxy: one toxic.", gives="Toxic", answers=_NONE),
    Route("POST", _OF_TOXIC, _update_toxic, "As Toxiproxy: change a toxic.", body=_OTHER, gives="Toxic", answers=_NONE),
    Route("PATCH", _OF_TOXIC, _update_toxic, "As Toxiproxy: change a toxic.", body=_OTHER, gives="Toxic", answers=_NONE),
    Route("DELETE", _OF_TOXIC, _delete_toxic, "As Toxiproxy: one toxic less.", status=204, answers=_NONE),
    Route("POST", "/reset", _reset, "As Toxiproxy: enable all proxies, remove all toxics.", status=204),
    Route("GET", "/version", _version, "As Toxiproxy: the version whose routes these are.", gives="Version"),
)  # fmt: skip
