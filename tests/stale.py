"""Conversations with a rule that knows how keys were, and what the server is asked to compute from that.

Takes keys, or the elements of a transaction; gives a Talk, or the replies to it.
"""

from chaosproxy.core.memory import Image
from tests.conversation import Talk, reply

RULE = "- {fault: stale_read, behind: 1, match: {commands: '@read'}}"


def stale(*keys: str, db: int = 0, rule: str = RULE, **how) -> Talk:
    """A conversation whose last rule that remembers knows how these keys were: `old`."""
    talk = Talk(rule, **how)
    for key in keys:
        talk.world.engine.rememberers[-1].state.keep(db, key.encode(), 99.0, Image(b"old"))
    return talk


def computed(*elements: str) -> bytes:
    """The replies to a transaction with these elements."""
    array = b"*%d\r\n" % len(elements) + b"".join(map(reply, elements))
    return reply("+OK") + reply("+QUEUED") * len(elements) + array
