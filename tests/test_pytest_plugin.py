"""The pytest plugin in test runs of its own: fixture, marker, gate, options, the failing test's section, xdist, asyncio."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from chaosproxy.embedded import EmbeddedError, find_server

pytest_plugins = ["pytester"]

#: Installed, the plugin is there by itself; in a checkout it is named.
INSTALLED = any(each.name == "chaosproxy" for each in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "chaosproxy.pytest_plugin")

HELPERS = """
import socket
import pytest
from urllib.parse import urlsplit

LIE = "faults: [{fault: reply, name: lie, match: {commands: GET}, at: before_forward, value: 1}]"

def get(proxy, word=b"GET k"):
    url = urlsplit(proxy.url)
    with socket.create_connection((url.hostname, url.port), 60) as link:
        link.sendall(word + b"\\r\\n")
        return link.recv(100)
"""


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    """Runs elsewhere find this very package, and none of the plugins that take seconds to be read in and are not asked for."""
    monkeypatch.setenv(
        "PYTHONPATH", str(Path(__file__).resolve().parent.parent), prepend=os.pathsep
    )
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:schemathesis -p no:hypothesispytest")


@pytest.fixture
def run(pytester, redis70):
    """Run these tests in a process of their own, on a server that is there; gives the result."""

    def run(tests, *args):
        pytester.makepyfile(test_it=HELPERS + tests)
        upstream = f"--chaos-upstream={redis70.url}"
        return pytester.runpytest_subprocess(*PLUGIN, upstream, "-p", "no:cacheprovider", *args)

    return run


def test_fixture(run):
    """One proxy for all tests of a process, in whatever scope it is asked for; calm between them."""
    run("""
@pytest.fixture(scope="session")
def url(chaosproxy):
    return chaosproxy.url

def test_one(chaosproxy, url):
    assert chaosproxy.url == url
    chaosproxy.use(yaml=LIE)
    assert get(chaosproxy) == b":1\\r\\n"
    assert chaosproxy.fired("lie") == 1

def test_two(chaosproxy, url):
    assert chaosproxy.url == url
    assert get(chaosproxy) == b"$-1\\r\\n"
    assert chaosproxy.events() == []
    assert chaosproxy.fired("lie") == 0
""").assert_outcomes(passed=2)


def test_marker(run):
    """In force while the test itself runs, in its fixtures not; also for a test that does not ask for the proxy."""
    run("""
@pytest.fixture
def seen(chaosproxy):
    before = get(chaosproxy)
    yield before
    assert get(chaosproxy) == b"$-1\\r\\n"

@pytest.mark.chaos(yaml=LIE)
def test_with(chaosproxy, seen):
    assert (seen, get(chaosproxy)) == (b"$-1\\r\\n", b":1\\r\\n")

@pytest.mark.chaos("lost-ack", seed=3, set={"lost-ack.match.commands": "GET"})
def test_name(chaosproxy):
    assert chaosproxy.seed == 3
    with pytest.raises(ConnectionResetError):
        get(chaosproxy)

@pytest.fixture(scope="module")
def everywhere(chaosproxy):
    return chaosproxy

the_proxy = []

def test_remember(everywhere):
    the_proxy.append(everywhere)

@pytest.mark.chaos(yaml=LIE)
class TestClass:
    def test_without_asking(self):
        assert get(the_proxy[0]) == b":1\\r\\n"

def test_after(everywhere):
    assert get(everywhere) == b"$-1\\r\\n"
""").assert_outcomes(passed=5)


def test_gate(run):
    """`require_fired`: a test that passed without meeting its fault fails; what failed by itself says so itself."""
    result = run("""
@pytest.mark.chaos(yaml=LIE, require_fired=True)
def test_met(chaosproxy):
    get(chaosproxy)

@pytest.mark.chaos(yaml=LIE, require_fired=True)
def test_not_met():
    pass

@pytest.mark.chaos(yaml=LIE, require_fired="lie")
def test_not_met_by_name():
    pass

@pytest.mark.chaos(yaml=LIE, require_fired=["lei"])
def test_misspelt():
    pass

@pytest.mark.chaos(yaml=LIE, require_fired=True)
def test_fails_by_itself():
    assert 1 == 2

@pytest.mark.chaos(yaml=LIE)
def test_need_not():
    pass
