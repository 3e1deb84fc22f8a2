"""One pod: a bot as a process, with a request in each line of its input and what came of it in a line of its output.

Takes what the bot does, by name; gives answers as bot.py says. It stands beside the bots, as they run with their own packages
and nothing else of this repository.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

#: What the memory was asked to do, what came of it, and how long the slowest took in seconds.
CALLS: Counter[str] = Counter()
RAISED: Counter[str] = Counter()
SLOWEST = [0.0]


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Count an operation of the memory and the exception that it raises."""
    CALLS[name] += 1
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        RAISED[f"{name}: {type(error).__name__}"] += 1
        raise
    finally:
        SLOWEST[0] = max(SLOWEST[0], time.monotonic() - began)


def serve(does: Mapping[str, Callable[..., dict]], *, whole: bool = False) -> None:
    """Do what is asked until nobody asks any more. `whole`: what is told as the slowest is all that the request took."""
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        late = time.time() - asked.pop("sent")
        for counter in (CALLS, RAISED):
            counter.clear()
        SLOWEST[0] = 0.0
        began = time.monotonic()
        try:
            said = does[asked.pop("do")](**asked)
        except Exception as error:  # noqa: BLE001 - what the customer sees, as an error page
            said = {"error": f"{type(error).__name__}: {error}"}
        slowest = time.monotonic() - began if whole else SLOWEST[0]
        said |= {"late": late, "calls": CALLS, "raised": RAISED, "slowest": slowest}
        print(json.dumps(said), flush=True)
