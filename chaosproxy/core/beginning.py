"""What is made of a request of which only the beginning is here: it goes on, or waits for its end.

Takes the line and what is here of the request; gives whether a rule may want the whole of it.
"""

from typing import Literal

from chaosproxy.core.line import Line
from chaosproxy.core.resp import KEEP, RequestFramer
from chaosproxy.core.syntax import HEADER


def judge(line: Line, framer: RequestFramer, now: float) -> Literal["plain", "let_alone", "wanted"]:
    """Whether no rule looks at it, or all that do leave it alone, which is counted, or one may want to hold or replace it.

    The rules are asked once a large value is coming in, and only where nothing unanswered can change what the request means.
    """
    name = framer.name
    if name is None:
        return "wanted"
    found = line.world.name(name)
    if found.plain:
        return "plain"
    if found.glance is None or framer.awaited <= KEEP + HEADER or line.client_silent is not None:
        return "wanted"
    if not (line.modes.simple and all(slot.simple for slot in line.expect)):
        return "wanted"
    args, number = framer.begun()
    return "let_alone" if found.glance.lets_begin(args, number - 1, now) else "wanted"
