"""Addresses and URLs as users write them, and the messages for those that are wrong."""

import pytest

from chaosproxy.net.address import (
    SCHEMES,
    Address,
    Upstream,
    parse_address,
    parse_upstream,
    with_credentials,
)

KNOWN = ", ".join(f"{scheme}://" for scheme in SCHEMES)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:6380", Address("127.0.0.1", 6380)),
        ("6380", Address("127.0.0.1", 6380)),
        (":6380", Address("0.0.0.0", 6380)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:6380", Address("::1", 6380)),
        ("unix:/run/proxy.sock", Address(path="/run/proxy.sock")),
        ("unix:proxy.sock", Address(path="proxy.sock")),
        ("unix:///run/proxy.sock", Address(path="/run/proxy.sock")),
    ],
)
def test_listen_address(text, address):
    """Every form of an address to listen on."""
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("localhost", "localhost: expected HOST:PORT with a port from 0 to 65535, or unix:PATH"),
        ("h:65536", "h:65536: expected HOST:PORT with a port from 0 to 65535, or unix:PATH"),
        ("h:-1", "h:-1: expected HOST:PORT with a port from 0 to 65535, or unix:PATH"),
        ("::1:6380", "::1:6380: an IPv6 address stands in brackets: [::1]:6380"),
        ("unix:", "unix:: a path is missing after unix:"),
    ],
)
def test_wrong_listen_address(text, message):
    """A wrong one says what would be right."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_address(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("redis://h", Upstream(Address("h", 6379))),
        ("redis://", Upstream(Address("127.0.0.1", 6379))),
        ("redis://h:7000/3", Upstream(Address("h", 7000), db=3)),
        ("redis://h:7000?db=3", Upstream(Address("h", 7000), db=3)),
        ("rediss://[::1]:7000/", Upstream(Address("::1", 7000), tls=True)),
        ("redis://:p%40ss@h", Upstream(Address("h", 6379), password="p@ss")),
        ("redis://me:secret@h/1", Upstream(Address("h", 6379), False, "me", "secret", 1)),
        ("redis://me@h", Upstream(Address("h", 6379), False, "me", "")),
        ("redis://me:@h", Upstream(Address("h", 6379), False, "me", "")),
        ("unix:///run/r%20%25.sock", Upstream(Address(path="/run/r %.sock"))),
        ("unix:///run/r.sock?db=2", Upstream(Address(path="/run/r.sock"), db=2)),
        ("unix://r.sock", Upstream(Address(path="r.sock"))),
        ("unix://me:pw@/run/r.sock", Upstream(Address(path="/run/r.sock"), False, "me", "pw")),
    ],
)
def test_upstream_url(url, upstream):
    """Every form of an upstream URL."""
    assert parse_upstream(url) == upstream


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "127.0.0.1:6379",
            f"127.0.0.1:6379: an upstream URL begins with one of {KNOWN}",
        ),
        (
            "http://h",
            f"http://h: an upstream URL begins with one of {KNOWN}",
        ),
        ("redis://h/x", "redis://h/x: the database must be a number, not 'x'"),
        ("redis://me:pw@h/x", "redis://***@h/x: the database must be a number, not 'x'"),
        (
            "unix:///s?password=pw&db=x",
            "unix:///s?password=***&db=x: the database must be a number, not 'x'",
        ),
        (
            "redis://h:x",
            "redis://h:***: expected HOST:PORT with a port from 0 to 65535, an IPv6 address in brackets",
        ),
        (
            "redis://h?timeout=3",
            "redis://h?timeout=3: unknown parameter 'timeout'; only db and password are read",
        ),
        ("unix://", "unix://: a path is missing after unix://"),
    ],
)
def test_wrong_upstream_url(url, message):
    """A wrong one says what would be right."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_upstream(url)
    assert str(caught.value) == message


