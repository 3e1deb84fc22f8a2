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
_ARITY: Final = b"ERR wrong number of arguments for '%s' command"
_LIMITED: Final = b"ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
#: How many arguments they take, where that is not any number.
_TAKES: Final = {
    b"PING": (0, 1), b"ROLE": (0, 0), b"AUTH": (1, 2), b"CLIENT": (1, 64), b"SENTINEL": (1, 64), b"SUBSCRIBE": (1, 1 << 16),
    b"PSUBSCRIBE": (1, 1 << 16),
}  # fmt: skip
_CONTAINERS: Final = frozenset({b"SENTINEL", b"CLIENT", b"COMMAND"})
#: Not for a RESP2 client that has subscribed.
_TALKING: Final = _CONTAINERS | {b"AUTH", b"HELLO", b"INFO", b"ROLE"}
#: What SENTINEL may be asked, and how many arguments that has; one: a service's name, but for RESET's pattern.
_ABOUT: Final = {
    b"MASTERS": 0, b"PRIMARIES": 0, b"MYID": 0, b"FLUSHCONFIG": 0, b"PENDING-SCRIPTS": 0,
    b"GET-MASTER-ADDR-BY-NAME": 1, b"GET-PRIMARY-ADDR-BY-NAME": 1, b"MASTER": 1, b"PRIMARY": 1, b"REPLICAS": 1, b"SLAVES": 1,
    b"SENTINELS": 1, b"CKQUORUM": 1, b"FAILOVER": 1, b"RESET": 1,
    b"IS-MASTER-DOWN-BY-ADDR": 4, b"IS-PRIMARY-DOWN-BY-ADDR": 4,
}  # fmt: skip
#: So many bytes of the arguments of what is no command are told.
_SHOWN: Final = 128


@dataclass(frozen=True, slots=True)
class Service:
    """A service's name, and where a client finds its servers."""

    name: bytes
    primary: Where
    replicas: Sequence[Where] = ()


