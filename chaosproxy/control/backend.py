"""What the control API asks of a running proxy.

Takes nothing: it is the shape that `service.Service` has, and that a test can have too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from chaosproxy.core.rule import Profile
from chaosproxy.counts import Limits
from chaosproxy.journal import Journal
from chaosproxy.profile import Source

if TYPE_CHECKING:
    from chaosproxy.control.toxiproxy import Toxiproxy


class Backend(Protocol):
    """A running proxy; everything may be called from any thread.

    It answers within a second, a change within five, or raises net.loop.BusyError: then it was not done, and will not be.
    """

    @property
    def journal(self) -> Journal:
        """What has fired."""

    @property
    def toxiproxy(self) -> "Toxiproxy":
        """What Toxiproxy's clients speak to."""

    @property
    def limits(self) -> Limits:
        """Where it is counted that a limit was reached."""

    def unready(self) -> str | None:
        """Give why it cannot serve clients now, or None if it can."""

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """Give the metrics' content type and text."""

    def in_force(self) -> dict[str, Any]:
        """Give the profile in force, with its seed, generation and what its faults have done."""

    def put(self, profile: Profile, seed: int | None) -> dict[str, Any]:
        """Put a profile in force on every connection and give what `in_force` gives; without a seed: its own, or the same."""

    def strangers(self, sources: Sequence[Source], overrides: Sequence[str]) -> list[str]:
        """Give what profiles speak of and the very server behind the proxy does not know."""

    def trigger(self, name: str) -> dict[str, Any]:
        """Ask a fault to act, and give its status. Raises UnknownFaultError and CannotTriggerError."""

    def enable(self, name: str, enabled: bool) -> dict[str, Any]:
        """Switch a fault on or off, and give its status. Raises UnknownFaultError."""

    def timeline(self) -> list[dict[str, Any]]:
        """Give what has happened in each of the last seconds."""

    def connections(self) -> list[dict[str, Any]]:
        """Give the client connections that are open."""

    def cut(self, connection: int) -> bool:
        """Reset a client's connection; False if there is none of that number."""
