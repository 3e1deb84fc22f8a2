"""Who else is on the network, or has an account on this machine: what is open to them, and what they can read."""

import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from chaosproxy.cli import calm, demo, main, run
from chaosproxy.cli import exec as exec_module
from chaosproxy.embedded import Embedded
from chaosproxy.net.tls import upstream_context
from chaosproxy.testing import running
from tests.proxying import serve_proxy, start_proxy
from tests.security import sockets
from tests.security.sockets import family, listening
from tests.wire import Wire

HERE = "127.0.0.1"
SECRET = "hunter2-of-the-neighbour"


def defaults(command):
    return {option.name: option.default for option in command.params}


# -- what is open


def test_defaults():
    """Nothing is open beyond this machine unless somebody says so: what options mean that are left out."""
    here = defaults(run.command)
    assert (here["listen"], here["control"]) == (f"{HERE}:6380", f"{HERE}:9380")
    here = defaults(exec_module.command)
    assert (here["listen"], here["control"]) == (f"{HERE}:0", f"{HERE}:0")
    assert defaults(calm.command)["control"] == f"http://{HERE}:9380"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--control-token", "t"],
        ["--sentinel-service", "mine", "--listen-sentinel", f"{HERE}:0"],
        ["--cluster-nodes", "3"],
        ["--upstream", "embedded", "--standby", "embedded", "--profile", "sentinel-failover"],
    ],
)
def test_run(redis70, options):
    """Every socket of a proxy that listens on loopback is on loopback: data, control, Sentinel, a cluster's nodes, a standby's link."""
    with start_proxy(redis70.url, "calm", *options) as proxy:
        found = listening(proxy.process.pid)
        assert len(found) >= 2
        assert {host for host, _ in found} == {HERE}
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection(("127.0.0.2", proxy.port), 60)


def test_exec(redis70):
    """Around a command too."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "chaosproxy", "exec", "--upstream", redis70.url, "--"),
            *(sys.executable, sockets.__file__),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [HERE, HERE]


def test_demo(monkeypatch):
    """A story too, with the server that it brings along: looked at after each act."""
    before, found = listening(os.getpid()), []

    def watched(story, service, seed, say):
        for act in play(story, service, seed, say):
            found.extend(each for pid in family(os.getpid()) for each in listening(pid) - before)
            yield act

    play = demo.play
    monkeypatch.setattr(demo, "play", watched)
    # How the story went, on a machine that may be busy, is not what is asked.
    CliRunner().invoke(main, ["demo", "window"])
    assert len(set(found)) >= 2
    assert {host for host, _ in found} == {HERE}


def test_pytest_plugin():
    """And in a test suite, whose embedded server is for this machine too."""
    before = listening(os.getpid())
    with running() as proxy:
        new = listening(os.getpid()) - before
        assert {host for host, _ in new} == {HERE}
        assert len(new) == 2
        port = int(proxy.upstream_url.rpartition(":")[2])
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection(("127.0.0.2", port), 60)


def test_a_token_for_everything_that_matters(redis70):
    """Without it a neighbour learns that the proxy is alive, and its metrics; nothing else is told or done."""
    with serve_proxy(redis70.url, control_token=SECRET) as proxy:
        document = json.loads(proxy.get("/openapi.json", Authorization=f"Bearer {SECRET}")[1])
        free = set()
        for path, methods in document["paths"].items():
            for method in methods:
                with Wire(int(proxy.control.rpartition(":")[2])) as wire:
                    head = f"{method.upper()} {path} HTTP/1.1\r\nHost: {HERE}\r\n"
                    body = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                    wire.send_bytes(f"{head}{body}".encode())
                    said = wire.read_to_end()[0]
                if b" 401 " not in said.splitlines()[0]:
                    free.add(path)
        assert {path for path in free if not path.startswith("/page/")} == {
            "/", "/healthz", "/readyz", "/metrics"
        }  # fmt: skip
        assert SECRET not in json.dumps(document)


# -- what can be read


def test_folders_and_files(redis70, tmp_path):
    """What is made without being asked for is for its owner alone, at a path that nobody can foresee; files follow the umask."""
    with Embedded() as server:
        folder = server._run.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(folder.name.removeprefix("chaosproxy-")) == 16
    before = os.umask(0o077)
    try:
        with start_proxy(redis70.url, "calm", "--listen", f"unix:{tmp_path}/s") as proxy:
            modes = {
                name: stat.S_IMODE((proxy.folder / name).stat().st_mode)
                for name in ("events.jsonl", "ready.json")
            }
            # The ready file is for those who wait for the proxy, and has no secret.
            assert modes == {"events.jsonl": 0o600, "ready.json": 0o644}
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_unix_socket_is_for_its_owner(redis70, tmp_path):
    """With the usual umask nobody else may connect, which takes the right to write."""
    before = os.umask(0o022)
    try:
        with start_proxy(redis70.url, "calm", "--listen", f"unix:{tmp_path}/s"):
            assert (tmp_path / "s").stat().st_mode & 0o022 == 0
    finally:
        os.umask(before)


def test_the_process_list(redis70):
    """Secrets that come by variables are in no command line, neither the proxy's nor that of anything it starts."""
    env = {
        "CHAOSPROXY_CONTROL_TOKEN": SECRET,
        "CHAOSPROXY_STANDBY": f"redis://:{SECRET}@127.0.0.1:{redis70.port}",
    }
    with start_proxy("embedded", "calm", env=env) as proxy:
        group = family(proxy.process.pid)
        assert len(group) >= 2
        lines = []
        for pid in group:
            with suppress(FileNotFoundError, ProcessLookupError):
                lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        assert len(lines) >= 2
        assert not [line for line in lines if SECRET.encode() in line]


