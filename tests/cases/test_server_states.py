"""The server has forgotten the scripts: who loads them again, who answers with errors.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

WEB = ("fastapi==0.115.0", "httpx==0.27.2")


@pytest.mark.parametrize(
    ("version", "client", "statuses"),
    [("0.1.5", "4.6.0", [200, 500, 500, 500]), ("0.1.6", "5.0.8", [200, 200, 200, 200])],
)
def test_forgotten_script_fastapi(stage, python, version, client, statuses):
    """fastapi-limiter loads its script at start; 0.1.5 answers 500 for ever, 0.1.6 loads it again."""
    app = python(f"fastapi-limiter=={version}", f"redis=={client}", *WEB)
    run = stage.play("cold-scripts", app, "fastapi_limited.py")
    assert run.said == statuses
    assert [fault for fault, *_ in run.fired] == ["cold-scripts"]


@pytest.mark.parametrize(
    ("version", "statuses"), [("3.0.1", [200, 500, 500, 500]), ("4.3.1", [200, 200, 200, 200])]
)
def test_forgotten_script_express(stage, npm, version, statuses):
    """The same with npm's rate-limit-redis, repaired by 4.3.1."""
    around = ("express@4.21.2", "express-rate-limit@6.11.2", "redis@4.7.1")
    run = stage.play(
        "cold-scripts", npm(f"rate-limit-redis@{version}", *around), "express_limited.mjs"
    )
    assert run.said == statuses
    assert [fault for fault, *_ in run.fired] == ["cold-scripts"]
