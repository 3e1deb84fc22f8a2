"""What of a chunk may pass by the fast lane, read command by command, those of one kind together.

Takes a received chunk, and the large value that it may go on in; gives the commands that pass, where they end, and the large
value that it breaks off in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chaosproxy.core.glance import Glance
from chaosproxy.core.measuring import Body, arguments, ends, unfinished
from chaosproxy.core.modes import Args
from chaosproxy.core.opening import Opening, read_opening
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.world import Name, World

#: Commands that go on: their name, when they do, and how many of it one behind the other; of one that may wait, its arguments.
Passed = tuple[Name, float, int, Args]
#: Whose large value it is, and how many arguments follow it.
Inside = tuple[Name, int]
#: Asked of a command with all its arguments and its bytes: whether the rules leave it alone.
LetAlone = Callable[[Glance, Sequence[bytes], bytes, float], bool]

#: No command's name ends before this, counted from the command's first byte.
_BEFORE_NAME = 10
#: Of commands with more bytes than that nothing is kept.
_MOST_TOLD = 1024


@dataclass(slots=True)
class Reading:
    """What was read of a chunk. All before `taken` passes.

    `body`, `inside`: the large value in which it ends. `opening`: how the last command began. `upto`: how many bytes the command
    behind `taken` is, if a rule is to act on it.
    """

    opening: Opening
    passed: list[Passed] = field(default_factory=list)
    taken: int = 0
    upto: int = 0
    body: Body | None = None
    inside: Inside | None = None


def read(  # noqa: PLR0917 - one call's worth of what is at hand
    world: World,
    data: bytes,
    now: float,
    body: Body | None,
    inside: Inside | None,
    opening: Opening,
    let_alone: LetAlone,
) -> Reading:
    """Read a chunk, up to the first command that may not pass, or of which too little is here.

    `body`, `inside`: the large value in which the chunk before ended. `opening`: how the last command began.
    """
    found = Reading(opening)
    try:
        if inside is not None and body is not None:
            name, left = inside
            pos, _, _ = ends(data, body.owed, left)
            if pos > len(data):
                return found
            found.passed.append((name, now, 1, ()))
            found.taken = pos
        while found.taken < len(data) and _goes_on(found, world, data, now, let_alone):
            pass
    except ProtocolError:
        pass
    return found


def _goes_on(found: Reading, world: World, data: bytes, now: float, let_alone: LetAlone) -> bool:
    """Read the next command, or all of its kind that follow; whether there may be more."""
    start = found.taken
    opening = world.openings.get(data[start : data.find(b"\r", start + _BEFORE_NAME)])
    opening = opening or read_opening(world, data, start)
    if opening is None:
        return False
    found.opening = opening
    name, glance = opening.name, opening.glance
    times, pos = opening.alike(data, start, now)
    if not times:
        times, begin = 1, start + opening.size
        pos, missing, size = ends(data, begin, opening.arguments)
        if pos > len(data):
            body = unfinished(data, start, pos - size, size)
            if body is not None:
                here = opening.arguments - missing - 1
                _, args = arguments(data, begin, here, opening.sent)
                if glance is None or glance.lets_begin(args, opening.arguments, now):
                    found.body, found.inside = body, (name, missing)
            return False
        if glance is not None:
            _, args = arguments(data, begin, opening.arguments, opening.sent)
            if not let_alone(glance, args, data[start:pos], now):
                found.upto = pos - start
                return False
    told: Args = ()
    if name.blocking and pos - start <= _MOST_TOLD:
        # Where it waits is asked if a failover comes into force meanwhile.
        told = (*arguments(data, start + opening.size, opening.arguments, opening.sent)[1],)
    found.passed.append((name, now, times, told))
    found.taken = pos
    return True
