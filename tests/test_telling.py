"""What people read: each part is there, columns stand below each other, and no key moves the cursor."""

import base64
import json
import shutil
import subprocess

import pytest

from chaosproxy.telling import (
    command_of,
    event_line,
    fault_table,
    in_force_line,
    json_text,
    printable,
    seconds,
    shell_words,
)

EVENT = {
    "n": 3,
    "at": "2026-11-30T12:34:56.789+00:00",
    "fault": "lost-ack",
    "command": "RPUSH",
    "keys": ["chat:1"],
    "applied": "yes",
    "told": "reset",
    "outcome": "unknown",
}


def test_event():
    """Number, time, fault, command, and what became of it."""
    expected = "#3  12:34:56.789  lost-ack  RPUSH chat:1  -> applied, told reset: unknown"
    assert event_line(EVENT) == expected


def test_event_with_delay():
    """What was delayed says by how much; outcomes are words."""
    late = EVENT | {"delay": 0.25, "told": "ok", "outcome": "false_ok", "applied": "no"}
    assert event_line(late).endswith("-> not applied, told ok after 250 ms: false ok")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"command": "CONFIG|SET", "keys": []}, "CONFIG SET"),
        ({"command": "MGET", "keys": list("abcde")}, "MGET a b c (and 2 more)"),
        ({"command": "GET", "keys": ["x" * 100]}, "GET " + "x" * 59 + "…"),
        ({"command": "GET", "keys": ["a\x1b[2J\n"]}, "GET a?[2J?"),
        ({"command": "GET", "keys_b64": [base64.b64encode(b"\xff1").decode()]}, "GET \\xff1"),
    ],
)
def test_command(event, said):
    """A command with its keys; many and long ones are cut, odd ones made visible."""
    assert command_of(event) == said


def test_table():
    """A row a fault, its columns below each other."""
    status = {"name": "a", "type": "reply", "matched": 10, "fired": 1, "skipped": {"nth": 9}}
    other = {"name": "longer", "type": "disconnect", "matched": 0, "fired": 0, "skipped": {}}
    other |= {"enabled": False, "requested": 2}
    assert fault_table([status | {"enabled": True}, other]) == [
        "fault   type        matched  fired  skipped",
        "a       reply            10      1  nth 9",
        "longer  disconnect        0      0  switched off, triggered 2",
    ]
    assert fault_table([{**other, "enabled": True, "requested": 0}])[1].endswith("  -")
    assert fault_table([]) == ["no faults"]


@pytest.mark.parametrize(
    ("value", "said"), [(1.5, "1.5 s"), (60, "60 s"), (0.25, "250 ms"), (0.0015, "1.5 ms")]
)
def test_seconds(value, said):
    """As profiles write durations."""
    assert seconds(value) == said


def test_printable():
    """Nothing moves the cursor."""
    assert printable("a\tb\x9b") == "a?b?"


WORDS = ["plain", "a b", "it's", "a\nb'c\\d", "\x1b[2J", "é\n☃\x85", "", "$HOME", "`x`"]


def test_shell_words():
    """One line without a control character, which is these words again to the shell that reads it."""
    line = shell_words(WORDS)
    assert line.isprintable()
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    script = f"printf '%s\\0' {line}"
    done = subprocess.run(
        [bash, "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode().split("\0")[:-1] == WORDS


@pytest.mark.parametrize("indent", [None, 2])
def test_json(indent):
    """It reads back as it was and looks as it is, but for what would move a cursor or end a line."""
    value = {"é": ["→ 😀", 1.5, None], "x": "\x1b[2J\x7f\x9b\u2028\u202e\U000e0001\n"}
    text = json_text(value, indent=indent)
    assert json.loads(text) == value
    assert "→ 😀" in text
    assert all(char.isprintable() or (indent and char == "\n") for char in text)
    assert json_text({1, 2}, default=str) == '"{1, 2}"'


def test_in_force():
    """One line, whatever the profile is called."""
    now = {"name": "a\nb", "seed": 7, "generation": 2}
    assert in_force_line(now) == "profile a?b, seed 7, generation 2"
