"""The framers of connections that have none yet: most are idle, and what the fast lane takes needs none.

Takes a framer that is to be used; gives it, or a new one where it is one of those that all share.
"""

from typing import Final, TypeVar

from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import RequestFramer

Framer = TypeVar("Framer", RequestFramer, ReplyFramer)

#: They say that nothing has come, and may be asked, but not fed.
NO_REQUESTS: Final = RequestFramer()
NO_REPLIES: Final = ReplyFramer()
_SHARED: Final = (NO_REQUESTS, NO_REPLIES)


def own(framer: Framer) -> Framer:
    """Give a framer that is nobody else's."""
    return type(framer)() if framer in _SHARED else framer
