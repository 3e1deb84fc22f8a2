"""What is held back of a replication stream: in its order, at its time, and what is lost of it."""

from chaosproxy.topology.backlog import FOREVER, MOST, Backlog
from chaosproxy.topology.stream import Piece, Write


def write(number):
    """The piece of one write, ten bytes long."""
    return Piece(b"%010d" % number, 10 * number, (Write(0, "SET", (b"%d" % number,)),))


def names(writes):
    return [int(each.keys[0]) for each in writes]


def test_lag():
    """Each piece crosses so long after its arrival, never earlier, and in order."""
    backlog = Backlog(lag=2.0)
    assert backlog.due == FOREVER
    backlog.add(write(1), 10.0)
    backlog.add(write(2), 11.0)
    assert (backlog.due, backlog.size) == (12.0, 20)
    assert backlog.take(11.9) == []
    assert backlog.take(12.0) == [b"0000000001"]
    assert (backlog.due, backlog.crossed, backlog.size) == (13.0, 10, 10)
    assert backlog.take(20.0) == [b"0000000002"]
    assert (backlog.due, backlog.crossed) == (FOREVER, 20)


def test_the_snapshot_takes_no_time():
    """What makes the standby a copy is not held back; commands behind it are."""
    backlog = Backlog(lag=2.0)
    backlog.add(Piece(b"+PONG\r\n"), 1.0)
    backlog.add(write(1), 1.0)
    assert backlog.take(1.0) == [b"+PONG\r\n"]
    assert backlog.crossed is None
    assert backlog.due == 3.0


def test_another_lag():
    """It holds at once, also for what is held already."""
    backlog = Backlog(lag=60.0)
    backlog.add(write(1), 1.0)
    backlog.lag = 0.0
    assert backlog.take(1.0) == [b"0000000001"]


def test_keep():
    """So many writes, the latest, stay behind; what is not a write keeps its place among them."""
    backlog = Backlog(keep=2)
    ping = Piece(b"PING", 5)
    for piece in (write(1), ping, write(2), ping, write(3)):
        backlog.add(piece, 0.0)
    assert backlog.take(1.0) == [b"0000000001", b"PING"]
    assert backlog.due == FOREVER
    assert names(backlog.lost) == [2, 3]
    backlog.add(write(4), 2.0)
    assert backlog.take(2.0) == [b"0000000002", b"PING"]
    backlog.keep = 0
    assert backlog.take(2.0) == [b"0000000003", b"0000000004"]


def test_keep_and_a_transaction():
    """A transaction is not torn: more stays behind then."""
    backlog = Backlog(keep=1)
    backlog.add(Piece(b"both", 4, write(1).writes + write(2).writes), 0.0)
    assert backlog.take(1.0) == []
    assert names(backlog.lost) == [1, 2]


def test_frozen():
    """Nothing crosses any more, and what still comes is lost too; its bytes are not kept."""
    backlog = Backlog(lag=1.0)
    backlog.add(write(1), 0.0)
    backlog.add(write(2), 0.5)
    assert backlog.take(1.0) == [b"0000000001"]
    backlog.freeze()
    backlog.add(write(3), 2.0)
    assert backlog.take(60.0) == []
    assert (backlog.due, backlog.size, backlog.crossed) == (FOREVER, 0, 10)
    assert names(backlog.lost) == [2, 3]


def test_full():
    """It says when it holds as much as it may, and once it is frozen never again."""
    backlog = Backlog(lag=1.0)
    backlog.add(Piece(bytes(MOST), 1), 0.0)
    assert not backlog.full
    backlog.add(write(1), 0.0)
    assert backlog.full
    backlog.freeze()
    assert not backlog.full
