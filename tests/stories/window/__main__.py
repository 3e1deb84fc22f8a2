"""Plays a scene of the story by hand: `python -m tests.stories.window --redis-url redis://127.0.0.1:6380`.

Takes the address of a proxy under the scene's profile, gives what is wrong with the memory afterwards, if anything is.
"""

import argparse
import sys

from tests.stories.counting import Broken, Void
from tests.stories.window.scenes import SCENES, Size
from tests.stories.window.store import APPS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stories.window", description=__doc__)
    parser.add_argument(
        "--redis-url", default="redis://127.0.0.1:6380", help="default: %(default)s"
    )
    parser.add_argument("--app", choices=APPS, default="buggy", help="default: %(default)s")
    parser.add_argument("--scene", choices=SCENES, default="two-tabs", help="default: %(default)s")
    parser.add_argument("--window", type=int, default=4, help="messages that fit, %(default)s")
    parser.add_argument("--length", type=int, default=200, help="bytes of each, %(default)s")
    given = parser.parse_args()
    scene, app = SCENES[given.scene], APPS[given.app]
    print(f"{given.app}, {given.scene}: its profile is {scene.profile}", *scene.sets, flush=True)
    while True:
        try:
            scene.play_for(app)(app, given.redis_url, Size(given.window, given.length))
        except Void as void:
            print(f"once more: {void}")
        except Broken as broken:
            print(f"broken: {broken}")
            return 1
        else:
            print("the newest messages are there, in order, within the budget")
            return 0


if __name__ == "__main__":
    sys.exit(main())
