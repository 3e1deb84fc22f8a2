"""Channels held and the frames that confirm them, also where EXEC's header does not count them.

Takes commands and confirmations; gives numbers of frames, and whole dialogues in which one too few or too many would
put every later reply in the wrong place.
"""

import pytest

from chaosproxy.core import channels
from tests.conversation import Talk

#: Looks at every reply, acts on none.
ARMED = "- {fault: latency, when: {nth: 1000000}, at: after_apply, delay: 1s}"


def held_after(*confirmed: bytes) -> channels.Channels:
    held: channels.Channels = {}
    for raw in confirmed:
        channels.confirm(raw, held)
    return held


def confirmation(kind: bytes, name: bytes) -> bytes:
    return b"*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n" % (len(kind), kind, len(name), name)


def test_one_confirmation_an_argument():
    """Doubles are confirmed too, and without arguments (which is an error) there is one frame."""
    assert channels.confirmations(b"SUBSCRIBE", (b"SUBSCRIBE", b"a", b"b", b"a"), {}) == 3
    assert channels.confirmations(b"UNSUBSCRIBE", (b"UNSUBSCRIBE", b"x", b"y"), {}) == 2
    assert channels.confirmations(b"SUBSCRIBE", (b"SUBSCRIBE",), {}) == 1


def test_unsubscribe_from_all_is_confirmed_for_each_held_of_its_kind():
    """Channels, patterns and shard channels are counted apart; where none is held there is one frame still."""
    held = held_after(
        confirmation(b"subscribe", b"a"),
        confirmation(b"subscribe", b"b"),
        confirmation(b"psubscribe", b"p*"),
        confirmation(b"ssubscribe", b"s"),
        confirmation(b"sunsubscribe", b"s"),
    )
    assert channels.confirmations(b"UNSUBSCRIBE", (b"UNSUBSCRIBE",), held) == 2
    assert channels.confirmations(b"PUNSUBSCRIBE", (b"PUNSUBSCRIBE",), held) == 1
    assert channels.confirmations(b"SUNSUBSCRIBE", (b"SUNSUBSCRIBE",), held) == 1


@pytest.mark.parametrize(
    "raw", [b"*0\r\n", b"*3\r\n:1\r\n:2\r\n:3\r\n", b"+OK\r\n", b">1\r\n$1\r\nx\r\n"]
)
def test_what_no_server_confirms_with_changes_nothing(raw: bytes):
    """Nonsense in a confirmation's place is not believed and not stumbled over."""
    assert not any(held_after(raw).values())


def test_following_queued_commands_gives_what_their_confirmations_will():
    """What a transaction will have subscribed to is known while it is queued."""
    held = held_after(confirmation(b"subscribe", b"a"))
    channels.follow(b"SUBSCRIBE", (b"SUBSCRIBE", b"b", b"c"), held)
    channels.follow(b"UNSUBSCRIBE", (b"UNSUBSCRIBE", b"a", b"x"), held)
    assert channels.confirmations(b"UNSUBSCRIBE", (b"UNSUBSCRIBE",), held) == 2
    channels.follow(b"UNSUBSCRIBE", (b"UNSUBSCRIBE",), held)
    assert channels.confirmations(b"UNSUBSCRIBE", (b"UNSUBSCRIBE",), held) == 1


def exchange(talk: Talk, *turns: tuple[str, ...]) -> None:
    """Each turn is a command and its replies, which must come out as they went in."""
    for command, *replies in turns:
        talk.client(command)
        talk.expect_upstream(command)
        if replies:
            talk.upstream(*replies)
            talk.expect_client(*replies)


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_subscription_that_exec_refuses_gives_one_error(faults: str):
    """Valkey queues SSUBSCRIBE and refuses it at EXEC: one element for two channels, and none behind the array."""
    with Talk(faults) as talk:
        exchange(
            talk,
            ("HELLO 3", '%["proto" :3]'),
            ("MULTI", "+OK"),
            ("SSUBSCRIBE a b", "+QUEUED"),
            ("PING", "+QUEUED"),
            ("EXEC", b"*2\r\n-ERR not here\r\n+PONG\r\n"),
            ("SUNSUBSCRIBE", '>["sunsubscribe" _ :0]'),
            ("ECHO x", '"x"'),
        )


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_refused_subscription_behind_another(faults: str):
    """That a queued subscription was refused can be seen only behind EXEC's array."""
    with Talk(faults) as talk:
        exchange(
            talk,
            ("MULTI", "+OK"),
            ("SUBSCRIBE a b c", "+QUEUED"),
            ("SSUBSCRIBE d e", "+QUEUED"),
            (
                "EXEC",
                '*[*["subscribe" "a" :1] *["subscribe" "b" :2]]',
                '*["subscribe" "c" :3]',
                "-ERR not here",
            ),
            ("UNSUBSCRIBE a b c", *(f'*["unsubscribe" "{name}" :0]' for name in "abc")),
            ("ECHO x", '"x"'),
        )


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_transaction_that_leaves_what_it_took(faults: str):
    """UNSUBSCRIBE without arguments leaves what was subscribed to in the same transaction, one frame each."""
    with Talk(faults) as talk:
        exchange(
            talk,
            ("HELLO 3", '%["proto" :3]'),
            ("MULTI", "+OK"),
            ("SUBSCRIBE a b", "+QUEUED"),
            ("UNSUBSCRIBE", "+QUEUED"),
            ("UNSUBSCRIBE", "+QUEUED"),
            (
                "EXEC",
                '*[>["subscribe" "a" :1] >["subscribe" "b" :2] >["unsubscribe" "a" :1]]',
                '>["unsubscribe" "b" :0]',
                '>["unsubscribe" _ :0]',
            ),
            ("ECHO x", '"x"'),
        )