""")
    result.assert_outcomes(passed=2, failed=4)
    text = result.stdout.str()
    assert text.count("never fired, and had to: lie") >= 2
    assert "did you mean 'lie'?" in text
    assert "assert 1 == 2" in text


def test_section(run):
    """A failing test's report tells the profile, the seed, what fired, and the line that runs it again; a passing one's not."""
    result = run("""
@pytest.mark.chaos(yaml=LIE, seed=5)
def test_bad(chaosproxy):
    get(chaosproxy)
    raise AssertionError

def test_good(chaosproxy):
    chaosproxy.use(yaml=LIE)
    get(chaosproxy)
""")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert text.count("- chaosproxy -") == 1
    section = text.partition("- chaosproxy -")[2]
    for pattern in (
        r"profile test, seed 5\n",
        r"#\d+  \S+  lie  GET k  -> not applied, told ok: ok\n",
        r"lie +reply +1 +1 +-\n",
        r"again: python -m pytest test_it.py::test_bad --chaos-seed=\d+ --chaos-upstream=redis://127.0.0.1:\d+\n",
    ):
        assert re.search(pattern, section), section


ROLLED = """
def rolled(name, per="fault", seed=""):
    when = f"name: {name}, when: {{chance: 50%, per: {per}}},"
    return seed + LIE.replace("name: lie,", when)

def fell(proxy):
    url = urlsplit(proxy.url)
    replies = []
    for _ in range(2):
        with socket.create_connection((url.hostname, url.port), 60) as link:
            for _ in range(20):
                link.sendall(b"GET k\\r\\n")
                replies.append(link.recv(100)[:1].decode())
    return "".join(replies)

def test_connections(chaosproxy):
    with chaosproxy.use(yaml=rolled("one", "connection")):
        assert 0, fell(chaosproxy)

def test_connections_again(chaosproxy):
    with chaosproxy.use(yaml=rolled("one", "connection")):
        assert 0, fell(chaosproxy)

def test_over(chaosproxy):
    with chaosproxy.use(yaml=rolled("own", seed="seed: 7\\n")):
        found = fell(chaosproxy)
    with chaosproxy.use(yaml=rolled("drawn")):
        found += fell(chaosproxy)
    with chaosproxy.use(yaml=rolled("asked"), seed=3):
        found += fell(chaosproxy)
    assert 0, found

@pytest.mark.parametrize("word", ["a b$HOME;'"])
def test_asked(request, word):
    proxy = request.getfixturevalue("chaosproxy")
    proxy.use(yaml=rolled("dynamic"))
    assert 0, fell(proxy)

@pytest.fixture
def prepared(chaosproxy):
    chaosproxy.use(yaml=rolled("early"))
    assert 0, fell(chaosproxy)

def test_fixture(prepared):
    pass
"""


def test_each_line_brings_its_failure_back(run, pytester, monkeypatch):
    """Printed below the root folder, run there by a shell: whichever seeds decided, wherever the faults were met, it fails alike."""
    pytester.makeini(
        "[pytest]\naddopts = -p no:cacheprovider" + "".join(f" {word}" for word in PLUGIN)
    )
    below = pytester.mkdir("below")
    (below / "test_it.py").write_text(HELPERS + ROLLED)
    monkeypatch.chdir(below)
    text = run("", "test_it.py").stdout.str()
    (pytester.path / "test_it.py").unlink(missing_ok=True)
    failures = re.findall(r"^E +AssertionError: ([:$]+)$", text, re.MULTILINE)
    lines = re.findall(r"^again: python (.+)$", text, re.MULTILINE)
    assert len(failures) == len(lines) == 5
    # The error of a fixture is told first. What came before a test shifts nothing of it.
    assert failures[1] == failures[2]
    for failure, line in zip(failures, lines, strict=True):
        words = f"{shlex.quote(sys.executable)} {line}"
        again = subprocess.run(
            words, shell=True, cwd=below, check=False, capture_output=True, text=True
        )
        assert f"AssertionError: {failure}\n" in again.stdout, again
        assert re.search(r"^1 (failed|error)\b", again.stdout.splitlines()[-1].strip("= ")), again
    seeds = [re.search(r"--chaos-\S*seed=\d+", line).group().rpartition("=")[0] for line in lines]
    assert seeds == ["--chaos-seed"] * 3 + ["--chaos-default-seed", "--chaos-seed"]
    over = text.partition("test_over")[2]
    own, drawn, asked = re.findall(r"^profile test, seed (\d+)$", over, re.MULTILINE)[:3]
    assert (own, asked) == ("7", "3")
    assert f"--chaos-default-seed={drawn} " in over


def test_for_a_whole_module(run):
    """What a fixture of a wider scope has in force for its `with` is so in each test that has the fixture, around what is in force for one of them."""
    run("""
