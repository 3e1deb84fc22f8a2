"""Histories, sessions and counters of several commands: what another client, or a cut between two of them, leaves of it.

Takes the named libraries; gives proof that the profile brings the wrong outcome out, and that one atomic write is right.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

FLASK = ("flask==3.1.0", "redis==6.4.0")


#: The first write of all is that of the message which is there before.
SECOND = ("late-writer.when.nth=2",)


@pytest.mark.parametrize(
    ("profile", "sets", "kept"),
    [("late-writer", SECOND, ["hello", "A"]), ("calm", (), ["hello", "A", "B"])],
    ids=["late-writer", "calm"],
)
@pytest.mark.parametrize("version", ["0.5.0", "0.8.0"])
def test_last_write_wins(stage, python, version, profile, sets, kept):
    """flask-session#71: two requests change one session, and the slower one's write undoes the other's."""
    chat = python(f"flask-session=={version}", *FLASK)
    run = stage.play(profile, chat, "flask_chat.py", "session", sets=sets)
    assert run.said == kept


def test_appended_messages_stay(stage, python):
    """Repaired: an append overwrites nothing."""
    chat = python("flask-session==0.5.0", *FLASK)
    run = stage.play("late-writer", chat, "flask_chat.py", "list")
    assert run.said == ["hello", "A", "B"]


CUT_BETWEEN = """
faults:
  - {fault: disconnect, match: {commands: [LPUSH, RPUSH], after: {command: DEL, same: key}}, at: before_forward, how: reset}
"""


def history(server):
    return server.ask("LLEN", "k"), server.ask("TTL", "k") > 0


@pytest.mark.parametrize(("how", "left"), [("library", (0, False)), ("transaction", (3, True))])
def test_deleted_and_not_rewritten(stage, python, how, left):
    """llama_index#22963: to delete one message it deletes all and writes the rest; in one transaction nothing is lost."""
    store = python("llama-index-storage-chat-store-redis==0.8.0", "redis==6.4.0")
    run = stage.play(CUT_BETWEEN, store, "llama_delete.py", how, look=history)
    assert (run.said, run.found) == ("ConnectionError", left)


LOST_EXPIRE = """
faults:
  - {fault: disconnect, name: cut, match: {commands: [EXPIRE]}, at: before_forward, how: reset}
"""
ONCE = ("cut.when.nth=1",)


def turns(server):
    return server.ask("LLEN", "s"), server.ask("TTL", "s") > 0


@pytest.mark.parametrize(
    ("profile", "sets", "how", "failed", "left"),
    [
        # The error comes after the write: who tries again has the turn twice, or more often, and for ever.
        (LOST_EXPIRE, ONCE, "library", 1, (2, True)),
        (LOST_EXPIRE, (), "library", 3, (3, False)),
        # No error, and no time to live.
        ("immortal-keys", (), "library", 0, (1, False)),
        (LOST_EXPIRE, ONCE, "transaction", 1, (1, True)),
        (LOST_EXPIRE, (), "transaction", 3, (0, False)),
    ],
    ids=["once", "always", "swallowed", "once, repaired", "always, repaired"],
)
def test_immortal_chat(stage, python, profile, sets, how, failed, left):
    """langchain-community writes the turn, then its time to live: one without the other, or the turn twice."""
    chat = python("langchain-community==0.4.2", "redis==6.4.0")
    run = stage.play(profile, chat, "langchain_turn.py", how, look=turns, sets=sets)
    assert (run.said, run.found) == (failed, left)


OTHERS_WRITE = """
faults:
  - fault: run
    match: {commands: [LTRIM, EVAL]}
    when: {nth: 1}
    at: before_forward
    commands: [[RPUSH, "{key}", n1], [RPUSH, "{key}", n2]]
"""


@pytest.mark.parametrize(
    ("how", "left"), [("looking", [b"m2", b"m3", b"m4"]), ("script", [b"n1", b"n2", b"m4"])]
)
def test_trim_race(stage, python, how, left):
    """A list trimmed by what was seen loses the newest, which came meanwhile; a script sees what is there."""
    before = [("RPUSH", "l", "m1", "m2", "m3")]

    def window(server):
        return server.ask("LRANGE", "l", 0, -1)

    client = python("redis==6.4.0")
    run = stage.play(OTHERS_WRITE, client, "trim.py", how, before=before, look=window)
    assert run.found == left


#: Brings distutils, which these want, to a Python that has none any more.
DISTUTILS = "setuptools==75.8.0"

GONE = """
faults:
  - {fault: expire_key, match: {commands: [INCR, INCRBY, EVAL, EVALSHA]}, when: {nth: 1}, mode: now}
"""


def lives(server):
    """How many keys there are, and how many of them will ever go."""
    keys = server.ask("KEYS", "*")
    return len(keys), sum(server.ask("TTL", key) > 0 for key in keys)


@pytest.mark.parametrize(
    ("what", "backend", "said", "left"),
    [
        (
            ("django==5.2.0", "redis==6.4.0"),
            "django.core.cache.backends.redis.RedisCache",
            1,
            (1, 0),
        ),
        (
            ("django-redis==4.4.3", "django==2.2.28", "redis==2.10.6", DISTUTILS),
            "django_redis.cache.RedisCache",
            1,
            (1, 0),
        ),
        (
            ("django-redis==4.12.1", "django==3.2.25", "redis==3.5.3", DISTUTILS),
            "django_redis.cache.RedisCache",
            "ValueError",
            (0, 0),
        ),
    ],
)
def test_counter_that_came_back(stage, python, what, backend, said, left):
    """django-redis#181: the count ran out between EXISTS and INCR, and is there for ever; in one script it is gone."""
    run = stage.play(GONE, python(*what), "django_count.py", backend, look=lives)
    assert (run.said, run.found) == (said, left)
