"""The page at work: a person with a browser before a running proxy, with eyes or without, with a mouse or without."""

import json
from contextlib import closing

import pytest
from playwright.async_api import expect

from tests import servers
from tests.clients import installs
from tests.control.viewing import call, pipeline, put, until, viewing
from tests.proxying import start_proxy

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: What finds what cannot be used by somebody: this version's rules.
AXE = "axe-core@4.14.1"
#: Answers GET by itself: as many events as are wanted, quickly.
ANSWERS = """\
description: GET is answered by the proxy.
faults:
- {fault: reply, name: answers, match: {commands: GET}, at: before_forward, value: made up}
"""
#: Two faults that fire, one that is asked for, with outcomes that differ.
MIXED = """\
description: A bit of everything.
healthy: Nobody minds.
faults:
- {fault: drop_write, name: lost, match: {commands: SET}, tell: ok}
- {fault: reply, name: full, match: {commands: INCR}, at: before_forward, error: OOM}
- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 2ms}
- {fault: disconnect, name: cut, match: {commands: RPUSH}, when: {trigger: manual}, at: after_apply}
"""
NASTY = '"><img src=x onerror="window.pwned = 1"><script>window.pwned = 1</script>'


@pytest.fixture(scope="module")
def redis():
    redis = servers.start("valkey9")
    yield redis
    redis.stop()


@pytest.fixture(scope="module")
def running(redis):
    with start_proxy(redis.url, patient=True) as proxy:
        yield proxy


@pytest.fixture
def proxy(running, redis):
    """Lend the module's proxy, calm and without events."""
    call(running, "DELETE", "/profile")
    call(running, "DELETE", "/events")
    redis.ask("FLUSHALL")
    return running


def in_force(proxy):
    return json.loads(proxy.get("/profile")[1])


def play(proxy):
    """Have every fault of MIXED that fires by itself fire, on one connection."""
    with proxy.connect() as wire:
        wire.ask("CLIENT", "SETNAME", "player")
        wire.ask("SET", "chat:1", "a")
        wire.ask("INCR", "count")
        wire.ask("GET", "chat:1")
        wire.ask("GET", "chat:2")


async def test_switch_and_see_it_fire(browser, proxy, tmp_path):
    """A profile is chosen and put in force; when its fault fires, its row, the events and the timeline show it."""
    async with viewing(browser, proxy, tmp_path) as view:
        await expect(view.fact("Profile")).to_have_text("calm")
        await expect(
            view.page.get_by_text("No fault: every byte passes as it came.", exact=True)
        ).to_be_visible()
        await view.choose("lost-ack")
        await view.page.get_by_label("Seed").fill("11")
        await view.apply()
        await expect(view.status).to_contain_text("lost-ack is in force, generation")
        assert (in_force(proxy)["name"], in_force(proxy)["seed"]) == ("lost-ack", 11)
        await expect(view.fact("Profile")).to_have_text("lost-ack")
        await expect(view.fact("Seed")).to_have_text("11")
        await expect(view.page).to_have_title("lost-ack · chaosproxy")
        row = view.fault("lost-ack")
        await expect(row.get_by_role("cell")).to_have_text(["0", "0", "0", "", ""])
        with proxy.connect() as wire:
            wire.send("RPUSH", "chat:1", "Hello")
            assert wire.read_to_end() == (b"", "RST")
        await expect(row.get_by_role("cell").nth(1)).to_have_text("1")
        event = view.page.locator("#events tr")
        await expect(event).to_have_count(1)
        for text in ("lost-ack", "RPUSH", "chat:1", "yes", "reset", "unknown"):
            await expect(event).to_contain_text(text)
        await expect(view.page.locator("#timeline-text")).to_contain_text("lost-ack once")
        await expect(view.page.locator("#chart svg")).to_contain_text("lost-ack, 1 fired")


