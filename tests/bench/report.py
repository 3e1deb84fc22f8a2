"""The report: Markdown tables of everything that was measured, and of what was not.

Takes a record, gives Markdown.
"""

from collections.abc import Iterable, Sequence

from tests.bench.load import COMMANDS, LOADS
from tests.bench.record import DIRECT, Record, median
from tests.bench.target import UVLOOP, Verdict, verdicts

NONE = "-"
MEBI = 1 << 20


def show(value: float | None, digits: int = 1, unit: float = 1.0) -> str:
    """A figure for a cell; a dash for none."""
    return NONE if value is None else f"{value / unit:,.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, figures to the right; ValueError if ragged."""
    if wrong := [row for row in rows if len(row) != len(head)]:
        raise ValueError(f"{len(head)} columns, but a row of {len(wrong[0])}: {wrong[0]}")
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def both(cells: Iterable[str]) -> str:
    """A load's two cells, SET and GET, in one."""
    two = list(cells)
    return NONE if set(two) == {NONE} else " · ".join(two)


def cpu_cell(record: Record, name: str, scenario: str) -> str:
    """Processor seconds and, in brackets, the part in the program itself, for SET and GET."""
    cells = []
    for part in COMMANDS:
        total, user = (record.median(name, scenario, key, part) for key in ("cpu", "user"))
        cells.append(NONE if total is None else f"{show(total)} ({show(user)})")
    return both(cells)


def ratio_cell(record: Record, name: str, other: str, scenario: str, key: str) -> str:
    """One figure over another peer's, for SET and GET."""
    return both(show(record.ratio(name, other, scenario, key, part), 2) for part in COMMANDS)


def mean_ratio(record: Record, peer: str, other: str, scenario: str) -> float | None:
    """CPU of one peer over another's, the mean of SET and GET."""
    values = [record.ratio(peer, other, scenario, "cpu", part) for part in COMMANDS]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def names(record: Record) -> list[str]:
    """The peers that ran."""
    return [peer.name for peer in record.peers]


def summary(record: Record) -> str:
    """The table for the README: what each costs, in haproxies."""
    head = ["", *(f"CPU, {load.name}" for load in LOADS)]
    head += ["added p50 µs", "added p99 µs", "MiB at 5,000 idle", "MiB more for a huge value"]
    rows = []
    for name in names(record):
        huge = [record.median(name, "huge", key) for key in ("huge_set", "huge_get")]
        most = max((value for value in huge if value is not None), default=None)
        rows.append(
            [
                name,
                *(show(mean_ratio(record, name, "haproxy", load.name), 2) for load in LOADS),
                show(record.median(name, "latency", "added50"), 0),
                show(record.median(name, "latency", "added99"), 0),
                show(record.median(name, "memory", "idle5000"), 0, MEBI),
                show(most, 0, MEBI),
            ]
        )
    text = "CPU is the proxy's processor time for the same commands, haproxy's is 1"
    return f"{text} (SET and GET together).\n\n{table(head, rows)}"


def cpu(record: Record) -> str:
    """Processor seconds per million commands."""
    rows = [
        [name, *(cpu_cell(record, name, load.name) for load in LOADS)] for name in names(record)
    ]
    return table(["SET · GET", *(load.title for load in LOADS)], rows)


def ratios(record: Record, other: str, key: str) -> str:
    """One figure of every peer over another's, for each load."""
    rows = [
        [name, *(ratio_cell(record, name, other, load.name, key) for load in LOADS)]
        for name in names(record)
    ]
    return table(["SET · GET", *(load.name for load in LOADS)], rows)


def latency(record: Record) -> str:
    """One client's round trips."""
    keys = ("p50", "p99", "p999", "added50", "added99", "added999")
    rows = []
    for name in names(record):
        cells = [show(record.median(name, "latency", key), 0) for key in keys]
        over = show(record.ratio(name, "haproxy", "latency", "added50"), 2)
        rows.append([name, *cells, over])
    head = ["µs", "p50", "p99", "p99.9", "added p50", "added p99", "added p99.9"]
    return table([*head, "added p50 ÷ haproxy's"], rows)


def memory(record: Record, huge: int) -> str:
    """Resident memory, and how long it takes to start."""
    rows = []
    for name in names(record):
        idle = [record.median(name, "memory", f"idle{count}") for count in (1, 1000, 5000)]
        each = None
        if idle[0] is not None and idle[2] is not None:
            each = (idle[2] - idle[0]) / 4999
        rows.append(
            [
                name,
                *(show(value, 1, MEBI) for value in idle),
                show(each, 1, 1024),
                show(record.median(name, "memory", "accepted"), 0),
                show(record.median(name, "huge", "huge_set"), 1, MEBI),
                show(record.median(name, "huge", "huge_get"), 1, MEBI),
                show(record.median(name, "startup", "listens"), 0, 1e-3),
            ]
        )
    size = f"{huge // MEBI} MiB"
    head = ["MiB", "1 connection", "1,000", "5,000", "KiB for each", "accepted"]
    head += [f"+ {size} SET", f"+ {size} GET", "ms to listen"]
    return table(head, rows)


def targets(found: Sequence[Verdict]) -> str:
    """Every target with its ratio and its verdict."""
    rows = []
    for verdict in found:
        target = verdict.target
        measured = " · ".join(
            f"{value:,.2f} {part}".strip() for part, value in verdict.values.items()
        )
        sign = "≥" if target.at_least else "≤"
        rows.append(
            [
                f"{target.title}, {target.scenario}",
                measured or NONE,
                f"{sign} {target.limit:,g}",
                verdict.word + (f": {verdict.reason}" if verdict.reason else ""),
            ]
        )
    return table(["target", "measured", "limit", "verdict"], rows)


def absent(record: Record) -> str:
    """What is not in the tables, and why."""
    lines = [f"- {each.name}: missing: {each.reason}" for each in record.missing]
    lines += [
        f"- {each.peer}: failed in {each.scenario}: {each.reason}" for each in record.failures
    ]
    return "\n".join(lines) or "Nothing is missing, and nothing failed."


def report(record: Record, about: str, huge: int) -> str:
    """The whole report.

    Args:
        record: What was measured.
        about: A paragraph about the machine and the run.
        huge: Bytes of the huge value.

    """
    others = [each.values["others"] for each in record.samples if "others" in each.values]
    noise = (
        f"Meanwhile strangers used {show(median(others), 0, 0.01)} % of the machine in the median "
        f"sample and {show(max(others), 0, 0.01)} % in the worst."
        if others
        else ""
    )
    peers = "\n".join(
        f"- {each.name} {each.version}".rstrip() + f": {each.note}" for each in record.peers
    )
    sections = {
        "In short": summary(record),
        "Targets": targets(verdicts(record)),
        "Processor seconds per million commands (in the program itself)": cpu(record),
        "Processor time ÷ haproxy's": ratios(record, "haproxy", "cpu"),
        f"Processor time ÷ {UVLOOP}'s": ratios(record, UVLOOP, "cpu"),
        "Throughput ÷ direct's": ratios(record, DIRECT, "rate"),
        "One client": latency(record),
        "Memory and start": memory(record, huge),
        "Peers": peers,
        "Not measured": absent(record),
    }
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return f"# Speed\n\n{about} {noise}\n\n{text}\n"