A, B, C = Address("10.0.0.1", 26379), Address("::1", 7), Address("::1", 26379)


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("redis+sentinel://10.0.0.1/mine", Upstream(A, service="mine", sentinels=(A,))),
        (
            "rediss+sentinel://me:pw@10.0.0.1,[::1]:7/mine/3",
            Upstream(A, True, "me", "pw", 3, "mine", (A, B)),
        ),
        (
            "redis+sentinel://10.0.0.1:26379/m%20e?db=1&sentinel_username=u&sentinel_password=s%26",
            Upstream(A, False, None, None, 1, "m e", (A,), "u", "s&"),
        ),
        ("redis+sentinel://[::1]/m", Upstream(C, service="m", sentinels=(C,))),
    ],
)
def test_sentinels(url, upstream):
    """Several addresses, the service's name, and their own credentials, which are not the servers'."""
    assert parse_upstream(url) == upstream


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "redis+sentinel://:pw@10.0.0.1",
            "redis+sentinel://***@10.0.0.1: the service's name is missing behind the Sentinels' addresses",
        ),
        ("redis+sentinel:///m", "redis+sentinel:///m: no Sentinel's address is given"),
        (
            "redis+sentinel://a:x/m",
            "redis+sentinel://a:***/m: expected HOST:PORT with a port from 0 to 65535, an IPv6 address in brackets",
        ),
        (
            "redis+sentinel://a/m?sentinel_password=pw&x=1",
            (
                "redis+sentinel://a/m?sentinel_password=***&x=1: unknown parameter 'x'; only db, password, "
                "sentinel_username and sentinel_password are read"
            ),
        ),
        (
            "redis+sentinel://a/m/x",
            "redis+sentinel://a/m/x: the database must be a number, not 'x'",
        ),
    ],
)
def test_wrong_sentinels(url, message):
    """A wrong one says what would be right, and no password."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_upstream(url)
    assert str(caught.value) == message


@pytest.mark.parametrize("host", ["a..b", ".", 64 * "x", "\udcff"])
def test_what_cannot_be_a_name(host):
    """It is refused as it is read: no lookup takes it, and not each one says so in the same way."""
    assert not Address(host, 1).possible
    with pytest.raises(ValueError, match="cannot be a host's name"):
        parse_address(f"{host}:1")
    for url in (f"redis://{host}:1", f"redis+cluster://a,{host}:1", f"redis+sentinel://{host}:1/m"):
        with pytest.raises(ValueError, match="expected HOST:PORT"):
            parse_upstream(url)
    for good in ("localhost", "a.b.", "bücher.example", "::1", "my_redis-1"):
        assert Address(good, 1).possible


def test_urls_shown():
    """What is printed can be connected to, and holds no password."""
    assert Address("0.0.0.0", 1).url() == "redis://127.0.0.1:1"
    assert Address("::", 1).url(tls=True, db=2) == "rediss://[::1]:1/2"
    assert Address(path="/s").url(db=2) == "unix:///s?db=2"
    assert parse_upstream("redis://me:secret@h/1").url == "redis://me:***@h:6379/1"
    assert parse_upstream("redis://:secret@h").url == "redis://:***@h:6379"
    url = "rediss+sentinel://me:secret@a,b:7/mine/2?sentinel_password=more"
    assert parse_upstream(url).url == "rediss+sentinel://me:***@a:26379,b:7/mine/2"


@pytest.mark.parametrize(
    "url",
    [
        "redis://me@h:6379",
        "redis://h:6379",
        "unix:///run/r%20%25%23%3F.sock?db=2",
        "rediss://a%3Ab%40c@[::1]:1/3",
        "redis+sentinel://a:1/my%2Fown/2",
    ],
)
def test_a_url_shown_is_read_again(url):
    """What is shown of a URL without a password is that URL, whatever characters are in it."""
    assert parse_upstream(url).url == url
    assert parse_upstream(url.replace("me@", "me:secret@")).url == url.replace("me@", "me:***@")


def test_who_can_reach_it():
    """Loopback, by address or by name, and unix sockets are this machine's alone."""
    local = [Address("127.0.0.2", 1), Address("::1", 1), Address("localhost", 1), Address(path="s")]
    assert all(address.is_local for address in local)
    assert not any(Address(host, 1).is_local for host in ("0.0.0.0", "::", "10.0.0.1", "redis"))


