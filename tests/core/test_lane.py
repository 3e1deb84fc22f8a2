"""The fast lane is the long way, only shorter: the same bytes, events, counts and numbers at every step.

Takes conversations, written out and at random; each is held twice, once without the lane, and what is told must be the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosproxy.core import lane as lane_module
from chaosproxy.core import opening
from chaosproxy.core.lane import Lane
from chaosproxy.core.resp import encode_command
from chaosproxy.core.when import UNCOUNTED, Counter
from tests.conversation import Talk, command, reply
from tests.core.test_conversation_properties import ALL_KINDS, converse, profile, script
from tests.toy import Toy


@pytest.fixture(autouse=True, scope="module")
def quickly_known() -> Iterator[None]:
    """A pattern is made for what has come once already: conversations here are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "OFTEN", 1)
        yield


def state(talk: Talk) -> dict[str, object]:
    """All that can be seen of a conversation from outside, and all that its next command depends on."""
    conversation, line = talk.conversation, talk.conversation._line
    lane = conversation.lane
    unanswered = [each[:2] for each in lane.unanswered for _ in range(each[2])]
    waiting = [name.upper for name, _ in unanswered]
    since = [since for _, since in unanswered]
    return {
        "describe": conversation.describe(),
        "due": conversation.due,
        "paused": (conversation.client_paused, conversation.upstream_paused),
        "slots": [slot.name.upper for slot in line.slots for _ in range(slot.times)] + waiting,
        "expect": [s.name.upper for s in line.expect for _ in range(s.owed_commands)] + waiting,
        "since": [slot.since for slot in line.expect for _ in range(slot.owed_commands)] + since,
        "blocking": line.blocking + sum(name.blocking for name, _ in unanswered),
        "turning": line.turning,
        "place": conversation._intake.place if lane._place is None else lane._place,
        "handshake": conversation._intake.handshake and not (lane._counted or lane._place),
        "head": line.head is None,
        "rules": [
            (
                live.matched,
                live.fired,
                sorted(live.skipped.items()),
                counted(live.counter),
                live.counter._selected,
            )
            for live in line.engine.rules
        ],
        "tallies": {
            name: (tally.count, tally.histogram.buckets, round(tally.histogram.sum, 6))
            for name, tally in talk.world.tallies.items()
            if tally.count
        },
    }


def counted(counter: Counter) -> dict[str, int]:
    """How many matches it has counted, those included that have passed it without a word."""
    counts = counter._counts.copy()
    times = counter.allowance.passed - counter._counted
    if times and counter._reason not in UNCOUNTED:
        counts[""] = counts.get("", 0) + times
    return counts


@contextmanager
def watched(*, fast: bool) -> Iterator[tuple[list[str], list[bool]]]:
    """Write down all that every Talk says and is, step by step; and each chunk's way."""
    told: list[str] = []
    ways: list[bool] = []
    look, requests, replies, others = Talk._look, Lane.requests, Lane.replies, Lane.others

    def note(talk: Talk) -> None:
        look(talk)
        # What rules leave alone is told, or counted without a word: where it is counted is looked at.
        quiet = ("Matched(", "Skipped(")
        told.extend(line for line in talk._transcript if not line.split()[1].startswith(quiet))
        told.append(f"{talk.connection}: {state(talk)}")
        talk._transcript.clear()

    def way(take: Callable[[Lane, bytes, float], bool]) -> Callable[..., bool]:
        def took(lane: Lane, data: bytes, now: float) -> bool:
            ways.append(take(lane, data, now))
            return ways[-1]

        return took

    def after_all(lane: Lane, data: bytes, now: float) -> bool:
        ways[-1] = others(lane, data, now)
        return ways[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Talk, "fast", fast)
        patch.setattr(Talk, "_look", note)
        patch.setattr(Lane, "requests", way(requests))
        patch.setattr(Lane, "replies", way(replies))
        patch.setattr(Lane, "others", after_all)
        yield told, ways


def same(play: Callable[[], Any]) -> list[bool]:
    """Play something both ways; gives which of its chunks went by the lane."""
    heard = []
    for fast in (False, True):
        with watched(fast=fast) as (told, ways):
            play()
        heard.append(told)
    for slow, quick in zip(*heard, strict=True):
        assert slow == quick
    return ways


