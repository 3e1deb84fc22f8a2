// What has fired: kept up to a number, filtered, and shown up to a smaller one.

import { again, ask } from "./api.js";
import { $, addOptions, cell, clock, count, duration, el, say, sync } from "./dom.js";
import { onForce } from "./force.js";
import { attempt } from "./said.js";

const KEPT = 5000;
const FIRST_LOOK = 2000;
const PAGE = 100;
const MOST_SHOWN = 1000;
const MOST_OPTIONS = 300;
const LONGEST = 160;
/** How often the list is drawn at most, in milliseconds. */
const DRAW_EVERY = 250;
const BEYOND = 10 ** 15;
const FIELDS = ["fault", "command", "outcome", "connection", "text"];

let kept = [];
let last = null;
/** Whose events these are. */
let run = null;
/** Up to which number they are forgotten: an answer that is on its way may still have some of those. */
let forgotten = 0;
let shown = PAGE;
let drawing = 0;
const open = new Set();

async function look() {
  if (last === null) {
    // Only the number of the last one is asked for: of ten thousand the latest are enough.
    const first = await ask("GET", `/events?after=${BEYOND}`);
    last = Math.max(0, first.last - FIRST_LOOK);
    run = first.run;
  }
  const said = await ask("GET", `/events?after=${last}&wait=5s`, { patience: 20_000 });
  if (said.run !== run) {
    // It has been started anew, and its numbers begin at one again.
    kept = [];
    open.clear();
    last = null;
    forgotten = 0;
    draw();
    return;
  }
  last = said.last;
  const fresh = said.events.filter((event) => event.n > forgotten);
  if (fresh.length > 0) take(fresh);
  else if (drawing === 0 && kept.length === 0) draw();
}

function take(events) {
  const fresh = events.slice(-KEPT);
  kept = kept.concat(fresh).slice(-KEPT);
  if ($("f-command").length < MOST_OPTIONS) addOptions($("f-command"), new Set(fresh.map((event) => event.command)));
  if ($("f-fault").length < MOST_OPTIONS) addOptions($("f-fault"), new Set(fresh.map((event) => event.fault)));
  drawSoon();
}

function drawSoon() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    draw();
  }, DRAW_EVERY);
}

function matching() {
  const wanted = Object.fromEntries(FIELDS.map((name) => [name, $(`f-${name}`).value.trim()]));
  const text = wanted.text.toLowerCase();
  const connection = wanted.connection.replace(/^#/, "");
  return kept.filter(
    (event) =>
      (!wanted.fault || event.fault === wanted.fault) &&
      (!wanted.command || event.command === wanted.command) &&
      (!wanted.outcome || event.outcome === wanted.outcome) &&
      (!connection || String(event.connection) === connection) &&
      (!text || searched(event).includes(text)),
  );
}

const texts = new WeakMap();

/** All that is said of an event, in lower case, made once. */
function searched(event) {
  let text = texts.get(event);
  if (text === undefined) {
    text = [event.command, ...keysOf(event), event.fault, event.type, event.client, event.detail ?? ""]
      .join("\n")
      .toLowerCase();
    texts.set(event, text);
  }
  return text;
}

function draw() {
  const found = matching();
  const rows = [];
  for (const event of found.slice(-shown).reverse()) {
    rows.push({ event, more: false });
    if (open.has(event.n)) rows.push({ event, more: true });
  }
  sync($("events"), rows, ({ event, more }) => (more ? `${event.n} more` : `${event.n}`), ({ event, more }) =>
    more ? moreRow(event) : row(event),
  );
  const visible = Math.min(found.length, shown);
  const filtered = found.length < kept.length;
  const of = filtered ? `${count(found.length)} of the last ${count(kept.length)} match` : "";
  const some = visible < found.length ? `the latest ${count(visible)} shown` : "";
  const all = last > 0 ? `${count(last)} so far` : "";
  say($("events-count"), [all, of, some].filter(Boolean).join(", "));
  $("no-events").hidden = found.length > 0;
  say($("no-events"), filtered ? "No event matches." : last > 0 ? "None since they were forgotten." : "No fault has fired yet.");
  $("older").hidden = !(visible < found.length && shown < MOST_SHOWN);
}

function keysOf(event) {
  return event.keys ?? (event.keys_b64 ?? []).map((key) => `base64:${key}`);
}

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

function row(event) {
  const keys = keysOf(event);
  const more = keys.length > 3 ? ` and ${keys.length - 3} more` : "";
  const time = el(
    "button",
    {
      type: "button",
      class: "opener",
      "aria-expanded": "false",
      "aria-label": `${clock(new Date(event.at), { millis: true })}, all of event ${event.n}`,
      onclick: () => toggle(event, time),
    },
    clock(new Date(event.at), { millis: true }),
  );
  const told = event.delay ? `${event.told} +${duration(event.delay)}` : event.told;
  return el(
    "tr",
    { role: "row" },
    cell("Time", { class: "time bare" }, time),
    cell("Fault", { class: "text strong bare" }, event.fault),
    cell(
      "Command",
      { class: "text bare" },
      el("span", { class: "command" }, event.command.replace("|", " ")),
      keys.length > 0 ? el("span", { class: "keys" }, cut(keys.slice(0, 3).join(" ")) + more) : null,
    ),
    cell("Connection", { class: "text bare" }, `#${event.connection}`, el("span", { class: "reasons" }, cut(event.client ?? ""))),
    cell("Applied", {}, event.applied),
    cell("Told", {}, told),
    cell("Outcome", {}, el("span", { class: `badge ${event.outcome}` }, event.outcome.replace("_", " "))),
  );
}

function toggle(event, button) {
  const opened = !open.delete(event.n);
  if (opened) open.add(event.n);
  button.setAttribute("aria-expanded", opened);
  draw();
}

function moreRow(event) {
  const list = el("dl", { class: "more-facts" });
  for (const [name, value] of Object.entries(event)) {
    const text = Array.isArray(value) ? value.join("\n") : String(value);
    list.append(el("div", {}, el("dt", {}, name), el("dd", {}, text.length > 4000 ? `${text.slice(0, 4000)}…` : text)));
  }
  return el("tr", { role: "row", class: "details" }, el("td", { role: "cell", colspan: 7 }, list));
}

async function forget() {
  const done = await attempt("The events are forgotten; an events file keeps its own", () => ask("DELETE", "/events"));
  if (done) {
    forgotten = done.last;
    kept = kept.filter((event) => event.n > forgotten);
    open.clear();
    draw();
  }
}

export function start() {
  const filters = $("filters");
  const changed = () => {
    shown = PAGE;
    drawSoon();
  };
  filters.addEventListener("input", changed);
  filters.addEventListener("reset", () => setTimeout(changed));
  filters.addEventListener("submit", (event) => event.preventDefault());
  $("forget").addEventListener("click", forget);
  $("older").addEventListener("click", () => {
    shown = Math.min(MOST_SHOWN, shown + PAGE);
    draw();
    if ($("older").hidden) $("events-scroll").focus({ preventScroll: true });
  });
  onForce((force) => addOptions($("f-fault"), force.faults.map((fault) => fault.name)));
  again(look, () => DRAW_EVERY);
}
