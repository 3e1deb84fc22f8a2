"""`chaosproxy run` as a process: what it prints and writes, its signals, its exit status."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaosproxy import __version__
from chaosproxy.embedded import EmbeddedError, find_server
from tests import clusters, servers
from tests.proxying import START_TIMEOUT, TURNED_AWAY, start_proxy, wait_for
from tests.wire import Wire

LOST = "faults:\n- {fault: disconnect, name: lost, match: {commands: RPUSH}, at: after_apply, how: reset}\n"
SLOW = "faults:\n- {fault: latency, match: {commands: GET}, at: after_apply, delay: 3s}\n"


@pytest.fixture
def run():
    """Start proxies in processes of their own; all are stopped in the end, with status 0."""
    started = []

    def start(*args, **kwargs):
        proxy = start_proxy(*args, **kwargs)
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.stop()


def refused(*args, **env):
    """Run with arguments that end it; gives status and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "chaosproxy", "run", *args],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT,
        check=False,
        env=os.environ | env,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_the_main_job(run, redis70):
    """A write is applied and its acknowledgement lost; event, counter, and the end of the process agree."""
    proxy = run(redis70.url, LOST, "--seed", "7")
    with proxy.connect() as client:
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    assert redis70.ask("LRANGE", "l", 0, -1) == [b"x"]
    (event,) = proxy.wait_events()
    assert (event["fault"], event["applied"], event["outcome"]) == ("lost", "yes", "unknown")
    assert proxy.metric("faults_fired_total", fault="lost", outcome="unknown") == 1
    # Where the server does not answer soon, because it has no time, it is asked again.
    wait_for(lambda: proxy.get("/readyz")[0] == 200, "readiness")
    assert proxy.get("/healthz")[0] == 200
    header = json.loads((proxy.folder / "events.jsonl").read_text().splitlines()[0])
    assert header.keys() == {"chaosproxy", "seed", "profile", "profile_sha256"}
    assert (header["chaosproxy"], header["seed"], header["profile"]) == (__version__, 7, "test")


def test_ready_file_and_start_block(run, redis70):
    """Both say where it listens, with which profile and seed, and the block says how to do it again."""
    upstream = f"redis://default:secret@127.0.0.1:{redis70.port}/2"
    proxy = run(upstream, "lost-ack", "--seed", "7", "--set", "lost-ack.when.nth=3")
    ready = json.loads((proxy.folder / "ready.json").read_text())
    assert ready == {
        "listen": f"127.0.0.1:{proxy.port}",
        "url": f"redis://127.0.0.1:{proxy.port}/2",
        "control": proxy.control,
        "pid": proxy.process.pid,
        "seed": 7,
        "profile": "lost-ack",
    }
    proxy.stop()
    again = "chaosproxy run --seed 7 --profile lost-ack --set lost-ack.when.nth=3"
    again += f" --upstream 'redis://default:***@127.0.0.1:{redis70.port}/2'"
    assert proxy.stderr.splitlines()[:7] == [
        f"chaosproxy {__version__}",
        f"  listening  redis://127.0.0.1:{proxy.port}/2",
        f"  upstream   redis://default:***@127.0.0.1:{redis70.port}/2 (Redis 7.0.15)",
        "  profile    lost-ack",
        "  seed       7",
        f"  control    {proxy.control}",
        f"  again      {again}",
    ]
    assert "secret" not in proxy.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop(run, redis70, number):
    """Told to stop it lets a reply on its way arrive, and ends with status 0."""
    proxy = run(redis70.url, SLOW)
    with proxy.connect() as client:
        assert client.ask("SET", "k", 1) == "OK"
        # What is asked for the first time takes longer than the reply may be held.
        assert proxy.metric("held_commands") == 0
        client.send("GET", "k")
        wait_for(lambda: proxy.metric("held_commands"), "the reply")
        proxy.signal(number)
        assert client.read_to_end() == (b"$1\r\n1\r\n", "FIN")
    assert proxy.process.wait(60) == 0


