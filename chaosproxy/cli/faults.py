"""`chaosproxy faults`: the catalogue, from the code.

Takes nothing, or a fault's name, `match` or `when`; gives a line for each fault, or everything about that one.
"""

import click

from chaosproxy import catalogue
from chaosproxy.cli.completing import names_from
from chaosproxy.core.scalar import closest


def _known() -> dict[str, str]:
    described = {entry.type: catalogue.describe(entry) for entry in catalogue.entries()}
    return described | {part.name: catalogue.describe(part) for part in catalogue.parts()}


@click.command()
@click.argument("name", required=False, shell_complete=names_from(_known))
@click.option("--markdown", is_flag=True, help="Print all of it as Markdown tables.")
def command(name: str | None, markdown: bool) -> None:
    """Tell what each fault does and takes.

    NAME is a fault, or `match` or `when`, which all faults have. Without it: a line for each.
    """
    if markdown:
        click.echo(catalogue.markdown(), nl=False)
        return
    if name is None:
        click.echo(catalogue.overview())
        click.echo("\n`chaosproxy faults NAME` tells its settings; NAME may be match or when, too.")
        return
    known = _known()
    if name not in known:
        near = closest(name, known)
        meant = f"did you mean '{near}'?" if near else f"expected one of {', '.join(known)}"
        raise click.UsageError(f"no fault is called '{name}'; {meant}")
    click.echo(known[name])