@pytest.fixture(scope="module")
def lying(chaosproxy):
    with chaosproxy.use(yaml=LIE):
        yield

@pytest.mark.parametrize("number", range(2))
def test_each(lying, chaosproxy, number):
    assert get(chaosproxy) == b":1\\r\\n"
    assert chaosproxy.fired("lie") == 1
    chaosproxy.calm()

@pytest.mark.chaos(yaml=LIE.replace("value: 1", "value: 2"))
def test_marker(lying, chaosproxy):
    assert get(chaosproxy) == b":2\\r\\n"

def test_without(chaosproxy):
    assert get(chaosproxy) == b"$-1\\r\\n"

def test_asks(request, chaosproxy):
    request.getfixturevalue("lying")

@pytest.fixture
def asks(request):
    request.getfixturevalue("lying")

def test_asked(asks, chaosproxy):
    assert get(chaosproxy) == b":1\\r\\n"

@pytest.fixture
def calm(lying, chaosproxy):
    chaosproxy.calm()

def test_calm(calm, chaosproxy):
    assert get(chaosproxy) == b"$-1\\r\\n"

def test_last(lying, chaosproxy):
    assert get(chaosproxy) == b":1\\r\\n"
""").assert_outcomes(passed=8)


def test_calm_whatever_was_left(run):
    """What a fixture that failed, or its end, has left in force, or one that asked for the proxy as it ran, meets no other test."""
    run("""
@pytest.fixture
def fails(chaosproxy):
    chaosproxy.use(yaml=LIE)
    raise ValueError

@pytest.fixture
def skips(chaosproxy):
    chaosproxy.use(yaml=LIE)
    pytest.skip()

@pytest.fixture
def leaves(chaosproxy):
    yield
    chaosproxy.use(yaml=LIE)

@pytest.fixture
def begins(chaosproxy):
    chaosproxy.use(yaml=LIE)

@pytest.fixture
def puts_back(begins, chaosproxy):
    with chaosproxy.use("calm"):
        yield

@pytest.fixture
def asks(request):
    request.getfixturevalue("chaosproxy").use(yaml=LIE)

@pytest.mark.parametrize("before", ["fails", "skips", "leaves", "puts_back", "asks"])
class TestAfter:
    def test_it(self, before, request):
        request.getfixturevalue(before)

    def test_next(self, before, chaosproxy):
        assert get(chaosproxy) == b"$-1\\r\\n"

def test_fails(fails): pass
def test_after_fails(chaosproxy): assert get(chaosproxy) == b"$-1\\r\\n"
def test_skips(skips): pass
def test_after_skips(chaosproxy): assert get(chaosproxy) == b"$-1\\r\\n"
def test_leaves(leaves): pass
def test_after_leaves(chaosproxy): assert get(chaosproxy) == b"$-1\\r\\n"
def test_puts_back(puts_back): pass
def test_after_puts_back(chaosproxy): assert get(chaosproxy) == b"$-1\\r\\n"
def test_asks(asks): pass
def test_after_asks(chaosproxy): assert get(chaosproxy) == b"$-1\\r\\n"
""").assert_outcomes(passed=16, failed=1, errors=1, skipped=2)


def test_same_line_same_faults(run):
    """Run with the seed that the report names, chance falls as it did."""
    tests = """
@pytest.mark.chaos(yaml=LIE.replace("name: lie,", "name: lie, when: {chance: 50%},"))
def test_chance(chaosproxy):
    url = urlsplit(chaosproxy.url)
    with socket.create_connection((url.hostname, url.port), 60) as link:
        replies = []
        for _ in range(40):
            link.sendall(b"GET k\\r\\n")
            replies.append(link.recv(100)[:1].decode())
    raise AssertionError("".join(replies))
"""
    first = run(tests).stdout.str()
    (seed,) = set(re.findall(r"--chaos-seed=(\d+)", first))
    (fell,) = set(re.findall(r"^E +AssertionError: ([:$]{40})$", first, re.MULTILINE))
    assert f"AssertionError: {fell}" in run(tests, f"--chaos-seed={seed}").stdout.str()
    assert f"AssertionError: {fell}" not in run(tests, f"--chaos-seed={int(seed) + 1}").stdout.str()


def test_options(run, tmp_path):
    """--chaos-profile is for tests without a marker, also a file; --chaos-seed goes before a profile's own."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "seed: 9\nfaults: [{fault: reply, match: {commands: GET}, at: before_forward, value: 2}]\n"
    )
    run(
        """
def test_option(chaosproxy):
    assert (get(chaosproxy), chaosproxy.seed) == (b":2\\r\\n", 4)

@pytest.mark.chaos(yaml=LIE)
def test_marker(chaosproxy):
    assert get(chaosproxy) == b":1\\r\\n"
""",
        f"--chaos-profile={path}",
        "--chaos-seed=4",
    ).assert_outcomes(passed=2)


