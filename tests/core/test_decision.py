"""What a fault may ask for: positions in the order of an exchange's life, commands with their key in place."""

from typing import get_args

import pytest

from chaosproxy.core import decision
from chaosproxy.core.decision import Decision, Position, Run


def test_positions_are_in_the_order_of_life():
    """Everything that sorts by position relies on this order."""
    assert [str(position) for position in Position] == [
        "before_forward",
        "after_apply",
        "mid_reply",
        "after_reply",
    ]


@pytest.mark.parametrize(
    ("key", "commands"),
    [
        (b"k", [(b"DEL", b"k:x", b"kk"), (b"PING",)]),
        (None, [(b"DEL", b":x", b""), (b"PING",)]),
    ],
)
def test_the_matched_key_in_its_place(key, commands):
    """{key} stands for the key that matched, wherever it is written, and for nothing where there is none."""
    run = Run(((b"DEL", b"{key}:x", b"{key}{key}"), (b"PING",)))
    assert run.requests(key) == commands


def test_the_set_is_closed():
    """Every decision of the module is one of the set, so that a `match` over it is complete."""
    made = {
        each
        for each in vars(decision).values()
        if isinstance(each, type) and each.__module__ == decision.__name__ and each is not Position
    }
    assert made == set(get_args(Decision))
    for each in made:
        assert each.__dataclass_params__.frozen