def test_second_signal(redis70):
    """Told twice it does not wait for replies."""
    proxy = start_proxy(redis70.url)
    with proxy.connect() as client:
        client.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in redis70.ask("CLIENT", "LIST"), "the request")
        proxy.signal(signal.SIGTERM)
        wait_for(lambda: _refuses(proxy), "it to stop listening")
        proxy.signal(signal.SIGTERM)
        assert proxy.process.wait(60) == -signal.SIGTERM  # who waits for replies ends with 0
    with pytest.raises(AssertionError, match="ended with -15"):
        proxy.stop()


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGSTOP])
def test_a_signal_behind_another(run, redis70, first):
    """One that comes right behind another, or while the process stands still, is heard, whichever thread the kernel gives it to."""
    proxy = run(redis70.url)
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"
        proxy.signal(first)
        if first is signal.SIGSTOP:
            wait_for(lambda: _state(proxy.process.pid) == "T", "it to stand still")
        # So that another thread has something to do first.
        client.send("PING")
        proxy.signal(signal.SIGTERM)
        proxy.signal(signal.SIGCONT)
        client.read_to_end()
    assert proxy.process.wait(60) == 0


def _state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _refuses(proxy):
    try:
        proxy.connect().close()
    except TURNED_AWAY:
        return True
    return False


def test_reload(run, redis70, tmp_path):
    """SIGHUP reads the profile again; a bad one is told of, and the old one stays."""
    profile = tmp_path / "mine.yaml"
    profile.write_text("faults: []\n")
    proxy = run(redis70.url, str(profile), "--seed", "7")
    log = proxy.folder / "stderr"
    profile.write_text(LOST)
    proxy.signal(signal.SIGHUP)
    wait_for(lambda: "profile mine, seed 7, generation 2" in log.read_text(), "the new profile")
    with proxy.connect() as client:
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    profile.write_text("faults:\n- {fault: nonsense}\n")
    proxy.signal(signal.SIGHUP)
    wait_for(lambda: "profile mine stays as it is" in log.read_text(), "the complaint")
    assert f"{profile}:2:11: " in log.read_text()
    assert proxy.metric("profile_info", generation="2") == 1


def test_no_reload_in_a_replay(run, redis70, tmp_path):
    """SIGHUP changes nothing there: what is to fire is in the recording."""
    recorded, replay = tmp_path / "recorded.jsonl", tmp_path / "replay.jsonl"
    proxy = run(redis70.url, "lost-ack", "--events", str(recorded))
    with proxy.connect() as client:
        client.send("RPUSH", "chat:1", "x")
        assert client.read_to_end() == (b"", "RST")
    proxy.stop()
    proxy = run(redis70.url, "lost-ack", "--replay", str(recorded), "--events", str(replay))
    proxy.signal(signal.SIGHUP)
    log = proxy.folder / "stderr"
    wait_for(lambda: "keeps the profile that was recorded" in log.read_text(), "the refusal")
    with proxy.connect() as client:
        client.send("RPUSH", "chat:1", "x")
        assert client.read_to_end() == (b"", "RST")
    # Its exit status is 0 only if what fired is what was recorded.
    proxy.stop()


@pytest.mark.parametrize(
    ("args", "env", "profile_seed", "seed"),
    [
        (["--seed", "1"], {"CHAOSPROXY_SEED": "2"}, 3, 1),
        ([], {"CHAOSPROXY_SEED": "2"}, 3, 2),
        ([], {}, 3, 3),
    ],
    ids=["option", "variable", "profile"],
)
def test_whose_seed(run, redis70, args, env, profile_seed, seed):
    """--seed wins over CHAOSPROXY_SEED, and that over the profile's."""
    proxy = run(redis70.url, f"seed: {profile_seed}\nfaults: []\n", *args, env=env)
    assert proxy.seed == seed
    assert proxy.metric("profile_info", seed=str(seed)) == 1


def test_events_on_stdout(redis70):
    """`--events -` is stdout, line by line as they happen."""
    read, write = os.pipe()
    with os.fdopen(read) as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "chaosproxy", "run", "--upstream", redis70.url),
                *("--listen", "127.0.0.1:0", "--control", "off", "--events", "-"),
            ],
            stdout=write,
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        assert json.loads(output.readline())["profile"] == "calm"
        process.terminate()
        assert process.wait(60) == 0
        assert output.read() == ""