async def test_matched_and_skipped(browser, proxy, tmp_path):
    """A fault's row counts what it matched, what it did, and why it left the rest alone."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        pipeline(proxy, 1234, "RPUSH", "list", "x")
        cells = view.fault("cut").get_by_role("cell")
        await expect(cells.nth(0)).to_have_text("1,234")
        await expect(cells.nth(1)).to_have_text("0")
        await expect(cells.nth(2)).to_have_text("1,234manual 1,234")
        await expect(
            view.page.get_by_text("A bit of everything. Healthy: Nobody minds.")
        ).to_be_visible()


async def test_bad_yaml(browser, proxy, tmp_path):
    """What is wrong is told at its line while it is written; it cannot be put in force; once it is right it can."""
    async with viewing(browser, proxy, tmp_path, errors=("422",)) as view:
        await view.choose("lost-writes")
        good = await view.yaml.input_value()
        before = in_force(proxy)["generation"]
        bad = good.replace("drop_write", "drop_wriet").replace("chance: 10%", "chance: often")
        await view.yaml.fill(bad)
        lines = [
            1 + bad.splitlines().index(line)
            for line in ("  - fault: drop_wriet", "      chance: often")
        ]
        problems = view.page.get_by_role("list", name="Problems").get_by_role("listitem")
        await expect(problems).to_have_count(2)
        await expect(view.page.locator("#problem-count")).to_have_text("2 problems")
        await expect(view.yaml).to_have_attribute("aria-invalid", "true")
        await expect(problems.nth(0)).to_contain_text(f"Line {lines[0]}, column")
        await expect(problems.nth(0)).to_contain_text("did you mean drop_write?")
        marks = view.page.locator("#under-marks .mark")
        await expect(marks).to_have_count(2)
        await expect(marks.nth(0)).to_contain_text("drop_wriet")
        places = await view.page.evaluate(
            """() => {
              const high = parseFloat(getComputedStyle(document.getElementById("yaml")).lineHeight);
              const tops = (id) => [...document.querySelectorAll(`#${id} .mark`)].map((mark) => 1 + mark.offsetTop / high);
              return [tops("under-marks"), tops("gutter-marks")];
            }"""
        )
        # The first line begins below the sheet's padding of 6 px.
        assert [[int(place) for place in some] for some in places] == [lines, lines]
        await view.apply()
        await expect(view.status).to_contain_text("Not put in force: the profile has 2 problems")
        assert in_force(proxy)["generation"] == before
        await problems.nth(1).get_by_role("button").click()
        caret = await view.yaml.evaluate(
            "area => [document.activeElement === area, area.selectionStart]"
        )
        assert caret[0]
        assert bad[: caret[1]].count("\n") + 1 == lines[1]
        await view.yaml.fill(good.replace("10%", "100%"))
        await expect(problems).to_have_count(0)
        await expect(view.yaml).to_have_attribute("aria-invalid", "false")
        await view.apply()
        await expect(view.fact("Profile")).to_have_text("lost-writes-edited")
        assert in_force(proxy)["generation"] == before + 1
        assert "chance: 100%" in in_force(proxy)["yaml"]


async def test_edits_are_kept(browser, proxy, tmp_path):
    """Looking at another profile loses no edit; discarding one does, and another's switch does not."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.choose("lost-ack")
        shipped = await view.yaml.input_value()
        await view.yaml.fill(shipped + "# mine\n")
        chooser = view.page.get_by_label("Profile to look at")
        await expect(chooser.locator("option:checked")).to_have_text("lost-ack, edited")
        await view.choose("calm")
        put(proxy, name="slow-redis")
        await expect(view.fact("Profile")).to_have_text("slow-redis")
        await chooser.select_option("lost-ack")
        await expect(view.yaml).to_have_value(shipped + "# mine\n")
        await view.page.get_by_role("button", name="Discard edits").click()
        await expect(view.yaml).to_have_value(shipped)
        await expect(view.page.get_by_role("button", name="Discard edits")).to_be_disabled()
        await chooser.select_option("")
        await expect(view.yaml).to_have_value(in_force(proxy)["yaml"])


async def test_bad_seed(browser, proxy, tmp_path):
    """A seed that is none goes nowhere, and the field that is wrong has the focus."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.choose("lost-ack")
        before = in_force(proxy)["generation"]
        for wrong in ("x", "-1", "1.5", "99999999999999999999"):
            await view.page.get_by_label("Seed").fill(wrong)
            await view.apply()
            await expect(view.status).to_contain_text("a seed is a whole number")
            await expect(view.page.get_by_label("Seed")).to_be_focused()
        assert in_force(proxy)["generation"] == before


async def test_trigger_switch_off_and_calm(browser, proxy, tmp_path):
    """A fault acts when it is triggered and not when it is switched off; calm ends them all."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        await view.page.get_by_role("button", name="Trigger cut").click()
        await expect(view.status).to_contain_text("cut is triggered: it acts on its next match")
        await expect(view.fault("cut")).to_contain_text("1 asked for")
        with proxy.connect() as wire:
            wire.send("RPUSH", "list", "x")
            assert wire.read_to_end()[1] == "RST"
        await expect(view.fault("cut").get_by_role("cell").nth(1)).to_have_text("1")
        await expect(view.fault("cut")).not_to_contain_text("asked for")
        switch = view.page.get_by_role("switch", name="full enabled")
        await expect(switch).to_be_checked()
        await switch.click()
        await expect(view.status).to_contain_text("full is switched off")
        with proxy.connect() as wire:
            assert wire.ask("INCR", "count") == 1
        await expect(switch).not_to_be_checked()
        await switch.click()
        await expect(view.status).to_contain_text("full is switched on")
        with proxy.connect() as wire:
            assert wire.ask("INCR", "count").startswith("OOM")
        await view.page.get_by_role("button", name="Calm").click()
        await expect(view.status).to_contain_text("All is calm")
        await expect(view.fact("Profile")).to_have_text("calm")
        assert in_force(proxy)["name"] == "calm"


async def test_what_lasts_begins(browser, proxy, tmp_path):
    """A fault that lasts waits for no match: it has begun, which is said."""
    lasting = "faults:\n- {fault: admit, name: door, new_connections: reset, for: 10m, when: {trigger: manual}}\n"
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(lasting)
        await view.page.get_by_role("button", name="Trigger door").click()
        await expect(view.status).to_contain_text("door is triggered: it has begun")
        put(proxy, name="calm")


