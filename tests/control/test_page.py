"""The page's files: what a browser is given, and what it may do with them. test_page_browser.py has it at work."""

import re
from importlib import resources

import pytest

from chaosproxy.control import page
from tests.control.asking import request

FILES = sorted(page.PATHS - {"/"})


def policy(said):
    return dict(
        part.strip().partition(" ")[::2]
        for part in said.headers["Content-Security-Policy"].split(";")
    )


@pytest.mark.parametrize("path", sorted(page.PATHS))
def test_strict(ask, path):
    """Nothing but own files runs or is asked, nothing inline, nothing elsewhere, no frame around it."""
    said = ask("GET", path)
    assert said.status == 200
    assert policy(said) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert said.headers["X-Content-Type-Options"] == "nosniff"
    assert said.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
        ("/page/main.js", "text/javascript; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ],
)
def test_kinds(ask, path, kind):
    """Each is what it is, as it stands in the package."""
    said = ask("GET", path)
    assert said.headers["Content-Type"] == kind
    name = path.rpartition("/")[2] or "index.html"
    assert said.body == (resources.files("chaosproxy.control") / "page" / name).read_bytes()


def test_all_it_speaks_of_is_there(ask):
    """Every file that a file of the page names is one of them, and none is left over."""
    named = set()
    for path in page.PATHS:
        text = ask("GET", path).body.decode()
        named |= {name[1:] for name in re.findall(r'(?:src|href)="(\./[^"]*)"', text)}
        named |= {f"/page/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}
    assert sorted(named) == FILES


def test_nothing_from_elsewhere(ask):
    """No other host is named, but for the name of SVG's namespace."""
    for path in page.PATHS:
        hosts = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", ask("GET", path).body.decode())
        assert set(hosts) <= {"http://www.w3.org/2000/svg"}, path


def test_no_markup_is_made_of_text(ask):
    """No script of it turns text into markup or code."""
    never = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    for path in FILES:
        assert not re.search(never, ask("GET", path).body.decode()), path


def test_anybody_may_have_it(serve):
    """It holds no data, so it comes without the token and from a link on another site; the data do not."""
    server = serve(token="secret")
    for path in page.PATHS:
        said = request(server, "GET", path, Sec_Fetch_Site="cross-site")
        assert said.status == 200
    assert request(server, "GET", "/profile").status == 401


@pytest.mark.parametrize(
    "path", ["/page/", "/page", "/page/page.py", "/page/../page.py", "/page/%2e%2e/server.py"]
)
def test_no_other_file(ask, path):
    """Only these files have names; no path leads out of their folder."""
    assert ask("GET", path).status == 404


def test_changes_nothing(ask):
    """It can only be read."""
    assert ask("POST", "/").status == 405
    assert ask("HEAD", "/").body == b""
