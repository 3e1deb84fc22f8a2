"""Problems: rendered with their line and a caret, in order, and fit for any terminal."""

import pytest

from chaosproxy.profile.problems import MOST_PROBLEMS, Problem, Problems, ProfileError, Text


def test_render():
    """`file:line:column: message`, the offending line, a caret below the place."""
    text = Text("a.yaml", "faults:\n  - falt: latency\n")
    problem = text.place(2, 5).problem("unknown field 'falt'", "fault")
    assert problem == Problem("a.yaml", 2, 5, "unknown field 'falt'", "fault", "  - falt: latency")
    assert problem.render() == (
        "a.yaml:2:5: unknown field 'falt'; did you mean 'fault'?\n      - falt: latency\n        ^"
    )


def test_render_without_a_line():
    """Where there is no line to show the message stands alone."""
    assert Text("a.yaml", "").place(1, 1).problem("empty").render() == "a.yaml:1:1: empty"
    assert Problem("nope", 0, 1, "no such profile").render() == "nope: no such profile"


def test_render_an_override():
    """What is no file has no line number, and a caret all the same."""
    text = Text("--set", "w.deley=3", numbered=False)
    problem = text.place(1, 3).problem("unknown field 'deley'", "delay")
    assert problem.line == 0
    assert problem.render() == (
        "--set: unknown field 'deley'; did you mean 'delay'?\n    w.deley=3\n      ^"
    )
    assert str(text.place(1, 3)) == "--set"


def test_tabs_keep_the_caret_in_place():
    """A caret stands below its character whatever a terminal makes of a tab."""
    assert (
        Text("a", "a:\tb").place(1, 4).problem("no").render() == "a:1:4: no\n    a:\tb\n      \t^"
    )


def test_long_lines_are_cut_around_the_place():
    """A line of any length shows some 120 characters, and the caret below the right one."""
    line = "x" * 500 + "HERE" + "y" * 500
    shown, caret = Text("a", line).place(1, 501).problem("no").render().split("\n")[1:]
    assert len(shown) < 140
    assert shown.strip().startswith("...xxx")
    assert shown.endswith("yyy...")
    assert shown[len(caret) - 1 :].startswith("HERE")
    start, caret = Text("a", line).place(1, 3).problem("no").render().split("\n")[1:]
    assert start.startswith("    xxx")
    assert len(caret) == 7
    end, caret = Text("a", line).place(1, 1004).problem("no").render().split("\n")[1:]
    assert end.endswith("yyy")
    assert len(caret) == len(end)


def test_nothing_that_moves_a_cursor_is_shown():
    """Control characters and lone surrogates of a hostile file become question marks."""
    problem = Text("a", "x\x1b[2J\udc80").place(1, 1).problem("got \x1b\ud800", "\x07")
    assert problem.render() == "a:1:1: got ??; did you mean '?'?\n    x?[2J?\n    ^"


def test_lines_are_yamls_lines():
    """Lines end where YAML ends them, so that its marks and ours agree."""
    assert Text("a", "1\r\n2\r3\n4\x855\u20286\u20297").lines == list("1234567")


def test_all_at_once_in_order():
    """Problems come in the order of texts, lines and columns, each once."""
    first, second = Text("a", "x\ny"), Text("b", "z")
    problems = Problems(texts=[first, second])
    problems.add(second.place(1, 1), "b")
    problems.add(first.place(2, 1), "a2")
    problems.add(first.place(1, 2), "a1")
    problems.add(first.place(2, 1), "a2")
    with pytest.raises(ProfileError) as raised:
        problems.raise_if_any()
    assert [problem.message for problem in raised.value.problems] == ["a1", "a2", "b"]
    assert (
        str(raised.value)
        == "a:1:2: a1\n    x\n     ^\na:2:1: a2\n    y\n    ^\nb:1:1: b\n    z\n    ^"
    )


def test_nothing_is_nothing():
    """Without a problem nothing is raised."""
    Problems().raise_if_any()


def test_enough_is_enough():
    """A text that is nothing but wrong costs no more than MOST_PROBLEMS of them, however long its one line is."""
    text = Text("a", "x" * 200_000)
    problems = Problems()
    for number in range(1, MOST_PROBLEMS):
        problems.add(text.place(1, number), f"no {number}")
    with pytest.raises(ProfileError) as raised:
        problems.add(text.place(1, MOST_PROBLEMS), "one more")
    said = raised.value.problems
    assert len(said) == MOST_PROBLEMS + 1
    assert said[-1].message == f"{MOST_PROBLEMS} problems: no more are looked for"
    assert len(str(raised.value)) < 1000 * len(said)
