// What is in force: the profile, its numbers, and each fault with what it has done.

import { again, ask, part } from "./api.js";
import { $, cell, clock, count, duration, el, say, sync } from "./dom.js";
import { attempt } from "./said.js";

const REST = 1000;
const listeners = [];
let now = null;
let soon = () => {};
/** How often something has been changed here. */
let changes = 0;

/** Hear of every look at what is in force. */
export function onForce(listener) {
  listeners.push(listener);
}

/** What is in force, as last seen; null before the first look. */
export const inForce = () => now;

/** Show what a change has made of it. */
export function show(force) {
  changes += 1;
  draw(force);
}

function draw(force) {
  const fresh = now === null || force.generation !== now.generation;
  now = force;
  say($("profile-name"), force.name);
  say($("seed"), force.seed);
  say($("generation"), force.generation);
  say($("fired"), count(force.faults.reduce((sum, fault) => sum + fault.fired, 0)));
  tellSince();
  if (fresh) document.title = `${force.name} · chaosproxy`;
  const about = [force.description, force.healthy && `Healthy: ${force.healthy}`].filter(Boolean).join(" ");
  $("description").hidden = !about;
  say($("description"), about);
  $("faults-table").hidden = force.faults.length === 0;
  $("no-faults").hidden = force.faults.length > 0;
  sync($("faults"), force.faults, (fault) => `${force.generation}/${fault.name}`, faultRow, updateFault);
  for (const listener of listeners) listener(force, fresh);
}

function tellSince() {
  // Its age is told too: two machines' clocks need not agree.
  say($("since"), `since ${clock(new Date(now.since))}, for ${duration(Math.round(now.age))}`);
}

function faultRow(fault) {
  const row = el("tr", { role: "row" });
  const enabled = el("input", {
    type: "checkbox",
    role: "switch",
    "aria-label": `${fault.name} enabled`,
    onchange: () => enable(fault.name, enabled),
  });
  const trigger = el(
    "button",
    { type: "button", "aria-label": `Trigger ${fault.name}`, onclick: () => pull(fault.name) },
    "Trigger",
  );
  row.parts = {
    matched: el("span"),
    fired: el("span", { class: "fired" }),
    skipped: el("span"),
    reasons: el("span", { class: "reasons" }),
    enabled,
    waits: el("span", { class: "reasons" }),
    asked: el("span", { class: "reasons" }),
  };
  const { matched, fired, skipped, reasons, waits, asked } = row.parts;
  row.append(
    el(
      "th",
      { role: "rowheader", scope: "row", class: "name" },
      el("span", { class: "fault-name" }, fault.name),
      el("span", { class: "reasons" }, `${fault.type}, ${fault.position.replaceAll("_", " ")}`),
    ),
    cell("Matched", { class: "number" }, matched),
    cell("Fired", { class: "number" }, fired),
    cell("Skipped", { class: "number" }, skipped, reasons),
    cell("Enabled", {}, enabled, waits),
    fault.trigger ? cell("On request", { class: "act bare" }, trigger, asked) : cell("On request", { class: "none" }),
  );
  return row;
}

function updateFault(row, fault) {
  const { matched, fired, skipped, reasons, enabled, waits, asked } = row.parts;
  const before = row.firedBefore;
  say(matched, count(fault.matched));
  say(fired, count(fault.fired));
  const why = Object.entries(fault.skipped);
  say(skipped, count(why.reduce((sum, [, number]) => sum + number, 0)));
  say(reasons, why.map(([reason, number]) => `${reason.replaceAll("_", " ")} ${count(number)}`).join(", "));
  if (enabled !== document.activeElement || !enabled.busy) enabled.checked = fault.enabled;
  row.classList.toggle("off", !fault.enabled);
  say(waits, fault.armed === false ? "waits for another to fire" : "");
  say(asked, fault.requested > 0 ? `${fault.requested} asked for` : "");
  if (before !== undefined && fault.fired > before) {
    // Restarts the animation.
    fired.classList.remove("just");
    void fired.offsetWidth;
    fired.classList.add("just");
  }
  row.firedBefore = fault.fired;
}

async function enable(name, input) {
  const wanted = input.checked;
  input.busy = true;
  await attempt(`${name} is switched ${wanted ? "on" : "off"}`, () =>
    ask("PATCH", `/faults/${part(name)}`, { body: { enabled: wanted } }),
  );
  input.busy = false;
  changes += 1;
  soon(true);
}

async function pull(name) {
  const done = (fault) => `${name} is triggered: it ${fault.requested > 0 ? "acts on its next match" : "has begun"}`;
  await attempt(done, () => ask("POST", `/faults/${part(name)}/trigger`));
  changes += 1;
  soon(true);
}

/** Calm, at once. */
export async function calm() {
  const force = await attempt("All is calm", () => ask("DELETE", "/profile"));
  if (force) show(force);
}

async function look() {
  const before = changes;
  const force = await ask("GET", "/profile");
  // What was asked before a change may tell of how it was before.
  if (before === changes) draw(force);
}

export function start() {
  soon = again(look, rest);
}

/** A profile of a megabyte need not come every second. */
const rest = () => REST + (now?.yaml.length ?? 0) / 50;