def test_redacted_events(run, redis70):
    """With --redact-keys no key is in the file."""
    proxy = run(redis70.url, LOST, "--redact-keys")
    with proxy.connect() as client:
        client.send("RPUSH", "chat:1", "x")
        client.read_to_end()
    proxy.wait_events()
    written = (proxy.folder / "events.jsonl").read_text()
    assert '"RPUSH"' in written
    assert "chat:1" not in written


def test_passwords_are_in_no_event(run, redis70):
    """A fault on AUTH and HELLO is written down without what was sent."""
    profile = "faults:\n- {fault: latency, match: {commands: '@handshake'}, at: before_forward, delay: 1ms}\n"
    proxy = run(redis70.url, profile)
    with proxy.connect() as client:
        client.raw("AUTH", "hush-1")
        client.raw("HELLO", 3, "AUTH", "default", "hush-2")
        client.raw("AUTH", "me", "hush-3")
    events = proxy.wait_events(3)
    assert [event["command"] for event in events] == ["AUTH", "HELLO", "AUTH"]
    assert "hush" not in json.dumps(events)
    assert events[0]["digest"] == events[2]["digest"]


def test_options_from_variables(run, redis70):
    """What is not given as an option is read from its variable."""
    proxy = run(
        redis70.url,
        "calm",
        env={"CHAOSPROXY_MAX_CONNECTIONS": "1", "CHAOSPROXY_LOG_LEVEL": "debug"},
    )
    with proxy.connect() as client, proxy.connect() as second:
        assert second.read_to_end() == (b"-ERR max number of clients reached\r\n", "FIN")
        assert client.ask("PING") == "PONG"
    assert proxy.metric("connections_total", result="max_clients") == 1


def test_json_log(run, redis70):
    """--log-format json: each line on stderr is an object."""
    proxy = run(redis70.url, "calm", "--log-format", "json", "--log-level", "info")
    proxy.stop()
    lines = [json.loads(line) for line in proxy.stderr.splitlines()]
    assert [line["message"] for line in lines] == ["started", "stopped"]
    assert lines[0]["url"] == proxy.url
    assert lines[0]["upstream"] == redis70.url


def test_command_this_server_does_not_know(run, redis70):
    """A profile may speak of commands that another server has; it is told that this one has them not."""
    profile = "faults:\n- {fault: latency, match: {commands: [GET, HEXPIRE]}, at: after_apply, delay: 1ms}\n"
    proxy = run(redis70.url, profile)
    proxy.stop()
    assert "this server does not know it all: " in proxy.stderr
    assert "unknown command HEXPIRE" in proxy.stderr


