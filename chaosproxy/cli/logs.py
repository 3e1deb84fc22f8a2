"""What the proxy says on stderr while it runs.

Takes a level and a format; gives log lines: text for people, JSON for collectors.
"""

import logging
import sys
from datetime import UTC, datetime

from chaosproxy.telling import json_text, printable

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


def set_up(level: str, format_: str) -> None:
    """Send the package's log to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if format_ == "json" else _Text("chaosproxy: %(message)s"))
    log = logging.getLogger("chaosproxy")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # Servers and clients may have a word in a line; none of them moves the terminal's cursor.
        return "\n".join(map(printable, super().format(record).split("\n")))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "more", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json_text(line, default=str)
