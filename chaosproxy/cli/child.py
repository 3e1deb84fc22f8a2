"""The command that `exec` runs: started, told the signals that come for it, waited for.

Takes its words and its environment; gives its exit status, as a shell would.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

#: What ends or steers the command and not us.
FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_WAITED: Final = (*FORWARDED, signal.SIGCHLD)
#: What siginfo says of a signal that the terminal sent, to everybody in its foreground.
_BY_THE_TERMINAL: Final = 0x80
#: What shells answer for a command that is not there, and for one that cannot be run.
NOT_FOUND: Final = 127
NOT_RUN: Final = 126


class ChildError(Exception):
    """The command could not be started; `status` is what a shell would give."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Signals:
    """While it lasts, signals that would end us wait to be taken: enter it before threads start, which inherit that."""

    def __enter__(self) -> Self:
        """From here on they wait."""
        # Where it is ignored no child's end is told.
        self._child = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What has come by now was for the command, which has ended."""
        while signal.sigtimedwait(_WAITED, 0):
            pass
        # In this order: Python complains of a signal that has come when its handler is gone.
        signal.signal(signal.SIGCHLD, self._child)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    tick: Callable[[], None],
    seconds: float,
) -> int:
    """Run a command within Signals, and give its exit status (128 and the signal's number where one ended it).

    `tick` is called every so many `seconds` meanwhile. Raises ChildError. As a container's first process we are given whoever lost
    their parent, and take leave of them; the children that we have now are waited for by those who started them.
    """
    first = os.getpid() == 1
    ours = _children() if first else set()
    pid = _start(command, environment)
    with _woken(seconds) as due:
        while (status := _ended(pid)) is None:
            if first:
                _take_leave(_children() - ours - {pid})
            came = signal.sigwaitinfo(_WAITED)
            if came.si_signo != signal.SIGCHLD and came.si_code != _BY_THE_TERMINAL:
                # It is not waited for yet, so that this number is still its own.
                with suppress(ProcessLookupError):
                    os.kill(pid, came.si_signo)
            if due.is_set():
                due.clear()
                tick()
    return status


@contextmanager
def _woken(seconds: float) -> Iterator[threading.Event]:
    """End this thread's wait for a signal every so many seconds, as if a child had ended; what is given says that it was that.

    Who is stopped (Ctrl-Z) and goes on later than a wait was to last is told by `sigtimedwait` of a signal that never came.
    """
    waits, over, due = threading.get_ident(), threading.Event(), threading.Event()

    def wake() -> None:
        while not over.wait(seconds):
            due.set()
            signal.pthread_kill(waits, signal.SIGCHLD)

    thread = threading.Thread(target=wake, name="chaosproxy-exec-tick", daemon=True)
    thread.start()
    try:
        yield due
    finally:
        over.set()
        thread.join()


def _start(command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            dict(environment),
            setsigmask=[],
            # What Python ignores, the command gets as everybody does.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
        )
    except FileNotFoundError as error:
        raise ChildError(
            f"{command[0]}: {(error.strerror or 'not found').lower()}", NOT_FOUND
        ) from None
    except OSError as error:
        what, said = Path(command[0]), (error.strerror or "cannot be run").lower()
        with suppress(OSError):  # it may be where nobody may look
            said = "is a directory" if what.is_dir() else said
        raise ChildError(f"{what}: {said}", NOT_RUN) from None


def _children() -> set[int]:
    """Give our children's ids, also of those that have ended and nobody has waited for."""
    found = set()
    for stat in Path("/proc").glob("[1-9]*/stat"):
        with suppress(OSError):  # it has just gone
            # Behind the name, which may be anything: its state, and its parent.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.add(int(stat.parent.name))
    return found


def _take_leave(strangers: set[int]) -> None:
    """Wait for those of them that have ended: else their ids are never free again."""
    for pid in strangers:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _ended(pid: int) -> int | None:
    """Give the exit status if it has ended."""
    found, status = os.waitpid(pid, os.WNOHANG)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
