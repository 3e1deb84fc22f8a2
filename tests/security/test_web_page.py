"""A hostile web page, in a real browser on the machine that the proxy runs on: what it sends, and what it learns."""

import json

import pytest

from tests.control.viewing import call, put
from tests.proxying import serve_proxy
from tests.security.conftest import EVIL
from tests.wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: What eats every command that it sees, POST and Host: if they are commands.
EATS = """\
faults:
  - {fault: reply, at: before_forward, error: ERR eaten, when: {first: 40, per: connection}}
"""

#: All that a page can do without being asked for leave, and what needs leave; gives what could be read of the answers.
ATTACK = """async ([target, profile]) => {
  const read = [];
  const note = (what) => (answer) => answer.text().then((text) => text && read.push(`${what}: ${text}`));
  const no = () => {};
  const asked = [];
  const go = (what, path, options = {}) =>
    asked.push(fetch(target + path, options).then(note(what), no));
  const text = { "Content-Type": "text/plain" };
  const json = { "Content-Type": "application/json" };
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  for (const path of ["/profile", "/events", "/connections", "/metrics", "/openapi.json", "/", "/page/main.js", "/healthz"]) {
    go("cors", path);
    go("no-cors", path, { mode: "no-cors" });
  }
  const body = JSON.stringify({ yaml: profile });
  for (const headers of [text, form, json]) {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      for (const path of ["/profile", "/profile/check", "/events", "/proxies", "/populate", "/reset", "/faults/x/trigger", "/connections/1"]) {
        go("cors", path, { method, headers, body });
        if (method === "POST") go("no-cors", path, { method, headers, body, mode: "no-cors" });
      }
    }
  }
  navigator.sendBeacon(target + "/reset", new Blob([body], { type: "text/plain" }));
  try { navigator.sendBeacon(target + "/reset", new Blob([body], { type: "application/json" })); } catch {}
  const element = (tag, attributes) => new Promise((done) => {
    const made = Object.assign(document.createElement(tag), attributes, { onload: () => done(`${tag} loaded`), onerror: () => done("") });
    document.body.append(made);
  });
  const loaded = await Promise.all([
    element("script", { src: target + "/page/main.js", type: "module" }),
    element("script", { src: target + "/page/dom.js" }),
    element("script", { src: target + "/profile" }),
    element("img", { src: target + "/page/icon.svg" }),
    element("link", { href: target + "/page/page.css", rel: "stylesheet" }),
  ]);
  read.push(...loaded.filter(Boolean));
  await new Promise((done) => {
    const source = new EventSource(target + "/events/stream");
    source.onopen = source.onmessage = () => { read.push("events"); done(); };
    source.onerror = () => { source.close(); done(); };
  });
  await new Promise((done) => {
    const socket = new WebSocket(target.replace("http", "ws") + "/events/stream");
    socket.onopen = () => { read.push("socket"); done(); };
    socket.onerror = done;
  });
  await Promise.all(asked);
  return read;
}"""

#: A form that is sent as whoever visits, with a body that is nearly JSON.
FORM = """([target, path]) => {
  const form = document.createElement("form");
  Object.assign(form, { action: target + path, method: "POST", enctype: "text/plain", target: "_blank" });
  const field = document.createElement("input");
  Object.assign(field, { name: '{"yaml": "faults: []", "name": "', value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
}"""

DATA = """async ([target, command]) => {
  const lines = (command + "\\r\\n").repeat(200);
  const all = [];
  for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
    all.push(fetch(target, { method: "POST", mode: "no-cors", body: lines, headers: { "Content-Type": type } }));
    all.push(fetch(target, { method: "POST", body: lines, headers: { "Content-Type": type } }));
  }
  all.push(fetch(target + "/?" + command), fetch(target, { mode: "no-cors" }));
  const read = [];
  await Promise.all(all.map((each) => each.then((answer) => answer.text()).then((text) => text && read.push(text), () => {})));
  return read;
}"""


async def visit(visitor, url):
    context = await visitor.new_context()
    context.set_default_timeout(60_000)
    page = await context.new_page()
    await page.goto(url)
    return page


