"""What has to hold of anything at all: functions with what is drawn for them, tried quickly in every run and for minutes on request.

Takes functions; gives two tests of all those of a module.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

Property = tuple[Callable[..., None], dict[str, SearchStrategy[Any]], int]

_COMMON = settings(
    deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)


class Properties:
    """Those of one module, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Property] = {}

    def of(self, examples: int = 200, **drawn: SearchStrategy[Any]) -> Callable[[Any], Any]:
        """Declare one: it holds for whatever is drawn. `examples` are tried in every run, always the same ones."""

        def declare(function: Callable[..., None]) -> Callable[..., None]:
            self._known[function.__name__] = function, drawn, examples
            return function

        return declare

    def tests(self) -> tuple[Callable[..., None], Callable[..., None]]:
        """Give two tests: of all of them quickly, and for minutes."""
        each = pytest.mark.parametrize("name", self._known)

        @each
        def test_quickly(name: str) -> None:
            function, drawn, examples = self._known[name]
            settings(_COMMON, max_examples=examples, derandomize=True)(given(**drawn)(function))()

        @each
        @pytest.mark.fuzz
        @pytest.mark.timeout(0)
        def test_for_minutes(name: str, fuzz_seconds: float) -> None:
            function, drawn, _ = self._known[name]
            began, tried = monotonic(), 0
            most = settings(
                _COMMON, max_examples=500, phases=(Phase.generate, Phase.target, Phase.shrink)
            )
            # A run of hypothesis ends by a number; each has a seed of its own, which a failure names.
            number = round(began * 1e6)
            while monotonic() - began < fuzz_seconds:
                number += 1
                tried += most.max_examples
                print(f"seed {number}")
                seed(number)(most(given(**drawn)(function)))()
            print(f"{name}: some {tried} examples held")

        doc = f"What is declared here holds: {', '.join(self._known)}."
        test_quickly.__doc__ = test_for_minutes.__doc__ = doc
        return test_quickly, test_for_minutes