async def test_refused(browser, proxy, tmp_path):
    """What the proxy refuses is told, and the page shows what is."""
    async with viewing(browser, proxy, tmp_path, errors=("404",)) as view:
        await view.see(MIXED)
        # By then nothing is under way that could show what comes next before it is refused.
        await view.pause()
        call(proxy, "DELETE", "/profile")
        await view.page.get_by_role("switch", name="lost enabled").click()
        await expect(view.status).to_contain_text(
            "Not done: no fault of profile calm is called 'lost'"
        )
        await expect(view.fact("Profile")).to_have_text("calm")


async def test_keyboard_only(browser, proxy, tmp_path):
    """Everything is done with Tab, Enter, Space and letters; what has the focus can be seen, and nothing traps it."""
    async with viewing(browser, proxy, tmp_path) as view:
        keyboard = view.page.keyboard
        seen = []

        async def tab_to(wanted):
            for _ in range(80):
                await keyboard.press("Tab")
                stop = await view.page.evaluate(FOCUS)
                seen.append(stop)
                assert stop["visible"], stop
                if wanted in (stop["id"], stop["label"]):
                    return
            raise AssertionError(f"Tab never came to {wanted}: {seen}")

        await expect(view.page.locator("#choice option")).not_to_have_count(1)
        await keyboard.press("Tab")
        await expect(view.page.get_by_text("Skip to what is in force")).to_be_focused()
        await keyboard.press("Enter")
        await expect(view.page.locator("main")).to_be_focused()
        await tab_to("choice")
        # Letters that come too slowly are each the beginning of a name.
        await keyboard.type("lost-w")
        while await view.page.locator("#choice").input_value() != "lost-writes":
            await view.page.wait_for_timeout(1500)
            await keyboard.type("lost-w")
        await expect(view.yaml).to_have_value(proxy.get("/profiles/lost-writes")[1])
        await tab_to("yaml")
        await keyboard.press("Control+A")
        await keyboard.insert_text(MIXED)
        await expect(view.page.locator("#draft-state")).to_have_text("edited")
        await tab_to("apply")
        await keyboard.press("Enter")
        await expect(view.fact("Profile")).to_have_text("lost-writes-edited")
        await expect(view.page.locator("#choice")).to_have_value("")
        await expect(view.yaml).to_have_value(MIXED)
        await expect(view.page.locator("#draft-state")).to_have_text("")
        await expect(view.page.locator("#apply")).to_be_focused()
        play(proxy)
        await expect(view.page.locator("#events tr")).to_have_count(4)
        await tab_to("f-text")
        await keyboard.type("chat:2")
        await expect(view.page.locator("#events tr")).to_have_count(1)
        await tab_to("opener")
        await keyboard.press("Enter")
        await expect(view.page.locator("#events dl")).to_be_visible()
        await expect(view.page.locator(".opener")).to_be_focused()
        with proxy.connect():
            await view.scroll_to("Connections")
            await expect(view.page.locator("#connections tr")).to_have_count(1)
            await tab_to("connections-end")
            await keyboard.press("Space")
            await expect(view.status).to_contain_text("is ended")
            await expect(view.page.locator("#connections tr")).to_have_count(0)
        # The row that had the focus is gone: its section's heading has it, not the top of the page.
        await expect(view.page.locator("#connections-title")).to_be_focused()
        await view.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        await view.page.locator("main").focus()
        await tab_to("Trigger cut")
        await keyboard.press("Space")
        await expect(view.status).to_contain_text("cut is triggered")
        await expect(view.page.get_by_role("button", name="Trigger cut")).to_be_focused()
        await keyboard.press("Shift+Tab")
        await keyboard.press("Space")
        await expect(view.status).to_contain_text("cut is switched off")
        await view.page.evaluate("document.activeElement.blur()")
        await view.page.locator(".skip").focus()
        await tab_to("calm")
        await keyboard.press("Enter")
        await expect(view.fact("Profile")).to_have_text("calm")


#: What has the focus, and whether that can be seen: not below the head of the page, and by an outline of its own or of the box that it fills.
FOCUS = """() => {
  const node = document.activeElement;
  const outlined = (one) => {
    const style = getComputedStyle(one);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  };
  const box = node.getBoundingClientRect();
  const end = node.closest("#connections") ? "connections-end" : "";
  const head = document.querySelector("header").getBoundingClientRect();
  const covered = !node.closest("header, .skip") && node !== document.body && box.bottom <= head.bottom;
  return {
    id: node.id || (node.classList.contains("opener") ? "opener" : end),
    label: node.getAttribute("aria-label"),
    tag: node.tagName,
    visible: box.width > 0 && !covered && (outlined(node) || outlined(node.closest(".editor") ?? node)),
  };
}"""


