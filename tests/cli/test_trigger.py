"""`trigger`: a manual fault acts on its next match, and what cannot be triggered is told."""

import pytest

RULES = """
faults:
- {fault: reply, name: lie, match: {commands: GET}, when: {trigger: manual}, at: before_forward, value: 1}
- {fault: admit, name: door, new_connections: reset, for: 60s, when: {trigger: manual}}
- {fault: reply, name: other, match: {commands: SET}, at: before_forward, value: 2}
"""


def test_trigger(asked):
    """Once a request."""
    proxy, run = asked
    proxy.use(RULES)
    assert run("trigger", "lie").stdout == "lie acts on its next match\n"
    assert run("trigger", "lie").stdout == "lie acts on its next 2 matches\n"
    with proxy.connect() as client:
        assert [client.ask("GET", "k") for _ in range(3)] == [1, 1, None]


def test_what_lasts_begins(asked):
    """A fault with a time of its own begins now."""
    proxy, run = asked
    proxy.use(RULES)
    assert run("trigger", "door").stdout == "door has begun\n"
    try:
        with proxy.connect() as client:
            assert client.read_to_end() == (b"", "RST")
    except ConnectionResetError:
        pass  # it came while the client was still about to connect


@pytest.mark.parametrize(
    ("name", "said"),
    [("othre", "did you mean 'other'?"), ("other", "fault other acts by itself")],
)
def test_what_cannot_be(asked, name, said):
    """Status 1, and why."""
    proxy, run = asked
    proxy.use(RULES)
    done = run("trigger", name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
