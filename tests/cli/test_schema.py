"""`chaosproxy schema`: JSON on stdout, which an editor can take as it is."""

import json

from click.testing import CliRunner

from chaosproxy.cli import main
from chaosproxy.schema import profile_schema


def test_schema():
    """It is the schema, as JSON."""
    done = CliRunner().invoke(main, ["schema"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == profile_schema()
