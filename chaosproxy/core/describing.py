"""A connection as the control API shows it.

Takes a line, and what else its conversation knows of it; gives plain data.
"""

from chaosproxy.core import awaited
from chaosproxy.core.effect import Describe
from chaosproxy.core.line import Line


def describe(line: Line, *, buffered: int, waiting: int, raw: bool) -> Describe:
    """What is to be known of it: `buffered` bytes are held, `waiting` replies are owed."""
    return {
        "id": line.connection,
        "address": line.address,
        "listener": line.listener,
        "name": line.modes.name.decode("utf-8", "backslashreplace"),
        "db": line.modes.db,
        "protocol": line.modes.protocol,
        "in_transaction": line.modes.transaction is not None,
        "subscribed": line.modes.subscribed,
        "buffered": buffered,
        "waiting_replies": waiting,
        "holding": awaited.is_held(line),
        "raw": raw,
        "opened": line.opened,
    }