async def test_screen_reader(browser, proxy, tmp_path):
    """Landmarks, headings in order, a name on everything that can be used, and one line that is read out."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        play(proxy)
        page = view.page
        await expect(page.locator("#events tr")).to_have_count(4)
        await expect(page.get_by_role("banner")).to_have_count(1)
        await expect(page.get_by_role("main")).to_have_count(1)
        headings = await page.get_by_role("heading").all_inner_texts()
        assert headings == [
            "chaosproxy",
            "In force",
            "Profile",
            "Timeline",
            "Events",
            "Connections",
        ]
        for name in headings[1:]:
            await expect(
                page.locator("main > section").get_by_text(name, exact=True).first
            ).to_be_visible()
            await expect(page.get_by_role("region", name=name, exact=True).first).to_be_visible()
        await expect(page.get_by_role("search", name="Filter events")).to_have_count(1)
        await expect(page.get_by_role("table", name="Faults")).to_have_count(1)
        await expect(page.get_by_role("row", name="lost drop_write")).to_have_count(1)
        picture = page.get_by_role("img", name="In the last")
        await expect(picture).to_have_count(1)
        tree = await page.locator("body").aria_snapshot()
        for line in tree.splitlines():
            kind = line.strip(" -").partition(" ")[0].rstrip(":")
            assert kind not in {"button", "textbox", "combobox", "switch"} or '"' in line, line
        await expect(page.locator("#said")).to_have_role("status")
        await page.get_by_text("The timeline as a table").click()
        table = page.get_by_role("region", name="The timeline as a table").get_by_role("table")
        await expect(table.get_by_role("row").nth(1)).to_be_visible()
        await expect(table).to_contain_text("slow ")


async def test_filters(browser, proxy, tmp_path):
    """By fault, command, outcome, connection and any text of key, client and detail; all together; and none again."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        play(proxy)
        with proxy.connect() as wire:
            wire.ask("SET", "other", "b")
            number = call(proxy, "GET", "/connections")["connections"][-1]["id"]
            await expect(view.page.locator("#events tr")).to_have_count(5)
            search = view.page.get_by_role("search")
            rows = view.page.locator("#events tr")
            for label, value, count in [
                ("Fault", "slow", 2),
                ("Command", "INCR", 1),
                ("Outcome", "false_ok", 2),
                ("Connection", f"#{number}", 1),
                ("Text", "CHAT:1", 2),
                ("Text", "player", 4),
            ]:
                field = search.get_by_label(label, exact=True)
                if label in ("Fault", "Command", "Outcome"):
                    await field.select_option(value)
                else:
                    await field.fill(value)
                await expect(rows).to_have_count(count)
                await search.get_by_role("button", name="No filter").click()
                await expect(rows).to_have_count(5)
            await search.get_by_label("Fault").select_option("lost")
            await search.get_by_label("Text").fill("chat")
            await expect(rows).to_have_count(1)
            await expect(view.page.locator("#events-count")).to_contain_text(
                "1 of the last 5 match"
            )
            await search.get_by_label("Text").fill("nothing like it")
            await expect(view.page.get_by_text("No event matches.")).to_be_visible()
            await search.get_by_role("button", name="Forget events").click()
            await expect(view.page.get_by_text("None since they were forgotten.")).to_be_visible()
            assert call(proxy, "GET", "/events")["events"] == []


async def test_all_of_an_event(browser, proxy, tmp_path):
    """An event opens and shows every field that the API has of it."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        play(proxy)
        opener = view.page.locator(".opener").last
        await expect(view.page.locator(".opener")).to_have_count(4)
        await opener.click()
        await expect(opener).to_have_attribute("aria-expanded", "true")
        event = call(proxy, "GET", "/events")["events"][0]
        assert event["fault"] == "lost"
        terms = view.page.locator("#events dl dt")
        await expect(terms).to_have_text(list(event))
        await expect(view.page.locator("#events dl")).to_contain_text(event["digest"])
        await opener.click()
        await expect(terms).to_have_count(0)


async def test_connections(browser, proxy, tmp_path):
    """Who is connected is shown with what they do, and can be cut off."""
    async with viewing(browser, proxy, tmp_path) as view:
        rows = view.page.locator("#connections tr")
        await view.scroll_to("Connections")
        with closing(proxy.connect()) as wire, closing(proxy.connect()):
            wire.ask("CLIENT", "SETNAME", "worker-7")
            wire.ask("SELECT", 3)
            wire.ask("MULTI")
            await expect(rows).to_have_count(2)
            row = rows.filter(has_text="worker-7")
            for text in ("worker-7 · 127.0.0.1", "3", "RESP2", "in a transaction"):
                await expect(row).to_contain_text(text)
            await row.get_by_role("button").click()
            assert wire.read_to_end() == (b"", "RST")
            await expect(rows).to_have_count(1)
            await expect(view.status).to_contain_text("is ended")


async def test_nothing_is_markup(browser, proxy, tmp_path):
    """Keys, clients and profiles called like markup are shown as they are called, and do nothing."""
    async with viewing(browser, proxy, tmp_path) as view:
        name = json.dumps(NASTY)
        yaml = f"""\
