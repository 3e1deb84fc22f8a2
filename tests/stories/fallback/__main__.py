"""Plays a scene of the story by hand: `python -m tests.stories.fallback --redis-url redis://127.0.0.1:6380`.

Takes the address of a proxy under the scene's profile, and of the server behind it; gives what the memory lacks afterwards, if
anything, and what was asked of it. LangChain is installed in an environment of its own, in the user's cache.
"""

import argparse
import shlex
import sys

from tests.clients import installs
from tests.stories.counting import Broken, Void
from tests.stories.fallback.scenes import APPS, SCENES, STACKS, Place, Pod


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.stories.fallback", description=__doc__)
    parser.add_argument(
        "--redis-url", default="redis://127.0.0.1:6380", help="default: %(default)s"
    )
    parser.add_argument(
        "--server-url",
        default="redis://127.0.0.1:6379",
        help="the server behind the proxy, default: %(default)s",
    )
    parser.add_argument(
        "--control", default="http://127.0.0.1:9380", help="the proxy's, default: %(default)s"
    )
    parser.add_argument("--app", choices=APPS, default="buggy", help="default: %(default)s")
    parser.add_argument("--stack", choices=STACKS, default="buffer", help="default: %(default)s")
    parser.add_argument(
        "--scene", choices=SCENES, default="two-requests", help="default: %(default)s"
    )
    given = parser.parse_args()
    scene, install = SCENES[given.scene], installs.python(*STACKS[given.stack])
    options = shlex.join(["--profile", scene.profile, *scene.options])
    print(f"{given.app}, {given.scene}: chaosproxy run {options}", flush=True)
    with Pod(install) as first, Pod(install) as second:
        place = Place((first, second), given.redis_url, given.server_url, control=given.control)
        while True:
            try:
                customer = scene.play(given.app, place)
            except Void as void:
                print(f"once more: {void}")
            except Broken as broken:
                print(f"broken: {broken}")
                return 1
            except LookupError as error:
                print(f"{error}; --server-url is what the proxy calls `upstream`", file=sys.stderr)
                return 2
            else:
                print(f"every message is there, in order; {customer.told()}")
                return 0


if __name__ == "__main__":
    sys.exit(main())
