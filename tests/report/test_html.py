"""report.html: one file without a request, all of what happened, and nothing in it becomes markup."""

import re
from html.parser import HTMLParser

from chaosproxy.report import html
from tests.report.running import EVENT, FAULT, HOSTILE, NEVER, run


class Page(HTMLParser):
    """Tags and text of a page; raises where tags are not closed in order."""

    VOID = ("meta", "path", "line")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.attributes = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_all_is_there():
    """The verdict, the seed, both commands, each fault, the commands that were hit, each event."""
    page = Page(html.render(run(faults=[FAULT, NEVER], required=("lost-ack", "never"))))
    for text in (
        "Failed, exit status 3",
        "never never fired: nothing that it matches ever came.",
        "It breaks.",
        "chaosproxy exec --seed 7 -- pytest -q",
        "chaosproxy exec --replay x -- pytest -q",
        "nth 2",
        "RPUSH chat:1",
        "after_apply",
    ):
        assert text in page.text, text
    assert page.tags.count("table") == 3


def test_passed():
    """What went well says so, and has no table that would be empty."""
    page = Page(html.render(run(faults=[], required=(), events=[], recorded=0, replay="")))
    assert "Passed" in page.text
    assert "table" not in page.tags


def test_other_endings():
    """The command's own status, a replay that went otherwise, an events file that is not complete."""
    assert "ended with status 7" in html.render(run(status=7))
    assert "The replay diverges." in html.render(run(divergence="diverges"))
    lost = html.render(run(recorded=5, lost=2))
    assert "Failed, exit status 1" in lost
    assert "2 of 5 events could not be written" in lost


def test_another_profile():
    """What another profile's faults did while it ran is told as theirs."""
    page = Page(html.render(run(faults=[FAULT, FAULT | {"profile": "q"}])))
    assert "lost-ack (q)" in page.text


def test_offline():
    """No script, no request: nothing is linked, and the page forbids it to itself."""
    text = html.render(run())
    page = Page(text)
    assert {"script", "link", "img", "iframe", "a"}.isdisjoint(page.tags)
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_hostile():
    """Whatever names, keys and texts hold is text."""
    event = EVENT | {"fault": HOSTILE, "keys": [HOSTILE], "detail": HOSTILE, "command": HOSTILE}
    ended = run(
        profile=HOSTILE,
        description=HOSTILE,
        healthy=HOSTILE,
        command=(HOSTILE,),
        again=HOSTILE,
        replay=HOSTILE,
        faults=[FAULT | {"name": HOSTILE, "profile": HOSTILE}],
        required=(HOSTILE,),
        events=[event],
        divergence=HOSTILE,
    )
    text = html.render(ended)
    page = Page(text)
    assert "script" not in page.tags
    assert [each for each in page.attributes if each[1].startswith("on")] == []
    assert "\x1b" not in text


def test_many_events():
    """So many are listed; that there are more is said."""
    events = [EVENT | {"n": n, "keys": [f"k{n}"]} for n in range(1, html.MOST_EVENTS + 10)]
    text = html.render(run(events=events, recorded=5000))
    assert f"The first {html.MOST_EVENTS} of 5000." in text
    assert f"The {html.MOST_COMMANDS} most frequent of {len(events)}." in text


def test_for_everybody():
    """A language, a title, headings, captions, light and dark, and what scrolls can be reached by keyboard."""
    text = html.render(run())
    page = Page(text)
    assert ("html", "lang", "en") in page.attributes
    assert page.tags.count("h1") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert "prefers-color-scheme: dark" in text
    scrolling = [each for each in page.attributes if each[1:] == ("class", "scroll")]
    assert len(scrolling) == len(
        [each for each in page.attributes if each[1:] == ("role", "region")]
    )