description: {name}
faults:
- {{fault: drop_write, match: {{commands: SET}}, tell: ok}}
"""
        put(proxy, yaml=yaml, name=NASTY)
        with proxy.connect() as wire:
            wire.ask("CLIENT", "SETNAME", NASTY.replace(" ", "_"))
            wire.ask("SET", NASTY, NASTY)
            wire.ask("SET", b"\xff<img>", "x")
            await expect(view.fact("Profile")).to_have_text(NASTY)
            await expect(view.page.locator("#description")).to_have_text(NASTY)
            await expect(view.page.locator("#events tr")).to_have_count(2)
            await expect(view.page.locator("#events .keys").last).to_have_text(NASTY)
            await expect(view.page.locator("#events .keys").first).to_contain_text("base64:")
            for opener in await view.page.locator(".opener").all():
                await opener.click()
            await view.scroll_to("Connections")
            await expect(view.page.locator("#connections tr")).to_contain_text("<img")
            await expect(view.page.locator("#chart text.switch").first).to_contain_text("<img")
            await view.yaml.fill(f"faults: [{{fault: {name}}}]")
            await expect(view.page.locator("#problem-list")).to_contain_text("<img")
            assert await view.page.locator("img").count() == 1
            assert await view.page.locator("script").count() == 1
            assert await view.page.evaluate("window.pwned") is None


async def test_thousands_of_events(browser, proxy, tmp_path):
    """Of thousands the latest are kept and a hundred drawn, more on request and never without bound."""
    async with viewing(browser, proxy, tmp_path) as view:
        rows = view.page.locator("#events tr")
        before = call(proxy, "GET", "/events")["last"]
        await view.see(ANSWERS)
        pipeline(proxy, 3000, "GET", "key:a")
        await expect(view.page.locator("#events-count")).to_contain_text("the latest 100 shown")
        pipeline(proxy, 9000, "GET", "key:b")
        total = f"{before + 12_000:,} so far"
        await expect(view.page.locator("#events-count")).to_contain_text(total)
        await expect(rows).to_have_count(100)
        await view.page.get_by_label("Text").fill("key:b")
        await expect(view.page.locator("#events-count")).to_contain_text("the latest 100 shown")
        await view.page.get_by_label("Text").fill("key:a")
        # They are among the last ten thousand of the proxy, and not among the last five of the page.
        await expect(view.page.locator("#events-count")).to_contain_text(
            "0 of the last 5,000 match"
        )
        await view.page.get_by_label("Text").fill("")
        older = view.page.get_by_role("button", name="Show older")
        for shown in range(200, 1001, 100):
            await older.click()
            await expect(rows).to_have_count(shown)
        await expect(older).to_be_hidden()
        assert await view.page.locator("*").count() < 20_000


async def test_many_faults_and_connections(browser, proxy, tmp_path):
    """A profile of hundreds of faults and hundreds of clients are shown too, clients up to a number."""
    faults = "".join(
        f"- {{fault: latency, name: f{number}, match: {{commands: GET}}, at: after_apply, delay: 1us}}\n"
        for number in range(300)
    )
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(f"faults:\n{faults}")
        await expect(view.page.locator("#faults tr")).to_have_count(300)
        await view.scroll_to("Connections")
        wires = [proxy.connect() for _ in range(250)]
        try:
            await expect(view.page.locator("#connections-count")).to_have_text("200 of 250 shown")
            await expect(view.page.locator("#connections tr")).to_have_count(200)
        finally:
            for wire in wires:
                wire.close()
        await expect(view.page.locator("#connections tr")).to_have_count(0)


async def test_another_generation(browser, proxy, tmp_path):
    """What somebody else puts in force is shown, and the timeline marks when."""
    async with viewing(browser, proxy, tmp_path) as view:
        await expect(view.fact("Commands/s")).not_to_have_text("…")
        put(proxy, name="brownout", seed=3)
        await expect(view.fact("Profile")).to_have_text("brownout")
        await expect(view.page.locator("#chart text.switch").first).to_have_text("brownout")
        await view.page.reload()
        # It was seen by the proxy, not by the page.
        await expect(view.page.locator("#chart text.switch").first).to_have_text("brownout")


async def test_a_second_of_the_timeline(browser, proxy, tmp_path):
    """What the pointer is on is told in numbers, and no longer than it is there."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        play(proxy)
        await expect(view.page.locator("#timeline-text")).to_contain_text("slow")
        await view.pause()
        box = await view.page.locator("#chart").bounding_box()
        told = view.page.locator("#timeline-at")
        await view.page.locator("#chart").scroll_into_view_if_needed()
        # From the right, where now is, to the left, until the second comes in which it was.
        for place in range(1, int(box["width"] / 2)):
            at = {"x": box["width"] - 2 * place, "y": 40}
            await view.page.locator("#chart").hover(position=at)
            text = await told.inner_text()
            if "slow " in text:
                break
        assert "commands/s" in text
        assert " added" in text
        await view.page.mouse.move(0, 0)
        await expect(told).to_have_text("")


