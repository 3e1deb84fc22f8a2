"""A primary and its standby: the standby copies through the relay, takes over at a switch, and all is put back in the end.

Takes two servers; gives one that is the primary at any time, and at a switch the writes that were lost.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from chaosproxy.core.command_table import CommandTable
from chaosproxy.net.address import Address, Upstream
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.net.pair_error import PairError, UnsurePairError
from chaosproxy.net.reception import own_host
from chaosproxy.net.relay import Relay
from chaosproxy.net.side import Side
from chaosproxy.topology.stream import Write

#: How often a server is asked whether it is where it should be, in seconds.
_POLL: Final = 0.01
#: How long one step of a switch may take, in seconds.
PATIENCE: Final = 10.0
#: How long a server may take to copy all data of another one, in seconds.
SYNC_PATIENCE: Final = 60.0
#: The same when the proxy ends.
_LAST_PATIENCE: Final = 10.0

_log = logging.getLogger("chaosproxy.pair")


@dataclass(slots=True)
class Node:
    """One of the two servers. `origin` is whose replica it was at first (host, port), None: nobody's.

    `side`: the proxy's own connections to it. `changed`: its settings that the proxy has changed, with what they were.
    """

    name: str
    upstream: Upstream
    dialler: Dialler
    side: Side
    origin: tuple[bytes, bytes] | None = None
    touched: bool = False
    changed: dict[bytes, bytes] = field(default_factory=dict)

    async def info(self) -> dict[str, str]:
        """What it says of replication. Raises PairError if it does not answer."""
        reply = await self.side.request(b"INFO", b"replication")
        if reply is None or reply[:1] != b"$":
            raise PairError(
                f"the {self.name} {self.upstream.address} does not answer: {_text(reply)}"
            )
        lines = reply.decode("utf-8", "backslashreplace").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    async def do(self, *words: bytes) -> None:
        """Have it do something. Raises PairError if it refuses."""
        reply = await self.side.request(*words)
        if reply is None or reply[:1] == b"-":
            what = b" ".join(words[:2]).decode("utf-8", "backslashreplace")
            kind = UnsurePairError if reply is None else PairError
            raise kind(f"the {self.name} {self.upstream.address} refuses {what}: {_text(reply)}")

    async def setting(self, name: bytes) -> bytes | None:
        """One of its settings; None: it has none of that name, or does not say."""
        reply = await self.side.request(b"CONFIG", b"GET", name)
        found = re.match(rb"\*2\r\n\$\d+\r\n[^\r]*\r\n\$\d+\r\n(.*)\r\n\Z", reply or b"", re.DOTALL)
        return found[1] if found else None

    async def change(self, name: bytes, value: bytes) -> None:
        """Give it another setting, which is put back in the end."""
        before = await self.setting(name)
        if before is None or before == value:
            return
        await self.do(b"CONFIG", b"SET", name, value)
        self.changed.setdefault(name, before)

    async def until(self, holds: Callable[[dict[str, str]], bool], patience: float) -> bool:
        """Wait until what it says of replication is so; False if that takes too long."""
        end = monotonic() + patience
        while not holds(await self.info()):
            if monotonic() > end:
                return False
            await asyncio.sleep(_POLL)
        return True


@dataclass(frozen=True, slots=True)
class Lost:
    """What a switch has cost: the writes that had not crossed, oldest first; None: that could not be found out, and `why`."""

    writes: Sequence[Write] | None
    why: str = ""


class Pair:
    """Two servers, of which `primary` has the clients. `ready` once the standby copies through the relay.

    `disposable`: both end with the proxy, so nothing of them is put back.
    """

    def __init__(
        self,
        primary: Node,
        standby: Node,
        table: Callable[[], CommandTable],
        *,
        disposable: bool = False,
    ) -> None:
        self.primary = primary
        self.standby = standby
        self.relay = Relay(primary.dialler, table)
        self._first = primary
        self._disposable = disposable
        self._address: Address | None = None
        self.switched = False
        #: The old primary copies nobody since the last switch.
        self.detached = False

    async def attach(self) -> None:
        """Have the standby copy through the relay; returns once it does. Raises PairError."""
        primary, standby = await self.primary.info(), await self.standby.info()
        if primary.get("role") != "master":
            raise PairError(f"the upstream {self.primary.upstream.address} is a replica itself")
        if standby.get("role") == "slave":
            same = primary.get("master_replid") == standby.get("master_replid")
            host, port = standby.get("master_host", ""), standby.get("master_port", "")
            ours = _is_at(self._address, host, port)
            if not (same or ours or _is_at(self.primary.upstream.address, host, port)):
                raise PairError(
                    f"the standby {self.standby.upstream.address} is a replica of {host}:{port}, not of the upstream"
                )
            if not ours:
                self.standby.origin = host.encode(), port.encode()
        elif await self._holds_data(self.standby):
            raise PairError(
                f"the standby {self.standby.upstream.address} has data of its own, and is no replica: that would be lost"
            )
        await self._follow(self.standby, self.primary)
        await self.caught_up()

    async def _follow(self, standby: Node, primary: Node) -> None:
        """Have a server copy the other one, by way of the relay."""
        if self._address is None:
            self._address = await self._listen(standby)
        standby.touched = True
        if primary.upstream.password is not None:
            await standby.change(b"masterauth", primary.upstream.password.encode())
            await standby.change(b"masteruser", (primary.upstream.username or "").encode())
        # The relay itself speaks TLS to the primary where that is wanted.
        await standby.change(b"tls-replication", b"no")
        # The snapshot is to come ahead of the commands, on the one connection that the relay holds back and cuts.
        for second_channel in (b"repl-rdb-channel", b"dual-channel-replication-enabled"):
            await standby.change(second_channel, b"no")
        host, port = self._address.host, self._address.port
        await standby.do(b"REPLICAOF", host.encode(), b"%d" % port)

    async def caught_up(self) -> None:
        """Wait until the standby has a copy, and follows. Raises PairError."""
        standby = self.standby

        def follows(info: dict[str, str]) -> bool:
            return _follows(info) and self.relay.synced

        if not await standby.until(follows, SYNC_PATIENCE):
            raise PairError(
                f"the {standby.name} {standby.upstream.address} does not get its data by way of {self._address}: does it "
                "reach that address, and has it the primary's password (masterauth)?"
            )

    async def _listen(self, standby: Node) -> Address:
        """Listen where the standby reaches this machine: by the address with which this machine reaches it."""
        address = await _way_to(standby.dialler)
        try:
            return await self.relay.open(Address(address, 0))
        except OSError as error:
            raise PairError(
                f"cannot listen on {address} for the standby: {error.strerror}"
            ) from None

    @property
    def ready(self) -> bool:
        """Whether the standby gets what the primary writes."""
        return self.relay.synced

    async def linked(self, patience: float) -> bool:
        """Wait until the standby gets what the primary writes; False if that takes too long."""
        end = monotonic() + patience
        while not self.ready:
            if monotonic() > end:
                return False
            await asyncio.sleep(_POLL)
        return True

    async def switch(self, quiet: Callable[[], Awaitable[object]]) -> Lost:
        """The standby becomes the primary, without what has not crossed. Nobody sends writes to the old one any more.

        `quiet` waits until what was sent to it is answered. Raises PairError.
        """
        await quiet()
        offset = _offset(await self.primary.info(), "master_repl_offset", 0)
        known = await self.relay.has_come(offset, PATIENCE)
        lost, crossed = self.relay.freeze(), self.relay.crossed
        if known:
            known = await self.standby.until(
                lambda info: _offset(info, "slave_repl_offset", -1) == crossed, PATIENCE
            )
        await self.standby.do(b"REPLICAOF", b"NO", b"ONE")
        self.relay.cut()
        self.switched = not self.switched
        self.detached = True
        self.primary, self.standby = self.standby, self.primary
        if not known:
            return Lost(None, "the replication link was down, or did not keep up")
        return Lost(lost)

    async def rejoin(self) -> None:
        """The old primary begins to copy the new one: it loses what that never received. Raises PairError."""
        self.relay.retarget(self.primary.dialler)
        self.detached = False
        await self._follow(self.standby, self.primary)

    async def put_back(self) -> None:
        """Everything as it was: who is whose replica, and each setting. What was written is kept. Never raises."""
        try:
            async with asyncio.timeout(2 * _LAST_PATIENCE):
                if not self._disposable:
                    await self._put_back_roles()
                    for node in (self.primary, self.standby):
                        for name, value in node.changed.items():
                            await node.do(b"CONFIG", b"SET", name, value)
        except PairError as error:
            _log.error("not everything is as it was: %s", error)
        except TimeoutError:
            _log.error("not everything is as it was: that took too long")
        finally:
            self.relay.close()
            for node in (self.primary, self.standby):
                node.side.close()

    async def _put_back_roles(self) -> None:
        if self.switched:
            # What was written since goes to the first primary before that takes over again.
            first, other = self._first, self.primary
            if not self.ready:
                await self.rejoin()
                await self.caught_up()
            self.relay.hold_back(0, 0)
            offset = _offset(await other.info(), "master_repl_offset", 0)
            # While it reads its copy in, the offset that it tells may be one of its own past.
            if not await first.until(
                lambda info: _follows(info) and _offset(info, "slave_repl_offset", -1) >= offset,
                _LAST_PATIENCE,
            ):
                raise PairError(
                    f"{first.upstream.address} does not catch up with {other.upstream.address}"
                )
            await first.do(b"REPLICAOF", b"NO", b"ONE")
            self.primary, self.standby = first, other
            self.switched = False
        standby = self.standby
        if standby.touched:
            self.relay.cut()
            await standby.do(b"REPLICAOF", *(standby.origin or (b"NO", b"ONE")))

    @staticmethod
    async def _holds_data(node: Node) -> bool:
        reply = await node.side.request(b"INFO", b"keyspace")
        return reply is None or b"\ndb" in reply


async def _way_to(dialler: Dialler) -> str:
    """Give this machine's address on the way to a server."""
    try:
        transport, _ = await dialler.dial(asyncio.Protocol)
    except DialError as error:
        raise PairError(str(error)) from None
    host = own_host(transport)
    transport.abort()
    return host


def _is_at(address: Address | None, host: str, port: str) -> bool:
    return address is not None and (address.host, str(address.port)) == (host, port)


def _follows(info: dict[str, str]) -> bool:
    """Whether a server has its primary's data, and is sent what that writes."""
    return info.get("master_link_status") == "up"


def _offset(info: dict[str, str], name: str, otherwise: int) -> int:
    """An offset as a server says it, or what it counts as where it says none."""
    text = info.get(name, "")
    return int(text) if re.fullmatch("-?[0-9]{1,19}", text) else otherwise


def _text(reply: bytes | None) -> str:
    return "no answer" if reply is None else reply[1:].strip().decode("utf-8", "backslashreplace")
