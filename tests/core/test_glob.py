"""Redis' glob: compared with real servers, and never slow."""

import time
from itertools import product
from random import Random

import pytest

from chaosproxy.core.glob import compiled, glob_match

CASES = [
    (b"", b"", True),
    (b"", b"a", False),
    (b"*", b"", True),
    (b"*", b"\x00\xff\n", True),
    (b"chat:*", b"chat:1", True),
    (b"chat:*", b"chat:", True),
    (b"chat:*", b"achat:1", False),
    (b"?", b"\n", True),
    (b"?", b"", False),
    (b"?", "é".encode(), False),
    (b"??", "é".encode(), True),
    (b"a", b"a\n", False),
    (b"A*", b"a", False),
    (b"h[ae]llo", b"hallo", True),
    (b"h[^e]llo", b"hello", False),
    (b"h[a-c]llo", b"hbllo", True),
    (b"h[c-a]llo", b"hbllo", True),
    (b"[a\\]b]", b"]", True),
    (b"[\\^a]", b"^", True),
    (b"[^\\^]", b"^", False),
    (b"[abc", b"c", True),
    (b"[", b"[", False),
    (b"[]", b"]", False),
    (b"[^]", b"]", True),
    (b"\\*", b"*", True),
    (b"\\*", b"a", False),
    (b"\\a", b"a", True),
    (b"a\\", b"a\\", True),
    (b"a*b*c", b"a--b--b--c", True),
    (b"a*b*c", b"a--c--b", False),
    (b"*ab", b"aab", True),
    (b"*a*a", b"a", False),
    (b"{1}.$+(|)", b"{1}.$+(|)", True),
]


@pytest.mark.parametrize(("pattern", "value", "matches"), CASES)
def test_match(pattern, value, matches):
    """The whole value matches or it does not."""
    assert glob_match(pattern, value) is matches


KEYS = [bytes(key) for size in (1, 2, 3) for key in product(b"ab-]^\\*", repeat=size)]


def patterns(count):
    """Patterns of every sign that means something, and few others; the same ones every time."""
    random = Random("patterns")
    signs = [b"*", b"?", b"[", b"]", b"[^", b"-", b"\\", b"a", b"b", b"^", b"[a-b]", b"[^a]"]
    return [b"".join(random.choices(signs, k=random.randint(1, 6))) for _ in range(count)]


def test_agrees_with_real_servers(any_server):
    """KEYS of a real server finds just the keys that we say match, for a thousand patterns."""
    any_server.ask("MSET", *(word for key in KEYS for word in (key, b"")))
    wrong = {}
    for pattern in (*patterns(1000), *(pattern for pattern, _, _ in CASES if pattern)):
        ours = {key for key in KEYS if glob_match(pattern, key)}
        theirs = set(any_server.ask("KEYS", pattern))
        if ours != theirs:
            wrong[pattern] = ours ^ theirs
    assert wrong == {}


def test_hostile_patterns_are_not_slow():
    """Twenty stars over ten thousand bytes that nearly match: no star takes back what it gave."""
    start = time.thread_time()
    assert not glob_match(b"*a" * 20 + b"*b", b"a" * 10_000)
    assert time.thread_time() - start < 1


def test_compiled_once():
    """A pattern is compiled when it is first used."""
    assert compiled(b"once:*") is compiled(b"once:*")
