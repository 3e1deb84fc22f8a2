"""Shipped profiles are found by name, others by path; each ships whole and says what it is for."""

import os
import threading

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.profile import ProfileError, find, first_line, library, load, names, shipped
from chaosproxy.profile.yaml_nodes import MAX_BYTES


@pytest.fixture(autouse=True)
def own_faults():
    """Real faults for real profiles."""


def told(given):
    with pytest.raises(ProfileError) as raised:
        find(given)
    return str(raised.value)


@pytest.mark.parametrize("name", names())
def test_each(name):
    """It loads, names its faults, says what it does, what it looked like, and what is healthy."""
    source = shipped(name)
    profile = load([source], table=CommandTable.bundled())
    assert profile.name == name
    assert profile.description
    assert profile.healthy
    assert all(rule.name != rule.fault.type for rule in profile.rules), "a default name"
    comment = source.raw.decode().partition("description:")[0].replace("\n# ", " ")
    assert "healthy application" in comment
    assert name == "calm" or "What it looked like:" in comment
    assert 20 < len(first_line(name)) < 90
    assert not first_line(name).startswith("#")


def test_names():
    """Those that ship, sorted."""
    assert set(names()) >= {
        "brownout", "cache-miss", "calm", "cluster-failover", "cold-scripts", "crash-tail",
        "eviction-storm", "flaky-network", "half-open", "immortal-keys", "jitter", "late-writer",
        "lost-ack", "lost-writes", "managed-failover", "out-of-memory", "pubsub-loss",
        "redis-restart", "sentinel-failover", "slow-redis", "slow-writes", "split-frames",
        "stale-cache", "stale-replica", "too-many-clients", "torn-emoji", "ttl-lapse",
    }  # fmt: skip
    assert names() == sorted(names())


def test_calm_is_calm():
    """The default has no fault."""
    assert load([shipped("calm")]).rules == ()


def test_joined_with_each_other():
    """All of them go together: no two faults have one name."""
    profile = load([shipped(name) for name in names()], table=CommandTable.bundled())
    assert len(profile.rules) >= len(names()) - 1


def test_by_name_and_by_path(tmp_path, monkeypatch):
    """A shipped name is that profile; what looks like a path is one; another file is found as well."""
    monkeypatch.chdir(tmp_path)
    for file in ("mine.yaml", "calm", "other"):
        (tmp_path / file).write_text("# mine")
    assert find("calm") == shipped("calm")
    assert find("./calm").raw == b"# mine"
    assert (find("mine.yaml").name, find("mine.yaml").file) == ("mine", "mine.yaml")
    assert find(str(tmp_path / "mine.yaml")).name == "mine"
    assert find("other").raw == b"# mine"


def test_unknown_names():
    """A misspelt name is told with what was meant, another one with all there are."""
    assert told("lost-akc") == (
        "lost-akc: no shipped profile is called 'lost-akc'; did you mean 'lost-ack'?"
    )
    assert told("xyzzy") == (
        "xyzzy: no shipped profile is called 'xyzzy', expected a file's path or one of "
        + ", ".join(names())
    )
    with pytest.raises(ProfileError):
        shipped("../profiles/calm")


def test_unreadable_files(tmp_path, monkeypatch):
    """A path that cannot be read says why; a shipped name in disguise says so."""
    monkeypatch.chdir(tmp_path)
    assert told("calm.yaml") == (
        "calm.yaml: cannot be read: No such file or directory; did you mean 'calm'?"
    )
    assert told("sub/calm.yaml") == "sub/calm.yaml: cannot be read: No such file or directory"
    assert told("./") == "./: cannot be read: Is a directory"
    assert told("x" * 300).startswith("x" * 300 + ": no shipped profile is called ")
    assert told("faults:\n" * 50).startswith("faults:?faults:")
    assert told("a\0/b") == "a?/b: cannot be read: embedded null byte"


def test_a_pipe_is_read_as_far_as_a_profile_goes(tmp_path):
    """What never ends is not read to its end."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)

    def feed():
        with pipe.open("wb") as file:
            try:
                while True:
                    file.write(b"#" * 65536)
            except BrokenPipeError:
                pass

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert len(find(str(pipe)).raw) == MAX_BYTES + 1
    feeder.join(30)
    assert not feeder.is_alive()


def test_in_a_wheel_they_travel_inside_the_package(tmp_path, monkeypatch):
    """Where the package has a folder of profiles, that one counts."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "inside.yaml").write_text("# Inside.\nfaults: []\n")
    (tmp_path / "profiles" / "README.md").write_text("no profile")
    monkeypatch.setattr(library, "PACKAGE", tmp_path)
    library.folder.cache_clear()
    try:
        assert names() == ["inside"]
        assert first_line("inside") == "Inside."
    finally:
        library.folder.cache_clear()