def dialogue(
    *chunks: tuple[str, bytes], faults: str = "", protocol: int = 2, **how: Any
) -> list[bool]:
    """Let the two sides say these chunks; gives which of them went by the lane."""

    def play() -> None:
        talk = Talk(faults, protocol=protocol, **how)
        for side, data in chunks:
            (talk.client if side == ">" else talk.upstream)(data)
        talk.client_gone()

    return same(play)[2 * (protocol == 3) :]


PLAIN = command("SET k v") + command("GET k")


def test_plain_commands_and_their_replies():
    """Whole plain commands go by the lane, and so do their replies, one by one, together, or those to several chunks."""
    ways = dialogue(
        (">", PLAIN),
        (">", command("LLEN l")),
        ("<", b"+OK\r\n"),
        ("<", b"$1\r\nv\r\n:0\r\n"),
        (">", command("PING")),
        ("<", b"+PONG\r\n"),
        (">", PLAIN),
        ("<", b"-ERR no\r\n*2\r\n$1\r\nv\r\n*1\r\n$-1\r\n"),
        (">", encode_command(b"SET", b"k", b"x" * 300_000)),
        ("<", b"$300000\r\n" + b"x" * 300_000 + b"\r\n"),
        (">", encode_command(b"MSET", *[b"k"] * 1200)),
        ("<", b"*1200\r\n" + b"%1\r\n*-1\r\n*0\r\n" * 1200),
        (">", encode_command(b"ZREVRANGEBYSCORE", b"k", b"\r\n$3\r\n", b"")),
        ("<", b"*0\r\n"),
        (">", PLAIN * 2),
        ("<", b"!5\r\nERR x\r\n=7\r\ntxt:a\r\n\r\n_\r\n#t\r\n"),
    )
    assert all(ways)


def test_replies_to_a_part_of_what_came_together():
    """Commands that came together are answered one by one, or some at once, with others between; each is timed by itself."""
    sets = encode_command(b"SET", b"k", b"v") * 5
    ways = dialogue(
        (">", sets),
        ("<", b"+OK\r\n"),
        ("<", b"+OK\r\n" * 2),
        (">", encode_command(b"GET", b"k") * 3),
        ("<", b"+OK\r\n" * 2 + b"$1\r\nv\r\n"),
        ("<", b"$1\r\nv\r\n"),
        (">", sets),
        ("<", b"$1\r\nv\r\n" + b"+OK\r\n" * 4),
        ("<", b"+OK\r\n"),
    )
    assert all(ways)


def test_names_as_they_are_sent():
    """A name is known by its spelling and its number of arguments, however short or long it is."""
    names = [b"get", b"GeT", b"G", b"no.such.command", b"x" * 200, b"GET\n", b"\r", b"A\rB"]
    ways = dialogue(*((">", encode_command(name, b"k") * 2) for name in names for _ in range(2)))
    assert all(ways)
    ways = dialogue(*((">", encode_command(b"LPUSH", *[b"k"] * count)) for count in (1, 9, 99, 1)))
    assert all(ways)


def test_more_names_than_are_kept():
    """A client that sends ever other names is served all the same, from tables that do not grow for ever."""
    talk = Talk()
    for number in range(5000):
        talk.client(encode_command(b"NAME%d" % number))
    assert len(talk.world.openings) == 4096
    assert len(talk.conversation.lane) == 5000
    talk.upstream("-ERR unknown command", "-ERR unknown command")
    assert len(talk.conversation.lane) == 4998
    for left in (3000, 1000, 0):
        talk.upstream(*["+OK"] * (len(talk.conversation.lane) - left))
        assert len(talk.conversation.lane) == left


def test_blocking_commands_are_not_timed():
    """The time a blocking command takes says nothing of the upstream, here as there."""
    assert all(dialogue((">", command("BLPOP l 0")), ("<", b"*2\r\n$1\r\nl\r\n$1\r\na\r\n")))