@dataclass(slots=True)
class Visitor:
    """One client of the Sentinel. `leaving`: it has said QUIT. `name`: what it calls itself."""

    protocol: int = 2
    leaving: bool = False
    name: bytes = b""
    channels: dict[bytes, None] = field(default_factory=dict)
    patterns: dict[bytes, None] = field(default_factory=dict)

    def answer(self, words: Sequence[bytes], service: Service) -> bytes:
        """Give the reply to a request; to one of several channels as many."""
        name, *rest = words
        name = name.upper()
        least, most = _TAKES.get(name, (0, len(rest)))
        if not least <= len(rest) <= most:
            return encode_error(_ARITY % name.lower())
        if self.protocol == 2 and (self.channels or self.patterns) and name in _TALKING:
            said = b"|".join(word.lower() for word in words[: 1 + (name in _CONTAINERS)])
            return encode_error(_LIMITED % said)
        return self._answer(name, rest, service)

    def _answer(self, name: bytes, rest: Sequence[bytes], service: Service) -> bytes:
        match name:
            case b"PING":
                return self._pong(rest)
            case b"HELLO":
                return self._hello(rest)
            case b"AUTH" | b"CLIENT" | b"COMMAND":
                return self._formality(name, rest)
            case b"QUIT":
                self.leaving = True
                return OK
            case b"INFO":
                return encode_bulk(_info(service, {word.lower() for word in rest}))
            case b"ROLE":
                return encode_array(
                    [encode_bulk(b"sentinel"), encode_array([encode_bulk(service.name)])]
                )
            case b"SENTINEL":
                return self._sentinel(rest[0], rest[1:], service)
            case _ if name in _SUBSCRIBING:
                return self._subscribe(name, rest)
        shown = b"".join(b"'%s' " % word for word in rest)[:_SHOWN]
        return encode_error(
            b"ERR unknown command '%s', with args beginning with: %s" % (name, shown)
        )

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
            if not rest[0].isdigit():
                return encode_error(b"ERR Protocol version is not an integer or out of range")
            if rest[0] not in {b"2", b"3"}:
                return encode_error(b"NOPROTO unsupported protocol version")
            match [word.upper() for word in rest[1:]]:
                case [] | [b"AUTH", _, _]:
                    pass
                case [b"SETNAME", _] | [b"AUTH", _, _, b"SETNAME", _]:
                    self.name = rest[-1]
                case [b"SETNAME", _, b"AUTH", _, _]:
                    self.name = rest[2]
                case _:
                    return encode_error(b"ERR Syntax error in HELLO option '%s'" % rest[1])
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

    def _formality(self, name: bytes, rest: Sequence[bytes]) -> bytes:
        """What clients say first, and nothing depends on here."""
        if name == b"COMMAND":
            return encode_array([])
        match name, rest[0].upper(), *rest[1:]:
            case b"CLIENT", b"ID":
                return encode_integer(1)
            case b"CLIENT", b"GETNAME":
                return encode_bulk(self.name) if self.name else encode_null(self.protocol)
            case b"CLIENT", b"SETNAME", said:
                self.name = said
        return OK

    def _sentinel(self, said: bytes, rest: Sequence[bytes], service: Service) -> bytes:
        what = said.upper()
        takes = _ABOUT.get(what)
        if takes is None:
            return encode_error(b"ERR unknown subcommand '%s'. Try SENTINEL HELP." % said)
        if len(rest) != takes:
            return encode_error(_ARITY % b"sentinel|%s" % what.lower())
        if takes == 1 and what != b"RESET":
            return self._about(what, service, known=rest[0] == service.name)
        match what:
            case b"MASTERS" | b"PRIMARIES":
                return encode_array([self._primary(service)])
            case b"RESET":
                # It knows nothing that could be forgotten.
                return encode_integer(
                    int(len(rest[0]) <= LONGEST and glob_match(rest[0], service.name))
                )
            case b"IS-MASTER-DOWN-BY-ADDR" | b"IS-PRIMARY-DOWN-BY-ADDR":
                return encode_array([encode_integer(0), encode_bulk(b"*"), encode_integer(0)])
            case b"MYID":
                return encode_bulk(ID)
        return OK if what == b"FLUSHCONFIG" else encode_array([])

    def _about(self, what: bytes, service: Service, *, known: bool) -> bytes:
        """Answer what is asked about one service."""
        if what in {b"GET-MASTER-ADDR-BY-NAME", b"GET-PRIMARY-ADDR-BY-NAME"} and not known:
            return encode_null(self.protocol, "array")
        if not known:
            return encode_error(b"ERR No such master with that name")
        match what:
            case b"GET-MASTER-ADDR-BY-NAME" | b"GET-PRIMARY-ADDR-BY-NAME":
                host, port = service.primary
                return encode_array([encode_bulk(host), encode_bulk(b"%d" % port)])
            case b"MASTER" | b"PRIMARY":
                return self._primary(service)
            case b"REPLICAS" | b"SLAVES":
                return encode_array([self._replica(each, service) for each in service.replicas])
            case b"SENTINELS":
                return encode_array([])
            case b"FAILOVER":
                # Only a profile has one happen.
                return encode_error(b"NOGOODSLAVE No suitable replica to promote")
        said = b"OK 1 usable Sentinels. Quorum and failover authorization can be reached"
        return encode_simple(said)

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


def _info(service: Service, sections: set[bytes]) -> bytes:
    host, port = service.primary
    known = {
        b"server": b"# Server\r\nredis_version:7.0.0\r\nredis_mode:sentinel\r\n",
        b"sentinel": b"# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:0\r\nsentinel_running_scripts:0\r\n"
        b"sentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:0\r\n"
        b"master0:name=%s,status=ok,address=%s:%d,slaves=%d,sentinels=1\r\n"
        % (service.name, host, port, len(service.replicas)),
    }
    every = not sections or sections & {b"default", b"all", b"everything"}
    return b"\r\n".join(text for name, text in known.items() if every or name in sections)
