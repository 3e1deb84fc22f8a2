"""All wire scripts in one table.

Takes the scripts of this folder; gives them by name, each once.
"""

from tests.transparency import (
    scripts_blocking,
    scripts_ends,
    scripts_framing,
    scripts_protocol,
    scripts_pubsub,
    scripts_replies,
    scripts_state,
    scripts_tracking,
    scripts_transactions,
)
from tests.transparency.script import Script

SCRIPTS: tuple[Script, ...] = (
    *scripts_framing.SCRIPTS,
    *scripts_ends.SCRIPTS,
    *scripts_protocol.SCRIPTS,
    *scripts_state.SCRIPTS,
    *scripts_transactions.SCRIPTS,
    *scripts_blocking.SCRIPTS,
    *scripts_pubsub.SCRIPTS,
    *scripts_tracking.SCRIPTS,
    *scripts_replies.SCRIPTS,
)
BY_NAME = {script.name: script for script in SCRIPTS}
assert len(BY_NAME) == len(SCRIPTS), "two scripts of one name"
