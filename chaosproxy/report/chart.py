"""The timeline of a report, as SVG: commands a second, and below them a lane of marks for each fault.

Takes a Run; gives SVG that needs no script, each mark with its event as a tooltip.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

from chaosproxy.telling import event_line
from chaosproxy.verdict import Run

WIDTH: Final = 1000
_LEFT: Final = 150
_PLOT: Final = WIDTH - _LEFT - 20
_AREA: Final = 60
_LANE: Final = 22
#: In seconds.
_SHORT: Final = 0.5
#: So many marks a lane; what is more would be one on the other.
MOST_MARKS: Final = 400
#: Which shape an outcome has: colour alone tells nothing to some.
_SHAPES: Final = {
    "ok": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "fail": "M-4 -4H4V4H-4Z",
    "unknown": "M0 -5L5 4H-5Z",
    "false_ok": "M-4 -4L4 4M-4 4L4 -4",
}
OUTCOMES: Final = {
    "ok": "ok",
    "fail": "fail: surely not applied",
    "unknown": "unknown: the client cannot tell",
    "false_ok": "false ok: the client was told that it worked",
}


def render(run: Run) -> str:
    """Give the SVG element."""
    lanes: dict[str, list[Mapping[str, Any]]] = {}
    for event in run.events:
        lanes.setdefault(str(event["fault"]), []).append(event)
    end = (
        max(run.seconds, *(float(event["t"]) for event in run.events), 0.001)
        if run.events
        else max(run.seconds, 0.001)
    )
    top = _AREA + 10 if run.timeline else 0
    height = top + _LANE * max(len(lanes), 1) + 26
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="chart-title">',
        f'<title id="chart-title">{len(run.events)} events of {len(lanes)} faults in {run.seconds:.1f} seconds</title>',
    ]
    if run.timeline:
        parts += _area(run, end)
    for number, (name, events) in enumerate(lanes.items()):
        y = top + _LANE * number + _LANE // 2
        shown = name if len(name) <= 22 else name[:21] + "…"
        parts.append(f'<text x="0" y="{y + 4}">{escape(shown)}</text>')
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _PLOT}" y2="{y}"/>')
        parts += (_mark(event, y, end) for event in _some(events))
    if not lanes:
        parts.append(f'<text x="{_LEFT}" y="{top + 15}">nothing fired</text>')
    parts += _axis(end, height)
    return "\n".join([*parts, "</svg>"])


def legend() -> str:
    """Tell which shape is which outcome."""
    items = (
        f'<span class="{name}"><svg viewBox="-7 -7 14 14" aria-hidden="true"><path class="mark" d="{shape}"/></svg> '
        f"{escape(OUTCOMES[name])}</span>"
        for name, shape in _SHAPES.items()
    )
    return f'<p class="legend">{" ".join(items)}</p>'


def _x(seconds: float, end: float) -> float:
    return round(_LEFT + _PLOT * min(max(seconds / end, 0.0), 1.0), 1)


def _mark(event: Mapping[str, Any], y: int, end: float) -> str:
    outcome = event["outcome"] if event["outcome"] in _SHAPES else "unknown"
    return (
        f'<g class="{outcome}" transform="translate({_x(event["t"], end)} {y})"><path class="mark" d="{_SHAPES[outcome]}"/>'
        f"<title>{escape(event_line(event))}</title></g>"
    )


def _some(events: list[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """All of them, or as many as there can be seen, from everywhere."""
    if len(events) <= MOST_MARKS:
        return events
    return (events[index * len(events) // MOST_MARKS] for index in range(MOST_MARKS))


def _area(run: Run, end: float) -> list[str]:
    """Commands a second, each look as a step."""
    points, seconds = [], 0.0
    rates = [(lasted, commands / (lasted or 1)) for lasted, commands in _looks(run)]
    most = max((rate for _, rate in rates), default=0.0) or 1.0
    for lasted, rate in rates:
        y = round(_AREA - (_AREA - 4) * rate / most, 1)
        points += [f"{_x(seconds, end)},{y}", f"{_x(seconds + lasted, end)},{y}"]
        seconds += lasted
    edge = f"{_LEFT},{_AREA} {' '.join(points)} {_x(seconds, end)},{_AREA}"
    return [
        f'<text x="0" y="{_AREA // 2}">commands a second</text>',
        f'<text x="0" y="{_AREA // 2 + 14}">at most {most:.0f}</text>',
        f'<polygon class="area" points="{edge}"/>',
    ]


def _looks(run: Run) -> list[tuple[float, int]]:
    """The seconds of each look and the commands in it; what is left of a second in the end is no rate by itself, if that is little."""
    looks = [(float(look["seconds"]), int(look["commands"])) for look in run.timeline]
    if len(looks) > 1 and looks[-1][0] < _SHORT:
        (lasted, commands), (more, others) = looks[-2:]
        looks[-2:] = [(lasted + more, commands + others)]
    return looks


def _axis(end: float, height: int) -> list[str]:
    y = height - 14
    ticks = [
        f'<text x="{_x(end * part / 4, end)}" y="{height - 2}" text-anchor="{anchor}">{end * part / 4:.3g} s</text>'
        for part, anchor in enumerate(("start", "middle", "middle", "middle", "end"))
    ]
    return [f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _PLOT}" y2="{y}"/>', *ticks]
