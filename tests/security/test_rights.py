"""A client with fewer rights than the user of the upstream's URL: what faults do and tell on its behalf.

What a fault does beside a command it does as the URL's user. A server's own access lists decide what that may be.
"""

import pytest

from tests import servers
from tests.proxying import serve_proxy

PROFILES = {
    "stale_read": "faults:\n  - {fault: stale_read, behind: 1}\n",
    "drop_write": "faults:\n  - {fault: drop_write, tell: ok}\n",
    "no_renewal": "faults:\n  - {fault: expire_key, mode: no_renewal}\n",
    "late": "faults:\n  - {fault: latency, at: after_apply, delay: 1ms}\n",
}
#: What answers with what was stored, or moves it to where it can be read.
TELLING = (
    ("GET", "v"),
    ("MGET", "own:a", "v"),
    ("LRANGE", "l", 0, -1),
    ("GETSET", "v", "x"),
    ("GETDEL", "v"),
    ("SET", "v", "x", "GET"),
    ("GETEX", "v", "PERSIST"),
    ("LPOP", "l"),
    ("LMOVE", "l", "own:l", "LEFT", "LEFT"),
    ("SPOP", "s"),
    ("ZPOPMIN", "z"),
    ("COPY", "v", "own:c"),
    ("SORT", "l", "ALPHA", "STORE", "own:x"),
    ("EVAL", "return redis.call('getset', KEYS[1], 'x')", 1, "v"),
)
#: By what a client may be in: the commands that lead there, and out of it again.
STATES = {
    "plain": ((), ()),
    "watching": ((("WATCH", "own:w"),), ()),
    "transaction": ((("MULTI",),), (("EXEC",),)),
}


@pytest.fixture(scope="module", params=["redis70", "valkey9"])
def keeper(request):
    """A server with two users: `boss` may do all, `low` has the keys below own: only."""
    server = servers.start(request.param)
    server.ask("ACL", "SETUSER", "boss", "on", ">boss", "~*", "&*", "+@all")
    server.ask("ACL", "SETUSER", "low", "on", ">low", "~own:*", "&own:*", "+@all", "-@admin")
    yield server
    server.stop()


def what_is_told(server, proxy, state, user="low"):
    """Have a user ask for all of it; gives what it was told and what it could read afterwards, as far as that is a secret."""
    server.ask("FLUSHALL")
    told = []
    with proxy.connect() as boss:
        boss.ask("AUTH", "boss", "boss")
        for words in (("SET", "v", "hush-1"), ("SET", "v", "hush-2"), ("RPUSH", "l", "hush-3", "hush-4"), ("SADD", "s", "hush-5"), ("ZADD", "z", 1, "hush-6")):  # fmt: skip
            boss.ask(*words)
        # Not by way of a fault that lets no write happen.
        for words in (("SET", "v", "hush-2"), ("RPUSH", "l", "hush-3", "hush-4"), ("SADD", "s", "hush-5"), ("ZADD", "z", 1, "hush-6")):  # fmt: skip
            server.ask(*words)
    before, after = STATES[state]
    for words in TELLING:
        with proxy.connect() as low:
            assert low.ask("AUTH", user, user) == "OK"
            for each in (*before, words, *after, ("GET", "own:c"), ("LRANGE", "own:l", 0, -1), ("LRANGE", "own:x", 0, -1)):  # fmt: skip
                said = low.raw(*each)
                if b"hush" in said:
                    told.append((words, said))
    return told


@pytest.mark.parametrize("state", STATES)
def test_what_there_is_to_be_told(keeper, state):
    """Who may read it is told: with every state and command here secrets would come out, were they not kept."""
    with serve_proxy(f"redis://boss:boss@127.0.0.1:{keeper.port}", PROFILES["late"]) as proxy:
        told = dict(what_is_told(keeper, proxy, state, "boss"))
    # What GETSET has written over by then is not there to be told.
    assert {words for words in TELLING if words not in told} <= set(TELLING[4:7])


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_more_than_the_urls_user(keeper, profile, state):
    """Where the URL's user has no more rights than clients, no fault tells anybody more than the server would."""
    with serve_proxy(f"redis://low:low@127.0.0.1:{keeper.port}", PROFILES[profile]) as proxy:
        assert what_is_told(keeper, proxy, state) == []


@pytest.mark.parametrize("user", ["boss:boss@", ""])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_more_than_the_server_tells(keeper, profile, state, user):
    """Nor where it has more: what only that user may read is in no reply to another one, be it watching or in a transaction.

    Without a user in the URL it is the server's default one, who may do all here.
    """
    with serve_proxy(f"redis://{user}127.0.0.1:{keeper.port}", PROFILES[profile]) as proxy:
        assert what_is_told(keeper, proxy, state) == []


def test_who_faults_act_as(keeper):
    """What README warns of: a fault takes away a key that the client itself may not touch, if the URL's user may."""
    profile = "faults:\n  - {fault: expire_key, mode: now}\n"
    for user, left in (("boss", None), ("low", b"hush")):
        keeper.ask("SET", "v", "hush")
        url = f"redis://{user}:{user}@127.0.0.1:{keeper.port}"
        with serve_proxy(url, profile) as proxy, proxy.connect() as low:
            low.ask("AUTH", "low", "low")
            assert low.ask("GET", "v").startswith("NOPERM")
        assert keeper.ask("GET", "v") == left
