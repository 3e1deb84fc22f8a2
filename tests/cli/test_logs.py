"""What is said on stderr: lines for people, or objects for collectors."""

import json
import logging

import pytest

from chaosproxy.cli import logs


@pytest.fixture(autouse=True)
def log():
    """The package's logger, put back afterwards."""
    log = logging.getLogger("chaosproxy")
    before = log.handlers[:], log.level, log.propagate
    yield log
    log.handlers[:], log.level, log.propagate = before


def test_text(capsys):
    """A line names the program; what is below the level is not said."""
    logs.set_up("warning", "text")
    logging.getLogger("chaosproxy.net").warning("gone: %s", "server")
    logging.getLogger("chaosproxy.net").info("not this")
    assert capsys.readouterr().err == "chaosproxy: gone: server\n"


def test_json(capsys):
    """A line is an object with time, level, logger and message, and what else was given; exceptions too."""
    logs.set_up("info", "json")
    logging.getLogger("chaosproxy.net").info("started", extra={"more": {"pid": 7}})
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        logging.getLogger("chaosproxy.net").exception("failed")
    started, failed = map(json.loads, capsys.readouterr().err.splitlines())
    assert started.pop("at").endswith("+00:00")
    assert started == {"level": "info", "logger": "chaosproxy.net", "message": "started", "pid": 7}
    assert failed["level"] == "error"
    assert failed["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_set_up_twice(capsys):
    """Setting up again replaces, and says nothing twice."""
    logs.set_up("info", "json")
    logs.set_up("info", "text")
    logging.getLogger("chaosproxy").info("once")
    assert capsys.readouterr().err == "chaosproxy: once\n"
