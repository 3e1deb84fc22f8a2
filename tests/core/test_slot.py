"""What waits in a conversation: whether anything is still to be done for it, and what must be held for that."""

import pytest

from chaosproxy.core.bucket import Bucket
from chaosproxy.core.decision import Pace
from chaosproxy.core.slot import NOBODY, Element, Slot, Told, Work
from tests.conversation import Talk


def work(**fields) -> Work:
    talk = Talk()
    line = talk.conversation._line
    command = line.where(None)  # nothing looks at it here
    made = Work(command, line.world.name(b"GET"), (b"GET",), b"", True, None)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


SOMETHING = object()
PACED = (Told(SOMETHING), Pace(None, Bucket(1.0)))


@pytest.mark.parametrize(
    ("fields", "matters", "looks"),
    [
        ({}, False, False),
        ({"told": [SOMETHING]}, True, False),
        ({"watched": True}, True, False),
        ({"repeats": [SOMETHING]}, True, False),
        ({"tickets": [SOMETHING]}, True, False),
        ({"after": [SOMETHING]}, True, True),
        ({"candidates": [SOMETHING]}, True, True),
        ({"paces": [PACED]}, False, True),
    ],
)
def test_work(fields, matters, looks):
    """A reply is held whole only for what looks at it; the rest waits for nothing but its end."""
    made = work(**fields)
    assert made.matters is matters
    assert made.looks_at_reply is looks


@pytest.mark.parametrize(
    ("element", "changes"),
    [
        (Element(), False),
        (Element(work=SOMETHING), False),
        (Element(hidden=True), True),
        (Element(inserted=b""), True),
        (Element(change=bytes), True),
    ],
)
def test_element(element, changes):
    """EXEC's array is put right only where an element is ours, missing, or another."""
    assert element.changes is changes


def test_an_idle_connection_has_no_queues():
    """Queues are there while anything waits in them and no longer; nothing can be put into what takes their place."""
    talk = Talk()
    line = talk.conversation._line
    assert line.expect is line.slots is NOBODY
    talk.client("SUBSCRIBE a")
    assert [len(line.expect), len(line.slots)] == [1, 1]
    talk.upstream(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
    assert line.expect is line.slots is NOBODY
    with pytest.raises(RuntimeError, match=r"b'GET' waits where nothing happens"):
        NOBODY.append(Slot(line.world.name(b"GET"), (), 0.0))
    assert not NOBODY
