"""`chaosproxy check`: good profiles on stdout, all problems of all others on stderr, status 2."""

from click.testing import CliRunner

from chaosproxy.cli import main


def check(*files):
    return CliRunner().invoke(main, ["check", *files])


def test_good(tmp_path):
    """A good file is told with the names of its faults; a shipped name will do."""
    file = tmp_path / "x.yaml"
    file.write_text(
        "faults:\n  - {fault: drop_write, tell: ok}\n  - {fault: drop_write, tell: error}\n"
    )
    done = check(str(file), "calm", "lost-ack")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"{file}: ok, 2 faults (drop_write, drop_write-2)\n"
        "calm: ok, no faults\n"
        "lost-ack: ok, 1 fault (lost-ack)\n"
    )


def test_bad(tmp_path, monkeypatch):
    """All problems of all files, whole; the good ones are told all the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("faults:\n  - fault: drop_wirte\n")
    (tmp_path / "b.yaml").write_text(
        "faults: [{fault: drop_write, tell: ok, match: {commands: GTE}}]"
    )
    done = check("a.yaml", "calm", "b.yaml", "lost-akc")
    assert done.exit_code == 2
    assert done.stdout == "calm: ok, no faults\n"
    assert done.stderr == (
        "a.yaml:2:12: unknown fault 'drop_wirte'; did you mean 'drop_write'?\n"
        "      - fault: drop_wirte\n"
        "               ^\n"
        "b.yaml:1:58: commands: unknown command GTE; did you mean 'GET'?\n"
        "    faults: [{fault: drop_write, tell: ok, match: {commands: GTE}}]\n"
        "                                                             ^\n"
        "lost-akc: no shipped profile is called 'lost-akc'; did you mean 'lost-ack'?\n"
        "3 problems\n"
    )


def test_nothing_given():
    """Without a file there is nothing to check: bad usage."""
    done = check()
    assert done.exit_code == 2
    assert "Missing argument 'FILE...'" in done.stderr
