"""Times in requests: found by the syntax in every spelling and place, never in values, keys or fields; changed or taken out.

On real servers a request with another time is the same request but for that time.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaosproxy.core import ttl
from chaosproxy.core.command_table import CommandTable

NOW = 1_700_000_000.0
PAST, FUTURE = int(NOW) - 1000, int(NOW) + 1000


def words(text: str) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in text.split(" "))


def text(args) -> str | None:
    return None if args is None else " ".join(arg.decode() for arg in args)


def changed(command: str, change) -> str | None:
    return text(ttl.changed(words(command), change))


def half(seconds: float, absolute: bool) -> float:
    """Half of what is left at NOW."""
    return NOW + (seconds - NOW) / 2 if absolute else seconds / 2


#: A command, and the same with half the time.
HALVED = {
    "SET k v EX 10": "SET k v EX 5",
    "set k v ex 10": "set k v ex 5",
    "SET k v EX 5": "SET k v PX 2500",
    "set k v ex 5": "set k v PX 2500",
    "SET k v PX 1000": "SET k v PX 500",
    f"SET k v EXAT {FUTURE}": f"SET k v EXAT {FUTURE - 500}",
    f"SET k v EXAT {FUTURE + 1}": f"SET k v PXAT {FUTURE - 500}500",
    f"SET k v PXAT {FUTURE}000": f"SET k v PXAT {FUTURE - 500}000",
    "SET k v NX EX 10": "SET k v NX EX 5",
    "SET k v EX 10 NX": "SET k v EX 5 NX",
    "SET k v XX GET PX 10": "SET k v XX GET PX 5",
    "SET k v GET EX 10 XX": "SET k v GET EX 5 XX",
    "SET k v IFEQ old EX 10": "SET k v IFEQ old EX 5",
    "SET k v EX 10 IFEQ old GET": "SET k v EX 5 IFEQ old GET",
    # Repeated, the last one counts, for the server as well.
    "SET k v EX 10 EX 20": "SET k v EX 10",
    "SET k v EX 10 EX 5": "SET k v PX 2500",
    "GETEX k EX 10": "GETEX k EX 5",
    "GETEX k px 3": "GETEX k px 2",
    f"GETEX k EXAT {FUTURE}": f"GETEX k EXAT {FUTURE - 500}",
    f"GETEX k PXAT {FUTURE}000": f"GETEX k PXAT {FUTURE - 500}000",
    "SETEX k 10 v": "SETEX k 5 v",
    "setex k 5 v": "PSETEX k 2500 v",
    "PSETEX k 10 v": "PSETEX k 5 v",
    "EXPIRE k 10": "EXPIRE k 5",
    "EXPIRE k 5": "PEXPIRE k 2500",
    "EXPIRE k 5 NX": "PEXPIRE k 2500 NX",
    "EXPIRE k 10 XX GT": "EXPIRE k 5 XX GT",
    "EXPIRE k 10 LT": "EXPIRE k 5 LT",
    "PEXPIRE k 10 GT": "PEXPIRE k 5 GT",
    f"EXPIREAT k {FUTURE}": f"EXPIREAT k {FUTURE - 500}",
    f"EXPIREAT k {FUTURE + 1} NX": f"PEXPIREAT k {FUTURE - 500}500 NX",
    f"PEXPIREAT k {FUTURE}000": f"PEXPIREAT k {FUTURE - 500}000",
    "HEXPIRE h 10 FIELDS 2 a b": "HEXPIRE h 5 FIELDS 2 a b",
    "HEXPIRE h 5 LT FIELDS 1 a": "HPEXPIRE h 2500 LT FIELDS 1 a",
    "HPEXPIRE h 10 NX FIELDS 1 a": "HPEXPIRE h 5 NX FIELDS 1 a",
    f"HEXPIREAT h {FUTURE} XX FIELDS 1 a": f"HEXPIREAT h {FUTURE - 500} XX FIELDS 1 a",
    f"HEXPIREAT h {FUTURE + 1} FIELDS 1 a": f"HPEXPIREAT h {FUTURE - 500}500 FIELDS 1 a",
    f"HPEXPIREAT h {FUTURE}000 FIELDS 1 a": f"HPEXPIREAT h {FUTURE - 500}000 FIELDS 1 a",
    "HSETEX h EX 10 FIELDS 1 a v": "HSETEX h EX 5 FIELDS 1 a v",
    "HSETEX h FNX PX 10 FIELDS 1 a v": "HSETEX h FNX PX 5 FIELDS 1 a v",
    "HSETEX h EX 5 FXX FIELDS 2 a v b w": "HSETEX h PX 2500 FXX FIELDS 2 a v b w",
    "HSETEX h FIELDS 1 a v EX 10": "HSETEX h FIELDS 1 a v EX 5",
    "HGETEX h EX 10 FIELDS 1 a": "HGETEX h EX 5 FIELDS 1 a",
    "HGETEX h FIELDS 2 a b PX 10": "HGETEX h FIELDS 2 a b PX 5",
    f"HGETEX h EXAT {FUTURE} FIELDS 1 a": f"HGETEX h EXAT {FUTURE - 500} FIELDS 1 a",
    "MSETEX 1 k v EX 10": "MSETEX 1 k v EX 5",
    "MSETEX 2 k v l w NX EX 5": "MSETEX 2 k v l w NX PX 2500",
    "MSETEX 1 k v PX 10 XX": "MSETEX 1 k v PX 5 XX",
    "RESTORE k 10 dump": "RESTORE k 5 dump",
    "RESTORE k 5 dump REPLACE": "RESTORE k 2 dump REPLACE",
    f"RESTORE k {FUTURE}000 dump ABSTTL": f"RESTORE k {FUTURE - 500}000 dump ABSTTL",
    f"RESTORE k {FUTURE}000 dump REPLACE absttl FREQ 1": f"RESTORE k {FUTURE - 500}000 dump REPLACE absttl FREQ 1",
    "RESTORE k 10 dump IDLETIME 7": "RESTORE k 5 dump IDLETIME 7",
    "RESTORE-ASKING k 10 dump": "RESTORE-ASKING k 5 dump",
    # What looks like an option stands where a key, a value or a field does.
    "SET EX PX EX 10": "SET EX PX EX 5",
    "SET PX 10 PX 10": "SET PX 10 PX 5",
    "SET k v IFEQ EX EX 10": "SET k v IFEQ EX EX 5",
    "SET k v IFEQ PX PX 10": "SET k v IFEQ PX PX 5",
    "GETEX EX EX 10": "GETEX EX EX 5",
    "SETEX EX 10 PX": "SETEX EX 5 PX",
    "EXPIRE EX 10": "EXPIRE EX 5",
    "HSETEX FIELDS EX 10 FIELDS 1 EX 10": "HSETEX FIELDS EX 5 FIELDS 1 EX 10",
    "HSETEX h FIELDS 1 EX 8 EX 10": "HSETEX h FIELDS 1 EX 8 EX 5",
    "HSETEX h FIELDS 2 FIELDS 1 PX 8 PX 10": "HSETEX h FIELDS 2 FIELDS 1 PX 8 PX 5",
    "HGETEX h FIELDS 2 EX FIELDS EX 10": "HGETEX h FIELDS 2 EX FIELDS EX 5",
    "HEXPIRE h 10 FIELDS 2 EX 10": "HEXPIRE h 5 FIELDS 2 EX 10",
    "MSETEX 2 EX 8 PX 8 EX 10": "MSETEX 2 EX 8 PX 8 EX 5",
    "MSETEX 1 NX EX EX 10": "MSETEX 1 NX EX EX 5",
    "RESTORE ABSTTL 10 ABSTTL": "RESTORE ABSTTL 5 ABSTTL",
    "RESTORE k 10 dump IDLETIME ABSTTL": "RESTORE k 5 dump IDLETIME ABSTTL",
}  # fmt: skip

#: Commands that carry no time to live, and those that the server refuses.
NO_TIME = """
SET k v
SET EX PX
SET k EX
SET k v NX GET
SET k v IFEQ EX
SET k v EX
SET k v NX EX
SET k v EX ten
SET k v EX +10
SET k v EX 010
SET k v EX 1.5
SET k v EX 1_0
SET k v EX 0
SET k v PX -5
SET k v EX 10 PX 10
SET k v KEEPTTL EX 10
SET k v EX 10 KEEPTTL
SET k v EX 9223372036854775807
SET k v PX 9223372036854775807
SET k v EX 99999999999999999999
SET
SET k
GETEX k
GETEX EX
GETEX k PERSIST
GETEX k EX
GETEX k PERSIST EX 10
SETEX k 10
SETEX k 10 v EX
SETEX k 0 v
SETEX k -1 v
SETEX
EXPIRE k
EXPIRE
EXPIRE k 0
EXPIRE k -1 NX
EXPIRE k soon
HEXPIRE h 0 FIELDS 1 a
HSETEX h FIELDS 1 EX 10
HSETEX h FIELDS 2 a EX b 10
HSETEX h EX FIELDS 1 a v
HSETEX h FIELDS x EX 10
HSETEX h FIELDS
HGETEX h FIELDS 2 EX 10
HGETEX h PERSIST FIELDS 1 EX
MSETEX 1 EX 10
MSETEX 2 k v EX 10
MSETEX x k v EX 10
MSETEX 99999 k v EX 10
MSETEX
RESTORE k 0 dump
RESTORE k 0 dump ABSTTL
RESTORE k 10
RESTORE
GET EX
LPUSH EX 10
MSET EX 10
HSET h EX 10
GETSET k EX
SETRANGE k 10 EX
PERSIST k
TTL k
""".strip().splitlines()


@pytest.mark.parametrize("command", HALVED)
def test_changed(command):
    """The time is found by its place in the syntax, changed, and told in milliseconds where seconds are too coarse."""
    assert changed(command, half) == HALVED[command]


@pytest.mark.parametrize("command", HALVED)
def test_identity(command):
    """What is not to be changed is not: the very bytes go on."""
    assert changed(command, lambda seconds, absolute: seconds) == command


@pytest.mark.parametrize("command", NO_TIME)
def test_no_time(command):
    """Without a time to live, and where the server refuses the command, there is nothing to change, to strip or to hold back."""
    args = words(command)
    assert ttl.changed(args, half) is None
    assert ttl.left(args, NOW) is None
    assert ttl.stripped(args) is None
    assert not ttl.never_longer(args) or ttl.is_expire(args)


def test_every_command_with_a_time():
    """No write of the table that has EXPIRE in its name, or ends in EX, is left out; three others carry a time."""
    timed = {words(command)[0].upper().decode() for command in HALVED}
    writes = {name for name, spec in CommandTable.bundled().specs.items() if spec.is_write}
    named = {name for name in writes if "EXPIRE" in name or name.endswith("EX")}
    # These end in something else.
    named -= {"XDELEX", "ZREMRANGEBYLEX"}
    assert timed == named | {"SET", "RESTORE", "RESTORE-ASKING"}


#: Their time is an option, of any kind.
OPTIONS = {b"HSETEX", b"MSETEX"}


def test_names_that_may_carry_a_time():
    """Of the table those that do in some form, and no others; what has a time in some form alone may be absolute in another."""
    forms = {words(command)[0].upper() for command in HALVED}
    names = [name.encode() for name in CommandTable.bundled().specs]
    assert {name for name in names if ttl.may_carry(name)} == forms
    relative = {
        name for name in forms if name.endswith((b"EXPIRE", b"SETEX")) and name not in OPTIONS
    }
    assert {name for name in names if ttl.may_carry(name, absolute=True)} == forms - relative
    anew = {b"HSETEX", b"MSETEX", b"RESTORE", b"RESTORE-ASKING"}
    assert {name for name in names if ttl.may_renew(name)} == forms - anew


@pytest.mark.parametrize(
    ("command", "shortest"),
    [
        ("SET k v EX 10", "SET k v PX 1"),
        ("SET k v PXAT 10", "SET k v PXAT 1"),
        ("SETEX k 10 v", "PSETEX k 1 v"),
        ("EXPIRE k 10", "PEXPIRE k 1"),
        ("EXPIREAT k 10", "PEXPIREAT k 1"),
        ("HEXPIRE h 10 FIELDS 1 a", "HPEXPIRE h 1 FIELDS 1 a"),
        ("RESTORE k 10 dump", "RESTORE k 1 dump"),
    ],
)
@pytest.mark.parametrize("new", [0.0, -30.0, 0.0001])
def test_never_zero(command, shortest, new):
    """A time becomes a millisecond at the least: 0 or less would be an error, or a deletion."""
    assert changed(command, lambda seconds, absolute: new) == shortest


def test_not_absurdly_long():
    """A time stays below what servers refuse; one that is beyond it already is not made shorter."""
    assert changed("EXPIRE k 10", lambda s, _: s * 1e12) == f"PEXPIRE k {2**45}"
    assert changed("SET k v PX 10", lambda s, _: s * 1e30) == f"SET k v PX {2**45}"
    long = 2**46 - 2
    assert changed(f"PEXPIREAT k {long}", lambda s, _: s * 2) == f"PEXPIREAT k {long}"


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        ("SET k v EX 10", 10),
        ("SET k v EX 10 EX 20", 20),
        ("SET k v PX 1500", 1.5),
        ("GETEX k PXAT 1700000001500", 1.5),
        ("EXPIREAT k 1700000010 LT", 10),
        ("RESTORE k 1500 dump", 1.5),
        ("RESTORE k 1700000001500 dump ABSTTL", 1.5),
        (f"EXPIREAT k {PAST}", None),
        (f"SET k v EXAT {PAST}", None),
        (f"RESTORE k {PAST}000 dump ABSTTL", None),
        (f"HPEXPIREAT h {int(NOW)}000 FIELDS 1 a", None),
    ],
)
def test_left(command, seconds):
    """How long something will live counts from now, for absolute times too; what is over lives no time."""
    assert ttl.left(words(command), NOW) == seconds


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("SET k v EX 10", "SET k v"),
        ("SET k v NX PX 10 GET", "SET k v NX GET"),
        ("SET k v EX 10 EX 20", "SET k v"),
        ("set k v keepttl", "set k v"),
        ("SET k v XX KEEPTTL GET", "SET k v XX GET"),
        ("SET KEEPTTL KEEPTTL KEEPTTL", "SET KEEPTTL KEEPTTL"),
        ("SET k v IFEQ KEEPTTL KEEPTTL", "SET k v IFEQ KEEPTTL"),
        ("SET k v IFEQ EX EXAT 10", "SET k v IFEQ EX"),
        ("GETEX k PXAT 10", "GETEX k"),
        ("SETEX k 10 EX", "SET k EX"),
        ("PSETEX k 10 v", "SET k v"),
        ("HSETEX h FNX EX 10 FIELDS 1 EX 10", "HSETEX h FNX FIELDS 1 EX 10"),
        ("HSETEX h KEEPTTL FIELDS 1 KEEPTTL v", "HSETEX h FIELDS 1 KEEPTTL v"),
        ("HGETEX h PX 10 FIELDS 1 PX", "HGETEX h FIELDS 1 PX"),
        ("MSETEX 1 EX 10 NX EX 10", "MSETEX 1 EX 10 NX"),
        ("MSETEX 1 KEEPTTL v KEEPTTL", "MSETEX 1 KEEPTTL v"),
        ("RESTORE k 10 dump", "RESTORE k 0 dump"),
        ("RESTORE k 10 ABSTTL ABSTTL REPLACE", "RESTORE k 0 ABSTTL REPLACE"),
        ("RESTORE k 10 dump IDLETIME 7 absttl", "RESTORE k 0 dump IDLETIME 7"),
    ],
)
def test_stripped(command, rest):
    """Without its time, or its KEEPTTL, all else of a command stays; nothing of EXPIRE would."""
    assert text(ttl.stripped(words(command))) == rest


@pytest.mark.parametrize("command", [each for each in HALVED if "EXPIRE" in each.split()[0]])
def test_expire_is_nothing_but_its_time(command):
    """Of the commands that only set a time nothing is left without it."""
    assert ttl.is_expire(words(command))
    assert ttl.stripped(words(command)) is None


@pytest.mark.parametrize("command", ["GETEX k EX 10", "SETEX k 10 v", "PERSIST k", "EXPIRETIME k"])
def test_no_expire(command):
    """Those that do more than to set a time, or do not set one, are no such commands."""
    assert not ttl.is_expire(words(command))


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("EXPIRE k 10", "EXPIRE k 10 LT"),
        ("expireat k 10", "expireat k 10 LT"),
        ("PEXPIRE k 10 XX", "PEXPIRE k 10 LT XX"),
        ("EXPIRE k 10 GT", ""),
        ("EXPIRE k 10 XX gt", ""),
        ("EXPIRE k 10 NX", None),
        ("EXPIRE k 10 lt", None),
        ("EXPIRE k 10 XX LT", None),
        ("HEXPIRE h 10 FIELDS 2 NX GT", "HEXPIRE h 10 LT FIELDS 2 NX GT"),
        ("HPEXPIREAT h 10 NX FIELDS 1 a", None),
        ("HPEXPIREAT h 10 LT FIELDS 1 a", None),
        ("HPEXPIRE h 10 GT FIELDS 1 a", ""),
        ("HEXPIREAT h 10 XX FIELDS 1 a", ""),
        # EXPIRE would do it to keys of any type.
        ("GETEX k EX 10", None),
        ("HGETEX h EX 10 EX 20 FIELDS 1 a", "HEXPIRE h 20 LT FIELDS 1 a"),
        ("GETEX k", None),
        ("HGETEX h EX 10 FIELDS 2 a EX", "HEXPIRE h 10 LT FIELDS 2 a EX"),
        ("HGETEX h PXAT 10 FIELDS 1 a", "HPEXPIREAT h 10 LT FIELDS 1 a"),
        ("HGETEX h FIELDS 1 a", None),
        ("SETEX k 10 v", None),
        ("RESTORE k 10 dump", None),
        ("GET k", None),
    ],
)
def test_never_longer(command, part):
    """Only what shortens a life or limits it for the first time is left: LT says that; of GT nothing is, of NX and LT all."""
    assert ttl.never_longer(words(command)) == (
        None if part is None else words(part) if part else ()
    )


@pytest.mark.parametrize(
    ("command", "renews"),
    [
        ("GETEX k EX 10", True),
        ("set k v EX 10", True),
        ("PSETEX k 10 v", True),
        ("EXPIRE k 10", False),
    ],
)
def test_renews_key(command, renews):
    """Those that set a key's time while they do something else, however they are written."""
    assert ttl.renews_key(words(command)) is renews


