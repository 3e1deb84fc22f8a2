"""Fixtures for the tests of single faults.

Takes a profile's faults as YAML; gives what is wrong with them.
"""

import pytest

from chaosproxy.profile import ProfileError
from tests.conversation import profile


@pytest.fixture
def problems():
    """Give a function that loads faults that are wrong, and gives the messages without their places."""

    def problems(faults: str) -> list[str]:
        with pytest.raises(ProfileError) as raised:
            profile(faults)
        return [problem.message for problem in raised.value.problems]

    return problems
