"""junit.xml: a case for each fault that must fire, well-formed whatever is in it."""

from xml.etree import ElementTree as ET

from chaosproxy.report import junit
from tests.report.running import FAULT, HOSTILE, NEVER, run


def test_cases():
    """One passes, one fails and says why; what need not fire is no case."""
    rest = FAULT | {"name": "free"}
    ended = run(faults=[FAULT, NEVER, rest], required=("lost-ack", "never"))
    suites = ET.fromstring(junit.render(ended))
    (suite,) = suites
    for element in (suites, suite):
        assert (element.get("tests"), element.get("failures")) == ("2", "1")
    assert suite.get("name") == "chaosproxy p"
    properties = {each.get("name"): each.get("value") for each in suite.find("properties")}
    assert (properties["seed"], properties["again"]) == ("7", ended.again)
    assert properties["events_lost"] == "0"
    good, bad = suite.findall("testcase")
    assert (good.get("name"), good.find("failure")) == ("lost-ack fires", None)
    assert bad.find("failure").get("message") == "never never fired"
    assert bad.find("failure").text == "nothing that it matches ever came"


def test_nothing_required():
    """No case is a suite too."""
    (suite,) = ET.fromstring(junit.render(run(required=())))
    assert (suite.get("tests"), suite.findall("testcase")) == ("0", [])


def test_hostile():
    """Markup stays text, and what XML cannot say is replaced."""
    ended = run(again=HOSTILE, profile=HOSTILE, required=(HOSTILE,))
    (suite,) = ET.fromstring(junit.render(ended))
    assert "<script>alert(1)</script>&\"'" in suite.get("name")
    assert "\x1b" not in suite.get("name")