@pytest.mark.parametrize(
    ("command", "limited"),
    [
        ("SET k v EX 10", "SET k v PX 2500"),
        ("SET k v EXAT 10 NX GET", "SET k v NX GET PX 2500"),
        ("SET k EX PX 10 EX 20", None),
        ("SET k v EX 10 EX 20", "SET k v PX 2500"),
        ("SETEX k 10 v", "PSETEX k 2500 v"),
        ("PSETEX k 10 v", "PSETEX k 2500 v"),
    ],
)
def test_limited(command, limited):
    """A value is written with the time that is left, counted from now whatever was asked for."""
    args = words(command)
    assert ttl.writes_value(args)
    if limited is not None:
        assert text(ttl.limited(args, 2.5)) == limited
        assert text(ttl.limited(args, 0.0)) == limited.replace("2500", "1")


# --- on real servers ------------------------------------------------------------------------------

ODD = [
    "EX",
    "px",
    "EXAT",
    "PXAT",
    "FIELDS",
    "NX",
    "KEEPTTL",
    "PERSIST",
    "ABSTTL",
    "GET",
    "IFEQ",
    "1",
    "2",
    "k",
    "",
]
WORDS = {word.encode() for word in ODD}
NAMES = st.sampled_from(ODD)
#: What a key has to live that has a time to live already, in milliseconds.
VOLATILE = 500_000


