"""Who may ask: the token, pages of other sites, and names that were pointed at this machine."""

import hmac
from email.message import Message

import pytest

from chaosproxy.control import guard as guard_module
from chaosproxy.control.answer import Refused
from chaosproxy.control.guard import OPEN_ROUTES, Guard


def headers(**named):
    """As the base reads them: bytes as latin-1."""
    given = Message()
    for name, text in named.items():
        given[name.replace("_", "-")] = text.encode().decode("latin-1")
    return given


def status(guard, path="/profile", **named):
    """Give the status of the refusal, 200 if there is none."""
    try:
        guard.check(path, headers(**named))
    except Refused as refused:
        return refused.status
    return 200


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:9380", "127.0.0.1:9380", "127.9.9.9", "[::1]:80", "LOCALHOST:1"],
)
def test_names_of_this_machine(host):
    """Loopback may be asked by its own names."""
    assert status(Guard(None, local=True), Host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9380", "192.0.2.1:9380", "localhost.evil.example", "[::1", ""],
)
def test_rebound_names(host):
    """A name that somebody points at 127.0.0.1 is still that name in Host: refused on loopback, whatever the token."""
    assert status(Guard(None, local=True), Host=host) == 403
    assert status(Guard("t", local=True), Host=host, Authorization="Bearer t") == 403


def test_other_addresses_have_any_name():
    """Who listens to the network cannot know what it is called there."""
    assert status(Guard(None, local=False), Host="chaosproxy:9380") == 200


def test_no_host():
    """Who sends no Host (HTTP/1.0) is no browser."""
    assert status(Guard(None, local=True)) == 200


@pytest.mark.parametrize("local", [True, False])
def test_pages_of_other_sites(local):
    """Origin must be where it asks; a browser that says cross-site is believed."""
    guard, here = Guard(None, local=local), "127.0.0.1:9380"
    assert status(guard, Host=here, Origin=f"http://{here}") == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:3000", "file://", ""):
        assert status(guard, Host=here, Origin=origin) == 403
    assert status(guard, Host=here, Sec_Fetch_Site="same-origin") == 200
    assert status(guard, Host=here, Sec_Fetch_Site="none") == 200
    for site in ("cross-site", "same-site"):
        assert status(guard, Host=here, Sec_Fetch_Site=site) == 403


def test_token():
    """With a token it is wanted, all of it, for all but the open routes."""
    guard = Guard("sécret", local=False)
    for wrong in (
        "",
        "Bearer ",
        "Bearer s",
        "sécret",
        "Basic sécret",
        "Bearer sécret ",
        "Bearer Sécret",
        " Bearer sécret",
        "Bearersécret",
        "Bearer\tsécret",
    ):
        assert status(guard, Authorization=wrong) == 401, wrong
    assert status(guard) == 401
    for path in OPEN_ROUTES:
        assert status(guard, path) == 200
    with pytest.raises(Refused) as caught:
        guard.check("/profile", headers())
    assert caught.value.headers == {"WWW-Authenticate": "Bearer"}


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "bEaReR   "])
@pytest.mark.parametrize("token", ["secret", "sécret", "two words", " blank"])
def test_scheme_in_any_case(scheme, token):
    """RFC 7235: a scheme's case means nothing, nor does the number of blanks behind it; the token is as it stands."""
    guard = Guard(token, local=False)
    assert status(guard, Authorization=scheme + token) == 200
    assert status(guard, Authorization=scheme + token.upper()) == 401


def test_token_in_constant_time(monkeypatch):
    """How long the comparison takes does not tell how much of the token was right."""
    compared = []
    real = hmac.compare_digest

    def compare(*both):
        compared.append(both)
        return real(*both)

    monkeypatch.setattr(guard_module.hmac, "compare_digest", compare)
    for given in ("Bearer tokem", "Basic tokem"):
        assert status(Guard("token", local=False), Authorization=given) == 401
    assert compared == [(b"tokem", b"token")] * 2


def test_open_routes_have_any_name():
    """Probes and scrapers come under names of their own."""
    for path in OPEN_ROUTES:
        assert status(Guard(None, local=True), path, Host="prometheus.example") == 200
