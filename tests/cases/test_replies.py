"""A reply comes late, or in pieces: who gives it to the wrong caller, or tears its text.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

LATE = """
faults:
  - {fault: latency, match: {commands: [GET], keys: foo}, when: {nth: 1}, at: after_apply, delay: 300ms}
"""


@pytest.mark.parametrize(
    ("version", "how", "said"),
    [
        # From a pool a connection is taken anew each time if something unread is seen to lie there.
        ("4.5.1", "pooled", ["foo", "foo", "bar"]),
        ("4.5.1", "single", ["foo", "bar", "foo"]),
        ("4.5.5", "pooled", ["bar", "foo", "bar"]),
        ("4.5.5", "single", ["bar", "foo", "bar"]),
    ],
)
def test_wrong_caller(stage, python, version, how, said):
    """redis-py#2624: a caller gave up, and who comes next gets its reply; 4.5.5 throws the connection away."""
    keys = [("SET", "foo", "foo"), ("SET", "bar", "bar")]
    run = stage.play(LATE, python(f"redis=={version}"), "cancelled.py", how, before=keys)
    assert run.said == said
    assert run.fired == [("latency", "GET", "yes")]


TEXT = "😀😁😂🤣😃é"
IN_THE_FIRST = """
faults:
  - {fault: slice, name: torn-emoji, match: {commands: [GET]}, split: [7], gap: 100ms}
"""


@pytest.mark.parametrize("profile", ["torn-emoji", IN_THE_FIRST], ids=["torn-emoji", "one"])
@pytest.mark.parametrize(("version", "torn"), [("5.5.5", True), ("5.8.3", True), ("5.9.0", False)])
def test_torn_emoji(stage, npm, version, torn, profile):
    """node-redis#2993: each piece of a reply is decoded for itself; 5.9.0 keeps the rest of a character for the next."""
    client, key = npm(f"redis@{version}"), [("SET", "k", TEXT)]
    run = stage.play(profile, client, "npm_redis_get.mjs", before=key)
    assert ("\ufffd" in run.said, run.said == TEXT) == (torn, not torn)
    assert run.fired == [("torn-emoji", "GET", "yes")]
