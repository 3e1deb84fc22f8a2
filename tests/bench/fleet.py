"""The peers that are up: started when first asked for, looked at, stopped.

Takes peers and the server's port, gives running programs and their ports.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import probe
from tests.bench.known import Place
from tests.bench.peers import Peer
from tests.bench.process import Program, start


@dataclass(slots=True)
class Fleet:
    """Peers in front of one server.

    Attributes:
        folder: For their configuration files and output.
        upstream: The server's port.

    """

    folder: Path
    upstream: int
    _up: dict[str, tuple[Program, int]] = field(default_factory=dict)

    def get(self, peer: Peer) -> tuple[Program, int]:
        """A peer that has shown that it carries commands, and its port."""
        if peer.name in self._up and not self._up[peer.name][0].alive():
            self.stop(peer.name)
        if peer.name not in self._up:
            self._start(peer)
            probe.verify(self._up[peer.name][1])
        return self._up[peer.name]

    def fresh(self, peer: Peer) -> tuple[Program, int, float]:
        """A peer that has done nothing yet, its port, and the seconds until it listened."""
        # One may insist on a port of its own: two of a kind are never up together.
        self.stop(peer.name)
        began = time.monotonic()
        self._start(peer)
        return *self._up[peer.name], time.monotonic() - began

    def place(self, peer: Peer, listen: int) -> Place:
        """Where a peer is to run."""
        folder = self.folder / peer.name
        folder.mkdir(exist_ok=True)
        return Place(folder, listen, self.upstream)

    def stop(self, name: str) -> None:
        """Stop one, if it is up."""
        if name in self._up:
            self._up.pop(name)[0].stop()

    def stop_all(self) -> None:
        """Stop what is up."""
        for name in list(self._up):
            self.stop(name)

    def _start(self, peer: Peer) -> None:
        log = self.place(peer, 0).folder / "output.log"
        self._up[peer.name] = start(lambda port: peer.words(self.place(peer, port)), log)
