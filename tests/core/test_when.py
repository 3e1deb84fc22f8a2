"""Which matches a rule acts on: counts, windows, chance, requests; each alone, per scope, and together."""

import pytest

from chaosproxy.core import when as when_module
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.match import Exchange
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import When
from chaosproxy.core.steering import trigger
from chaosproxy.core.when import Counter, Turn
from tests.conversation import Talk, command

TABLE = CommandTable.bundled()
GET = Command.parse(TABLE, (b"GET", b"k"), command("GET k"))


def exchange(connection: int = 1) -> Exchange:
    return Exchange(GET, connection, b"", "127.0.0.1", 0)


def takes(when: When, times: int = 8, **how) -> list[int | str]:
    """Take so many matches: the number of each that is acted on, the reason for each that is not."""
    counter = Counter(when, 7, "rule", 0.0)
    return [number(counter, **how) for _ in range(times)]


def number(counter: Counter, key: bytes | None = b"k", connection: int = 1, now: float = 5.0):
    turn = counter.take(exchange(connection), key, now)
    return turn.match if isinstance(turn, Turn) else turn


@pytest.mark.parametrize(
    ("when", "taken"),
    [
        (When(), [1, 2, 3, 4, 5, 6]),
        (When(nth=(1, 4)), [1, "nth", "nth", 4, "nth", "nth"]),
        (When(first=2), [1, 2, "first", "first", "first", "first"]),
        (When(skip=2), ["skip", "skip", 3, 4, 5, 6]),
        (When(every=3), ["every", "every", 3, "every", "every", 6]),
        (When(limit=2), [1, 2, "limit", "limit", "limit", "limit"]),
        (When(skip=1, nth=(2,)), ["skip", "nth", 3, "nth", "nth", "nth"]),
        (When(skip=1, first=2), ["skip", 2, 3, "first", "first", "first"]),
        (When(skip=1, every=2), ["skip", "every", 3, "every", 5, "every"]),
        (When(every=2, limit=1), ["every", 2, "every", "limit", "every", "limit"]),
        (When(trigger="manual"), ["manual"] * 6),
        (When(chance=0.0), ["chance"] * 6),
        (When(chance=1.0), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_counts(when, taken):
    """Every count does what its help says; `skip` shifts the others."""
    assert takes(when, 6) == taken


def test_limit_once_it_is_known(monkeypatch):
    """Where it is known later only whether a match can be acted on, the limit is of those that can, in the order in which that is known."""
    counter = Counter(When(limit=1, per="key"), 7, "rule", 0.0)
    counter.late = True
    first, second, third = (counter.take(exchange(), b"k", 5.0) for _ in range(3))
    counter.give_back(first)
    assert counter.spend(second)
    assert not counter.spend(third)
    assert number(counter) == "limit"
    counter.give_back(third)
    counter.give_back(second)
    assert number(counter) == 5
    fifth = counter.take(exchange(), b"k", 5.0)
    monkeypatch.setattr(when_module, "MOST_SCOPES", 1)
    number(counter, b"another")
    assert counter.spend(fifth)  # of a key that is forgotten nothing is counted


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("queued", [True, False])
def test_limit_in_a_pipeline(at_once, queued):
    """What cannot be changed takes nothing from the limit, whether the next command comes before that is known or after."""
    rule = (
        "- {fault: reply, truncate: 1, match: {commands: GET}, when: {limit: 1}, at: after_apply}"
    )
    with Talk(rule) as talk:
        if queued:
            talk.handshake("MULTI", "+OK")
        names = [f"GET {key}" for key in "abcd"]
        for some in [names] if at_once else [[name] for name in names]:
            talk.client(*some)
            for each in some:
                talk.heard("upstream")
                talk.upstream(
                    "+QUEUED" if queued else "$-1" if each in {"GET a", "GET d"} else '"long"'
                )
        if queued:
            talk.client("EXEC")
            talk.heard("upstream")
            talk.upstream('*[$-1 "long" "long" $-1]')
        assert talk.heard("client").endswith(b"$-1\r\n$1\r\nl\r\n$4\r\nlong\r\n$-1\r\n")
        talk.expect_fired("reply", keys=(b"b",), match=2)
        assert talk.skipped("reply") == ["not_applicable", "limit", "limit"]


def test_per_key_and_connection():
    """Each key, or connection, is counted apart; commands without a key count together."""
    counter = Counter(When(nth=(2,), per="key"), 7, "rule", 0.0)
    keys = [b"a", b"b", b"a", None, b"b", None]
    assert [number(counter, key) for key in keys] == ["nth", "nth", 2, "nth", 2, 2]
    counter = Counter(When(limit=1, per="connection"), 7, "rule", 0.0)
    assert [number(counter, connection=n) for n in (1, 2, 1, 2)] == [1, 1, "limit", "limit"]


def test_window():
    """Outside `from` and `until` matches do not count; `from` is in, `until` is out."""
    counter = Counter(When(from_=10.0, until=20.0), 7, "rule", 100.0)
    times = [105.0, 110.0, 119.9, 120.0]
    assert [number(counter, now=now) for now in times] == ["window", 1, 2, "window"]
    assert [counter.awake(now) for now in times] == [False, True, True, False]


def test_armed_and_disabled():
    """A rule that waits for another, or was switched off, does not count."""
    counter = Counter(When(armed_by="other"), 7, "rule", 0.0)
    assert number(counter) == "not_armed"
    counter.armed = True
    assert number(counter) == 1
    counter.enabled = False
    assert number(counter) == "disabled"
    counter.enabled = True
    assert number(counter) == 2


def test_chance_is_drawn_from_a_stream_of_its_own():
    """A match's roll follows from seed, fault name, scope and match number, and from nothing else."""
    some = takes(When(chance=0.5), 20)
    assert 3 < sum(isinstance(each, int) for each in some) < 17
    assert takes(When(chance=0.5), 20) == some
    other_name = Counter(When(chance=0.5), 7, "other", 0.0)
    other_seed = Counter(When(chance=0.5), 8, "rule", 0.0)
    assert [number(other_name) for _ in range(20)] != some
    assert [number(other_seed) for _ in range(20)] != some
    # Matches of another key in between shift nothing.
    counter = Counter(When(chance=0.5, per="key"), 7, "rule", 0.0)
    alone = [number(counter, b"a") for _ in range(20)]
    counter = Counter(When(chance=0.5, per="key"), 7, "rule", 0.0)
    mixed = [(number(counter, b"b"), number(counter, b"a"))[1] for _ in range(20)]
    assert mixed == alone


def test_connections_are_numbered_from_when_the_profile_came():
    """What came before it, on however many connections, shifts no roll of a profile that counts per connection."""
    when = When(chance=0.5, per="connection")
    begun, later = Counter(when, 7, "rule", 0.0), Counter(when, 7, "rule", 9.0, first=41)
    numbers = [each for each in (0, 1, 2, 3) for _ in range(20)]
    fell = [number(begun, connection=each) for each in numbers]
    assert fell[20:40] != fell[40:60] != fell[60:]
    assert [number(later, connection=each + 40) for each in numbers] == fell
    turn = Counter(When(per="connection"), 7, "rule", 9.0, first=41).take(exchange(42), None, 9.0)
    assert isinstance(turn, Turn)
    assert turn.per == "2"


def test_a_turn_says_how_it_came_about():
    """Its roll, its stream, its scope, and which match it was, counted or not."""
    counter = Counter(When(chance=1.0, per="key", from_=2.0), 7, "rule", 0.0)
    assert counter.take(exchange(), b"k", 1.0) == "window"
    turn = counter.take(exchange(), b"k", 3.0)
    assert isinstance(turn, Turn)
    assert (turn.match, turn.ordinal, turn.per, turn.stream) == (1, 2, "k", "7/rule/k/1")
    assert turn.draw is not None
    assert 0 <= turn.draw < 1


def test_requests():
    """`trigger: manual` acts once for each request."""
    counter = Counter(When(trigger="manual"), 7, "rule", 0.0)
    counter.requests += 2
    assert [number(counter) for _ in range(4)] == [1, 2, "manual", "manual"]


def test_what_could_not_act_spends_nothing():
    """`limit` counts what fired: a read that cannot be dropped leaves the limit to the write behind it."""
    rule = "- {fault: drop_write, tell: error, match: {keys: k}, when: {limit: 1}}"
    with Talk(rule) as talk:
        talk.handshake("GET k", '"v"')
        talk.client("SET k 1")
        talk.expect_client("-ERR the write was dropped by the fault drop_write")
        talk.handshake("SET k 2", "+OK")
        assert talk.skipped("drop_write") == ["not_applicable", "limit"]


def test_nothing_is_given_back_in_a_replay():
    """In a replay nothing is spent, so what could not act gives nothing back; a request there is none of."""
    event = {"n": 1, "fault": "rule", "ordinal": 1, "match": 1, "command": "GET"}
    recording = Recording.of([event | {"digest": GET.digest()}])
    counter = Counter(When(limit=1, trigger="manual"), 7, "rule", 0.0, recording)
    turn = counter.take(exchange(), b"k", 5.0)
    assert isinstance(turn, Turn)
    counter.give_back(turn)
    assert counter.requests == 0


def test_a_request_waits_for_a_match_it_can_be_used_for():
    """A manual request is not used up by a match that cannot be acted on."""
    rule = "- {fault: drop_write, tell: error, match: {keys: k}, when: {trigger: manual}}"
    with Talk(rule) as talk:
        trigger(talk.world.engine, "drop_write", talk.now)
        talk.handshake("GET k", '"v"')
        talk.client("SET k 1")
        talk.expect_client("-ERR the write was dropped by the fault drop_write")


AHEAD = [
    When(), When(chance=0.03), When(chance=1.0), When(chance=0.0001), When(nth=(2, 9, 30)), When(first=5), When(skip=4), When(every=7),
    When(every=7, skip=3, first=40), When(limit=3), When(trigger="manual"), When(from_=1.0, until=2.0), When(nth=(3, 4), chance=0.5),
    When(skip=2, first=30, chance=0.2, limit=2), When(armed_by="other"),
]  # fmt: skip


@pytest.mark.parametrize("when", AHEAD)
def test_what_is_told_ahead_comes_true(when: When):
    """So many matches as are told of are left alone, for the reason told; to count them together is to take them one by one."""
    slow, quick = Counter(when, 7, "f", 100.0), Counter(when, 7, "f", 100.0)
    assert quick.counts_all_alike
    told = 0
    for step in range(400):
        now = 100.0 + step / 100
        for counter in (slow, quick):
            counter.enabled = step % 50 != 49
            counter.requests = int(step == 77) or counter.requests
        allowance = quick.look_ahead(now)
        ahead, reason = allowance.most - allowance.passed, quick._reason
        times = min(ahead, 1 + step % 5)
        told += times
        before = quick.left_alone().get(reason, 0)
        allowance.passed += times
        assert quick.left_alone().get(reason, 0) == before + times
        quick.expire()
        assert [slow.take(exchange(), None, now) for _ in range(times)] == [reason] * times
        if times == ahead:
            assert slow.take(exchange(), None, now) == quick.take(exchange(), None, now)
        quick._settle()
        assert allowance.passed == allowance.most
        assert (slow._seen, slow._counts, slow._selected) == (
            quick._seen, quick._counts, quick._selected,
        )  # fmt: skip
    assert told


def test_what_cannot_be_told_ahead():
    """Nothing is told of what is counted over something else than the whole fault, nor in a replay."""
    assert not Counter(When(per="key"), 7, "f", 0.0).counts_all_alike
    assert not Counter(When(per="connection"), 7, "f", 0.0).counts_all_alike
    assert not Counter(When(), 7, "f", 0.0, Recording({})).counts_all_alike


def test_keys_that_are_counted_are_bounded(monkeypatch):
    """Of so many keys is counted: the longest untouched is forgotten and begins anew; a long key is counted by its digest."""
    monkeypatch.setattr(when_module, "MOST_SCOPES", 2)
    counter = Counter(When(per="key", limit=1), 7, "f", 0.0)
    first = counter.take(exchange(), b"a", 1.0)
    assert number(counter, b"b") == 1
    assert number(counter, b"a") == "limit"
    assert number(counter, b"c") == 1
    assert number(counter, b"a") == "limit"
    # It was the longest untouched.
    assert number(counter, b"b") == 1
    assert number(counter, b"c") == 1
    counter.give_back(first)
    assert number(counter, b"a") == 1
    long = b"k" * 1000
    turn = counter.take(exchange(), long, 1.0)
    assert turn.per.startswith("blake2b:")
    assert len(turn.per) < 200
    assert number(counter, long) == "limit"
    assert number(counter, long[:-1] + b"x") == 1