@pytest.mark.parametrize("token", [None, "t0ken"])
async def test_another_sites_page(visitor, site, redis70, token):
    """It reads nothing of the control API, not even the page's files, and changes nothing: whatever it sends, and as what."""
    with serve_proxy(redis70.url, EATS, control_token=token) as proxy:
        with proxy.connect() as wire:
            told = proxy.service.journal.last
            wire.ask("GET", "chat:1")
            # Its event is written right behind its reply.
            assert proxy.service.journal.events(told, wait=60.0)
            before = proxy.service.in_force()["generation"], proxy.service.journal.last
            page = await visit(visitor, site.origin)
            assert await page.evaluate(ATTACK, [proxy.control, "faults: []"]) == []
            # Named like the attacker's host, or by another name of this machine, it is another site all the same.
            for host in ("localhost", EVIL):
                target = proxy.control.replace("127.0.0.1", host)
                assert await page.evaluate(ATTACK, [target, "faults: []"]) == []
            for path in ("/profile", "/reset", "/proxies"):
                async with page.expect_popup() as popup:
                    await page.evaluate(FORM, [proxy.control, path])
                await (await popup.value).wait_for_load_state()
            assert (proxy.service.in_force()["generation"], proxy.service.journal.last) == before
            assert proxy.service.toxiproxy.proxies() == {}
            assert len(proxy.service.connections()) == 1
            assert "eaten" in wire.ask("GET", "chat:1")
        await page.context.close()


async def test_a_name_that_is_pointed_here(visitor, redis70):
    """DNS rebinding: below the attacker's name the page's own files come, which hold nothing; what it asks for is refused."""
    with serve_proxy(redis70.url, EATS) as proxy:
        page = await visit(visitor, proxy.control.replace("127.0.0.1", EVIL) + "/healthz")
        said = await page.evaluate(
            """async () => {
              const said = {};
              const asked = ["GET /profile", "GET /events", "GET /connections", "GET /openapi.json", "DELETE /profile", "POST /reset"];
              for (const each of asked) {
                const [method, path] = each.split(" ");
                said[each] = (await fetch(path, { method })).status;
              }
              const headers = { "Content-Type": "application/json" };
              said.put = (await fetch("/profile", { method: "PUT", headers, body: '{"name": "calm"}' })).status;
              return said;
            }"""
        )
        assert set(said.values()) == {403}
        assert proxy.service.generation == 1
        # With its own name, or none that could be pointed elsewhere, the same page may.
        await page.goto(proxy.control)
        assert await page.evaluate("fetch('/profile').then((answer) => answer.status)") == 200
        await page.context.close()


@pytest.mark.parametrize("profile", ["calm", EATS], ids=["calm", "eats"])
async def test_commands_in_a_request(visitor, site, redis70, profile):
    """A page that sends commands as a request's body to the data port has none of them done, nor reads an answer."""
    with serve_proxy(redis70.url, profile) as proxy, Wire(redis70.port) as direct:
        direct.ask("SET", "chat:1", "Hello")
        page = await visit(visitor, site.origin)
        for host in ("127.0.0.1", "localhost", EVIL):
            target = f"http://{host}:{proxy.port}"
            assert await page.evaluate(DATA, [target, "FLUSHALL"]) == []
            assert await page.evaluate(DATA, [target, "SET chat:1 pwned"]) == []
        assert direct.ask("GET", "chat:1") == b"Hello"
        await page.context.close()


async def test_its_own_page_may(visitor, redis70):
    """The attacks of these tests would work if nobody stood in their way: a page of the proxy's own does all that."""
    with serve_proxy(redis70.url, EATS) as proxy:
        page = await visit(visitor, proxy.control)
        read = await page.evaluate(
            """() => fetch("/profile", { method: "PUT", headers: { "Content-Type": "application/json" }, body: '{"name": "calm"}' })
            .then((answer) => answer.json())"""
        )
        assert read["name"] == "calm"
        await page.context.close()


async def test_names_of_listeners_are_text(visitor, redis70):
    """What Toxiproxy's clients call their proxies and toxics stands on the page as it is."""
    nasty = '"><img src=x onerror="window.pwned = 1">'
    with serve_proxy(redis70.url, "calm") as proxy:
        address = f"127.0.0.1:{redis70.port}"
        made = call(proxy, "POST", "/proxies", {"name": nasty, "upstream": address})
        toxic = {"name": nasty, "type": "latency", "attributes": {"latency": 1}}
        path = "/proxies/" + "".join(f"%{byte:02x}" for byte in nasty.encode())
        call(proxy, "POST", f"{path}/toxics", toxic)
        page = await visit(visitor, proxy.control)
        with Wire(int(made["listen"].rpartition(":")[2])) as wire:
            assert wire.ask("PING") == "PONG"
            await page.wait_for_selector("#events tr")
            await page.wait_for_selector("#connections tr")
            assert await page.evaluate("window.pwned") is None
            assert await page.locator("img").count() == 1
        assert json.loads(proxy.get("/proxies")[1])[nasty]["name"] == nasty
        put(proxy, name="calm")
        await page.context.close()
