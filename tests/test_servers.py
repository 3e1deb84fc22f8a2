"""The tests' own servers and raw client do what the other tests rely on."""

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests import conftest, servers, wire


def test_a_server_is_the_version_its_name_says_and_is_gone_after_stop():
    """The process that answers is the one started; stop ends it and leaves no file behind."""
    for name in servers.NAMES:
        reason = servers.available(name)
        if reason is not None:
            pytest.skip(reason)
        server = servers.start(name)
        folder = server.folder
        assert server.ask("PING") == "PONG"
        assert b"process_id:%d\r" % server.pid in server.ask("INFO", "server")
        server.stop()
        assert server.process.returncode is not None
        assert not folder.exists()
        with pytest.raises(ConnectionRefusedError):
            server.connect()


def test_the_lent_server_is_as_new(any_server, serve):
    """Data, scripts, users, settings, other clients and pauses of one test never reach the next."""
    other = any_server.connect()
    any_server.ask("SET", "k", "v")
    any_server.ask("SELECT", 3)
    any_server.ask("SET", "k", "v")
    any_server.ask("SELECT", 0)
    any_server.ask("ACL", "SETUSER", "someone", "on")
    any_server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    any_server.ask("CONFIG", "SET", "requirepass", "secret")
    digest = any_server.ask("SCRIPT", "LOAD", "return 1")
    again = serve(any_server.name)
    assert again.pid == any_server.pid
    assert again.ask("INFO", "keyspace") == b"# Keyspace\r\n"
    assert again.ask("SCRIPT", "EXISTS", digest) == [0]
    assert again.ask("ACL", "USERS") == [b"default"]
    assert again.ask("CONFIG", "GET", "maxmemory-policy")[1] == b"noeviction"
    with other:
        assert other.read_to_end()[0] == b""
    with again.connect() as fresh:
        assert fresh.ask("PING") == "PONG"


