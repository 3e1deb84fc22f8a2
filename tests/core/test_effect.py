"""What a conversation asks of the outside: a closed set, frozen, and an event that says everything."""

import dataclasses
from typing import get_args

from chaosproxy.core import effect
from chaosproxy.core.effect import Effect
from tests.conversation import Talk


def test_the_set_is_closed():
    """Every effect of the module is one of the set, so that a `match` over it is complete."""
    made = {
        each
        for each in vars(effect).values()
        if isinstance(each, type) and each.__module__ == effect.__name__
    }
    assert made == set(get_args(Effect))
    for each in made:
        assert each.__dataclass_params__.frozen


def test_an_event_says_everything():
    """Which exchange, whose, which match, what was rolled, what came of it."""
    rule = "- {fault: reply, name: no, match: {commands: SET}, when: {per: key, chance: 100%}, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.handshake("CLIENT SETNAME worker-1", "+OK")
        talk.handshake("SELECT 3", "+OK")
        talk.client("SET k v")
        talk.heard("client")
        event = dataclasses.asdict(talk.expect_fired("no"))
        assert 0 <= event.pop("draw") < 1
        assert len(event.pop("digest")) == 16
        assert event == {
            "fault": "no",
            "type": "reply",
            "position": "before_forward",
            "command": "SET",
            "keys": (b"k",),
            "db": 3,
            "client": "worker-1",
            "connection": 1,
            "match": 1,
            "applied": "no",
            "told": "error",
            "outcome": "fail",
            "generation": 1,
            "delay": None,
            "detail": "",
            "per": "k",
            "ordinal": 1,
            "writes": (),
        }


def test_a_client_without_a_name_goes_by_its_address():
    """And a name that is no text is still shown."""
    rule = "- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.client("SET k v")
        talk.heard("client")
        assert talk.expect_fired("reply").client == "10.0.0.9"
        talk.handshake(b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\n\xffx\r\n", "+OK")
        talk.client("SET k v")
        assert talk.expect_fired("reply").client == "\\xffx"
        talk.heard("client")
        talk.heard("upstream")
