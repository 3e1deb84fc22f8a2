"""A hostile profile: what loading it, naming it and having it in force can do, and cannot."""

import http.client
import json
import time
from urllib.parse import quote

import pytest

from chaosproxy.core.glob import LONGEST, compiled, glob_match
from chaosproxy.profile import ProfileError, Source, load
from tests.proxying import serve_proxy


def refused(text: str) -> str:
    with pytest.raises(ProfileError) as caught:
        load([Source("evil", text.encode(), "evil.yaml")])
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch {path}']",
        "!!python/object/new:subprocess.Popen [['touch', '{path}']]",
        "!!python/name:os.system ''",
        "!include {path}",
        "!!binary AAAA",
    ],
)
def test_tags_make_nothing(tmp_path, value):
    """YAML's tags, by which other loaders run code or read files, are refused unread."""
    path = tmp_path / "made"
    said = refused(f"faults: {value.replace('{path}', str(path))}\n")
    assert "tag" in said
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)) + "faults: *a39\n",
        "faults: " + "[" * 100_000 + "]" * 100_000 + "\n",
        "faults: " + "{a: " * 50_000 + "}" * 50_000 + "\n",
        "faults:\n" + "  - {fault: latency, delay: 1ms}\n" * 100_000,
        "faults:\n" + "  - x\n" * 60_000,
        "? " * 100_000,
        "- " * 100_000,
        "faults: &a [*a]\n",
        "&" + "a" * 200_000,
        "faults: '" + "\\n" * 120_000,
        "\x00faults: []\n",
        "%YAML 1.1\n---\nfaults: []\n---\nfaults: []\n",
    ],
    ids=[
        "laughs", "lists", "maps", "large", "many", "keys", "dashes", "itself", "anchor", "open", "nul", "two",
    ],
)  # fmt: skip
def test_what_blows_up_does_not(text):
    """Aliases that multiply, depth, length: refused for what they are, in seconds of the processor at most."""
    begun = time.process_time()
    refused(text)
    assert time.process_time() - begun < 10


@pytest.fixture(scope="module")
def proxy():
    with serve_proxy("redis://127.0.0.1:1", "calm") as proxy:
        yield proxy


def ask(proxy, method, path, body=None):
    """Ask without anybody tidying the path up on its way."""
    link = http.client.HTTPConnection(proxy.control.removeprefix("http://"), timeout=30)
    try:
        data = None if body is None else json.dumps(body)
        link.request(method, path, data, {"Content-Type": "application/json"})
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    finally:
        link.close()


#: A file that everybody can read, and nobody is to be given.
FILE = "/etc/passwd"
UP = "../" * 12
NAMES = (
    FILE,
    UP + FILE.lstrip("/"),
    "lost-ack/../" + UP + FILE.lstrip("/"),
    "..\\" * 12 + "etc\\passwd",
    f"file://{FILE}",
    f"{UP}{FILE}\x00.yaml",
    "../pyproject.toml",
    "lost-ack.yaml",
    "./lost-ack",
    "",
    ".",
    "..",
    "~root/.ssh/id_rsa",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_path(proxy, name):
    """The control API knows profiles by name: nothing that looks like a path is opened, however it is written."""
    for path in (f"/profiles/{quote(name, safe='')}", f"/profiles/{quote(name)}"):
        status, said = ask(proxy, "GET", path)
        assert status in {404, 405} or (name == "" and status == 200), said
        assert "root:" not in said
    for given in (name, ["calm", name]):
        status, said = ask(proxy, "PUT", "/profile", {"name": given})
        assert status in {400, 422}, said
        assert "root:" not in said
    # Beside a text it is a name, and only that.
    status, said = ask(proxy, "PUT", "/profile", {"name": name, "yaml": "faults: []"})
    assert "root:" not in said


@pytest.mark.parametrize(
    "path",
    [
        "/page/" + UP + FILE.lstrip("/"),
        "/page/" + quote(UP + FILE.lstrip("/"), safe=""),
        "/page/..%2f..%2fguard.py",
        "/page//etc/passwd",
        "/page/%00",
        "/page/../page/main.js",
        "//etc/passwd",
        "/page",
        "/page/",
    ],
)
def test_the_page_is_its_own_files(proxy, path):
    """What is at the page's paths was read at the start; no request opens a file."""
    status, said = ask(proxy, "GET", path)
    assert status == 404
    assert "root:" not in said


#: Those that take longest: what is nearly found everywhere, and classes that hold nearly everything.
SLOW = (
    b"*" + b"a" * (LONGEST - 3) + b"b*",
    b"*" + b"?" * (LONGEST - 3) + b"b*",
    b"*" + b"a" * (LONGEST - 2) + b"b",
    b"*a" * (LONGEST // 2),
    b"*a" * (LONGEST // 2 - 1) + b"*b",
    b"*" + b"[^b]" * (LONGEST // 4 - 1) + b"b*",
    b"[^a]" * (LONGEST // 4),
    b"*" + b"[a-z]?" * (LONGEST // 6 - 1) + b"b",
)


@pytest.mark.parametrize("glob", SLOW)
def test_no_glob_is_slow(glob):
    """Whatever the glob, a key of 100,000 bytes is told in well under a second: it grows with the key, and never explodes."""
    assert len(glob) <= LONGEST
    compiled.cache_clear()
    begun = time.process_time()
    glob_match(glob, b"a" * 100_000)
    assert time.process_time() - begun < 2


def test_no_glob_is_long():
    """A longer one is refused, wherever one may stand; texts that are only looked for may be long."""
    fits, long = "a" * LONGEST, "a" * (LONGEST + 1)
    for match in (
        "{keys: %s}",
        "{keys: [b, %s]}",
        "{clients: %s}",
        "{clients: {name: %s}}",
        "{clients: {address: %s}}",
    ):
        text = "faults:\n  - {fault: latency, at: after_apply, delay: 1ms, match: " + match + "}\n"
        load([Source("x", (text % fits).encode(), "x.yaml")])
        assert f"at most {LONGEST} bytes, got {LONGEST + 1}" in refused(text % long)
    push = "faults:\n  - {fault: push, what: drop, match: {push: {kind: message, channel: %s}}}\n"
    assert "at most" in refused(push % long)
    text = "faults:\n  - {fault: latency, at: after_apply, delay: 1ms, match: {arguments: {contains: %s}}}\n"
    load([Source("x", (text % long).encode(), "x.yaml")])


def test_a_glob_is_no_regular_expression():
    """What means something in regular expressions is itself in a glob, so that none can be smuggled in."""
    for text in ("(a+)+$", "a{1000}{1000}", "^a|b", r"\d", "(?i)A", "a.*b"):
        pattern = text.encode()
        assert glob_match(pattern.replace(b"*", rb"\*").replace(b"\\d", rb"\\d"), pattern)
        assert not glob_match(pattern, b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab")
