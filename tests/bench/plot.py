"""The plot: bars for every peer, one panel a question, as SVG.

Takes a record, gives the text of an SVG file that stands alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.bench.record import Record

MEBI = 1 << 20
WIDTH, BAR, GAP = 460, 18, 6
LABEL, VALUE = 130, 60
FONT = 'font-family="system-ui, sans-serif" font-size="12"'
OURS, THEIRS = "#c2410c", "#64748b"


@dataclass(frozen=True, slots=True)
class Bar:
    """One peer's value in one panel.

    Attributes:
        name: The peer's.
        value: Its length, in the panel's unit.
        inner: The part of it that is shown darker.

    """

    name: str
    value: float
    inner: float = 0.0


def panel(title: str, bars: Sequence[Bar], left: int, top: int, digits: int = 1) -> str:
    """One panel of horizontal bars whose longest fills the width."""
    longest = max((bar.value for bar in bars), default=0) or 1.0
    scale = (WIDTH - LABEL - VALUE) / longest
    lines = [f'<text x="{left}" y="{top + 14}" font-weight="bold">{escape(title)}</text>']
    for row, bar in enumerate(bars):
        y = top + 26 + row * (BAR + GAP)
        x = left + LABEL
        colour = OURS if bar.name.startswith("chaos-") else THEIRS
        length = max(1.0, bar.value * scale)
        box = f'<rect x="{x}" y="{y}" height="{BAR}" fill="{colour}"'
        lines += [
            f'<text x="{x - 6}" y="{y + 13}" text-anchor="end">{escape(bar.name)}</text>',
            f'{box} width="{length:.1f}" fill-opacity="0.55"/>',
            f'{box} width="{bar.inner * scale:.1f}"/>',
            f'<text x="{x + length + 5:.1f}" y="{y + 13}">{bar.value:,.{digits}f}</text>',
        ]
    return "\n".join(lines)


def height(count: int) -> int:
    """Pixels of a panel of so many bars."""
    return 26 + count * (BAR + GAP) + 16


def _bars(
    record: Record, scenario: str, key: str, part: str = "", inner: str = "", unit: float = 1.0
) -> list[Bar]:
    bars = []
    for peer in record.peers:
        value = record.median(peer.name, scenario, key, part)
        if value is not None:
            dark = record.median(peer.name, scenario, inner, part) if inner else None
            bars.append(Bar(peer.name, max(0.0, value) / unit, (dark or 0.0) / unit))
    return bars


def plot(record: Record) -> str:
    """The SVG file: processor time of two loads, added latency, idle memory."""
    seconds = "CPU s per million SETs, dark: in the program"
    panels = [
        (f"No pipeline: {seconds}", _bars(record, "p1", "cpu", "SET", "user"), 1),
        (f"Pipeline 16: {seconds}", _bars(record, "p16", "cpu", "SET", "user"), 1),
        ("One client: µs added to the median GET", _bars(record, "latency", "added50"), 0),
        ("Resident MiB with 5,000 idle", _bars(record, "memory", "idle5000", unit=MEBI), 0),
    ]
    tall = height(max((len(bars) for _, bars, _ in panels), default=0))
    drawn = [
        panel(title, bars, 16 + index % 2 * (WIDTH + 24), 12 + index // 2 * tall, digits)
        for index, (title, bars, digits) in enumerate(panels)
    ]
    wide, high = 2 * WIDTH + 56, 2 * tall + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" {FONT} fill="#0f172a">\n'
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )
