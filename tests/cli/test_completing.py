"""Names are completed wherever one is asked for, as a shell asks for them."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("use lost-", ["lost-ack", "lost-writes"]),
        ("profiles show calm", ["calm"]),
        ("run --profile immortal", ["immortal-keys"]),
        ("exec --profile immortal", ["immortal-keys"]),
        ("faults bla", ["blackhole"]),
        ("faults nothing", []),
        ("sche", ["schema"]),
    ],
)
def test_offered(words, offered):
    """Profiles, faults and commands, from what there is."""
    # Asked for by the name that it is installed under.
    code = "from chaosproxy.cli import main; main(prog_name='chaosproxy')"
    asked = f"chaosproxy {words}"
    env = {
        "_CHAOSPROXY_COMPLETE": "bash_complete",
        "COMP_WORDS": asked,
        "COMP_CWORD": str(asked.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
    )
    assert [line.partition(",")[2] for line in done.stdout.split()] == offered
