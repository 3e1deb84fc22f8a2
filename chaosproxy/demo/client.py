"""A client of the stories: one connection, whose every command is told with its answer.

Takes where Redis is and whom to tell; gives answers.
"""

import socket
import time
from collections.abc import Callable
from typing import Any, Self

import hiredis

#: How long an answer may take, in seconds: longer than any shipped profile holds one back.
PATIENCE = 30.0
#: An answer that took longer than this is told with its time.
SLOW = 0.1


class AnswerError(Exception):
    """Redis answered with an error; the text is its."""


class Client:
    """One connection. `tell` hears what was asked by `name` and what came back."""

    def __init__(
        self, address: tuple[str, int], name: str, tell: Callable[[str, str], None]
    ) -> None:
        self._socket = socket.create_connection(address, PATIENCE)
        self._reader = hiredis.Reader(encoding="utf-8", errors="replace")
        self._name, self._tell = name, tell

    def ask(self, *words: str) -> Any:
        """Send a command, give its answer: text, a number, a list or None. Raises AnswerError and OSError."""
        began = time.monotonic()
        # Its stub takes a tuple of one.
        self._socket.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]
        while (answer := self._reader.gets()) is False:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionResetError("the connection has ended")
            self._reader.feed(data)
        took = time.monotonic() - began
        late = f"  after {took:.1f} s" if took > SLOW else ""
        self._tell(self._name, f"{' '.join(words)} → {shown(answer)}{late}")
        if isinstance(answer, hiredis.ReplyError):
            raise AnswerError(str(answer))
        return answer

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        """Give the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()


def shown(answer: Any) -> str:
    """Render an answer as a line."""
    match answer:
        case None:
            return "nothing"
        case list():
            return f"[{', '.join(map(shown, answer))}]"
        case _:
            return str(answer)
