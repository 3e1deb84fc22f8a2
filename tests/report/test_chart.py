"""The timeline: a mark for each event where it belongs, as many as can be told apart, and what goes on beside it."""

from xml.etree import ElementTree as ET

from chaosproxy.report import chart
from tests.report.running import EVENT, HOSTILE, run

SVG = "{http://www.w3.org/2000/svg}"


def parsed(**more):
    text = chart.render(run(**more)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return ET.fromstring(text)


def marks(svg):
    return [each for each in svg.iter(f"{SVG}g") if each.get("transform")]


def test_marks():
    """Each event in the lane of its fault, further right the later, with what it was as a tooltip."""
    later = EVENT | {"n": 2, "t": 2.0, "outcome": "false_ok"}
    other = EVENT | {"n": 3, "t": 2.0, "fault": "other", "outcome": "new"}
    first, second, third = marks(parsed(events=[EVENT, later, other]))
    assert [each.get("class") for each in (first, second, third)] == [
        "unknown",
        "false_ok",
        "unknown",
    ]
    (x1, y1), (x2, y2), (x3, y3) = (
        map(float, each.get("transform")[10:-1].split()) for each in (first, second, third)
    )
    assert x1 < x2 == x3
    assert y1 == y2 < y3
    assert "RPUSH chat:1" in first.find(f"{SVG}title").text


def test_many():
    """More than can be told apart are not drawn, and those that are come from everywhere."""
    events = [EVENT | {"n": n, "t": n / 1000} for n in range(1000)]
    drawn = marks(parsed(events=events, seconds=1.0))
    assert len(drawn) == chart.MOST_MARKS
    assert "#997" in drawn[-1].find(f"{SVG}title").text


def test_nothing_fired():
    """That is said; a run of no length is drawn too."""
    assert "nothing fired" in ET.tostring(parsed(events=[], seconds=0.0), "unicode")


def test_commands_a_second():
    """What has been looked at is drawn, also if it was nothing."""
    looks = [{"seconds": 1.0, "commands": 5}, {"seconds": 1.0, "commands": 0}]
    text = ET.tostring(parsed(timeline=looks), "unicode")
    assert "at most 5" in text
    assert "polygon" in text
    assert "at most 1" in ET.tostring(parsed(timeline=looks[1:]), "unicode")


def test_the_last_part_of_a_second():
    """It is drawn to its end: by itself, or with the second before it where it is so short that its rate says nothing."""
    looks = [{"seconds": 1.0, "commands": 5}, {"seconds": 0.1, "commands": 6}]
    for last, most in ((0.1, 10), (0.5, 12)):
        looks[1]["seconds"] = last
        svg = parsed(timeline=looks, seconds=1.0 + last)
        assert f"at most {most}" in ET.tostring(svg, "unicode")
        points = svg.find(f"{SVG}polygon").get("points").split()
        assert max(float(point.partition(",")[0]) for point in points) == chart.WIDTH - 20
    alone = parsed(timeline=[{"seconds": 0.1, "commands": 6}])
    assert "at most 60" in ET.tostring(alone, "unicode")


def test_hostile():
    """Names and keys stay text."""
    svg = parsed(events=[EVENT | {"fault": HOSTILE, "keys": [HOSTILE]}])
    assert svg.find(f".//{SVG}script") is None


def test_legend():
    """Each outcome by shape and word."""
    assert all(text in chart.legend() for text in chart.OUTCOMES.values())
