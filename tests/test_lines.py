"""Lines: whole or not at all, in order, and nobody waits for a disk that is full or for who does not read."""

import errno
import logging
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest

from chaosproxy import lines as module
from chaosproxy.lines import Lines
from tests.busy import measured
from tests.proxying import wait_for

FIRST = b'{"first": true}\n'


@pytest.fixture
def room(monkeypatch):
    """A disk with so many bytes left; None: with as many as it takes."""
    write, left = os.write, [None]

    def small(file, data):
        if left[0] is None or not stat.S_ISREG(os.fstat(file).st_mode):
            return write(file, data)
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(file, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", small)

    def leave(size):
        left[0] = size

    return leave


def test_in_order(tmp_path):
    """Over what the file held: the first line, and each other one at once."""
    path = tmp_path / "file"
    path.write_text("old" * 100)
    lines = Lines(str(path), FIRST)
    assert path.read_bytes() == FIRST
    lines.write(b"one\n")
    assert path.read_bytes() == FIRST + b"one\n"
    lines.close()
    assert lines.lost == 0


def open_here(folder):
    """What this process has open of these files; others open and close theirs meanwhile."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return [path for path in found if path == "/dev/full" or path.startswith(f"{folder}/")]


def test_no_room_for_the_first(tmp_path, room):
    """Where not even the first line fits that is an error, also if a part of it does."""
    open_before = open_here(tmp_path)
    for size in (0, 5):
        room(size)
        with pytest.raises(OSError, match="No space"):
            Lines(str(tmp_path / "file"), FIRST)
    with pytest.raises(OSError, match="No space"):
        Lines("/dev/full", FIRST)
    assert open_here(tmp_path) == open_before == []


def test_no_room_for_a_while(tmp_path, room, caplog):
    """A line that has begun is completed first; those for which there was no room are counted, and that is said once."""
    path = tmp_path / "file"
    lines = Lines(str(path), FIRST)
    room(8)
    with caplog.at_level(logging.ERROR):
        for line in (b"one\n", b"two two\n", b"three\n", b"four\n"):
            lines.write(line)
    assert path.read_bytes() == FIRST + b"one\ntwo "
    assert lines.lost == 2
    room(None)
    lines.write(b"five\n")
    lines.close()
    assert path.read_bytes() == FIRST + b"one\ntwo two\nfive\n"
    assert lines.lost == 2
    said = f"events are being lost: {path}: No space left on device"
    assert [record.message for record in caplog.records] == [said]


def test_no_room_until_the_end(tmp_path, room):
    """A line of which only a part got there is taken back in the end, and counts as lost."""
    path = tmp_path / "file"
    lines = Lines(str(path), FIRST)
    room(6)
    lines.write(b"one\n")
    lines.write(b"two two\n")
    lines.close()
    assert path.read_bytes() == FIRST + b"one\n"
    assert lines.lost == 1


def test_a_device(tmp_path):
    """What is no file that has a length ends without one."""
    lines = Lines("/dev/null", FIRST)
    lines.write(b"one\n")
    lines._rest, lines._write = b"x", lambda line: None
    lines._complete = lambda: "no"
    lines.close()
    assert lines.lost == 1


@pytest.fixture
def pipe(monkeypatch):
    """Stdout as a pipe; gives its reading end."""
    reader, writer = os.pipe()
    monkeypatch.setattr(module, "_STDOUT", writer)
    yield reader
    os.close(writer)
    os.close(reader)


def read(reader, size):
    data = b""
    while len(data) < size:
        data += os.read(reader, 65536)
    return data


def test_a_reader_who_takes_his_time(pipe):
    """More than a pipe holds: nobody waits, and all arrives in order once it is read."""
    lines = Lines("-", FIRST)
    sent = [b"%d %s\n" % (number, b"x" * 1000) for number in range(500)]
    with measured() as busy:
        began = time.monotonic()
        for line in sent:
            lines.write(line)
        assert time.monotonic() - began < 5 + busy.lost
    assert read(pipe, len(FIRST) + sum(map(len, sent))) == FIRST + b"".join(sent)
    lines.close()
    assert lines.lost == 0


def test_a_reader_who_has_stopped(pipe, monkeypatch, caplog):
    """So many lines wait for him, the rest is lost and counted; in the end he is waited for a moment only."""
    monkeypatch.setattr(module, "MOST", 10)
    monkeypatch.setattr(module, "LAST", 0.1)
    lines = Lines("-", FIRST)
    lines.write(b"x" * (1 << 20) + b"\n")
    wait_for(lambda: not lines._aside._queue.qsize(), "the first to be under way")
    with caplog.at_level(logging.ERROR):
        for _ in range(15):
            lines.write(b"x\n")
        assert lines.lost == 5
        lines.close()
    assert lines.lost == 5 + 10 + 1
    assert [record.message for record in caplog.records] == [
        "events are being lost: -: nobody reads them"
    ]
    # It goes on once there is room, and must not with what is opened next under the pipe's number.
    read(pipe, len(FIRST) + (1 << 20))
    lines._aside._thread.join(60)
    assert not lines._aside._thread.is_alive()


def test_a_reader_who_has_gone(pipe, monkeypatch):
    """Each line is lost, and none is waited for."""
    lines = Lines("-", FIRST)
    other, _ = os.pipe()
    os.dup2(other, pipe)
    lines.write(b"one\n")
    lines.write(b"two\n")
    wait_for(lambda: lines.lost == 2, "both to be lost")
    lines.close()
    assert lines.lost == 2
