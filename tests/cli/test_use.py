"""`use`: a shipped profile, a file, a seed, single values; a bad one is told as `check` tells it."""

from click.testing import CliRunner

from chaosproxy.cli import main

BAD = "faults:\n- {fault: latncy}\n- {fault: disconnect}\n"


def test_a_shipped_one(asked):
    """By name, with a seed and a value: it is in force when the line is there."""
    proxy, run = asked
    done = run("use", "lost-ack", "--seed", "5", "--set", "lost-ack.when.nth=2")
    assert (done.exit_code, done.stdout) == (0, "profile lost-ack, seed 5, generation 2\n")
    assert proxy.service.profile.rules[0].when.nth == (2,)


def test_values_are_yaml(asked):
    """`--set` reads what `run --set` reads."""
    proxy, run = asked
    done = run("use", "lost-ack", "--set", "lost-ack.match.commands=[SET, GET]")
    assert done.exit_code == 0
    assert proxy.service.profile.rules[0].match.commands == ("SET", "GET")


def test_a_file(asked, tmp_path):
    """A path is read here, and sent."""
    proxy, run = asked
    path = tmp_path / "mine.yaml"
    path.write_text("seed: 3\nfaults: [{fault: latency, at: after_apply, delay: 1ms}]\n")
    assert run("use", str(path)).stdout == "profile mine, seed 3, generation 2\n"
    assert proxy.service.seed == 3


def test_warnings(asked, tmp_path):
    """What the very server does not know is told on stderr."""
    _, run = asked
    path = tmp_path / "new.yaml"
    path.write_text(
        "faults: [{fault: latency, match: {commands: [GET, HEXPIRE]}, at: after_apply, delay: 1ms}]\n"
    )
    done = run("use", str(path))
    assert done.exit_code == 0
    assert "warning: " in done.stderr
    assert "HEXPIRE" in done.stderr


def test_a_bad_file(asked, tmp_path):
    """Every problem under the file's own name, status 2, and nothing has changed."""
    proxy, run = asked
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    done = run("use", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == CliRunner().invoke(main, ["check", str(path)]).stderr
    assert proxy.service.generation == 1


def test_what_cannot_be_read(asked, tmp_path):
    """No such profile, no such file, no UTF-8, an override that is none: status 2."""
    _, run = asked
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"faults: [\xff]\n")
    for args in (
        ["lost-akc"],
        [str(tmp_path / "none.yaml")],
        [str(odd)],
        ["calm", "--set", "x"],
        ["calm", "--set", "x.y=1"],
        ["lost-ack", "--set", "lost-ack.when.nth={"],
    ):
        done = run("use", *args)
        assert done.exit_code == 2, args
        assert "1 problem" in done.stderr