#: How a chunk may end, or what it may hold, that is for the long way to understand.
NOT_PLAIN = [
    b"PING\r\n", b"\r\n", b"*0\r\n", b"*-1\r\n", b"*1\r\n$0\r\n\r\n", b"*1\r\n$-1\r\n", b"*1\r\n+PING\r\n", b"*01\r\n$4\r\nPING\r\n",
    b"*2\r\n$4\r\nPING\r\n:1\r\n", b"*2\r\n$4\r\nPING\r\n$-1\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"*99999\r\n", b"*2147483648\r\n",
    b"*99999999999999999999\r\n", b"*1\r\n$99999999999999999999\r\n", b"*x\r\n", b"*1\r\n$x\r\n", b"*", b"*1\r", b"*1\r\n", b"*1\r\n$",
    b"*1\r\n$4\r\nPIN", b"*1\r\n$4\r\nPING", b"*1\r\n$4\r\nPING\r", b"*2\r\n$4\r\nPING\r\n", b"*2\r\n$4\r\nPING\r\n$1000",
    b"*2\r\n$4\r\nPING\r\n$1000\r\nx", b"*2\r\n$4\r\nPING\r\n$12\r", b"*2\r\n$4\r\nPING\r\n$012\r\n", b"*1\r\n$4\r\nPINGx",
    encode_command(b"MULTI"), encode_command(b"SELECT", b"1"), encode_command(b"SYNC"), b"*2\r\n$3\r\nGE\r\n$1\r\nk\r\n",
]  # fmt: skip


@pytest.mark.parametrize("data", NOT_PLAIN)
def test_all_others_go_the_long_way(data: bytes):
    """What is not just plain whole commands goes the long way as a chunk, and whatever follows it is understood alike."""
    for before in (b"", PLAIN):
        rest = [(">", encode_command(b"GET", b"k")), ("<", b"+OK\r\n"), ("<", b"$1\r\nv\r\n:1\r\n")]
        assert not dialogue((">", before + data), *rest)[0]
        assert dialogue((">", PLAIN), (">", data), *rest)[:2] == [True, False]


@pytest.mark.parametrize("data", [command("SET key value"), *NOT_PLAIN])
def test_cut_anywhere(data: bytes):
    """A chunk that ends anywhere in a command, and the next one that goes on there."""
    whole = command("GET k") + data + command("GET l")
    for cut in range(1, len(whole)):
        dialogue((">", whole[:cut]), (">", whole[cut:]), ("<", b"+OK\r\n:1\r\n:2\r\n"))


@pytest.mark.parametrize(
    "data",
    [
        b">2\r\n+message\r\n+x\r\n", b"|1\r\n+a\r\n+b\r\n:1\r\n", b":1\r\n>2\r\n+invalidate\r\n*0\r\n", b"*1\r\n|1\r\n+a\r\n+b\r\n:1\r\n",
        b"*1\r\n>2\r\n+invalidate\r\n*0\r\n:1\r\n", b"$5\r\nab", b"$5", b"$5\r\nhello\r", b"+O", b"*2\r\n:1\r\n", b"*1\r\n", b"*2",
        b"*12345678\r\n", b":1\r\n:2\r\n:3\r\n", b"?\r\n", b"$?\r\n", b"$x\r\n", b"*x\r\n", b"$-2\r\n", b"*-2\r\n", b"$12345", b":1\r\n*2",
    ],
)  # fmt: skip
def test_replies_that_go_the_long_way(data: bytes):
    """Pushes, attributes, unfinished replies, more than is owed: understood by the long way only, and what follows alike."""
    for protocol in (2, 3):
        ways = dialogue((">", PLAIN), ("<", data), ("<", b"+OK\r\n"), protocol=protocol)
        assert ways[:2] == [True, False]
        dialogue((">", PLAIN * 2), ("<", b"+OK\r\n" + data), ("<", b"+OK\r\n"), protocol=protocol)


def test_it_opens_again():
    """Once all is answered that went the long way, the lane is open again; until then it is shut in both directions."""
    assert dialogue(
        (">", PLAIN),
        ("<", b"+OK\r\n$1\r"),
        (">", command("GET k")),
        ("<", b"\nv\r\n:1\r\n"),
        (">", command("GET k") + command("SELECT 1")),
        (">", command("GET k")),
        ("<", b":1\r\n+OK\r\n"),
        ("<", b":1\r\n"),
        (">", command("GET k")),
        ("<", b":1\r\n"),
    ) == [True, False, False, False, False, False, False, False, True, True]