# -- what can be done to a server that is embedded


def test_no_way_out_of_an_embedded_server():
    """Whoever can reach it can do to its data what an application can, and no more: no files, no code, no other process."""
    with Embedded() as server, Wire(server.port) as wire:
        for why, *words in (
            ("protected config", "CONFIG", "SET", "dir", "/"),
            ("protected config", "CONFIG", "SET", "dbfilename", "x"),
            ("not allowed", "MODULE", "LOAD", "/x.so"),
            ("not allowed", "DEBUG", "SLEEP", "0"),
        ):
            assert why in wire.ask(*words), words


# -- TLS


@pytest.fixture(params=["authority", "name", "system"])
def impostor(request, tmp_path):
    """A TLS server that is not the one that was meant: its port, whom the proxy trusts, and what it was told once believed."""
    authority, foreign = trustme.CA(), trustme.CA()
    issued = authority.issue_cert("other.example" if request.param == "name" else HERE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    trusted = None
    if request.param != "system":
        trusted = tmp_path / "ca.pem"
        (authority if request.param == "name" else foreign).cert_pem.write_to_path(trusted)
    said = []
    with socket.create_server((HERE, 0)) as listens:

        def serve():
            while True:
                try:
                    client, _ = listens.accept()
                except OSError:
                    return
                # Who hangs up does so in ways that have no name of their own, too.
                with suppress(OSError), context.wrap_socket(client, server_side=True) as inner:
                    said.append(inner.recv(4096))

        threading.Thread(target=serve, daemon=True).start()
        yield listens.getsockname()[1], trusted, said
        listens.shutdown(socket.SHUT_RDWR)


def test_an_impostor_in_front_of_the_server(impostor):
    """Who cannot show the server's certificate is told nothing, neither password nor command, and the client is not served."""
    port, trusted, said = impostor
    tls = upstream_context(trusted, None, None, insecure=False)
    with serve_proxy(f"rediss://:{SECRET}@{HERE}:{port}", upstream_tls=tls) as proxy:
        with proxy.connect() as wire:
            wire.send("AUTH", SECRET)
            assert wire.read_to_end()[0] == b""
        assert proxy.metric("upstream_errors_total", reason="tls") >= 1
    assert [each for each in said if each] == []


def test_insecure_is_said():
    """Only who says so takes any certificate."""
    assert upstream_context(None, None, None, insecure=True).verify_mode == ssl.CERT_NONE
    context = upstream_context(None, None, None, insecure=False)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
