"""`stale_read`: reads, and nothing but reads, answered as the key was so long, or so many writes, ago."""

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.decision import Past, Position
from chaosproxy.core.fault import Context, ServerInfo
from chaosproxy.core.memory import Image, Memory
from chaosproxy.core.setting import Invalid
from chaosproxy.faults.stale_read import StaleRead
from chaosproxy.profile import ProfileError
from tests.conversation import GATE, PROVEN, Talk, profile

TABLE = CommandTable.bundled()
A, B = Image(b"a"), Image(b"b")


def decide(fault: StaleRead, memory: Memory, text: str, now: float = 20.0) -> Past | None:
    command = Command.parse(TABLE, [word.encode() for word in text.split()], b"")
    key = command.keys[0] if command.keys else None
    context = Context(
        fault="stale_read", command=command, position=Position.BEFORE_FORWARD, protocol=2, db=0,
        match=1, server=ServerInfo(), stream="", key=key, now=now, state=memory,
    )  # fmt: skip
    return fault.decide(context)


def remember(**keys: Image) -> Memory:
    """Keys that were each this until 10, and have been written to once since."""
    memory = Memory()
    for key, image in keys.items():
        memory.keep(0, key.encode(), 10.0, image)
    return memory


@pytest.mark.parametrize(
    ("lag", "images"), [(10.001, {b"k": A}), (15.0, {b"k": A}), (10.0, None), (9.0, None)]
)
def test_lag(lag, images):
    """A key that was written to since then is what it was then; one that was not is what it is."""
    found = decide(StaleRead(lag=lag), remember(k=A), "GET k")
    assert found == (None if images is None else Past(images))


@pytest.mark.parametrize(("behind", "image"), [(1, B), (2, A), (3, None)])
def test_behind(behind, image):
    """So many writes ago; where so many are not known the read passes as it is."""
    memory = remember(k=A)
    memory.keep(0, b"k", 11.0, B)
    found = decide(StaleRead(behind=behind), memory, "GET k")
    assert found == (None if image is None else Past({b"k": image}))


def test_all_keys():
    """Of a read of several keys each is from its own past."""
    found = decide(StaleRead(behind=1), remember(a=A, b=B), "MGET b x a")
    assert found == Past({b"b": B, b"a": A})


@pytest.mark.parametrize(
    "text",
    """GET k|TTL k|TYPE k|EXISTS k|STRLEN k|LRANGE k 0 -1|HGETALL k|SMEMBERS k|ZRANGE k 0 -1|XRANGE k - +|XLEN k
    |PFCOUNT k|OBJECT ENCODING k|DUMP k|SORT_RO k|BITFIELD_RO k GET u8 0|GEOSEARCH k FROMLONLAT 1 1 BYRADIUS 1 km
    |XREAD STREAMS k 0|XINFO STREAM k|MEMORY USAGE k|EVAL_RO s 1 k|FCALL_RO f 1 k|TOUCH k|HTTL k FIELDS 1 f
    """.replace("\n", "").split("|"),
)
def test_reads(text):
    """All that reads keys, by whatever command, reads what they were."""
    assert decide(StaleRead(behind=1), remember(k=A), text.strip()) == Past({b"k": A})


@pytest.mark.parametrize(
    "text",
    ["SET k v", "GETEX k", "GETDEL k", "SORT k", "EVAL s 1 k", "WATCH k", "SUBSCRIBE k", "SSUBSCRIBE k", "PING", "KEYS k", "NO k"],
)  # fmt: skip
def test_no_reads(text):
    """Writes, what a replica would refuse, and what has no keys, is left alone."""
    assert decide(StaleRead(behind=1), remember(k=A), text) is None


def test_what_is_remembered():
    """No more than can be asked for."""
    assert StaleRead(lag=2.0).new_state() == Memory(span=2.0)
    assert StaleRead(behind=3).new_state() == Memory(writes=3)
    assert not StaleRead(behind=3).needs_scratch


def test_whose_keys_are_taken_down():
    """Those of everything that may write, scripts as well, of which the server's table does not say so."""
    with Talk("- {fault: stale_read, match: {commands: GET}, behind: 1}") as talk:
        engine = talk.world.engine
        for name, spec in TABLE.specs.items():
            assert engine.watches(name.partition("|")[0]) >= spec.is_write
        assert not engine.watches("EVAL_RO")