@pytest.mark.parametrize("option", ["--chaos-seed", "--chaos-default-seed"])
@pytest.mark.parametrize("seed", ["-1", "x", "1000000000000001", "9" * 99])
def test_bad_seed(run, option, seed):
    """It is told of before any test runs."""
    result = run("def test_it():\n    pass\n", f"{option}={seed}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "is no whole number from 0 to 1000000000000000" in result.stderr.str()


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('"nosuch"', "no shipped profile is called 'nosuch'"),
        ("yaml='faults: [{fault: latncy}]'", "did you mean 'latency'?"),
        ('"calm", sed=3', "no argument is called 'sed'; did you mean 'seed'?"),
        ('"calm", zzz=3', "no argument is called 'zzz'; yaml, seed, set, require_fired"),
        ("seed=3", "takes the names of profiles, or yaml="),
        ("", "takes the names of profiles, or yaml="),
        ("5", "a profile: expected a shipped one's name or a file's path, got 5"),
        ('"calm", seed="3"', "seed: expected a whole number from 0 to 1000000000000000, got '3'"),
        ('"calm", set=["x"]', "set: expected values by their paths, "),
        ('"calm", require_fired=5', "require_fired: expected True, 'all', or the names of faults"),
    ],
)
def test_bad_marker(run, marker, said):
    """What is wrong with a marker fails the test, without our code."""
    result = run(f"@pytest.mark.chaos({marker})\ndef test_it():\n    pass\n")
    result.assert_outcomes(failed=1)
    assert said in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert "chaosproxy/testing.py" not in result.stdout.str()


