"""What Sentinels say: the servers they speak of found, and the proxy's own addresses put in their place.

Takes one whole reply or push of a Sentinel; gives the addresses in it, or the same reply with others.

Which reply it is shows in what it is: a pair of host and port, maps with `ip` and `port` in them, INFO's lines on masters, and
messages on Sentinel's channels. Everything else stays as it came.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from chaosproxy.core.reply import elements
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

Kind = Literal["server", "sentinel"]
_MESSAGES: Final = {b"message": 1, b"pmessage": 2}
#: In an address that is none of the two only this tells a host from a word.
_HOST: Final = re.compile(rb"[0-9A-Za-z_-]*[.:][0-9A-Za-z_.:%-]*|localhost")
_INFO: Final = re.compile(rb"(?m)^(master\d+:name=.*?,address=)(.*):(\d+)(?=,)")
#: Fields of a map with an address in them: host, port.
_FIELDS: Final = ((b"ip", b"port"), (b"master-host", b"master-port"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is that a Sentinel speaks of."""

    host: bytes
    port: int
    kind: Kind = "server"


#: Deeper than any Sentinel nests what it says.
_DEEPEST: Final = 8
#: Gives where a client finds what is there; None: as it is.
Find = Callable[[Place], tuple[bytes, int] | None]


def places(raw: bytes) -> list[Place]:
    """All that a reply speaks of, in its order."""
    found: list[Place] = []

    def note(place: Place) -> None:
        if place not in found:
            found.append(place)

    translated(raw, note)
    return found


def translated(raw: bytes, find: Find) -> bytes:
    """The reply with the addresses that `find` gives."""
    try:
        return _of(raw, find, _DEEPEST)
    except (ProtocolError, ValueError, IndexError):
        return raw


def _of(raw: bytes, find: Find, depth: int) -> bytes:
    kind = raw[:1]
    if kind in {b"$", b"="}:
        return _with_text(raw, lambda text: _INFO.sub(lambda match: _info(match, find), text))
    if kind not in {b"*", b"%", b">"} or raw[1:2] == b"-":
        return raw
    header, parts, pushes = elements(raw)
    if pushes:
        return raw
    words = [decode(part) for part in parts]
    if kind != b"%" and words and (at := _MESSAGES.get(_word(words[0]))) and len(parts) == at + 2:
        parts[-1] = _with_text(parts[-1], lambda text: message(_word(words[at]), text, find))
    elif len(parts) == 2 and kind == b"*" and _is_pair(words):
        new = find(Place(_word(words[0]), int(_word(words[1]))))
        if new is not None:
            parts = [_bulk(new[0]), _bulk(b"%d" % new[1])]
    elif b"ip" in words[::2] and b"port" in words[::2]:
        _fields(parts, words, find)
    else:
        inside = [b"*", b"%"] if depth else []
        parts = [_of(part, find, depth - 1) if part[:1] in inside else part for part in parts]
    return header + b"".join(parts)


def _is_pair(words: list[object]) -> bool:
    host, port = words
    if not (isinstance(host, bytes) and isinstance(port, bytes) and port.isdigit()):
        return False
    return _HOST.fullmatch(host) is not None


def _fields(parts: list[bytes], words: list[object], find: Find) -> None:
    """A server's description: names and values in turn."""
    index = {_word(name): 2 * at + 1 for at, name in enumerate(words[::2])}
    flags = _word(words[index[b"flags"]]) if b"flags" in index else b""
    for host_field, port_field in _FIELDS:
        if host_field not in index or port_field not in index:
            continue
        host_at, port_at = index[host_field], index[port_field]
        host, port = _word(words[host_at]), _word(words[port_at])
        if not port.isdigit() or not int(port):
            continue
        kind: Kind = (
            "sentinel" if host_field == b"ip" and b"sentinel" in flags.split(b",") else "server"
        )
        new = find(Place(host, int(port), kind))
        if new is None:
            continue
        parts[host_at], parts[port_at] = _bulk(new[0]), _bulk(b"%d" % new[1])
        name = index.get(b"name")
        if host_field == b"ip" and name is not None and words[name] == b"%s:%s" % (host, port):
            parts[name] = _bulk(b"%s:%d" % new)


def message(channel: bytes, text: bytes, find: Find) -> bytes:
    """A message on one of Sentinel's channels: `+switch-master`, `+slave`, `-odown` and the like."""
    words = text.split(b" ")
    if channel == b"+switch-master":
        _replace(words, 1, find)
        _replace(words, 3, find)
    elif channel[:1] in {b"+", b"-"} and words:
        kind: Kind = "sentinel" if words[0] == b"sentinel" else "server"
        named = words[1] if len(words) > 1 else b""
        old = b":".join(words[2:4])
        _replace(words, 2, find, kind)
        if named == old and len(words) > 3:
            words[1] = b":".join(words[2:4])
        if b"@" in words:
            _replace(words, words.index(b"@") + 2, find)
    return b" ".join(words)


def _replace(words: list[bytes], at: int, find: Find, kind: Kind = "server") -> None:
    """Put another address in the place of the one that stands there."""
    if len(words) < at + 2 or not words[at + 1].isdigit():
        return
    new = find(Place(words[at], int(words[at + 1]), kind))
    if new is not None:
        words[at], words[at + 1] = new[0], b"%d" % new[1]


def _info(match: re.Match[bytes], find: Find) -> bytes:
    new = find(Place(match[2], int(match[3])))
    return match[0] if new is None else match[1] + b"%s:%d" % new


def _word(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)


def _with_text(raw: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change the text of a bulk or verbatim string."""
    head = 4 if raw[:1] == b"=" else 0
    if raw[:1] not in {b"$", b"="} or raw[1:2] == b"-":
        return raw
    start = raw.index(b"\r\n") + 2 + head
    text = change(raw[start:-2])
    if text == raw[start:-2]:
        return raw
    return b"%s%d\r\n%s%s\r\n" % (raw[:1], len(text) + head, raw[start - head : start], text)


def master_of(reply: bytes) -> Place | None:
    """What SENTINEL GET-MASTER-ADDR-BY-NAME says; None: this Sentinel knows of no such service, or says what is no answer."""
    try:
        value = decode(reply)
    except ProtocolError:
        return None
    if isinstance(value, list) and len(value) == 2:
        host, port = map(_word, value)
        if port.isdigit() and len(port) < 6:
            return Place(host, int(port))
    return None


def servers_of(replies: Iterable[bytes]) -> list[Place]:
    """What SENTINEL MASTERS, REPLICAS and SENTINELS say, as one list."""
    found: list[Place] = []
    for reply in replies:
        found += [place for place in places(reply) if place not in found]
    return found
