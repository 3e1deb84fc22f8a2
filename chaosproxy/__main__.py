"""`python -m chaosproxy`: the same as the `chaosproxy` command."""

from chaosproxy.cli import main

main(prog_name="chaosproxy")
