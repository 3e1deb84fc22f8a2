"""The command that is run: its status, its signals, its environment, and what cannot be run."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from chaosproxy.cli.child import ChildError, Signals, run

PYTHON = sys.executable


def status_of(*command, environment=None):
    with Signals():
        return run(command, environment or os.environ, lambda: None, 0.05)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
    ],
)
def test_status(code, status):
    """Its own, or as a shell tells of one that a signal ended."""
    assert status_of(PYTHON, "-c", code) == status


def test_no_signal_comes_between_two_handlers(monkeypatch):
    """Signals come again only once each has the handler that it had: one whose handler goes as it comes is complained of by Python."""
    before, let = signal.getsignal(signal.SIGCHLD), signal.pthread_sigmask
    handlers = []

    def mask(how, which):
        handlers.append(signal.getsignal(signal.SIGCHLD))
        return let(how, which)

    monkeypatch.setattr(signal, "pthread_sigmask", mask)
    with Signals():
        pass
    assert handlers[0] != before
    assert handlers[1:] == [before]


def test_environment_and_signals_are_as_usual(tmp_path):
    """It has the environment it is given, and blocks and ignores what any program here does, and nothing because of us."""
    said = tmp_path / "said"
    shell = f'echo "$NAME" > {said}; grep -E "Sig(Blk|Ign)" /proc/self/status >> {said}'
    environment = {"NAME": "value", "PATH": os.environ["PATH"]}
    assert status_of("sh", "-c", shell, environment=environment) == 0
    name, *ours = said.read_text().split()
    subprocess.run(["sh", "-c", shell], env=environment, check=True)
    assert name == "value"
    usual = said.read_text().split()[1:]
    # Bits 31 and 32 are signals that the C library keeps to itself.
    mine, theirs = (
        [int(mask, 16) & ~0x180000000 for mask in words[1::2]] for words in (ours, usual)
    )
    assert mine == theirs


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("/none/such", 127, "/none/such: no such file or directory"),
        ("no-such-command-anywhere", 127, "no-such-command-anywhere: no such file or directory"),
        ("/", 126, "/: is a directory"),
        ("/etc/hostname", 126, "/etc/hostname: "),
        ("x" * 300, 126, "x" * 300 + ": file name too long"),
    ],
)
def test_what_cannot_be_run(command, status, said):
    """As a shell tells it."""
    with Signals(), pytest.raises(ChildError) as caught:
        run([command], os.environ, lambda: None, 1)
    assert str(caught.value).startswith(said)
    assert caught.value.status == status


def test_ticks(tmp_path):
    """While it runs there is time for something else: it ends once something else has been done."""
    done = tmp_path / "done"
    waits = f"while [ ! -e {done} ]; do sleep 0.01; done"
    with Signals():
        assert run(["sh", "-c", waits], os.environ, done.touch, 0.05) == 0


def test_mask_is_put_back():
    """Afterwards signals are what they were, and what came meanwhile is over."""
    code = """if True:
        import os, signal
        from chaosproxy.cli.child import Signals
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        with Signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    """
    subprocess.run([PYTHON, "-c", code], check=True)


#: Leaves eleven behind whose parent has gone, and waits until of these, and of all that has ended, one each is left.
ORPHANS = """
import subprocess, sys, time
from pathlib import Path

def states(name):
    found = []
    for stat in Path("/proc").glob("[1-9]*/stat"):
        try:
            before, _, behind = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has gone meanwhile
        if name in before:
            found.append(behind.split()[0])
    return found

script = "for n in 0 1 2 3 4 5 6 7 8 9; do sleep 0.0$n & done; sleep 30 &"
subprocess.run(["sh", "-c", script], check=True)
deadline = time.monotonic() + 25
while (found := (len(states("(sleep")), states("").count("Z"))) != (1, 1):
    assert time.monotonic() < deadline, found
    time.sleep(0.01)
sys.exit(42)
"""


def test_orphans_of_a_container(namespace):
    """As its first process we take leave of whoever lost their parent, and of nobody that we have started ourselves."""
    parent = textwrap.dedent(f"""
        import os, subprocess, sys
        from chaosproxy.cli.child import Signals, run
        assert os.getpid() == 1
        own = subprocess.Popen(["sh", "-c", "exit 7"])
        os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
        with Signals():
            status = run([sys.executable, "-c", {ORPHANS!r}], os.environ, lambda: None, 1)
        assert own.wait() == 7
        sys.exit(status)
    """)
    found = subprocess.run(
        [*namespace, PYTHON, "-c", parent], capture_output=True, text=True, timeout=100, check=False
    )
    assert found.returncode == 42, found.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_go_to_the_command(number):
    """What is sent to us is the command's; what it makes of that is its status."""
    parent = textwrap.dedent(f"""
        import os, sys
        from chaosproxy.cli.child import Signals, run
        child = '''if True:
            import signal, sys, time
            signal.signal({int(number)}, lambda *_: sys.exit(42))
            print("ready", flush=True)
            time.sleep(60)
        '''
        with Signals():
            sys.exit(run([sys.executable, "-c", child], os.environ, lambda: None, 1))
    """)
    with subprocess.Popen([PYTHON, "-c", parent], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            assert process.wait(60) == 42
        finally:
            process.kill()


def test_stopped_and_continued():
    """After Ctrl-Z, however long, it goes on as before: nothing is sent to the command that was not sent to us."""
    parent = textwrap.dedent("""
        import os, sys
        from chaosproxy.cli.child import Signals, run
        child = "print('ready', flush=True); input(); raise SystemExit(42)"
        with Signals():
            sys.exit(run([sys.executable, "-c", child], os.environ, lambda: None, 0.01))
    """)
    with subprocess.Popen(
        [PYTHON, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            for _ in range(20):
                process.send_signal(signal.SIGSTOP)
                _, status = os.waitpid(process.pid, os.WUNTRACED)
                assert os.WIFSTOPPED(status)
                time.sleep(0.02)
                process.send_signal(signal.SIGCONT)
                _, status = os.waitpid(process.pid, os.WCONTINUED)
                assert os.WIFCONTINUED(status)
                time.sleep(0.005)
            process.communicate(b"\n", timeout=60)
            assert process.returncode == 42
        finally:
            process.kill()


def test_the_terminal_tells_both():
    """Ctrl-C reaches the command from the terminal itself: it comes once, not twice."""
    import pty

    parent = textwrap.dedent("""
        import os, sys
        from chaosproxy.cli.child import Signals, run
        child = '''if True:
            import signal, sys, time
            came = []
            signal.signal(signal.SIGINT, lambda *_: came.append(1))
            print("ready", flush=True)
            while not came:
                time.sleep(0.01)
            time.sleep(0.3)
            print("came", len(came), flush=True)
        '''
        with Signals():
            sys.exit(run([sys.executable, "-c", child], os.environ, lambda: None, 1))
    """)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(PYTHON, [PYTHON, "-c", parent])
    said = b""
    try:
        while b"ready" not in said:
            said += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        deadline = time.monotonic() + 60
        while b"came 1\r\n" not in said and time.monotonic() < deadline:
            said += os.read(terminal, 1000)
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert b"came 1" in said
    assert os.waitstatus_to_exitcode(status) == 0
