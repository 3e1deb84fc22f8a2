"""The command line: one small file a command, the only place that knows click.

Takes `sys.argv`; gives an exit status: 0 ok, 1 failed, 2 bad usage or bad profile, 3 a required fault never fired.

A command `NAME` is a file `NAME.py` here with a click command called `command`, and a line in `COMMANDS`. It is
imported when it is used and no sooner: `--help` must not wait for what one command needs.
"""

import errno
import gc
import sys
from importlib import import_module
from typing import Any

import click

from chaosproxy import __version__

#: Name and short help of every command, in the order of `--help`; a test compares the help with the command's own.
COMMANDS = {
    "run": "Run the proxy.",
    "exec": "Run COMMAND with a proxy between it and Redis.",
    "use": "Put another profile in force in a proxy that runs.",
    "calm": "Put no fault in force in a proxy that runs.",
    "trigger": "Have a fault with `when: {trigger: manual}` act.",
    "status": "Tell what is in force in a proxy that runs, and what it has done.",
    "events": "Tell what has fired in a proxy that runs.",
    "check": "Check profiles and name all their problems.",
    "profiles": "List the profiles that ship, or show one.",
    "faults": "Tell what each fault does and takes.",
    "demo": "Play a story: an application's bug, and its repair.",
    "schema": "Print the JSON Schema of a profile.",
}


#: What a disk says that takes no more.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _LazyGroup(click.Group):
    """A group that imports a command's file when that command is asked for."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run a command; one whose output goes where there is no room for it says so."""
        try:
            return super().main(*args, **more)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            click.echo(f"Error: cannot write all of it: {error.strerror}", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        gc.disable()  # what is read in stays: looking for what does not takes a tenth of the time
        try:
            command = import_module(f"chaosproxy.cli.{name}").command
        finally:
            gc.enable()
        assert isinstance(command, click.Command)  # noqa: S101 - what every file here must have
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """Break Redis for one client, one command at a time, on purpose, and say so."""
