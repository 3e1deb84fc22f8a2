"""A request of which only the beginning is here waits for its end only where a rule may want all of it."""

import pytest

from chaosproxy.core.resp import encode_command
from tests.conversation import Talk

LATE = "- {fault: latency, at: before_forward, delay: 1s, "
SET = encode_command(b"SET", b"k", b"x" * 9000)


def part(talk: Talk, data: bytes = SET, size: int = 500) -> bool:
    """Send the first part the long way; whether it went on."""
    talk.fast = False
    talk.client(data[:size])
    went = talk.heard("upstream")
    assert went in {b"", data[:size]}
    return bool(went)


@pytest.mark.parametrize(
    "rule", ["match: {keys: other}}", "when: {nth: 2}}", "match: {keys: [k, l]}, when: {skip: 1}}"]
)
def test_it_goes_on_where_the_rules_leave_it_alone(rule: str):
    """Its match is counted then, and not again at its end; the next one is asked about anew."""
    with Talk(LATE + rule) as talk:
        (live,) = talk.world.engine.rules
        matches = int("other" not in rule)
        assert part(talk)
        assert live.matched == matches
        talk.client(SET[500:])
        talk.expect_upstream(SET[500:])
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert live.matched == matches
        assert part(talk) == (matches == 0)
        talk.client_gone()


@pytest.mark.parametrize(
    ("rule", "data", "size"),
    [
        ("match: {keys: k}}", SET, 500),
        ("match: {arguments: {has: x}}}", SET, 500),
        ("when: {nth: 2}}", encode_command(b"SET", b"k", b"x" * 4000), 500),
        ("match: {keys: other}}", SET, 22),
        ("match: {keys: other}}", SET, 5),
        ("match: {keys: other}}", encode_command(b"SET", b"k" * 9000, b"x"), 500),
        ("match: {keys: other}}", encode_command(b"MSET", b"k", b"x" * 9000), 500),
    ],
)
def test_it_waits_where_a_rule_may_want_it(rule: str, data: bytes, size: int):
    """A rule's turn, a rule that looks at more than is here, a value that is small, or a key that is not here yet: nothing is counted."""
    with Talk(LATE + rule) as talk:
        assert not part(talk, data, size)
        assert talk.world.engine.rules[0].matched == 0
        talk.client_gone()


def test_it_waits_behind_what_may_change_its_meaning():
    """Behind a MULTI that is unanswered, or within its transaction, nothing is decided before the whole is here."""
    for replies in ((), ("+OK",)):
        with Talk(LATE + "when: {nth: 9}, match: {commands: SET}}") as talk:
            talk.client("MULTI")
            talk.expect_upstream("MULTI")
            talk.upstream(*replies)
            talk.heard("client")
            assert not part(talk)
            talk.client_gone()


def test_a_profile_that_is_put_in_force_meanwhile():
    """The new rules are asked when the whole is here, of which they can hold no part back."""
    with Talk(LATE + "when: {nth: 9}}") as talk:
        assert part(talk)
        talk.switch(LATE + "match: {keys: k}}")
        talk.client(SET[500:])
        assert talk.world.engine.rules[0].matched == 1
        talk.heard("upstream")
        talk.client_gone()
