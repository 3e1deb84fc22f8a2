"""`chaosproxy demo`: a story in the terminal, in all its acts.

Takes a story's name; gives what everybody said and heard, and exit status 0 if the bug showed where it is told to.
"""

import click

from chaosproxy.demo.client import AnswerError
from chaosproxy.demo.stories import STORIES, play
from chaosproxy.embedded import Embedded, EmbeddedError
from chaosproxy.net.address import parse_address, parse_upstream
from chaosproxy.net.plan import Plan
from chaosproxy.profile import find, load
from chaosproxy.service import Service, ServiceError, Settings


@click.command()
@click.argument("story", default="two-tabs", type=click.Choice(list(STORIES)))
@click.option(
    "--list", "list_", is_flag=True, help="Tell which stories there are, a line for each."
)
@click.option("--seed", type=int, default=1, help="What the faults draw from.")
def command(story: str, seed: int, *, list_: bool) -> None:
    """Play a story: an application's bug, and its repair.

    Each is played without a fault, as manual testing sees it, and under the profiles that bring the bug out. Needs nothing: a
    server is started and removed again. Without STORY: two-tabs.
    """
    if list_:
        wide = max(map(len, STORIES))
        for name, each in STORIES.items():
            click.echo(f"{name:<{wide}}  {each.summary}")
        return
    try:
        with Embedded() as server:
            plan = Plan(
                listen=parse_address("127.0.0.1:0"),
                upstream=parse_upstream(server.url),
                disposable=True,
            )
            service = Service(Settings(plan=plan, profile=load([find("calm")]), seed=seed))
            try:
                acts = list(play(STORIES[story], service, seed, click.echo))
            finally:
                service.stop()
    except (EmbeddedError, ServiceError, AnswerError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo()
    wide = max(12, *(len(act.profile) for act in acts))
    for act in acts:
        click.echo(f"{act.app:<8}  {act.profile:<{wide}}  {act.broken or 'whole'}")
    if not all(act.as_told for act in acts):
        raise click.ClickException(
            "that is not how the story goes; a machine that is very busy can be why"
        )
