"""The texts of errors: what servers of each kind say, letter for letter."""

import pytest

from chaosproxy.core.errors import error_reply
from chaosproxy.core.fault import ServerInfo

REDIS, VALKEY, OLD = ServerInfo(), ServerInfo("Valkey", (9, 0, 0)), ServerInfo("Redis", (6, 2, 5))


@pytest.mark.parametrize(
    ("code", "info", "text"),
    [
        ("READONLY", REDIS, b"READONLY You can't write against a read only replica."),
        ("LOADING", REDIS, b"LOADING Redis is loading the dataset in memory"),
        ("LOADING", VALKEY, b"LOADING Valkey is loading the dataset in memory"),
        ("NOSCRIPT", REDIS, b"NOSCRIPT No matching script. Please use EVAL."),
        ("NOSCRIPT", VALKEY, b"NOSCRIPT No matching script."),
        ("MAXCLIENTS", REDIS, b"ERR max number of clients reached"),
        ("MOVED", REDIS, b"MOVED 7 127.0.0.1:1"),
        ("ASK", REDIS, b"ASK 7 127.0.0.1:1"),
        ("NOPERM", REDIS, b"NOPERM this user has no permissions to run the 'config|set' command"),
        ("NOGROUP", REDIS, b"NOGROUP No such key 'k\\xff' or consumer group"),
        ("my own words", REDIS, b"ERR my own words"),
        ("OWN words {key}", REDIS, b"OWN words {key}"),
        ("two\r\nlines", REDIS, b"ERR two  lines"),
    ],
)
def test_text(code, info, text):
    """A code is told in the server's words, anything else as it was written; a line break never gets through."""
    raw = error_reply(code, info, command="CONFIG|SET", key=b"k\xff", slot=7, address="127.0.0.1:1")
    assert raw == b"-" + text + b"\r\n"


def test_misconf_of_redis_6():
    """MISCONF was worded otherwise before Redis 7."""
    assert b"it's currently unable to persist to disk" in error_reply("MISCONF", REDIS)
    assert b"it is currently not able to persist on disk" in error_reply("MISCONF", OLD)
    assert b"Please check the Valkey logs" in error_reply("MISCONF", VALKEY)
