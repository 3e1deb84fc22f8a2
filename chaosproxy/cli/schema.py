"""`chaosproxy schema`: the JSON Schema of a profile, for editors.

Takes nothing; gives JSON on stdout.
"""

import json

import click

from chaosproxy.schema import profile_schema


@click.command()
def command() -> None:
    """Print the JSON Schema of a profile.

    An editor with a YAML language server takes it: write it to a file, and begin a profile with
    `# yaml-language-server: $schema=FILE`.
    """
    click.echo(json.dumps(profile_schema(), indent=2, ensure_ascii=False))