async def test_pause(browser, proxy, tmp_path):
    """Paused, nothing moves, and what is asked for is done all the same; then it goes on where it is."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        pause = view.page.get_by_role("button", name="Pause updates")
        await view.pause()
        await expect(pause).to_have_attribute("aria-pressed", "true")
        asked = len(view.asked)
        play(proxy)
        await view.page.wait_for_timeout(2500)
        # The first look at events is two questions.
        assert len(view.asked) - asked <= 1
        await view.page.get_by_role("button", name="Trigger cut").click()
        await expect(view.fault("cut")).to_contain_text("1 asked for")
        await pause.click()
        await expect(view.page.locator("#events tr")).to_have_count(4)
        await expect(view.page.locator("#health")).to_have_text("Live")


async def test_asked_for_while_paused(browser, proxy, tmp_path):
    """What is asked for while a look is still under way that began before the pause is looked at as well."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        late = await view.hold("/profile")
        await late.wait()
        await view.page.get_by_role("button", name="Pause updates").click()
        await expect(view.page.locator("#health")).to_have_text("Paused")
        await view.page.get_by_role("button", name="Trigger cut").click()
        await expect(view.status).to_contain_text("cut is triggered")
        await late.let_go()
        await expect(view.fault("cut")).to_contain_text("1 asked for")


