r"""Replies that say where a server is: the proxy's own addresses put in the place of the servers'.

Takes one whole reply and who translates addresses; gives the reply with these changed and every other byte as it came.

Which replies these are (RESP section 3.7): errors MOVED, ASK and REDIRECT; CLUSTER SLOTS, SHARDS, NODES, REPLICAS and SLAVES;
INFO's lines on replication; ROLE. Not translated, since no client follows them: CLIENT LIST's `laddr`, CONFIG GET, the bus port
behind an `@`. A reply that is not what it should be stays as it is.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

from chaosproxy.core.modes import Args
from chaosproxy.core.reply import ReplyFrame, elements
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

#: Commands whose replies have addresses in them.
COMMANDS: Final = frozenset({b"CLUSTER", b"INFO", b"ROLE"})
_REDIRECTIONS: Final = (b"-MOVED ", b"-ASK ", b"-REDIRECT ")
#: What stands for a host that a server does not tell: the client takes the one it is connected to.
_UNTOLD: Final = (b"", b"?")

_NODE = re.compile(rb"(?m)^([0-9a-f]{40} )(\S*)")
_MASTER = re.compile(rb"(?m)^master_host:([^\r\n]*)\r\nmaster_port:(\d+)")
_SLAVE = re.compile(rb"(?m)^(slave\d+:ip=)([^,\r\n]*),port=(\d+)")


class Translate(Protocol):
    """Gives the host and port by which a client reaches what is at a host and port."""

    def __call__(self, host: bytes, port: int, /, *others: int) -> tuple[bytes, int]:
        """No host: that of the client's own server. `others`: ports at which the same server is too."""
        ...


def concerns(args: Args) -> bool:
    """Whether a command's reply may have addresses in it."""
    return bool(args) and (args[0] or b"").upper() in COMMANDS


def in_frame(translate: Translate, asked: Args, frame: ReplyFrame) -> bytes:
    """Give a frame's bytes with the addresses that this client is to see; `asked` is the command, if it is the answer to one."""
    if frame.kind == ord("-"):
        return redirected(frame.raw, translate)
    return translated(asked, frame.raw, translate) if concerns(asked) else frame.raw


def redirected(raw: bytes, translate: Translate) -> bytes:
    """Translate an error that says where to go; any other reply stays as it is."""
    if not raw.startswith(_REDIRECTIONS):
        return raw
    before, blank, where = raw[:-2].rpartition(b" ")
    host, colon, port = where.rpartition(b":")
    if not (colon and port.isdigit() and len(port) < 6):
        return raw
    return before + blank + _joined(host, int(port), translate) + b"\r\n"


def translated(args: Args, raw: bytes, translate: Translate) -> bytes:
    """Translate a command's reply."""
    words = [(word or b"").upper() for word in args[:2]]
    try:
        match words:
            case [b"CLUSTER", b"SLOTS"]:
                return _slots(raw, translate)
            case [b"CLUSTER", b"SHARDS"]:
                return _shards(raw, translate)
            case [b"CLUSTER", b"NODES"]:
                return text_changed(raw, lambda text: _nodes(text, translate))
            case [b"CLUSTER", b"REPLICAS" | b"SLAVES"]:
                return _each(
                    raw, lambda line: text_changed(line, lambda text: _nodes(text, translate))
                )
            case [b"INFO", *_]:
                return text_changed(raw, lambda text: _info(text, translate))
            case [b"ROLE", *_]:
                return _role(raw, translate)
    except (ProtocolError, ValueError, LookupError):
        pass
    return raw


def _joined(host: bytes, port: int, translate: Translate) -> bytes:
    """`host:port`, a host that is not told staying so."""
    there, number = _found(host, port, translate)
    return b"%s:%d" % (host if host in _UNTOLD else there, number)


def _found(host: bytes, port: int, translate: Translate, *others: int) -> tuple[bytes, int]:
    return translate(b"" if host in _UNTOLD else host, port, *others)


# Strings, and what is made of replies.


def text_changed(raw: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change the text of a bulk or verbatim string, and its length; any other reply stays as it is."""
    kind, head = raw[:1], 4 if raw[:1] == b"=" else 0
    if kind not in {b"$", b"="} or raw[1:2] == b"-":
        return raw
    start = raw.index(b"\r\n") + 2 + head
    text = change(raw[start:-2])
    if text == raw[start:-2]:
        return raw
    format_ = raw[start - head : start]
    return b"%s%d\r\n%s%s\r\n" % (kind, len(text) + head, format_, text)


def _each(raw: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change every element of an aggregate."""
    header, parts, pushes = elements(raw)
    if pushes:
        raise ProtocolError("pushes inside")
    return header + b"".join(map(change, parts))


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)


def _like(raw: bytes, value: bytes) -> bytes:
    """A string or a number of the kind that `raw` is."""
    return _bulk(value) if raw[:1] == b"$" else raw[:1] + value + b"\r\n"


def _string(raw: bytes) -> bytes | None:
    """A string's text, None for a null; raises ProtocolError for anything else."""
    value = decode(raw)
    if value is not None and not isinstance(value, bytes):
        raise ProtocolError(f"{raw[:1]!r} begins no string")
    return value


# The cluster's own.