def test_a_push_keeps_its_place():
    """Ahead of a reply, behind it, or in pieces with a command between them."""
    push = b">2\r\n+invalidate\r\n*0\r\n"
    ways = dialogue((">", PLAIN), ("<", b"+OK\r\n" + push), ("<", b":1\r\n"), protocol=3)
    assert ways == [True, False, False]
    ways = dialogue(("<", push[:5]), (">", PLAIN), ("<", push[5:] + b":1\r\n:2\r\n"), protocol=3)
    assert not any(ways)


@pytest.mark.parametrize(
    ("commands", "replies"),
    [
        (["MULTI"], b"+OK\r\n"),
        (["SUBSCRIBE a"], b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
        (["MONITOR"], b"+OK\r\n"),
        (["CLIENT REPLY SKIP"], b""),
        (["CLIENT REPLY OFF"], b""),
        (["ASKING"], b"+OK\r\n"),
        (["SYNC"], b""),
    ],
)
def test_modes_close_the_lane(commands: list[str], replies: bytes):
    """Where a command may get no reply, or something else may come, every command goes the long way."""
    said = [(">", b"".join(map(command, commands))), *([("<", replies)] if replies else [])]
    assert not any(dialogue(*said, (">", command("GET k")), ("<", b":1\r\n")))


def test_addresses_are_translated():
    """Where a client is to see other addresses, errors and what tells of nodes go the long way; all else is plain."""
    ways = dialogue(
        (">", PLAIN),
        ("<", b"+OK\r\n"),
        ("<", b"-MOVED 1 127.0.0.1:7000\r\n"),
        (">", PLAIN),
        ("<", b"+OK\r\n-ASK 1 127.0.0.1:7000\r\n"),
        (">", command("CLUSTER SLOTS")),
        ("<", b"*0\r\n"),
        (">", command("GET k")),
        ("<", b"$5\r\n-MOVE\r\n"),
        translate=lambda host, port: (host, port + 1),
    )
    assert ways == [True, True, False, True, False, False, False, True, True]


BATCH = """
- fault: latency
  match: {commands: [GET], batch: {index: 3}}
  at: before_forward
  delay: 1s
"""


def test_rules_see_what_they_name():
    """A command that a rule names goes the long way; others do not, and count in its batch all the same."""
    sets = command("SET k v")
    ways = dialogue((">", sets), (">", sets), (">", command("GET k")), (">", sets), faults=BATCH)
    assert ways == [True, True, False, False]


def test_silence_closes_the_lane():
    """On a line that has fallen silent nothing passes by the lane either."""
    rule = "- {fault: blackhole, what: connection, at: after_reply, match: {commands: [INCR]}}"
    incr = command("INCR n")
    ways = dialogue((">", incr), ("<", b":1\r\n"), (">", PLAIN), ("<", b"+OK\r\n"), faults=rule)
    assert not any(ways)
    rule = rule.replace("}}", "}, direction: to_client, for: 1s}")
    ways = dialogue((">", incr), ("<", b":1\r\n"), (">", PLAIN), faults=rule)
    assert not any(ways)


def test_a_profile_that_is_put_in_force():
    """What is on its way by the lane is answered; what comes then meets the rules, and again none under the calm profile."""

    def play() -> None:
        talk = Talk()
        talk.client(PLAIN)
        talk.switch("- {fault: reply, at: before_forward, error: no, match: {commands: GET}}")
        talk.upstream("+OK")
        talk.client("GET k")
        talk.upstream(":1")
        talk.switch()
        talk.client("GET k")
        talk.upstream(":1")

    assert same(play) == [True, False, False, False, True, True]


def test_what_else_happens():
    """Any other event finds the line as the long way would have left it."""
    for event in ("client_eof", "client_gone", "upstream_eof", "upstream_gone", "wake"):

        def play(event: str = event) -> None:
            talk = Talk()
            talk.client(PLAIN * 2)
            talk.upstream("+OK")
            getattr(talk, event)()
            getattr(talk, event)()
            if not talk._over:
                talk.upstream(":1", ":2")

        same(play)


def test_connections_of_a_kind_still_wait():
    """A rule that asks whether a connection blocks hears of a command that went by the lane."""
    faults = """
- {fault: latency, at: before_forward, delay: 1s, match: {commands: GET, connection: {state: blocked}}}
"""
    ways = dialogue((">", command("BLPOP l 0")), (">", command("GET k")), faults=faults)
    assert ways == [True, False]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_any_conversation(seed: int):
    """Rules, commands, pieces, pushes, events and ends at random: all that is told and counted is the same both ways."""
    same(lambda: converse(Random(seed), ALL_KINDS, in_order=False))


PLAIN_KINDS = (
    "SET k:{n} v",
    "GET k:{n}",
    "RPUSH k:{n} v",
    "BLPOP k:{n} 0",
    "PING",
    "LRANGE k:{n} 0 -1",
)
LATE = "- {fault: latency, at: before_forward, delay: 100ms, "
CUT = "- {fault: disconnect, at: after_apply, "
PROFILES = (
    "",
    "",
    LATE + "match: {commands: ZADD}}",
    LATE + "match: {commands: [SET, GET]}, when: {chance: 10%}}",
    LATE + "when: {chance: 10%, per: key}}",
    LATE + "match: {keys: '*[13579]'}, when: {every: 3, limit: 2}}",
    LATE + "match: {key_share: 50%}, when: {chance: 30%, per: connection}}",
    LATE + "match: {commands: '@write', arguments: {has: v}}, when: {chance: 30%}}",
    LATE + "match: {db: 0, clients: {address: '10.*'}}, when: {nth: [3, 7]}}",
    LATE + "match: {connection: {state: blocked}}, when: {chance: 30%}}",
    LATE + "match: {batch: {index: 2}}, when: {chance: 30%}}",
    CUT
    + "match: {reply: {type: error}}}\n"
    + LATE
    + "match: {commands: GET}, when: {chance: 10%}}",
    LATE + "when: {skip: 5, first: 3}}",
    LATE + "match: {keys: 'k:*'}, when: {nth: [4, 5, 17]}}",
    LATE
    + "match: {commands: [SET, GET]}, when: {skip: 2, every: 7, first: 30, chance: 50%, limit: 2}}",
    LATE
    + "match: {commands: [SET, RPUSH]}, when: {trigger: manual}}\n"
    + LATE
    + "when: {from: 1s, until: 3s}}",
    LATE
    + "match: {keys: 'k:1*'}, when: {chance: 20%}}\n"
    + LATE
    + "match: {keys: k:2}, when: {limit: 1}}",
    "- {fault: drop_write, tell: ok, when: {chance: 10%}}\n- {fault: latency, delay: 0s, at: after_apply, when: {chance: 10%}}",
)


def alike(random: Random) -> Iterator[bytes]:
    """Commands that begin alike, as many as come together; now and then another one, or one that is long."""
    kind = random.choice([b"SET", b"GET", b"INCR", b"RPUSH"])
    for _ in range(random.randint(1, 20)):
        key = b"k:%d" % random.randint(0, 12)
        more = (
            [b"v" * random.choice([1, 30, 99, 100, 255, 256, 3000])]
            if kind in {b"SET", b"RPUSH"}
            else []
        )
        yield encode_command(kind, key, *more)
        if random.random() < 0.05:
            yield encode_command(b"PING")


def wander(random: Random) -> None:  # noqa: C901 - one case an event
    """A conversation that keeps to the lane for the most part, and leaves it in all ways, in the middle of anything."""
    talk = Talk(random.choice(PROFILES), protocol=random.choice([2, 3]))
    server = Toy(talk.protocol)
    owed = b""
    for _ in range(random.randint(5, 40)):
        kinds = ALL_KINDS if random.random() < 0.02 else PLAIN_KINDS
        data = b"".join(script(random, kinds))
        if random.random() < 0.4:
            data = b"".join(alike(random)) + random.choice([b"", data])
        match random.randint(0, 9):
            case 0 | 1 | 2:
                talk.client(data)
            case 3:
                cut = random.randint(1, len(data))
                talk.client(data[:cut])
                talk.wait(0.001)
                if data[cut:]:
                    talk.client(data[cut:])
            case 4 | 5 | 6:
                owed += b"".join(server.out)
                server.out.clear()
                size = random.choice([len(owed), len(owed), random.randint(1, 40)])
                if owed[:size]:
                    talk.upstream(owed[:size])
                owed = owed[size:]
            case 7 if random.random() < 0.2:
                talk.switch(random.choice([*PROFILES, profile(random)]))
            case 8 if talk.protocol == 3:
                server.out.append(reply('>["invalidate" *["a"]]'))
            case _:
                talk.wait(random.choice([0.0, 0.0001, 0.01, 2.0]))
        server.receive(talk.heard("upstream"))
        talk.heard("client")
        while talk._asked:
            talk.side(*[":1"] * len(talk._asked[0].requests))
        if talk._over:
            break


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_mostly_plain_conversations(seed: int):
    """Plain commands, and whatever else, in any chunks, with profiles put in force in their midst."""
    same(lambda: wander(Random(seed)))


def test_they_are_mostly_plain():
    """Such a conversation does go by the lane, so the test before says something of it."""
    ways = [way for seed in range(30) for way in same(lambda seed=seed: wander(Random(seed)))]
    assert 0.1 < sum(ways) / len(ways) < 0.95


FIRES = [
    LATE.replace("100ms", "0ms") + "match: {commands: [SET, GET]}, when: {nth: [3, 9, 10, 40]}}",
    LATE.replace("100ms", "0ms") + "match: {keys: 'k:[39]'}}",
    "- {fault: reply, error: 'ERR made up', at: before_forward, when: {every: 7}}",
    "- {fault: latency, at: after_apply, delay: 0ms, when: {every: 5}}",
    "- {fault: latency, at: after_apply, delay: 1s, when: {nth: 6}}",
    "- {fault: disconnect, at: after_apply, when: {nth: 12}}",
    "- {fault: blackhole, what: connection, at: after_apply, when: {nth: 12}}",
]


@pytest.mark.parametrize("faults", FIRES)
@pytest.mark.parametrize("step", [1, 7, 100, 100_000])
def test_a_fault_in_the_midst_of_a_pipeline(faults: str, step: int):
    """What stands ahead of a command that is acted on, and behind it, goes together; the same as command by command."""
    sent = b"".join(encode_command(b"SET", b"k:%d" % number, b"v" * number) for number in range(16))
    sent += b"".join(encode_command(b"GET", b"k:%d" % number) for number in range(16))
    heard = b"+OK\r\n" * 16 + b"".join(b"$%d\r\n%s\r\n" % (n, b"v" * n) for n in range(16))
    pieces = [heard[at : at + step] for at in range(0, len(heard), step)]

    def play() -> None:
        talk = Talk(faults)
        for _ in range(2):
            talk.client(sent)
            for piece in pieces:
                talk.wait(0.0001)
                if not talk._over:
                    talk.upstream(piece)
        talk.wait(2.0)

    same(play)


def test_only_what_is_acted_on_goes_the_long_way():
    """Of a pipeline in which one command is acted on, all others share a slot with their neighbours."""
    talk = Talk(FIRES[0])
    warm = encode_command(b"SET", b"a", b"1") * 2
    talk.client(warm)
    talk.client(encode_command(b"SET", b"a", b"1") * 16)
    slots = [(slot.times, slot.work is not None) for slot in talk.conversation._line.slots]
    acted = (1, True)
    assert slots == [(1, False), (1, False), acted, (5, False), acted, acted, (8, False)]


@pytest.mark.parametrize("faults", ["", LATE + "match: {keys: 'k:3'}}"])
def test_long_values_one_by_one(faults: str):
    """Of a kind that comes often they pass at once, unless a rule is about their key; short ones in between do, too."""
    short, long = (encode_command(b"SET", b"k:1", b"x" * size) for size in (1, 500))
    held = encode_command(b"SET", b"k:3", b"x" * 500)
    sent = [short, short, short, long, long, short, long]
    chunks = [chunk for data in sent for chunk in ((">", data), ("<", b"+OK\r\n"))]
    assert all(dialogue(*chunks, faults=faults))
    assert dialogue(*chunks, (">", held), faults=faults)[-1] == (not faults)


BIG = encode_command(b"SET", b"k", b"x" * 300_000)
BULK = b"$300000\r\n" + b"x" * 300_000 + b"\r\n"


def cut(side: str, data: bytes, *at: int) -> list[tuple[str, bytes]]:
    """Cut bytes at these places."""
    edges = [0, *at, len(data)]
    return [(side, data[low:high]) for low, high in pairwise(edges)]


def test_large_values_are_counted_off():
    """A value that comes in pieces passes in pieces, in both directions, with whole commands and replies around it."""
    ways = dialogue(
        *cut(">", PLAIN + BIG + PLAIN, len(PLAIN) + 50, 200_000, len(PLAIN + BIG)),
        ("<", b"+OK\r\n:1\r\n"),
        *cut("<", b"+OK\r\n" + BULK + b"+OK\r\n", 5, 100, 200_000, len(BULK) + 5),
        *cut(">", BIG, 40, len(BIG) - 3),
        *cut("<", BULK, 20, 300_000),
        (">", PLAIN),
        *cut("<", BULK + b"+OK\r\n", 20),
    )
    assert all(ways)
    # Nothing else may come with the first part of a large reply.
    assert dialogue((">", PLAIN), ("<", b":1\r\n" + BULK[:99]), ("<", BULK[99:]))[1:] == [False] * 2


@pytest.mark.parametrize("size", [990, 1000, 4096, 4097, 4120, 5000, 70_000])
def test_a_large_value_is_left_in_the_middle(size: int):
    """What comes then goes the long way, and no byte, count or place is lost."""
    for more in ((), (b"y" * size,), (b"",)):
        whole = encode_command(b"SET", b"k" * 10, b"x" * size, *more)
        for place in (45, size // 2, size + 30):
            for event in ("wake", "client_eof", "upstream_gone", "push", "switch", "none"):

                def play(whole=whole, place=place, event=event) -> None:
                    talk = Talk(protocol=3)
                    talk.client(whole[:place])
                    if event == "push":
                        talk.upstream('>["invalidate" *["a"]]')
                    elif event == "switch":
                        talk.switch(BATCH)
                    elif event != "none":
                        getattr(talk, event)()
                    if not talk._over and event != "client_eof":
                        talk.client(whole[place:-1])
                        talk.client(whole[-1:] + PLAIN)
                        talk.upstream(b"+OK\r\n$%d\r\n" % size)
                        talk.upstream(b"x" * (size // 2))
                        talk.wake()
                        talk.upstream(b"x" * (size - size // 2) + b"\r\n:1")
                        talk.upstream(b"\r\n")

                same(play)


@pytest.mark.parametrize("size", [1000, 4097, 5000, 200_000])
@pytest.mark.parametrize("event", ["wake", "client_eof", "upstream_eof", "client", "switch", "cut"])
def test_a_large_reply_is_left_in_the_middle(size: int, event: str):
    """The same of a reply: its rest goes the long way, or its connection ends, and what passed is not told again."""
    whole = b"$%d\r\n%s\r\n" % (size, b"x" * size)
    for place in (8, 50, size // 2, size + 8):

        def play(place=place) -> None:
            talk = Talk()
            talk.client(PLAIN)
            talk.upstream(whole[:place])
            match event:
                case "client":
                    talk.client("SELECT 1")
                case "switch":
                    talk.switch(BATCH)
                case "cut":
                    talk.cut("reset")
                case _:
                    getattr(talk, event)()
            if not talk._over:
                talk.upstream(whole[place:-1])
                talk.upstream(whole[-1:] + b":1\r\n+OK\r\n")

        same(play)


def pour(random: Random) -> None:
    """Commands and replies of all sizes, in any pieces, and events in their midst."""
    talk = Talk(random.choice(PROFILES), protocol=3)
    sizes = [1, 20, 1000, 4090, 4100, 5000, 9000]
    asked = b"".join(
        encode_command(
            random.choice([b"SET", b"APPEND", b"PING"]), b"k", b"x" * random.choice(sizes)
        )
        for _ in range(random.randint(1, 12))
    )
    said = b""
    for _ in range(12):
        size = random.choice(sizes)
        said += random.choice([b"+OK\r\n", b"$%d\r\n%s\r\n" % (size, b"y" * size), b":1\r\n"])
    for _ in range(30):
        size = random.choice([1, 30, 1000, 4000, 6000, 20_000])
        match random.randint(0, 12):
            case 0 | 1 | 2 | 3 | 4 | 5 if asked:
                talk.client(asked[:size])
                asked = asked[size:]
            case 6 | 7 | 8 | 9 if said and talk.conversation.describe()["waiting_replies"]:
                talk.upstream(said[:size])
                said = said[size:]
            case 10 if random.random() < 0.2:
                talk.switch(random.choice(PROFILES))
            case _:
                talk.wait(0.2)
        while talk._asked:
            talk.side(*[":1"] * len(talk._asked[0].requests))
        if talk._over:
            break
    talk._heard = {"client": b"", "upstream": b""}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_values_of_any_size(seed: int):
    """Small and large values, whole and in pieces: all that is told and counted is the same both ways."""
    same(lambda: pour(Random(seed)))


@pytest.mark.parametrize("fast", [True, False])
def test_too_many_unanswered(monkeypatch, fast):
    """Who asks and asks is read no more once so much is owed to them, and again once some of it is given."""
    monkeypatch.setattr(lane_module, "MOST_UNANSWERED", 3)
    with Talk() as talk:
        talk.fast = fast
        sent = []
        for name in ("GET a", "PING", "GET a", "PING", "GET a"):
            assert not talk.conversation.client_paused
            talk.client(name)
            sent.append(name)
            if talk.conversation.client_paused:
                break
        assert len(sent) == 4
        talk.expect_upstream(*sent)
        # What came all the same is passed on as ever, the long way.
        talk.client("ECHO x")
        talk.expect_upstream("ECHO x")
        assert talk.conversation.client_paused
        talk.upstream("$-1", "+PONG")
        talk.expect_client("$-1", "+PONG")
        assert not talk.conversation.client_paused
        talk.upstream("$-1", "+PONG", '"x"')
        talk.expect_client("$-1", "+PONG", '"x"')
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream("$-1")
        talk.expect_client("$-1")


@pytest.mark.parametrize(
    ("command", "answer", "counted"),
    [
        ("LRANGE l 0 -1", '*["a" "b"]', True),
        ("BLPOP q 1", '*["q" "a"]', False),
        ("BLMOVE a b LEFT LEFT 1", '"x"', False),
    ],
)
def test_replies_of_several_values_to_commands_that_began_alike(command, answer, counted):
    """However many of them have come: each reply passes, and how long it took is counted where nobody waits on purpose."""
    with Talk() as talk:
        for _ in range(100):
            talk.client(command)
            talk.expect_upstream(command)
            talk.upstream(answer)
            talk.expect_client(answer)
            assert not len(talk.conversation.lane)
        tally = talk.world.tallies[command.split()[0]]
        assert (tally.count, sum(tally.histogram.buckets)) == (100, 100 if counted else 0)


def test_it_is_closed_while_a_side_is_missing():
    """Whatever happens meanwhile, nothing passes before both sides are there, and no reply to what came before."""
    with Talk() as talk:
        lane = talk.conversation.lane
        talk.client("GET a")
        assert len(lane) == 1
        lane.close()
        assert len(lane) == 0
        assert not lane.replies(b"$-1\r\n", talk.now)
        assert not lane.others(b"$-1\r\n", talk.now)
        talk.switch()
        assert not lane.open
        assert not lane.requests(PLAIN, talk.now)
        talk.expect_upstream("GET a")
        lane.join()
        assert lane.open
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream("$-1")
        talk.expect_client("$-1")


@pytest.mark.parametrize(
    "match", ["match: {commands: SET}, when: {nth: 100}", "match: {keys: 'last:*'}"]
)
def test_one_by_one_up_to_the_one_that_a_rule_is_about(match):
    """Commands that come one at a time, short ones alike: just those go by that it leaves alone, and the long way is the same."""
    for rule in (LATE, CUT + "how: reset, "):
        chunks: list[tuple[str, bytes]] = []
        for key in [*(f"k:{number}" for number in range(99)), "last:1"]:
            chunks += [(">", command(f"SET {key} v")), ("<", b"+OK\r\n")]
        ways = dialogue(*chunks[:-1], faults=f"{rule}{match}}}")
        assert ways == [True] * (len(chunks) - 2) + [False]


@pytest.mark.parametrize("behind", ["SET k v", "PING"])
@pytest.mark.parametrize("tell", ["nothing", "disconnect", "error"])
def test_answers_to_what_came_together_are_told_in_order(tell, behind):
    """An answer of a rule's, another rule's silence or end right behind it, and what is of no interest: told as without the lane."""
    rules = (
        "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}\n"
        f"- {{fault: drop_write, match: {{commands: INCR}}, tell: {tell}}}"
    )
    for chunk in (("GET a", "INCR n", behind), ("GET a", behind, "INCR n"), (behind, "GET a", behind)):  # fmt: skip
        dialogue((">", b"".join(map(command, chunk))), ("<", b"+OK\r\n"), faults=rules)