@pytest.mark.parametrize("fault", [StaleRead(), StaleRead(lag=1.0, behind=1)])
def test_one_of_the_two(fault):
    """Neither, and both, are refused."""
    with pytest.raises(Invalid, match="give exactly one of lag and behind"):
        fault.check(Position.BEFORE_FORWARD)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("lag: 0s", "expected a duration such as 800ms or 1.5s, longer than 0, got '0s'"),
        ("behind: 0", "expected a whole number from 1 to 256, got 0"),
        ("behind: 257", "expected a whole number from 1 to 256, got 257"),
        (
            "behind: 1, at: after_apply",
            "stale_read always acts at before_forward, not at after_apply",
        ),
        ("lag: 1s, match: {commands: SET}", "acts on reads and none of these is one"),
    ],
)
def test_settings(settings, message):
    """What is no time, no number of writes, or no position of it, is refused with the reason."""
    with pytest.raises(ProfileError, match=message):
        profile(f"- {{fault: stale_read, {settings}}}")


# --- whole conversations ---------------------------------------------------------------------------


def write(talk: Talk, command: str, dump: str) -> None:
    """Let the client write; before that the key was this."""
    key = command.split()[1]
    talk.client(command)
    talk.expect_upstream(f"DUMP {key}", f"PEXPIRETIME {key}", command)
    talk.upstream(dump, ":-1" if dump != "$-1" else ":-2", "+OK")
    talk.expect_client("+OK")


def read(talk: Talk, image: str | None) -> None:
    """Let the client read k, and check that it is read as this image; None: as it is."""
    talk.client("GET k")
    if image is None:
        talk.expect_upstream("GET k")
        talk.upstream('"now"')
        talk.expect_client('"now"')
        return
    talk.expect_upstream(*GATE)
    talk.upstream(*PROVEN)
    restores = [f"RESTORE k 0 {image} REPLACE ABSTTL"] if image else []
    talk.expect_upstream("MULTI", "SELECT 15", *restores, "GET k", "DEL k", "SELECT 0", "EXEC")
    elements = ["+OK", *["+OK"] * len(restores), '"then"', ":1", "+OK"]
    talk.upstream("+OK", *["+QUEUED"] * len(elements), f"*[{' '.join(elements)}]")
    talk.expect_client('"then"')
    talk.expect_fired("stale_read", told="ok", outcome="ok")


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_lagging_replica(protocol):
    """A write is seen once the lag has passed, one after the other; before the first one there was nothing."""
    with Talk("- {fault: stale_read, lag: 2s}", protocol=protocol) as talk:
        write(talk, "SET k one", "$-1")
        talk.wait(1.0)
        write(talk, "SET k two", '"one"')
        read(talk, "")
        talk.wait(1.0)
        read(talk, "one")
        talk.wait(1.0)
        read(talk, None)
        talk.wait(100.0)
        read(talk, None)


@pytest.mark.parametrize("protocol", [2, 3])
def test_so_many_writes_behind(protocol):
    """What counts is writes, not time: a key that was not there two writes ago is not there."""
    with Talk("- {fault: stale_read, behind: 2}", protocol=protocol) as talk:
        read(talk, None)
        write(talk, "SET k one", "$-1")
        read(talk, "")
        write(talk, "SET k two", '"one"')
        read(talk, "")
        write(talk, "SET k three", '"two"')
        talk.wait(100.0)
        read(talk, "one")


def test_of_any_client():
    """Whoever wrote, and whoever reads: it is one replica that lags."""
    with Talk("- {fault: stale_read, behind: 1}") as talk:
        other = talk.another()
        write(other, "SET k new", '"old"')
        read(talk, "old")
        other.client_gone()


def test_the_readers_that_are_meant():
    """`clients` picks readers; writes count whoever makes them."""
    with Talk("- {fault: stale_read, behind: 1, match: {clients: web}}") as talk:
        other = talk.another()
        other.handshake("CLIENT SETNAME web", "+OK")
        write(talk, "SET k new", '"old"')
        read(talk, None)
        read(other, "old")
        other.client_gone()


def test_turns():
    """`when` counts reads that match; every second one is from the past."""
    with Talk("- {fault: stale_read, behind: 1, match: {commands: GET}, when: {every: 2}}") as talk:
        write(talk, "SET k new", '"old"')
        read(talk, None)
        read(talk, "old")
        read(talk, None)
        read(talk, "old")
        assert talk.skipped("stale_read") == ["every"] * 2


def test_right_behind_a_write():
    """A client that pipelines reads what was before its own write, as surely as one that waits."""
    with Talk("- {fault: stale_read, behind: 1}") as talk:
        talk.client("SET k new", "GET k")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k new")
        talk.upstream('"old"', ":-1", "+OK")
        talk.expect_client("+OK")
        talk.expect_upstream(*GATE)
        talk.client_gone()
        assert talk.skipped("stale_read") == ["not_applicable", "client_gone"]
