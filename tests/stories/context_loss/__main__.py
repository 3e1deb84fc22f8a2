"""Plays the story by hand: `python -m tests.stories.context_loss --redis-url redis://127.0.0.1:6380`.

Takes the address of a proxy and, if there is one already, of a PostgreSQL; gives the context loss rate of an app. So that every
conversation has a crash: `chaosproxy run --profile crash-tail --set lost-tail.when.per=key --set crash.when.per=key`.
"""

import argparse
import json
import time
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial

from tests.stories import postgres
from tests.stories.context_loss.conversations import measure
from tests.stories.context_loss.memory import APPS
from tests.stories.context_loss.pod import Pods, prepare
from tests.stories.failing import trigger, until_it_serves


def fail_over(given: argparse.Namespace) -> None:
    """Have Redis fail over now, once it has done so before."""
    until_it_serves(given.redis_url)
    trigger(given.control, given.trigger)


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.stories.context_loss", description=__doc__)
    parser.add_argument(
        "--redis-url", default="redis://127.0.0.1:6380", help="default: %(default)s"
    )
    parser.add_argument("--database", help="a libpq connection string; default: one of its own")
    parser.add_argument("--app", choices=APPS, default="buggy", help="default: %(default)s")
    parser.add_argument("--window", type=int, nargs="+", default=[2, 4, 6], help="default: 2 4 6")
    parser.add_argument("--conversations", type=int, default=100, help="of each, %(default)s")
    parser.add_argument("--seed", default="1", help="default: %(default)s")
    parser.add_argument("--control", help="the proxy's control address, for --trigger")
    parser.add_argument("--trigger", help="a fault to begin in the middle of each conversation")
    parser.add_argument("--json", action="store_true", help="tell it in JSON")
    given = parser.parse_args()
    with ExitStack() as stack:
        database = given.database or stack.enter_context(postgres.running()).dsn
        prepare(database)
        began = time.monotonic()
        losses = []
        mishap = partial(fail_over, given) if given.trigger else None
        for window in given.window:
            with Pods(APPS[given.app], given.redis_url, database, window) as pods:
                losses.append(measure(pods, given.conversations, given.seed, mishap))
            if not given.json:
                print(losses[-1], flush=True)
        seconds = time.monotonic() - began
    if given.json:
        print(json.dumps({"seconds": seconds, "losses": [asdict(loss) for loss in losses]}))
    else:
        lost, questions = (
            sum(getattr(loss, each) for loss in losses) for each in ("lost", "questions")
        )
        print(f"context loss rate {lost / questions:.1%} in {seconds:.1f} s")


if __name__ == "__main__":
    main()
