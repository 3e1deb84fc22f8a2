"""Durations, shares, sizes, globs: how a value of the profile language is read.

Takes plain YAML values; gives seconds, fractions, bytes and small test objects as `Kind`s, each with its JSON Schema.
"""

import re
from dataclasses import dataclass

from chaosproxy.core.setting import Invalid, Kind


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """`has`: a whole token in any case; `contains`: a byte substring. Of any argument that is not a key."""

    has: bytes | None = None
    contains: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClientTest:
    """Globs on the client's name, or on its address (without the port)."""

    name: bytes | None = None
    address: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReplyTest:
    """`error`: prefix of an error; `type`: bulk, array, …; `larger_than`: bytes of the whole reply on the wire."""

    error: bytes | None = None
    type: str | None = None
    larger_than: int | None = None


__all__ = ["ArgumentTest", "ClientTest", "Invalid", "Kind", "ReplyTest", "re"]