def _slots(raw: bytes, translate: Translate) -> bytes:
    """CLUSTER SLOTS: ranges of [first, last, node, …], a node being [host, port, id, metadata]."""

    def of_range(part: bytes) -> bytes:
        header, parts, _ = elements(part)
        return header + b"".join(
            (*parts[:2], *(_slots_node(each, translate) for each in parts[2:]))
        )

    return _each(raw, of_range)


def _slots_node(raw: bytes, translate: Translate) -> bytes:
    header, parts, _ = elements(raw)
    host, port = _string(parts[0]), int(parts[1][1:-2])
    meta = parts[3:4] and _pairs(parts[3])
    known = host or (meta and (meta.get(b"ip") or meta.get(b"hostname"))) or b""
    there, number = _found(known, port, translate)
    if host is not None and host not in _UNTOLD:
        parts[0] = _bulk(there)
    parts[1] = b":%d\r\n" % number
    if meta:
        parts[3] = _with(parts[3], {b"ip": there, b"hostname": there})
    return header + b"".join(parts)


def _pairs(raw: bytes) -> dict[bytes, bytes]:
    """A map, or an array of names and values in turn: those values that are strings or numbers, as text."""
    _, parts, _ = elements(raw)
    pairs = {}
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        said = decode(value)
        if isinstance(said, bytes | int):
            pairs[_string(name) or b""] = said if isinstance(said, bytes) else b"%d" % said
    return pairs


def _with(raw: bytes, values: dict[bytes, bytes]) -> bytes:
    """The same map with other values under these names, where it has any that are not empty."""
    header, parts, _ = elements(raw)
    for index in range(0, len(parts), 2):
        value = values.get(_string(parts[index]) or b"")
        if value is not None and decode(parts[index + 1]) not in (None, *_UNTOLD):
            parts[index + 1] = _like(parts[index + 1], value)
    return header + b"".join(parts)


def _shards(raw: bytes, translate: Translate) -> bytes:
    """CLUSTER SHARDS: shards with `slots` and `nodes`, a node being a map of `ip`, `endpoint`, `port` and more."""

    def of_shard(part: bytes) -> bytes:
        header, parts, _ = elements(part)
        for index in range(0, len(parts), 2):
            if _string(parts[index]) == b"nodes":
                parts[index + 1] = _each(
                    parts[index + 1], lambda node: _shards_node(node, translate)
                )
        return header + b"".join(parts)

    return _each(raw, of_shard)


def _shards_node(raw: bytes, translate: Translate) -> bytes:
    said = _pairs(raw)
    names = [said.get(name, b"") for name in (b"ip", b"endpoint", b"hostname")]
    host = next((name for name in names if name not in _UNTOLD), b"")
    # Which of the two this client would use only its connection says; both become the same.
    ports = [int(said[name]) for name in (b"port", b"tls-port") if name in said]
    if not ports:
        return raw
    there, number = _found(host, ports[0], translate, *ports[1:])
    to = b"%d" % number
    hosts = dict.fromkeys((b"ip", b"endpoint", b"hostname"), there)
    return _with(raw, {**hosts, b"port": to, b"tls-port": to})


def _nodes(text: bytes, translate: Translate) -> bytes:
    """CLUSTER NODES, or one line of it: `id ip:port@bus,hostname,… flags …`."""

    def of_node(found: re.Match[bytes]) -> bytes:
        where, *more = found[2].split(b",")
        place, at, bus = where.partition(b"@")
        host, colon, port = place.rpartition(b":")
        if not (colon and port.isdigit() and int(port)):
            return found[0]
        there = _found(host, int(port), translate)[0]
        if more and more[0] and b"=" not in more[0]:
            more[0] = there
        return found[1] + b",".join((_joined(host, int(port), translate) + at + bus, *more))

    return _NODE.sub(of_node, text)


# What replication says.


def _info(text: bytes, translate: Translate) -> bytes:
    """INFO: where a replica's master is, and where a master's replicas are."""

    def of_master(found: re.Match[bytes]) -> bytes:
        there, port = _found(found[1], int(found[2]), translate)
        return b"master_host:%s\r\nmaster_port:%d" % (there, port)

    def of_slave(found: re.Match[bytes]) -> bytes:
        there, port = _found(found[2], int(found[3]), translate)
        return b"%s%s,port=%d" % (found[1], there, port)

    return _SLAVE.sub(of_slave, _MASTER.sub(of_master, text))


def _role(raw: bytes, translate: Translate) -> bytes:
    """ROLE: [master, offset, replicas], a replica being [host, port, offset]; or [slave, host, port, state, offset]."""
    header, parts, _ = elements(raw)
    role = _string(parts[0])
    if role == b"master":
        parts[2] = _each(parts[2], lambda replica: _at(replica, 0, translate))
    elif role == b"slave":
        return _at(raw, 1, translate)
    return header + b"".join(parts)


def _at(raw: bytes, index: int, translate: Translate) -> bytes:
    """An array with a host at `index` and its port behind it, translated."""
    header, parts, _ = elements(raw)
    port = decode(parts[index + 1])
    if not isinstance(port, bytes | int):
        raise ProtocolError("no port")
    there, number = _found(_string(parts[index]) or b"", int(port), translate)
    parts[index] = _bulk(there)
    parts[index + 1] = _like(parts[index + 1], b"%d" % number)
    return header + b"".join(parts)