def test_no_server_outlives_a_killed_run():
    """When the run of tests is killed with SIGKILL its servers end, and their folders go."""
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    code = """
        import sys; sys.path.insert(0, sys.argv[1])
        from tests import servers
        servers.start("valkey9").stop()
        server = servers.start("valkey9")
        print(server.port, server.folder, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), Path.cwd()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        port, folder = run.stdout.readline().decode().split()
        with wire.Wire(int(port)) as client:
            assert client.ask("PING") == "PONG"
            assert Path(folder).is_dir()
            run.kill()
            assert client.read_to_end()[0] == b""
    deadline = time.monotonic() + 60
    while Path(folder).exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.servers("redis62", "valkey9")
def test_the_marker_says_which_servers(server):
    """`server` runs on the named ones only."""
    assert server.name in {"redis62", "valkey9"}


@pytest.mark.parametrize("name", servers.NAMES)
def test_one_node_cluster_serves_every_slot(name):
    """A key of any slot can be written, and a second database cannot be selected."""
    reason = servers.available(name)
    if reason is not None:
        pytest.skip(reason)
    server = servers.start_cluster_node(name)
    try:
        assert server.ask("SET", "foo", "v") == "OK"
        assert server.ask("CLUSTER", "KEYSLOT", "foo") == 12182
        assert isinstance(server.ask("SELECT", 1), wire.WireError)
    finally:
        server.stop()


def test_wire_reads_replies_one_by_one(any_server):
    """Pipelined replies of every shape come back as they were sent, whole and apart."""
    with any_server.connect(resp=3) as client:
        client.send_bytes(
            wire.encode("HSET", "h", "f", "v")
            + wire.encode("HGETALL", "h")
            + wire.encode("GET", "none")
            + wire.encode("NOSUCH")
            + wire.encode("EVAL", "return {1, {2, 'x'}}", 0),
            step=7,
        )
        replies = client.read(5)
        assert replies[:3] == [b":1\r\n", b"%1\r\n$1\r\nf\r\n$1\r\nv\r\n", b"_\r\n"]
        assert replies[3].startswith(b"-ERR unknown command")
        assert wire.decode(replies[4]) == [1, [2, b"x"]]
        assert client.silent(0.01)


def test_wire_decodes_every_type(redis70):
    """What the server can say in RESP3 is framed and decoded."""
    with redis70.connect(resp=3) as client:
        kinds = ["double", "array", "map", "attrib", "verbatim", "true", "null", "bignum"]
        got = {kind: client.ask("DEBUG", "PROTOCOL", kind) for kind in kinds}
    assert got["double"] == pytest.approx(3.141)
    assert got["array"] == [0, 1, 2]
    assert got["map"] == {0: False, 1: True, 2: False}
    assert got["attrib"] == b"Some real reply following the attribute"
    assert got["verbatim"].startswith(b"txt:")
    assert got["true"] is True
    assert got["null"] is None
    assert got["bignum"] > 1 << 64


def test_wire_tells_a_close_from_a_reset(valkey9):
    """FIN and RST are told apart, with the bytes before them kept."""
    assert wire.talk(valkey9.port, wire.encode("PING") * 2) == (b"+PONG\r\n" * 2, "FIN")
    quit_ = wire.talk(valkey9.port, wire.encode("QUIT"), finish=False)
    assert quit_ == (b"+OK\r\n", "FIN")
    with wire.connected(valkey9.port, 2) as (one, two):
        one.reset()
        assert two.ask("PING") == "PONG"


def test_skips_are_failures_where_everything_must_be_there(tmp_path):
    """CHAOSPROXY_NO_SKIP=1 fails every skip, of a test and of a module, and no expected failure."""
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\nfrom tests.conftest import *\n"
        "from tests.conftest import _no_skip\n"
    )
    (tmp_path / "test_some.py").write_text(
        textwrap.dedent(
            """
            import pytest
            def test_skipped(): pytest.skip("install it")
            @pytest.mark.skipif(True, reason="not here")
            def test_marked(): pass
            @pytest.mark.xfail(reason="known", strict=True)
            def test_known(): assert False
            def test_fine(): pass
            """
        )
    )
    (tmp_path / "test_module.py").write_text(
        "import pytest\npytest.importorskip('no_such_module')\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    command += [tmp_path, "-c", os.devnull]
    plain = dict(os.environ) | {"CHAOSPROXY_NO_SKIP": ""}
    lenient = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert lenient.returncode == 0, lenient.stdout
    assert "3 skipped" in lenient.stdout
    strict = plain | {"CHAOSPROXY_NO_SKIP": "1"}
    failed = subprocess.run(
        [*command, "--continue-on-collection-errors"],
        env=strict,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in failed.stdout
    assert "skipped where nothing may be: Skipped: install it" in failed.stdout


def test_examples_are_the_same_whatever_else_is_read_in(tmp_path):
    """What hypothesis draws does not depend on which modules other tests of the same worker have read in."""
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\nfrom tests.conftest import *\n"
        "from tests.conftest import _no_skip\n"
    )
    (tmp_path / "other.py").write_text(f"NUMBERS = {list(range(10**6, 10**6 + 500, 7))}\n")
    test = """
        import os, sys
        from hypothesis import given, settings, strategies
        sys.path.insert(0, os.path.dirname(__file__))
        if os.environ["OTHER"]:
            import other
        seen = []
        @settings(max_examples=300)
        @given(strategies.integers())
        def test_it(number): seen.append(number)
        def test_told(): print("SEEN", hash(tuple(seen)))
    """
    (tmp_path / "test_some.py").write_text(textwrap.dedent(test))
    command = [sys.executable, "-m", "pytest", "-sq", "-p", "no:cacheprovider"]
    command += ["--rootdir", tmp_path, tmp_path, "-c", os.devnull]
    told = set()
    for other in ("", "yes"):
        done = subprocess.run(
            command, env=os.environ | {"OTHER": other}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        told |= set(re.findall(r"SEEN (\S+)", done.stdout))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("said", "count"),
    [("max 100000\n", 8), ("300000 100000\n", 3), ("50000 100000\n", 1), ("1600000 100000\n", 8)],
)
def test_cores(monkeypatch, tmp_path, said, count):
    """As many cores as this run may use: those that it may run on, or what is its share of them; at least one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    path = tmp_path / "cpu.max"
    path.write_text(said)
    assert conftest.cores(path) == count
    assert conftest.cores(tmp_path / "none") == 8


def test_workers_have_ports_of_their_own(monkeypatch):
    """However many cores there are: no two workers are given the same ports."""
    monkeypatch.setattr(conftest, "cores", lambda: 64)
    assert conftest.pytest_xdist_auto_num_workers() <= servers.WORKERS
    firsts = set()
    monkeypatch.setattr(servers.itertools, "cycle", min)
    for number in range(servers.WORKERS):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        firsts.add(servers._own_ports.__wrapped__())
    assert len(firsts) == servers.WORKERS


def test_ports_where_the_kernel_chooses_from_all(monkeypatch):
    """Where too few ports are left below those, free ones are asked of the kernel."""
    monkeypatch.setattr(servers, "FEW", 1 << 16)
    ports = servers._own_ports.__wrapped__()
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert all(low <= next(ports) <= high for _ in range(20))
    monkeypatch.setattr(servers, "_own_ports", lambda: ports)
    assert servers._free_port(cluster=True) + 10_000 < 1 << 16