def test_embedded(run):
    """`--upstream embedded` brings a server of its own, and takes it away again."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    proxy = run("embedded", "calm", "--log-format", "json")
    with proxy.connect() as client:
        pid = int(client.ask("INFO", "server").partition(b"process_id:")[2].split()[0])
        assert client.ask("SET", "k", "v") == "OK"
    proxy.stop()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the server's end")  # noqa: PTH110


def test_control_off(run, redis70):
    """`--control off`: no HTTP at all."""
    proxy = run(redis70.url, "calm", "--control", "off")
    assert proxy.control is None
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"


def test_control_beyond_loopback(run, redis70):
    """With a token it may answer everybody."""
    proxy = run(redis70.url, "calm", "--control", "0.0.0.0:0", "--control-token", "secret")
    assert proxy.control.startswith("http://127.0.0.1:")
    assert proxy.get("/metrics")[0] == 200
    assert proxy.get("/profile")[0] == 401
    assert proxy.get("/profile", Authorization="Bearer secret")[0] != 401


def test_control_answers_while_data_is_stalled(run, redis70):
    """Metrics and probes are answered at once while every client waits and the server stands still."""
    proxy = run(redis70.url, "calm")
    with proxy.connect() as client:
        redis70.process.send_signal(signal.SIGSTOP)
        try:
            client.send("GET", "k")
            wait_for(lambda: proxy.metric("commands_total", command="GET"), "the request")
            assert proxy.get("/healthz")[0] == 200
            status, text = proxy.get("/readyz")
            assert (status, json.loads(text)["status"]) == (503, "not ready")
        finally:
            redis70.process.send_signal(signal.SIGCONT)
        assert client.read() == [b"$-1\r\n"]
        wait_for(lambda: proxy.get("/readyz")[0] == 200, "readiness")


def test_port_in_use(redis70):
    """An address that is taken ends it with status 1, and is named."""
    taken = f"127.0.0.1:{redis70.port}"
    status, said = refused("--upstream", redis70.url, "--listen", taken, "--control", "off")
    assert (status, said) == (1, f"Error: cannot listen on {taken}: address already in use\n")
    status, said = refused("--upstream", redis70.url, "--listen", "127.0.0.1:0", "--control", taken)
    assert status == 1
    assert said == f"Error: cannot listen on {taken} for control: address already in use\n"


def test_files_that_cannot_be_written(redis70, tmp_path):
    """Events and ready file: what cannot be written is named, with status 1."""
    options = ["--upstream", redis70.url, "--listen", "127.0.0.1:0", "--control", "off"]
    gone = tmp_path / "gone" / "file"
    status, said = refused(*options, "--events", str(gone))
    assert (status, said) == (
        1,
        f"Error: cannot write events to {gone}: no such file or directory\n",
    )
    status, said = refused(*options, "--ready-file", str(gone))
    assert status == 1
    assert said.endswith(f"Error: cannot write {gone}: No such file or directory\n")


def test_no_ready_file_of_an_earlier_run(tmp_path):
    """Whoever waits for the file is not told of a proxy that is long gone, also where this one does not start."""
    old = tmp_path / "ready.json"
    old.write_text("{}")
    status, _ = refused("--profile", "nope", "--ready-file", str(old))
    assert (status, old.exists()) == (2, False)


def test_bad_profile(tmp_path):
    """A profile with problems starts nothing: status 2, and every problem on stderr."""
    profile = tmp_path / "bad.yaml"
    profile.write_text("faults:\n- {fault: latncy}\n- {fault: disconnect}\n")
    status, said = refused("--profile", str(profile))
    assert status == 2
    assert f"{profile}:2:11: " in said
    assert "did you mean 'latency'?" in said
    assert f"{profile}:3:" in said


def test_a_cluster(run):
    """Where its nodes listen stands in the start block and in the ready file."""
    with clusters.running(2) as cluster:
        proxy = run(cluster.url)
        ready = json.loads((proxy.folder / "ready.json").read_text())
        nodes = ready["nodes"]
        assert list(nodes) == ["node-1", "node-2"]
        assert nodes["node-1"] == f"127.0.0.1:{proxy.port}"
        port = int(nodes["node-2"].rpartition(":")[2])
        with Wire(port) as client:
            assert client.ask("CLUSTER", "MYID") == cluster.nodes[1].ask("CLUSTER", "MYID")
        taken = refused(
            *("--upstream", cluster.url, "--listen", f"127.0.0.1:{proxy.port}", "--control", "off")
        )
        assert taken == (
            1,
            f"Error: cannot listen on 127.0.0.1:{proxy.port}: address already in use\n",
        )
        proxy.stop()
    lines = proxy.stderr.splitlines()
    for name, node in zip(nodes, cluster.nodes, strict=True):
        assert f"  {name:<10} {nodes[name]} → 127.0.0.1:{node.port}" in lines


def test_a_node_of_a_cluster(run):
    """A cluster's node that is taken for a server: the start block and the log say what that means, and what would be right."""
    node = servers.start_cluster_node("redis70")
    try:
        proxy = run(node.url)
        proxy.stop()
    finally:
        node.stop()
    right = f"use --upstream redis+cluster://127.0.0.1:{node.port}"
    said = [line for line in proxy.stderr.splitlines() if line.endswith(right)]
    assert [line.startswith("  warning    it sends clients to") for line in said] == [False, True]
