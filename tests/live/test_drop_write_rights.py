"""Users who may do little: what a dropped write is computed with is forbidden them, and still nothing happens.

Takes ACLs that forbid one thing after the other; gives proof that each write is dropped or refused as the server would, that
no copy stays behind, and that the client's connection and transactions are as they would be.
"""

import pytest

from chaosproxy.core.swallowing import OTHER_RIGHTS
from tests.calls import Call
from tests.live.expected import MADE_UP, ON_KEYS, UNKNOWABLE
from tests.live.more_calls import SOME
from tests.live.places import commonly
from tests.live.stand import DROP, Stand
from tests.proxying import wait_for
from tests.wire import encode

ALL = "~* +@all"
RIGHTS = {
    "all": ALL,
    "no MULTI": f"{ALL} -multi",
    "no EXEC": f"{ALL} -exec",
    "no DISCARD": f"{ALL} -discard",
    "no SELECT": f"{ALL} -select",
    "no DBSIZE": f"{ALL} -dbsize",
    "no COPY": f"{ALL} -copy",
    "no DEL": f"{ALL} -del",
    "no SCAN": f"{ALL} -scan",
    "no transactions": f"{ALL} -@transaction",
    "no connection commands": f"{ALL} -@connection +auth +hello",
    "nothing but the writes": "~* +incr +set +lpush +lpop +get",
    "the writes in transactions": "~* +incr +set +lpush +lpop +get +multi +exec",
    "the writes, and to select": "~* +incr +set +lpush +lpop +get +select +dbsize",
    "no writes": f"{ALL} -@write",
    "a few keys": "~n ~str ~{t}n ~{t}str ~*watched_ +@all",
    "keys that begin so": "~n* ~str* ~{t}n* ~{t}str* ~*watched_ +@all",
    "no keys": "+@all",
}


def become(stand: Stand, rights: str) -> None:
    stand.tell(("ACL", "SETUSER", "little", "reset", "on", ">pw", *rights.split()))


@commonly
@pytest.mark.parametrize("rights", RIGHTS)
def test_users_with_few_rights(stand: Stand, rights: str):
    """Whatever is forbidden, a write that the user may do is dropped and one that it may not do is refused."""
    stand.use(DROP)
    become(stand, RIGHTS[rights])
    auth = ("AUTH", "little", "pw")
    calls = stand.tagged(call for call in SOME if call[0] not in {"EVAL", "SORT"})
    with stand.server.connect() as direct, stand.proxy.connect() as client:
        assert direct.raw(*auth) == client.raw(*auth) == b"+OK\r\n"
        for call in calls:
            stand.fill()
            plain = direct.raw(*call)
            stand.fill()
            in_multi = direct_transaction(stand, direct, call)
            stand._before = None
            with stand.told(call) as events:
                told = client.raw(*call)
            stand.excused(call, plain, told, events, 2)
            after(stand, client, call)
            stand._before = None
            with stand.told(call) as events:
                # It is computed aside, by a user who may do all.
                client.send_bytes(
                    b"".join(encode(*each) for each in (("WATCH", "watched_"), call, ("UNWATCH",)))
                )
                _, while_watching, _ = client.read(3)
            stand.excused(call, plain, while_watching, events, 2)
            if while_watching[:1] != b"-" and RIGHTS[rights] == ALL:
                assert not any(OTHER_RIGHTS in event["detail"] for event in events), call
            after(stand, client, call)
            stand._before = None
            with stand.told(call) as events:
                told_in_multi = direct_transaction(stand, client, call)
            compare_transactions(stand, call, in_multi, told_in_multi, events)
            after(stand, client, call)
    stand.verdict()


def direct_transaction(stand: Stand, client, call: Call) -> list[bytes]:
    client.send_bytes(b"".join(encode(*each) for each in (("MULTI",), call, ("EXEC",))))
    return client.read(3)


def compare_transactions(stand: Stand, call: Call, real, told, events) -> None:
    """MULTI's, the command's and EXEC's replies."""
    if real[0] != told[0]:
        stand.fail(call, "MULTI", real[0], "told", told[0])
    if real[0][:1] == b"-":
        stand.excused(call, real[1], told[1], events, 2)
    elif real[1].startswith(UNKNOWABLE) and told[1] == b"+QUEUED\r\n":
        if not all(event["detail"].startswith(MADE_UP) for event in events):
            stand.fail(call, "queued", real[1], "told", told[1], events)
        return
    elif real[1] != told[1]:
        stand.fail(call, "queued", real[1], "told", told[1])
    if real[2][:1] == b"*" and told[2][:1] == b"*":
        stand.excused(call, real[2][4:], told[2][4:], events, 2)
    elif real[2] != told[2]:
        stand.fail(call, "EXEC", real[2], "told", told[2])


def after(stand: Stand, client, call: Call) -> None:
    """The connection is in no transaction, and in its own database."""
    mine: list[str] = []

    def alone() -> bool:
        """Whoever was that user before has left."""
        mine[:] = stand.server.ask("CLIENT", "LIST").decode().splitlines()
        mine[:] = [each for each in mine if "user=little" in each]
        return len(mine) == 2

    wait_for(alone, "one connection past the proxy and one by way of it")
    line = mine[1]
    if " db=0 " not in line or " flags=N " not in line:
        stand.fail(call, "left the connection so", line[:130])


@pytest.mark.parametrize(
    "stand", [("redis70", True), ("valkey9", True)], indirect=True, ids=["redis70", "valkey9"]
)
@pytest.mark.parametrize(
    "key", [b"app:1", b"app:{x}1", b"app:{}", b"app:a{b", b"app:a}b", b"app:\xff"]
)
def test_a_temporary_key_begins_as_the_real_one(stand: Stand, key: bytes):
    """Users are given keys by their beginnings, and a cluster by their hash tags: a temporary key has both."""
    stand.use(DROP)
    become(stand, "~app:* +@all")
    with stand.proxy.connect() as client:
        client.raw("AUTH", "little", "pw")
        with stand.dropping(key, ON_KEYS):
            assert client.raw("INCR", key) == b":1\r\n"
        with stand.dropping(key, ON_KEYS):
            assert client.raw("BITOP", "NOT", key, key) == b":0\r\n"
    stand.verdict()


@pytest.mark.parametrize(
    "stand", [("redis70", False), ("valkey9", False)], indirect=True, ids=["redis70", "valkey9"]
)
def test_a_multi_that_is_refused_without_a_word(stand: Stand):
    """What its client takes for a transaction is none: a write there is dropped and told of as any other."""
    stand.use(DROP)
    become(stand, f"{ALL} -multi")
    with stand.proxy.connect() as client:
        client.raw("AUTH", "little", "pw")
        for call, answer in ((("INCR", "n"), b":8\r\n"), (("LPOP", "l"), b"$1\r\na\r\n")):
            with stand.dropping(call, ON_KEYS):
                client.send("CLIENT", "REPLY", "SKIP")
                client.send("MULTI")
                assert client.raw(*call) == answer
                assert client.ask("EXEC").startswith("ERR EXEC without MULTI")
    stand.verdict()
