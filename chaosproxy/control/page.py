"""The page at `/`: files that ship with the package, and what a browser may do with them.

Takes nothing but the names of these files; gives them as they are. The page holds no data of its own and asks the other
routes for all of it, so anybody may have it, token or not.
"""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from chaosproxy.control.answer import Answer, Request
from chaosproxy.control.backend import Backend
from chaosproxy.control.routing import Route

_FOLDER: Final = "page"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Own files only, nothing inline, no strings as code, no frame around it, nothing sent elsewhere.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
}


@cache
def _files() -> dict[str, Answer]:
    """Every file of the page by its path, read once: no request can name another."""
    answers = {}
    for file in Path(__file__).with_name(_FOLDER).iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        path = "/" if file.name == "index.html" else f"/{_FOLDER}/{file.name}"
        if suffix in _TYPES:
            answers[path] = Answer(
                HTTPStatus.OK, file.read_bytes(), _TYPES[suffix], headers=_HEADERS
            )
    return answers


def respond(backend: Backend, request: Request) -> Answer:
    """Give one of the files."""
    del backend
    return _files()[request.path]


#: Where they are; each is open to anybody.
PATHS: Final = frozenset(_files())
ROUTES: Final = tuple(
    Route(
        "GET",
        path,
        respond,
        "The page." if path == "/" else "A file of the page.",
        content_type=file.content_type.partition(";")[0],
    )
    for path, file in sorted(_files().items())
)
