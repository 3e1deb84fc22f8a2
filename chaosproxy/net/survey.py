"""Asks the server what it is and which commands it knows.

Takes the side connection; gives a Survey, with what ships in the package where the server does not tell.
"""

import re
from dataclasses import dataclass

import hiredis

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.fault import ServerInfo
from chaosproxy.net.side import Side

_CLUSTER = re.compile(rb"^(?:redis|server)_mode:cluster\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found out. `answered`: it answered at all; `table_problem`: why `table` is the one that ships.

    `cluster`: it is a node of one.
    """

    answered: bool
    server: ServerInfo
    table: CommandTable
    table_problem: str = ""
    cluster: bool = False


async def survey(side: Side) -> Survey:
    """Ask. Never raises for what the server says or fails to say."""
    bundled = CommandTable.bundled()
    info = await side.request(b"INFO", b"server")
    commands = await side.request(b"COMMAND") if info is not None else None
    server, cluster = read_info(info or b""), _CLUSTER.search(info or b"") is not None
    if commands is None:
        return Survey(info is not None, server, bundled, "no answer", cluster)
    try:
        table = CommandTable.from_reply(_decode(commands), bundled)
    except ValueError as error:
        # An ACL may forbid it.
        return Survey(True, server, bundled, str(error), cluster)
    return Survey(True, server, table, cluster=cluster)


def read_info(info: bytes) -> ServerInfo:
    """Read product and version from INFO's text; a server that does not tell counts as ServerInfo's default."""
    if (found := _version(rb"valkey_version", info)) is not None:
        return ServerInfo("Valkey", found)
    if (found := _version(rb"redis_version", info)) is not None:
        return ServerInfo("Redis", found)
    return ServerInfo()


def _version(field: bytes, info: bytes) -> tuple[int, ...] | None:
    found = re.search(rb"^" + field + rb":(\d{1,9}(?:\.\d{1,9}){0,9})", info, re.MULTILINE)
    return tuple(map(int, found[1].split(b"."))) if found else None


def _decode(raw: bytes) -> object:
    """Decode a reply. Raises ValueError for one that is none, or whose maps have lists as keys."""
    reader = hiredis.Reader()
    reader.feed(raw)
    try:
        return reader.gets()
    except (hiredis.ProtocolError, TypeError) as error:
        raise ValueError(f"not a reply: {error}") from None
