"""The command line of the speed measurements: `python -m tests.bench`.

Takes options, gives bench.md, bench.svg and bench.json in a folder.
"""

import argparse
import os
import platform
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import config, peers, plot, readme, report, stored
from tests.bench.known import NAMES
from tests.bench.peers import Missing, Peer
from tests.bench.record import Record
from tests.bench.run import SCENARIOS, Bench, Size
from tests.bench.target import verdicts

MEBI = 1 << 20


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measures proxies in front of one redis-server, in turn with direct runs. "
        "Figures are medians over the rounds; only the ratios mean something elsewhere.",
    )
    parser.add_argument("--rounds", type=int, help="how often (default: 5, with --quick 1)")
    parser.add_argument(
        "--seconds", type=float, help="length of one load (default: 2, with --quick 0.3)"
    )
    parser.add_argument(
        "--peers",
        default="",
        metavar="NAME,NAME",
        help=f"only these (default: all), of {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where a peer's program is; or one more peer: NAME='COMMAND with {listen} and "
        "{upstream} for the ports'",
    )
    parser.add_argument(
        "--scenarios",
        default=",".join(SCENARIOS),
        metavar="NAME,NAME",
        help=f"only these (default: {','.join(SCENARIOS)})",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, to see that all works; the figures are rough",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument(
        "--readme",
        action="store_true",
        help="keep the run in tests/bench, and put its figures into README",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/bench"),
        metavar="DIR",
        help="where bench.md, bench.svg and bench.json go (default: %(default)s)",
    )
    return parser


def _size(args: argparse.Namespace) -> Size:
    """What the options ask for."""
    return Size(
        rounds=args.rounds or (1 if args.quick else 5),
        seconds=args.seconds or (0.3 if args.quick else 2.0),
        trips=2000 if args.quick else 20_000,
        huge=(64 if args.quick else 512) * MEBI,
        connections=5000 if args.quick else config.MAX_CONNECTIONS,
    )


def _about(size: Size, redis_server: str) -> str:
    load = os.getloadavg()[0]
    server = peers.first_line([redis_server, "--version"])[1].split(" sha=")[0]
    rounds = f"{size.rounds} round{'s' if size.rounds > 1 else ''} of {size.seconds:g} s a load"
    return (
        f"Medians over {rounds}, ratios taken within a round, "
        f"{os.cpu_count()} cores shared by the load, the proxy and the server "
        f"({server}; {platform.system()} {platform.release().split('-')[0]}, Python "
        f"{platform.python_version()}, load average {load:.1f} before, "
        f"at most {config.OPEN_FILES:,} open files in a process)."
    )


def _write(out: Path, run: stored.Run) -> str:
    out.mkdir(parents=True, exist_ok=True)
    text = report.report(run.record, run.about, run.huge)
    (out / "bench.md").write_text(text)
    (out / "bench.svg").write_text(plot.plot(run.record))
    (out / "bench.json").write_text(stored.dump(run))
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 0 done, 1 a target missed under --strict, 2 bad usage or no server."""
    parser = _parser()
    args = parser.parse_args(arguments)
    scenarios = args.scenarios.split(",")
    if unknown := [name for name in scenarios if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}; known: {', '.join(SCENARIOS)}")
    if args.readme and args.quick:
        parser.error("--quick is for seeing that all works: its figures are not for README")
    given = dict(item.partition("=")[::2] for item in args.peer)
    try:
        found = peers.choose([name for name in args.peers.split(",") if name], given)
    except ValueError as error:
        parser.error(str(error))
    programs = [peers.find("redis-server"), peers.find("redis-benchmark")]
    if programs[0] is None or programs[1] is None:
        parser.error("redis-server and redis-benchmark are needed: Debian's redis has both")

    # Thousands of connections need descriptors, here and in what is started from here.
    resource.setrlimit(resource.RLIMIT_NOFILE, (config.OPEN_FILES, config.OPEN_FILES))
    # Programs in Python start as installed ones do: compiled. Where the bytecode is they find out here, for themselves.
    folder = Path(tempfile.mkdtemp(prefix="chaosproxy-bench-"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    # Both signals end the run in good order: what runs is stopped, what was measured is written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    size = _size(args)
    about = _about(size, programs[0])
    record = Record(
        peers=[each for each in found if isinstance(each, Peer)],
        missing=[each for each in found if isinstance(each, Missing)],
    )
    for each in record.missing:
        print(f"missing: {each.name}: {each.reason}", file=sys.stderr)
    run = stored.Run(record, about, size.huge)
    status = 0
    try:
        Bench(record, folder, size, programs[0], programs[1]).run(scenarios)
    except KeyboardInterrupt:
        print("interrupted: what was measured so far", file=sys.stderr)
        status = 130
    finally:
        print(_write(args.out, run))
        if record.failures:
            print(f"the peers' output is in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if args.readme and not status:
        readme.keep(run)
    if args.strict and any(each.word == "FAIL" for each in verdicts(record)):
        return status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
