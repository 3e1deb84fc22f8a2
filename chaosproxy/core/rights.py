"""Whether a client may itself do what the side connection would do for it: where the two are different users the server is asked.

Takes the work at the head of a line; gives yes, no, or None where it is not known.
"""

from collections.abc import Callable, Sequence
from typing import Final

from chaosproxy.core.line import Line
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Work

#: What these may do depends on more than they show: on what a script calls, on keys that are named by patterns.
_MORE: Final = frozenset(
    {"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "SORT", "SORT_RO"}
)


def ask(line: Line, work: Work, done: Callable[[bool | None, float], None]) -> None:
    """Ask the server; `done` hears nothing if the work is let go in the meantime.

    None: the server is older than 7.0, or does not say. A yes is for this command with these arguments, and so for its reply.
    """

    def answered(replies: Sequence[bytes] | None, then: float) -> None:
        if line.head is not work:
            return
        kind = replies[0][:1] if replies else b""
        allowed = None
        if kind == b"$":  # it says why not
            allowed = False
        elif kind == b"+" and work.sent.name not in _MORE:
            allowed = True
        done(allowed, then)

    words = (arg or b"" for arg in work.args)
    line.ask_side([encode_command(b"ACL", b"DRYRUN", line.modes.user, *words)], line.db, answered)
