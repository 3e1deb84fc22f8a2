"""A Sentinel of the proxy's own: what it answers where there is no real one.

Takes one client's requests, and where the service's servers are; gives replies as a Sentinel gives them, and messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chaosproxy.core.glob import LONGEST, glob_match
from chaosproxy.core.resp import (
    encode_array,
    encode_bulk,
    encode_error,
    encode_integer,
    encode_map,
    encode_null,
    encode_simple,
)

Where = tuple[bytes, int]
OK: Final = encode_simple(b"OK")
#: Who this is, among Sentinels.
ID: Final = b"c4a05" * 8
_SUBSCRIBING: Final = {
    b"SUBSCRIBE": (b"subscribe", True), b"PSUBSCRIBE": (b"psubscribe", True),
    b"UNSUBSCRIBE": (b"unsubscribe", False), b"PUNSUBSCRIBE": (b"punsubscribe", False),
}  # fmt: skip
#: So many channels and patterns may one client listen to.
_MOST: Final = 1000
_ARITY: Final = b"wrong number of arguments for '%s' command"


@dataclass(frozen=True, slots=True)
class Service:
    """A service's name, and where a client finds its servers."""

    name: bytes
    primary: Where
    replicas: Sequence[Where] = ()


@dataclass(slots=True)
class Visitor:
    """One client of the Sentinel. `leaving`: it has said QUIT."""

    protocol: int = 2
    leaving: bool = False
    channels: dict[bytes, None] = field(default_factory=dict)
    patterns: dict[bytes, None] = field(default_factory=dict)

    def answer(self, words: Sequence[bytes], service: Service) -> bytes:  # noqa: C901 - a table
        """Give the reply to a request; to one of several channels as many."""
        name = words[0].upper()
        match name, *words[1:]:
            case b"PING", *rest:
                return self._pong(rest)
            case b"HELLO", *rest:
                return self._hello(rest)
            case (b"AUTH" | b"CLIENT", *_) | (b"COMMAND", *_):
                return self._formality(name, words[1:])
            case b"QUIT", *_:
                self.leaving = True
                return OK
            case b"INFO", *_:
                return encode_bulk(_info(service))
            case b"ROLE", *_:
                return encode_array(
                    [encode_bulk(b"sentinel"), encode_array([encode_bulk(service.name)])]
                )
            case b"SENTINEL", what, *rest:
                return self._sentinel(what.upper(), rest, service)
            case ((b"SUBSCRIBE" | b"PSUBSCRIBE"), _, *_):
                return self._subscribe(name, words[1:])
            case ((b"UNSUBSCRIBE" | b"PUNSUBSCRIBE"), *_):
                return self._subscribe(name, words[1:])
            case ((b"SENTINEL" | b"SUBSCRIBE" | b"PSUBSCRIBE"), *_):
                return encode_error(b"ERR " + _ARITY % name.lower())
        return encode_error(b"ERR unknown command '%s', with args beginning with: " % words[0])

    def hears(self, channel: bytes, text: bytes) -> bytes:
        """Give a message as this client gets it, once for each subscription; nothing if it has none to it."""
        out = []
        if channel in self.channels:
            out.append(self._push([b"message", channel, text]))
        out += [
            self._push([b"pmessage", pattern, channel, text])
            for pattern in self.patterns
            if len(pattern) <= LONGEST and glob_match(pattern, channel)
        ]
        return b"".join(out)

    def _push(self, words: Sequence[bytes]) -> bytes:
        return self._as_push(encode_array([encode_bulk(word) for word in words]))

    def _as_push(self, array: bytes) -> bytes:
        return b">" + array[1:] if self.protocol == 3 else array

    def _pong(self, rest: Sequence[bytes]) -> bytes:
        if self.protocol == 2 and (self.channels or self.patterns):
            return encode_array([encode_bulk(b"pong"), encode_bulk(rest[0] if rest else b"")])
        return encode_bulk(rest[0]) if rest else encode_simple(b"PONG")

    def _hello(self, rest: Sequence[bytes]) -> bytes:
        if rest:
            if rest[0] not in {b"2", b"3"}:
                return encode_error(b"NOPROTO unsupported protocol version")
            self.protocol = int(rest[0])
        return encode_map(
            self.protocol,
            [
                (encode_bulk(b"server"), encode_bulk(b"redis")),
                (encode_bulk(b"version"), encode_bulk(b"7.0.0")),
                (encode_bulk(b"proto"), encode_integer(self.protocol)),
                (encode_bulk(b"id"), encode_integer(1)),
                (encode_bulk(b"mode"), encode_bulk(b"sentinel")),
                (encode_bulk(b"modules"), encode_array([])),
            ],
        )

    @staticmethod
    def _formality(name: bytes, rest: Sequence[bytes]) -> bytes:
        """What clients say first, and nothing depends on here."""
        if name == b"COMMAND":
            return encode_array([])
        if rest and rest[0].upper() == b"ID":
            return encode_integer(1)
        return OK

    def _sentinel(self, what: bytes, rest: Sequence[bytes], service: Service) -> bytes:
        known = rest[:1] == [service.name]
        no_such = encode_error(b"ERR No such master with that name")
        match what:
            case b"GET-MASTER-ADDR-BY-NAME" | b"GET-PRIMARY-ADDR-BY-NAME" if rest:
                if not known:
                    return encode_null(self.protocol, "array")
                host, port = service.primary
                return encode_array([encode_bulk(host), encode_bulk(b"%d" % port)])
            case b"MASTERS" | b"PRIMARIES":
                return encode_array([self._primary(service)])
            case b"MASTER" | b"PRIMARY" if rest:
                return self._primary(service) if known else no_such
            case b"REPLICAS" | b"SLAVES" if rest:
                if not known:
                    return no_such
                return encode_array([self._replica(each, service) for each in service.replicas])
            case b"SENTINELS" if rest:
                return encode_array([]) if known else no_such
            case b"CKQUORUM" if rest:
                said = b"OK 1 usable Sentinels. Quorum and failover authorization can be reached"
                return encode_simple(said) if known else no_such
            case b"MYID":
                return encode_bulk(ID)
        return encode_error(b"ERR Unknown sentinel subcommand '%s'" % what.lower())

    def _map(self, **fields: bytes | int) -> bytes:
        pairs = [
            (
                encode_bulk(name.replace("_", "-").encode()),
                encode_bulk(value if isinstance(value, bytes) else b"%d" % value),
            )
            for name, value in fields.items()
        ]
        return encode_map(self.protocol, pairs)

    def _primary(self, service: Service) -> bytes:
        host, port = service.primary
        return self._map(
            name=service.name, ip=host, port=port, runid=ID, flags=b"master", role_reported=b"master",
            config_epoch=0, num_slaves=len(service.replicas), num_other_sentinels=0, quorum=1, failover_timeout=180000,
            parallel_syncs=1, down_after_milliseconds=30000,
        )  # fmt: skip

    def _replica(self, where: Where, service: Service) -> bytes:
        return self._map(
            name=b"%s:%d" % where, ip=where[0], port=where[1], runid=ID, flags=b"slave", role_reported=b"slave",
            master_link_status=b"ok", master_host=service.primary[0], master_port=service.primary[1], slave_priority=100,
            slave_repl_offset=0,
        )  # fmt: skip

    def _subscribe(self, name: bytes, wanted: Sequence[bytes]) -> bytes:
        word, add = _SUBSCRIBING[name]
        mine = self.patterns if name.startswith(b"P") else self.channels
        if add and len(self.channels) + len(self.patterns) + len(wanted) > _MOST:
            return encode_error(b"ERR too many subscriptions")
        out = []
        for channel in wanted or tuple(mine) or (None,):
            if add and channel is not None and channel not in mine:
                mine[channel] = None
            elif not add and channel in mine:
                del mine[channel]
            told = encode_null(self.protocol) if channel is None else encode_bulk(channel)
            count = encode_integer(len(self.channels) + len(self.patterns))
            out.append(self._as_push(encode_array([encode_bulk(word), told, count])))
        return b"".join(out)


def messages(name: bytes, old: Where, new: Where) -> list[tuple[bytes, bytes]]:
    """What a Sentinel says when another server has become the primary: channel and text, in order."""
    return [
        (b"+sdown", b"master %s %s %d" % (name, *old)),
        (b"+odown", b"master %s %s %d #quorum 1/1" % (name, *old)),
        (b"+switch-master", b"%s %s %d %s %d" % (name, *old, *new)),
        (b"+slave", b"slave %s:%d %s %d @ %s %s %d" % (*old, *old, name, *new)),
    ]


def _info(service: Service) -> bytes:
    host, port = service.primary
    return (
        b"# Server\r\nredis_version:7.0.0\r\nredis_mode:sentinel\r\n\r\n# Sentinel\r\nsentinel_masters:1\r\n"
        b"sentinel_tilt:0\r\nsentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\n"
        b"sentinel_simulate_failure_flags:0\r\n"
        b"master0:name=%s,status=ok,address=%s:%d,slaves=%d,sentinels=1\r\n"
        % (service.name, host, port, len(service.replicas))
    )