def _apart(milliseconds):
    """Whether that is not about as long: which of the two ends later would be a matter of milliseconds, not of the command."""
    return abs(milliseconds - VOLATILE) > 10_000


TIMES = st.one_of(
    st.tuples(st.sampled_from(["EX", "ex"]), st.integers(10, 10**6).filter(lambda s: _apart(s * 1000))),
    st.tuples(st.sampled_from(["PX", "Px"]), st.integers(10_000, 10**9).filter(_apart)),
    st.tuples(st.sampled_from(["EXAT", "exat"]), st.integers(33177117420, 33177117430)),
    st.tuples(st.sampled_from(["PXAT"]), st.integers(33177117420000, 33177117430001)),
)  # fmt: skip
EXPIRES = {"EX": "EXPIRE", "PX": "PEXPIRE", "EXAT": "EXPIREAT", "PXAT": "PEXPIREAT"}


@st.composite
def commands(draw):
    """A command with a time, with words as keys, values and fields that look like options."""
    option, time = draw(TIMES)
    with_time = [option, str(time)]
    key, value = draw(NAMES), draw(NAMES)
    fields = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    more = draw(
        st.sampled_from([[], ["GET"], ["XX"], ["NX"], ["XX", "GET"], ["IFEQ", draw(NAMES)]])
    )
    flag = draw(st.sampled_from([[], ["NX"], ["XX"], ["GT"], ["LT"]]))
    kind = draw(
        st.sampled_from(
            ["SET", "GETEX", "SETEX", "EXPIRE", "HEXPIRE", "HSETEX", "HGETEX", "MSETEX"]
        )
    )
    match kind:
        case "SET":
            parts = draw(st.permutations([with_time, more]))
            return ["SET", key, value, *parts[0], *parts[1]]
        case "GETEX":
            return ["GETEX", key, *with_time]
        case "SETEX":
            name = {"EX": "SETEX", "PX": "PSETEX"}.get(option.upper())
            return [name, key, str(time), value] if name else ["GETEX", key, *with_time]
        case "EXPIRE":
            return [EXPIRES[option.upper()], key, str(time), *flag]
        case "HEXPIRE":
            name = "H" + EXPIRES[option.upper()]
            return [name, key, str(time), *flag, "FIELDS", str(len(fields)), *fields]
        case "HSETEX":
            pairs = [word for field in fields for word in (field, value)]
            first = draw(
                st.permutations([with_time, draw(st.sampled_from([[], ["FNX"], ["FXX"]]))])
            )
            return ["HSETEX", key, *first[0], *first[1], "FIELDS", str(len(fields)), *pairs]
        case "HGETEX":
            return ["HGETEX", key, *with_time, "FIELDS", str(len(fields)), *fields]
        case "MSETEX":
            pairs = [word for field in fields for word in (field, value)]
            exist = draw(st.sampled_from([[], ["NX"], ["XX"]]))
            first = draw(st.permutations([with_time, exist]))
            return ["MSETEX", str(len(fields)), *pairs, *first[0], *first[1]]


