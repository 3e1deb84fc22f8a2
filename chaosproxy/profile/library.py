"""Where profiles are found: those that ship, by name, and files, by path.

Takes what `--profile` was given; gives `Source`s, or raises `ProfileError`.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

from chaosproxy.core.scalar import closest
from chaosproxy.profile.load import Source
from chaosproxy.profile.problems import ProfileError, Text
from chaosproxy.profile.yaml_nodes import MAX_BYTES

_SUFFIXES = (".yaml", ".yml")
#: Where the package is.
PACKAGE = Path(__file__).parents[1]


def names() -> list[str]:
    """The shipped profiles' names, sorted."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in folder().iterdir()
        if entry.name.endswith(".yaml")
    )


def shipped(name: str) -> Source:
    """The shipped profile of that name. Raises `ProfileError` if there is none."""
    known = names()
    if name not in known:
        near = closest(name, known)
        listed = "" if near else f", expected a file's path or one of {', '.join(known)}"
        raise _error(name, f"no shipped profile is called '{name}'{listed}", near)
    return Source(name, (folder() / f"{name}.yaml").read_bytes(), f"{name}.yaml")


def first_line(name: str) -> str:
    """What a shipped profile says first of itself: the first line of its opening comment."""
    return shipped(name).raw.decode().partition("\n")[0].lstrip("# ")


def find(given: str) -> Source:
    """What `--profile` means: what looks like a path is one, else a shipped name, else a file after all.

    Reads no more of a file than a profile may have. Raises `ProfileError` if there is neither.
    """
    is_path = "/" in given or given.endswith(_SUFFIXES)
    if not is_path and (given in names() or not _is_file(given)):
        return shipped(given)
    path = Path(given)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as wrong:
        # ValueError: a null byte in the path.
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        near = closest(path.stem, names()) if path.parent == Path() else ""
        raise _error(given, f"cannot be read: {reason}", near) from None
    return Source(path.name.removesuffix(path.suffix), raw, given)


@cache
def folder() -> Path:
    """In a wheel inside the package; in a checkout, where people read them, beside it."""
    inside = PACKAGE / "profiles"
    return inside if inside.is_dir() else PACKAGE.parent / "profiles"


def _is_file(name: str) -> bool:
    """Whether it is one; a name that no file can have is none."""
    with suppress(OSError):
        return Path(name).is_file()
    return False


def _error(given: str, message: str, suggestion: str) -> ProfileError:
    place = Text(given, "", numbered=False).place(1, 1)
    return ProfileError([place.problem(message, suggestion)])