async def test_an_old_answer_takes_nothing_back(browser, proxy, tmp_path):
    """What was asked for before something was put in force, and comes afterwards, is not shown."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.choose("lost-ack")
        late = await view.hold("/profile")
        await late.wait()
        await view.apply()
        await expect(view.fact("Profile")).to_have_text("lost-ack")
        await view.page.evaluate(
            """() => {
              const node = document.getElementById("profile-name");
              window.shown = [];
              new MutationObserver(() => window.shown.push(node.textContent)).observe(node, { childList: true });
            }"""
        )
        await late.let_go()
        put(proxy, name="slow-redis")
        await expect(view.fact("Profile")).to_have_text("slow-redis")
        assert await view.page.evaluate("window.shown") == ["slow-redis"]


async def test_forgotten_events_stay_forgotten(browser, proxy, tmp_path):
    """An answer with events that comes after they were forgotten, and was asked for before, does not bring them back; later ones come."""
    async with viewing(browser, proxy, tmp_path) as view:
        await view.see(MIXED)
        late = await view.hold("/events?after=*&wait=*")
        await until(lambda: late.taken, "the page to ask")
        play(proxy)
        await late.wait()
        await view.page.get_by_role("button", name="Forget events").click()
        await expect(view.status).to_contain_text("The events are forgotten")
        await late.let_go()
        with proxy.connect() as wire:
            wire.ask("INCR", "count")
        await expect(view.page.locator("#events tr")).to_have_count(1)
        await expect(view.page.locator("#events tr")).to_contain_text("INCR")


async def test_chosen_while_something_comes_into_force(browser, proxy, tmp_path):
    """A profile that is chosen in that moment is shown as it ships, not as an edit with the text of the one before."""
    async with viewing(browser, proxy, tmp_path) as view:
        await expect(view.fact("Profile")).to_have_text("calm")
        late = await view.hold("/profiles/lost-ack")
        await view.page.get_by_label("Profile to look at").select_option("lost-ack")
        await late.wait()
        put(proxy, name="slow-redis")
        await expect(view.fact("Profile")).to_have_text("slow-redis")
        await late.let_go()
        await expect(view.yaml).to_have_value(proxy.get("/profiles/lost-ack")[1])
        await expect(view.page.locator("#draft-state")).to_have_text("")


async def test_no_answer_for_a_while(browser, proxy, tmp_path):
    """Cut off from the proxy the page says so and tries again by itself; what fired meanwhile is not missed."""
    async with viewing(browser, proxy, tmp_path, errors=("ERR_",)) as view:
        await view.see(MIXED)
        await view.page.context.set_offline(True)
        await expect(view.page.locator("#health")).to_contain_text("Trying again")
        await view.page.get_by_role("button", name="Calm").click()
        await expect(view.status).to_contain_text("Not done: chaosproxy does not answer")
        play(proxy)
        await view.page.context.set_offline(False)
        await expect(view.page.locator("#health")).to_have_text("Live")
        await expect(view.page.locator("#events tr")).to_have_count(4)


@pytest.mark.parametrize("count", [2, 5, 7], ids=["fewer", "as many", "more"])
async def test_started_anew(browser, redis, tmp_path, count):
    """Another chaosproxy at the same address begins to count at one, and the page with it: however many events it has, it shows no others."""
    # Nobody else is given it in between.
    address = f"127.0.0.1:{servers.free_port()}"
    with start_proxy(redis.url, ANSWERS, "--control", address, patient=True) as first:
        async with viewing(browser, first, tmp_path, errors=("ERR_",)) as view:
            pipeline(first, 5, "GET", "old")
            await expect(view.page.locator("#events tr")).to_have_count(5)
            await expect(view.fact("Commands/s")).not_to_have_text("…")
            first.stop()
            await expect(view.page.locator("#health")).to_contain_text("Trying again")
            with start_proxy(redis.url, ANSWERS, "--control", address, patient=True) as second:
                pipeline(second, count, "GET", "new")
                rows = view.page.locator("#events tr")
                await expect(rows.filter(has_text="new")).to_have_count(count)
                await expect(rows).to_have_count(count)
                await expect(view.page.locator("#timeline-text")).to_contain_text(
                    f"answers {count} times"
                )


async def test_token(browser, redis, tmp_path):
    """Without the token there is nothing to see; it is asked for, kept for the tab alone, and never in an address."""
    with start_proxy(redis.url, MIXED, "--control-token", "öffne dich 🔑", patient=True) as proxy:
        async with viewing(browser, proxy, tmp_path, errors=("401",)) as view:
            dialog = view.page.get_by_role("dialog", name="A token is needed")
            await expect(dialog).to_be_visible()
            await expect(view.page.get_by_label("Token", exact=True)).to_be_focused()
            await view.page.keyboard.press("Escape")
            await expect(dialog).to_be_visible()
            await view.page.get_by_label("Token", exact=True).fill("öffne dich 🔒")
            await view.page.keyboard.press("Enter")
            await expect(view.page.get_by_text("That token was refused.")).to_be_visible()
            await view.page.get_by_label("Token", exact=True).fill("öffne dich 🔑")
            await view.page.get_by_role("button", name="Go on").click()
            await expect(dialog).to_be_hidden()
            await expect(view.fact("Profile")).to_have_text("test")
            await expect(view.page.locator("#choice option")).not_to_have_count(1)
            play(proxy)
            await expect(view.page.locator("#events tr")).to_have_count(4)
            await view.page.get_by_role("button", name="Trigger cut").click()
            await expect(view.status).to_contain_text("cut is triggered")
            await view.page.reload()
            await expect(view.fact("Profile")).to_have_text("test")
            await expect(dialog).to_be_hidden()
            kept = await view.page.evaluate("[localStorage.length, document.cookie, location.href]")
            assert kept == [0, "", proxy.control + "/"]
            assert not [url for url in view.asked if "ffne" in url]
            other = await view.page.context.new_page()
            await other.goto(proxy.control + "/")
            await expect(other.get_by_role("dialog")).to_be_visible()
            await other.close()


async def test_policy_holds(browser, proxy, tmp_path):
    """What is put into the page all the same neither runs nor asks anybody elsewhere."""
    async with viewing(
        browser, proxy, tmp_path, errors=("Content Security Policy", "requires 'Trusted")
    ) as view:
        await expect(view.fact("Profile")).to_have_text("calm")
        done = await view.page.evaluate(
            """async () => {
              const tries = {};
              const attempt = async (name, task) => { try { await task(); tries[name] = "done"; } catch { tries[name] = "refused"; } };
              await attempt("markup", () => { document.body.innerHTML += "<b>x</b>"; });
              await attempt("script", () => { document.createElement("script").text = "window.pwned = 1"; });
              await attempt("elsewhere", () => fetch("http://127.0.0.1:9/"));
              return tries;
            }"""
        )
        assert done == {"markup": "refused", "script": "refused", "elsewhere": "refused"}
        view.asked[:] = [url for url in view.asked if not url.startswith("http://127.0.0.1:9/")]


async def test_in_no_frame(browser, proxy, tmp_path):
    """Another site cannot have it in a frame, to have its buttons pressed."""
    async with viewing(browser, proxy, tmp_path, errors=("frame",)) as view:
        await view.page.route(
            "**/frame",
            lambda route: route.fulfill(body="<iframe src='/'></iframe>", content_type="text/html"),
        )
        await view.page.goto(proxy.control + "/frame")
        frame = view.page.frames[1]
        await expect(view.page.locator("iframe")).to_have_count(1)
        assert await frame.locator("main").count() == 0


@pytest.mark.parametrize("width", [320, 360, 1280])
async def test_widths(browser, proxy, tmp_path, width):
    """At no width the page scrolls sideways, and at each the faults can be read and the buttons be reached."""
    async with viewing(browser, proxy, tmp_path, viewport={"width": width, "height": 740}) as view:
        long = "word-" * 60
        await view.see(
            f"description: {long}\n"
            + MIXED.split("\n", 1)[1].replace("name: lost", f"name: {long[:60]}")
        )
        play(proxy)
        with proxy.connect() as wire:
            wire.ask("CLIENT", "SETNAME", "c" * 200)
            wire.ask("SET", "k" * 300, "v")
            wire.ask("INCR", "count")
            await expect(view.page.locator("#events tr")).to_have_count(6)
            await view.scroll_to("Connections")
            await expect(view.page.locator("#connections tr")).to_have_count(1)
            await view.page.locator(".opener").first.click()
            await view.yaml.fill("faults:\n- {fault: latncy}\n")
            await expect(view.page.locator("#problem-list li")).to_have_count(1)
            sizes = await view.page.evaluate(
                """() => [document.scrollingElement.scrollWidth, ...[...document.querySelectorAll(
                  "section, header, .scroll, button, select, input, dd, td, th, p")]
                  .filter((node) => node.offsetWidth > 1 && !node.classList.contains("visually-hidden") && !node.closest("thead, #timeline-more"))
                  .map((node) => Math.round(node.getBoundingClientRect().right))]"""
            )
            assert max(sizes) <= width
            for name in ("Calm", "Put in force", "Trigger cut"):
                button = view.page.get_by_role("button", name=name)
                await button.scroll_into_view_if_needed()
                await button.click(trial=True)


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core."""
    try:
        folder = installs.npm(AXE).folder
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def violations(view, axe):
    """Give what is wrong by the rules of WCAG 2.2 AA and by good practice, a line each."""
    if not await view.page.evaluate("'axe' in window"):
        await view.page.evaluate(axe)
    found = await view.page.evaluate(
        """async () => (await axe.run(document, {
          resultTypes: ["violations"],
          runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        })).violations"""
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_axe(browser, proxy, tmp_path, axe, scheme, width):
    """Calm, busy, with everything opened, with problems and with refusals: axe finds nothing."""
    size = {"width": width, "height": 740}
    async with viewing(
        browser, proxy, tmp_path, errors=("422",), viewport=size, color_scheme=scheme
    ) as view:
        await expect(view.fact("Profile")).to_have_text("calm")
        assert await violations(view, axe) == []
        await view.see(MIXED)
        play(proxy)
        with proxy.connect() as wire:
            wire.ask("SET", "k" * 300, "v")
            await view.page.get_by_role("button", name="Trigger cut").click()
            await view.page.get_by_role("switch", name="slow enabled").click()
            await expect(view.page.locator("#events tr")).to_have_count(5)
            await view.page.locator(".opener").first.click()
            await view.page.get_by_text("The timeline as a table").click()
            await view.yaml.fill("faults:\n- {fault: latncy}\n")
            await view.apply()
            await expect(view.status).to_contain_text("Not put in force")
            await view.pause()
            assert await violations(view, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_token(browser, redis, tmp_path, axe, scheme):
    """So it is with the question for the token, and with its refusal."""
    with start_proxy(redis.url, "calm", "--control-token", "open sesame", patient=True) as proxy:
        async with viewing(browser, proxy, tmp_path, errors=("401",), color_scheme=scheme) as view:
            await view.page.get_by_label("Token", exact=True).fill("wrong")
            await view.page.keyboard.press("Enter")
            await expect(view.page.get_by_text("That token was refused.")).to_be_visible()
            assert await violations(view, axe) == []


#: Which colour stands on which, and how much they must differ: text by 4.5, what is no text by 3 (WCAG 1.4.3, 1.4.11).
PAIRS = {
    4.5: "ink/panel ink/ground ink/sunken soft/panel soft/ground soft/sunken soft/bad-soft accent/panel accent/sunken "
    "accent-ink/accent bad/panel bad/sunken bad/bad-soft good/good-soft warn/warn-soft plum/plum-soft plum/panel "
    "ink/accent-soft accent/accent-soft ink/bad-soft",
    3: "edge/panel edge/ground edge/sunken accent/ground good/panel bad/bad-soft warn/panel",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_contrast(browser, proxy, tmp_path, scheme):
    """Every colour can be told from what it stands on, where axe cannot know what that is too."""
    async with viewing(browser, proxy, tmp_path, color_scheme=scheme) as view:
        names = {
            name for pairs in PAIRS.values() for pair in pairs.split() for name in pair.split("/")
        }
        colours = await view.page.evaluate(
            "names => Object.fromEntries(names.map((name) => "
            "[name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))",
            sorted(names),
        )
        for least, pairs in PAIRS.items():
            for pair in pairs.split():
                one, other = sorted(luminance(colours[name]) for name in pair.split("/"))
                assert (other + 0.05) / (one + 0.05) >= least, pair


def luminance(colour):
    """Of #rrggbb, as WCAG 2 has it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_below_a_path(browser, proxy, tmp_path):
    """Behind something that serves it below a path of its own the page asks there, and nowhere else."""
    async with viewing(browser, proxy, tmp_path, below="/team/chaos") as view:
        await expect(view.fact("Profile")).to_have_text("calm")
        await expect(view.page.locator("#choice option")).not_to_have_count(1)
        await view.page.get_by_role("button", name="Calm").click()
        await expect(view.status).to_contain_text("All is calm")


async def test_leaving_with_something_written(browser, proxy, tmp_path):
    """What was written and is not in force is not lost without a question; what is in force is not asked about."""
    async with viewing(browser, proxy, tmp_path) as view:
        asked = []
        view.page.on("dialog", lambda dialog: asked.append(dialog.type))
        view.page.on("dialog", lambda dialog: dialog.accept())
        await view.choose("lost-ack")
        await view.yaml.press("End")
        await view.yaml.press("#")
        await view.page.reload()
        assert asked == ["beforeunload"]
        await view.choose("lost-ack")
        await view.yaml.press("End")
        await view.yaml.press("#")
        await view.apply()
        await expect(view.fact("Profile")).to_have_text("lost-ack-edited")
        await expect(view.page.locator("#draft-state")).to_have_text("")
        await view.page.reload()
        await expect(view.fact("Profile")).to_have_text("lost-ack-edited")
        assert asked == ["beforeunload"]