def alike(one, other):
    """Whether two replies are the same but for the words of a request that an error repeats."""
    if str(one).startswith("ERR unknown command"):
        return str(other).startswith("ERR unknown command")
    if isinstance(one, str) and isinstance(other, str):
        return one.replace("pexpire", "expire") == other.replace("pexpire", "expire")
    return one == other


def play(server, setup, keys, command):
    """Run a command on a key that is set up so; give its reply and what the database is then, times apart."""
    server.ask("FLUSHDB")
    for key in keys:
        match setup:
            case "string":
                server.ask("SET", key, "k")
            case "volatile":
                server.ask("SET", key, "k", "PX", VOLATILE)
            case "hash":
                server.ask("HSET", key, *(word for field in ODD for word in (field, "v")))
    reply = server.ask(*command)
    found, times = {}, {}
    for key in server.ask("KEYS", "*"):
        kind = server.ask("TYPE", key)
        times[key] = server.ask("PTTL", key)
        if kind == "string":
            found[key] = server.ask("GET", key)
        else:
            flat = server.ask("HGETALL", key)
            found[key] = dict(zip(flat[::2], flat[1::2], strict=True))
            lives = server.ask("HPTTL", key, "FIELDS", len(found[key]), *found[key])
            if isinstance(lives, list):
                times.update(zip(((key, field) for field in found[key]), lives, strict=True))
    return reply, found, times