@pytest.mark.parametrize(
    ("url", "seeds"),
    [
        ("redis+cluster://h", [Address("h", 6379)]),
        ("redis+cluster://h:1,[::1]:2,i", [Address("h", 1), Address("::1", 2), Address("i", 6379)]),
        ("rediss+cluster://u:p@h:1,i:2", [Address("h", 1), Address("i", 2)]),
    ],
)
def test_a_cluster(url, seeds):
    """Several nodes may be asked for the others; who the proxy is there is said once."""
    upstream = parse_upstream(url)
    assert upstream.cluster
    assert [upstream.address, *upstream.others] == seeds
    assert upstream.tls == url.startswith("rediss")
    assert upstream.password == ("p" if "@" in url else None)


def test_what_is_shown_of_a_cluster():
    """All nodes that may be asked, the database, and no password."""
    upstream = parse_upstream("redis+cluster://user:secret@a:1,b,[::1]:3/2")
    assert upstream.url == "redis+cluster://user:***@a:1,b:6379,[::1]:3/2"


@pytest.mark.parametrize(
    ("upstream", "url"),
    [
        ("redis://h:1", "redis://127.0.0.1:2/3"),
        ("redis://:p%40ss%2F@h:1", "redis://:p%40ss%2F@127.0.0.1:2/3"),
        ("redis://us%3Aer:pass@h:1", "redis://us%3Aer:pass@127.0.0.1:2/3"),
        ("redis://us%3Aer@h:1", "redis://us%3Aer@127.0.0.1:2/3"),
    ],
)
def test_with_credentials(upstream, url):
    """An application gets the upstream's user and password, quoted, before the proxy's address."""
    assert with_credentials("redis://127.0.0.1:2/3", parse_upstream(upstream)) == url


def test_how_a_server_tells_it():
    """As in MOVED; an address that is none to connect to says no host: the one that the client knows."""
    assert Address("10.0.0.9", 6380).to_tell() == "10.0.0.9:6380"
    assert Address("0.0.0.0", 6380).to_tell() == ":6380"
    assert Address(path="/run/proxy.sock").to_tell() == ":0"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hunter2@h/x",
        "redis://:a/hunter2@h:6379",
        "redis://:1/hunter2@h:6379",
        "redis://:a?hunter2@h",
        "redis://:a#hunter2@h:1",
        "redis://:a@hunter2@h:x",
        "redis://:hunter2\n@h:x",
        "redis://user:hunter2",
        "redis://:hunter2/0",
        "redis://[::1]:hunter2",
        "redis://[::1:hunter2@h",
        "redis://u:hunter2@h℀",
        "redis+sentinel://u:hunter2@a,b:x/m",
        "redis+sentinel://a:hunter2/m",
        "redis+cluster://:hunter2@a:1,b:y",
        "redis+cluster://a:1,b:hunter2",
        "redis://h?password=hunter2&x=1",
        "http://x:hunter2@h",
        "x:hunter2@h",
        "h:hunter2",
    ],
)
def test_no_password_in_an_error(url):
    """However a URL is mistyped, with characters that had to be quoted or without an end: no message has its password."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - any of them
        parse_upstream(url)
    assert "hunter2" not in str(caught.value)
    assert "***" in str(caught.value)


def test_no_password_where_it_is_shown_whole():
    """A test runner shows a failed test's values: those that say who somebody is hold no password there."""
    url = "redis+sentinel://u:hunter2@a/m?sentinel_password=hunter2"
    upstream = parse_upstream(url)
    assert upstream.password == upstream.sentinel_password == "hunter2"
    assert "hunter2" not in repr(upstream)
