"""A report whose every name and text means ill: opened in a browser, read as XML, as Markdown, on a terminal."""

import json
import re
from xml.etree import ElementTree as ET

import pytest

from chaosproxy.report import files, summary
from tests.report.running import EVENT, FAULT, run

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARKUP = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1><svg onload=window.pwned=1>\"'"
ENDS = "]]>--></title></style></script><!ENTITY x SYSTEM 'file:///etc/passwd'>&x;"
TEXT = f"{MARKUP}{ENDS}\x1b[2J\x9b2J\u202e\x00\ufffe\ud800\n```\n|javascript:x|"


@pytest.fixture
def hostile():
    """A run in which whoever could name something named it so."""
    event = EVENT | dict.fromkeys(("client", "command", "fault", "detail", "told"), TEXT)
    event |= {"keys": [TEXT], "type": TEXT, "position": TEXT, "applied": TEXT, "outcome": TEXT}
    fault = FAULT | {"name": TEXT, "type": TEXT, "skipped": {TEXT: 1}}
    fields = ("profile", "description", "healthy", "upstream", "again", "replay", "divergence")
    return run(
        events=[event],
        faults=[fault],
        required=(TEXT,),
        command=(TEXT,),
        **dict.fromkeys(fields, TEXT),
    )


async def test_in_a_browser(hostile, visitor, tmp_path):
    """The page shows it as text: nothing runs, nothing is asked for, no element is made of it."""
    files.write(tmp_path, hostile)
    context = await visitor.new_context()
    context.set_default_timeout(60_000)
    page = await context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda line: said.append(line.text))
    await page.goto((tmp_path / "report.html").as_uri())
    assert asked == [(tmp_path / "report.html").as_uri()]
    # Not even the policy had anything to refuse.
    assert said == []
    for tag in ("script", "img", "iframe", "a", "form", "object"):
        assert await page.locator(tag).count() == 0
    assert "window.pwned=1" in await page.locator("body").inner_text()
    assert await page.locator("[onload], [onerror]").count() == 0
    await context.close()


async def test_as_xml(hostile, tmp_path):
    """JUnit's XML is well-formed and has the elements it should have, without a document type."""
    files.write(tmp_path, hostile)
    raw = (tmp_path / "junit.xml").read_bytes()
    root = ET.fromstring(raw)
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "system-out"
    }  # fmt: skip
    assert b"<!" not in raw
    assert MARKUP in root.find("testsuite").get("name")


async def test_as_markdown(hostile):
    """A job's summary has no element of HTML, no link and no end of its code block from outside."""
    text = summary.render(hostile)
    assert re.findall(r"(?<!\\)<", text.partition("```sh")[0]) == []
    assert text.count("```") == 2
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 3


async def test_as_json(hostile, tmp_path):
    """It reads back as it was, and nothing in it moves a cursor."""
    files.write(tmp_path, hostile)
    text = (tmp_path / "report.json").read_text()
    assert all(char == "\n" or char.isprintable() for char in text)
    assert json.loads(text)["faults"][0]["name"] == TEXT
