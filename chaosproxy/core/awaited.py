"""What is still to come on a line: a time, a reply, an answer from the side.

Takes a line; gives when it wants to be woken, whether a rule holds anything up, and whether its client waits for what comes by itself.
"""

from typing import Final

from chaosproxy.core.line import FOREVER, Line
from chaosproxy.core.slot import Stage

#: So many commands that rules look at are taken at once; then it is other connections' turn.
MOST_AT_ONCE: Final = 1000
#: Bytes that a command takes after whose reply others are to run, until these are answered.
RUN_COST: Final = 4096
#: A request that a fault holds up is dropped if its client has nothing more to say: most that say so are gone.
_HELD_UP: Final = (Stage.DELAY, Stage.HOLD, Stage.SEND)


def due(line: Line, *others: float) -> float | None:
    """When the first of all times comes, `others` among them; None for never."""
    timer = line.timers[0][0] if line.timers else FOREVER
    first = FOREVER if line.closed else min(*others, line.silent_until, timer)
    return None if first == FOREVER else first


def is_held(line: Line) -> bool:
    """Whether a rule holds a request or a reply up now."""
    held = line.head is not None and line.head.stage is not Stage.SETTLE
    return held or (bool(line.slots) and line.slots[0].full)


def is_held_up(line: Line) -> bool:
    """Whether a rule keeps the next request from the server, if there is one: for a time, or until a silence is over."""
    head = line.head
    lost = head is not None and (line.lost or head.stage in _HELD_UP)
    return lost or line.upstream_silent is not None


def is_silenced(line: Line) -> bool:
    """Whether a rule keeps from the client whatever would come next, on a line that is open."""
    never = bool(line.slots) and line.slots[0].never
    return not line.closed and (never or line.client_silent is not None)


def is_full(line: Line, *, later: bool = False) -> bool:
    """Whether so much is held or was answered here that no request is taken; `later`: also once what was answered is on its way."""
    made = 0 if later and not line.clogged else line.made
    # What is unanswered may have others run after it, too.
    running = line.running and line.running + len(line.expect)
    return max(made, line.held, running * RUN_COST) > line.world.max_buffer


def is_coming(line: Line, *, timed: bool) -> bool:
    """Whether something is under way that the client may hear of; `timed`: a time has to come.

    Not what a fault has lost for good, nor anything behind that.
    """
    if line.client_silent == FOREVER or (line.slots and line.slots[0].never):
        return False
    return timed or bool(line.slots or line.expect or line.asked)
