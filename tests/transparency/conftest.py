"""Fixtures of the mixes: how long each may take.

Takes `--mix-minutes`; gives seconds.
"""

import pytest


@pytest.fixture
def mix_seconds(request):
    """How long one test of marker `soak` goes on."""
    return 60 * request.config.getoption("--mix-minutes")
