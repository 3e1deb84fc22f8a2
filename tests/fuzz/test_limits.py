"""The limits are those that README's table says.

Takes README.md and the package's constants; gives proof that neither has one that the other has not.
"""

import re
from dataclasses import fields
from pathlib import Path

from chaosproxy import counts, journal, service
from chaosproxy.control import answer, events, handler, sockets, toxiproxy, visitor
from chaosproxy.core import engine, lane, memory, transaction, undo, when
from chaosproxy.net import entrance, listener, reception, refusals, sentinel, sentinels, side
from chaosproxy.net.plan import Plan
from chaosproxy.profile import problems, yaml_nodes

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def test_limits():
    """Every limit that is counted is in README's table, with the value that the code has."""
    (table,) = re.findall(r"^\| what \| at most \|.*?\n\n", README, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([a-z_]+)`", table)) >= set(counts.LIMITS)
    mib = 1 << 20
    for said, held in (
        ("8192 (", default("max_connections") == 8192),
        ("16 MiB (", 16 * mib == default("max_buffer")),
        ("128 are being told", refusals.MOST == 128),
        ("64 KiB | it is not read", entrance.EARLY == 64 << 10),
        ("250,000", lane.MOST_UNANSWERED == 250_000),
        ("16 MiB, `--max", 16 * mib == side.MOST),
        ("1,000, 16 MiB, 1 MiB", (1000, 16 * mib, 16 * mib, mib) == (reception.MOST, sentinel.LONGEST, sentinels.LONGEST, sentinel.MOST)),
        ("each, 4,096 keys", memory.MOST_KEYS == 4096),
        ("1,000,000", transaction.MOST_QUEUED == 1_000_000),
        ("64 MiB of 4,096 keys; 256 MiB", (64 * mib, 256 * mib) == (memory.MOST_BYTES, undo.MOST_BYTES)),
        ("10 s", listener.TLS_HELLO == 10),
        ("65,536 each", when.MOST_SCOPES == engine.MOST_KEYS == 65_536),
        ("500", counts.MOST_NAMES == 500),
        ("256 KiB, 24 levels, 20,000", (yaml_nodes.MAX_BYTES, yaml_nodes.MAX_DEPTH, yaml_nodes.MAX_NODES) == (256 << 10, 24, 20_000)),
        ("more than 100 problems", problems.MOST_PROBLEMS == 100),
        ("10,000, 32 MiB", (10_000, 32 * mib) == (journal.KEPT, journal.MOST_BYTES)),
        ("256 | the one", sockets.MOST_CONNECTIONS == 256),
        ("64 KiB, 100, 2 MiB", (64 << 10, 2 * mib) == (handler.MOST_HEAD, answer.MOST_BODY)),
        ("5 s; 20 s, and 60 s", (visitor.PATIENCE, sockets.UNREAD, sockets.LONGEST_ANSWER) == (5, 20, 60)),
        ("64 MiB | 503", 64 * mib == sockets.MOST_HELD),
        ("32, of 64", (events.MOST_WAITING, sockets.MOST_REQUESTS) == (32, 64)),
        ("1 s, 5 s", (service._SOON <= 1, service._CHANGE) == (True, 5)),
        ("proxies | 100", toxiproxy.MOST_PROXIES == 100),
    ):  # fmt: skip
        assert said in table, said
        assert held, said


def default(name):
    return next(each.default for each in fields(Plan) if each.name == name)
