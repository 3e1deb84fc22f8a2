"""Fixtures of the fuzz tests: how long each may take.

Takes `--fuzz-minutes`; gives seconds.
"""

import pytest


@pytest.fixture
def fuzz_seconds(request):
    """How long one test of marker `fuzz` goes on."""
    return round(60 * request.config.getoption("--fuzz-minutes"))
