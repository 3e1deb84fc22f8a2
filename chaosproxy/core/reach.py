"""How far a command reaches: whether it does something to the keys it names, and to nothing else.

Takes a command's name in upper case; gives yes or no. What reaches further does it in every database: it is not tried on copies, and
putting keys back does not undo it.
"""

from collections.abc import Container
from typing import Final

#: They do what the commands do that they call; the server's table calls them no writes.
SCRIPTS: Final = frozenset({"EVAL", "EVALSHA", "FCALL"})
#: All keys of a database, or of all of them.
SWEEPS: Final = frozenset({"FLUSHALL", "FLUSHDB"})
_BEYOND: Final = SWEEPS | {
    "SWAPDB", "MOVE", "MIGRATE", "RESTORE-ASKING", "DELSLOT", "SFLUSH",
}  # fmt: skip
#: Modules whose commands are about keys: JSON, what is counted by chance, series of times.
_ABOUT_KEYS: Final = frozenset({"JSON", "BF", "CF", "CMS", "TOPK", "TDIGEST", "TS"})
#: Of RediSearch, whose other commands are about indexes, which are in no database.
_SUGGESTIONS: Final = frozenset({"FT.SUGADD", "FT.SUGDEL"})


def is_about_keys(name: str) -> bool:
    """Whether its effect is on keys, for all that is known: of a module's command that is known only if the module is."""
    module, dot, _ = name.partition(".")
    return not dot or module in _ABOUT_KEYS or name in _SUGGESTIONS


def stays(name: str) -> bool:
    """Whether it does something to the keys it names, and to nothing else."""
    return name not in _BEYOND and is_about_keys(name)


def touches_no_key(name: str) -> bool:
    """Whether what it changes is no key at all: libraries of functions."""
    return name.startswith("FUNCTION|")


def is_a_modules(name: str) -> bool:
    """Whether a module brings it: what the server says of it, its keys for one, is what the module says."""
    return "." in name


def indexes(names: Container[str]) -> bool:
    """Whether a server that knows these commands has RediSearch, whose indexes tell keys by their names, whatever the database."""
    return "FT.CREATE" in names