@pytest.mark.parametrize("nudge", [0.0, 0.001])
def test_the_same_command_on_a_server(server, nudge):
    """A request with the time it had, or a millisecond more, has the same reply and effect, and that time, on every server."""
    tried = set()

    @settings(
        deadline=None,
        max_examples=150,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(commands(), st.sampled_from(["nothing", "string", "volatile", "hash"]))
    def holds(command, setup):
        args = tuple(word.encode() for word in command)
        new = ttl.changed(args, lambda seconds, absolute: seconds + nudge)
        assert new is not None
        assert nudge == 0 or new != args
        reply, found, times = play(server, setup, WORDS & {*args}, args)
        again, found_again, times_again = play(server, setup, WORDS & {*args}, new)
        assert alike(reply, again)
        assert found_again == found
        assert times_again.keys() == times.keys()
        for key, time in times.items():
            assert times_again[key] == pytest.approx(time, abs=9000 if time > 0 else 0)
        tried.add(command[0])

    holds()
    assert len(tried) > 5


def test_stripped_on_a_server(server):
    """Without its time each command still does all else that it does, and nothing of it has a time to live."""

    @settings(
        deadline=None,
        max_examples=150,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(commands(), st.sampled_from(["nothing", "string", "hash"]))
    def holds(command, setup):
        args = tuple(word.encode() for word in command)
        if ttl.is_expire(args):
            return
        new = ttl.stripped(args)
        assert new is not None
        reply, found, _ = play(server, setup, WORDS & {*args}, args)
        again, found_again, times = play(server, setup, WORDS & {*args}, new)
        assert alike(reply, again)
        assert found_again == found
        assert set(times.values()) <= {-1, -2}

    holds()


def test_restore_on_a_server(server):
    """RESTORE's time is milliseconds from now, or since 1970 with ABSTTL, whatever stands around it."""
    server.ask("SET", "k", "v")
    dump = server.ask("DUMP", "k")
    now = float(server.ask("TIME")[0])
    for args, absolute in (
        ((b"REPLACE",), False),
        ((b"REPLACE", b"absttl"), True),
        ((b"ABSTTL", b"IDLETIME", b"5", b"REPLACE"), True),
    ):
        time = int((now + 100) * 1000) if absolute else 100_000
        command = (b"RESTORE", b"r", b"%d" % time, dump, *args)
        new = ttl.changed(command, lambda s, absolute: s + 400)
        assert ttl.left(command, now) == pytest.approx(100)
        assert server.ask(*new) == "OK"
        assert server.ask("PTTL", "r") == pytest.approx(500_000, abs=50_000)
        assert server.ask(*ttl.stripped(command)) == "OK"
        assert server.ask("PTTL", "r") == -1