def test_what_must_fire_of_a_profile_of_the_test_s_own(run):
    """A marker that names no profile says what must fire of the one that the test puts in force."""
    result = run("""
@pytest.mark.chaos(require_fired=True)
def test_met(chaosproxy):
    chaosproxy.use(yaml=LIE)
    get(chaosproxy)

@pytest.mark.chaos(require_fired=True)
def test_not_met(chaosproxy):
    chaosproxy.use(yaml=LIE)
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*never fired, and had to: lie*"])


def test_asyncio(run):
    """Tests that are coroutines: the application's loop goes on while a fault is waited for."""
    run(
        """
import asyncio

@pytest.mark.asyncio
@pytest.mark.chaos(yaml=LIE, require_fired=True)
async def test_async(chaosproxy):
    url = urlsplit(chaosproxy.url)
    async def application():
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(b"GET k\\r\\n")
        assert await reader.readline() == b":1\\r\\n"
        writer.close()
    task = asyncio.create_task(application())
    await chaosproxy.wait_fired_async("lie", timeout=60)
    await task
"""
    ).assert_outcomes(passed=1)


def test_xdist(run):
    """Each process has a proxy of its own, all have one seed, and what they report arrives."""
    result = run(
        """
import os

@pytest.mark.parametrize("number", range(6))
def test_one(chaosproxy, number):
    chaosproxy.use(yaml=LIE)
    get(chaosproxy)
    print("HERE", os.environ["PYTEST_XDIST_WORKER"], chaosproxy.url, chaosproxy.seed)
    raise AssertionError
""",
        "-n2",
        "--dist=each",
    )
    result.assert_outcomes(failed=12)
    text = result.stdout.str()
    found = set(re.findall(r"HERE (\w+) (\S+) (\d+)", text))
    assert len({worker for worker, _, _ in found}) == len({url for _, url, _ in found}) == 2
    assert len({seed for _, _, seed in found}) == 1
    assert text.count("- chaosproxy -") == 12


CASES = """
import asyncio
import unittest
the_proxy = []
ONCE = "faults: [{fault: reply, name: lie, match: {commands: GET}, when: {nth: 1}, at: before_forward, value: 1}]"

@pytest.fixture(scope="module", autouse=True)
def remember(chaosproxy):
    the_proxy.append(chaosproxy)

def told(value):
    assert get(the_proxy[0]) == value
"""


def test_unittest(run):
    """A unittest.TestCase may have the marker too, which means the test itself: neither what comes before it, nor what comes after."""
    result = run(
        CASES
        + """
@pytest.mark.chaos(yaml=ONCE, require_fired=True)
class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        told(b"$-1\\r\\n")
    def setUp(self):
        told(b"$-1\\r\\n")
    def tearDown(self):
        told(b"$-1\\r\\n")
        the_proxy[0].fired("lie")
    def test_it(self):
        told(b":1\\r\\n")
    def test_never(self):
        pass
    def test_wrong(self):
        told(b":2\\r\\n")
    def test_skips(self):
        self.skipTest("it does not matter")
    @unittest.expectedFailure
    def test_expected(self):
        told(b":2\\r\\n")

@pytest.mark.chaos(yaml=ONCE, require_fired=True)
class Async(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        await asyncio.to_thread(told, b"$-1\\r\\n")
    async def asyncTearDown(self):
        await asyncio.to_thread(told, b"$-1\\r\\n")
    async def test_it(self):
        await asyncio.to_thread(told, b":1\\r\\n")

@pytest.mark.chaos("no-such-profile")
class Misspelt(unittest.TestCase):
    def test_it(self):
        pass

class Own(unittest.TestCase):
    def setUp(self):
        the_proxy[0].use(yaml=LIE)
    def tearDown(self):
        told(b"$-1\\r\\n")
    def test_it(self):
        told(b":1\\r\\n")
"""
    )
    result.assert_outcomes(passed=3, failed=3, skipped=1, xfailed=1)
    text = result.stdout.str()
    assert "never fired, and had to: lie" in text
    assert "pytest_plugin.py" not in text
    assert "During handling" not in text
    assert text.count("- chaosproxy -") == 3


def test_subtests(run):
    """What is in force for a test is so in each of its subtests, and one that fails tells what had fired by then."""
    result = run(
        CASES
        + """
@pytest.mark.chaos(yaml=LIE, require_fired=True)
class Case(unittest.TestCase):
    def test_it(self):
        for value in (b":1\\r\\n", b":2\\r\\n", b":1\\r\\n"):
            with self.subTest(value=value):
                told(value)
"""
    )
    text = result.stdout.str()
    assert text.count("- chaosproxy -") == 1
    assert "b'$-1" not in text
    section = text.partition("- chaosproxy -")[2]
    assert re.search(r"lie +reply +2 +2", section)


def test_embedded(pytester):
    """Without an upstream a real server is started, and is past the proxy where it is said to be."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    pytester.makepyfile(
        test_it=HELPERS
        + """
def test_it(chaosproxy):
    assert get(chaosproxy, b"SET k v") == b"+OK\\r\\n"
    port = urlsplit(chaosproxy.upstream_url).port
    with socket.create_connection(("127.0.0.1", port), 60) as past:
        past.sendall(b"GET k\\r\\n")
        assert past.recv(100) == b"$1\\r\\nv\\r\\n"
"""
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_no_server(pytester):
    """An upstream that is no URL is an error with its reason."""
    pytester.makepyfile(test_it="def test_it(chaosproxy):\n    pass\n")
    result = pytester.runpytest_subprocess(*PLUGIN, "--chaos-upstream=http://x")
    result.assert_outcomes(errors=1)
    assert "chaosproxy cannot start: http://x: an upstream URL begins with" in result.stdout.str()


def test_who_does_not_use_it(pytester):
    """A test run without the fixture starts nothing and loads nothing."""
    pytester.makepyfile(
        test_it="""
import sys, threading

def test_it():
    assert "chaosproxy.service" not in sys.modules
    assert "asyncio" not in sys.modules or "chaosproxy.net.loop" not in sys.modules
    assert not [each for each in threading.enumerate() if "chaosproxy" in each.name]
"""
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_the_package_does_without_pytest():
    """Nothing but the plugin imports pytest: neither the command nor what tests drive in their own process."""
    code = """if True:
        import sys
        sys.modules["pytest"] = sys.modules["_pytest"] = None
        import pkgutil, importlib, chaosproxy
        names = [each.name for each in pkgutil.walk_packages(chaosproxy.__path__, "chaosproxy.")]
        for name in names:
            if name not in {"chaosproxy.pytest_plugin", "chaosproxy.__main__"}:
                importlib.import_module(name)
        assert "chaosproxy.testing" in names
    """
    subprocess.run([sys.executable, "-c", code], check=True)
