// Who is connected, and ending one.

import { again, ask } from "./api.js";
import { $, cell, count, duration, el, say, sync } from "./dom.js";
import { attempt } from "./said.js";

const SHOWN = 200;
/** What the listener is called where there is one only. */
const ONLY_LISTENER = "redis";
let soon = () => {};
let many = 0;
let seen = true;

function show(connections) {
  many = connections.length;
  // Those that something is happening to come first.
  const busy = (one) => (one.holding ? 2 : 0) + (one.waiting_replies ? 1 : 0);
  const listed = connections.toSorted((a, b) => busy(b) - busy(a) || a.id - b.id).slice(0, SHOWN);
  say($("connections-count"), many > SHOWN ? `${SHOWN} of ${count(many)} shown` : many ? count(many) : "");
  $("no-connections").hidden = many > 0;
  sync($("connections"), listed, (one) => one.id, row, update);
}

function row(one) {
  const made = el("tr", { role: "row" });
  made.parts = { client: el("span"), db: el("span"), protocol: el("span"), state: el("span"), age: el("span") };
  const { client, db, protocol, state, age } = made.parts;
  made.append(
    el("th", { role: "rowheader", scope: "row", class: "name" }, `#${one.id}`),
    cell("Client", { class: "text bare" }, client),
    cell("Database", {}, db),
    cell("Protocol", {}, protocol),
    cell("Open for", {}, age),
    cell("State", { class: "text" }, state),
    cell(
      "",
      { class: "act" },
      el("button", { type: "button", "aria-label": `End connection ${one.id}`, onclick: () => end(one.id) }, "End"),
    ),
  );
  return made;
}

function update(made, one) {
  const { client, db, protocol, state, age } = made.parts;
  const by = one.listener && one.listener !== ONLY_LISTENER ? `by ${one.listener}` : "";
  say(client, [one.name, one.address, by].filter(Boolean).join(" · "));
  say(db, one.db);
  say(protocol, `RESP${one.protocol}`);
  say(state, stateOf(one));
  say(age, duration(Math.round(one.age)));
}

function stateOf(one) {
  const words = one.connected === false ? ["no server yet"] : [];
  if (one.holding) words.push(`${count(one.holding)} held`);
  if (one.waiting_replies) words.push(`${count(one.waiting_replies)} in flight`);
  if (one.in_transaction) words.push("in a transaction");
  if (one.subscribed) words.push("subscribed");
  if (one.raw) words.push("raw bytes");
  if (one.buffered) words.push(`${count(one.buffered)} bytes kept`);
  return words.join(", ") || "idle";
}

async function end(id) {
  await attempt(`Connection ${id} is ended`, () => ask("DELETE", `/connections/${id}`));
  soon(true);
}

export function start() {
  // Thousands of them are much to say: the more there are, the less often; and seldom while nobody sees them.
  soon = again(
    async () => show((await ask("GET", "/connections")).connections),
    () => (seen ? 2000 : 10_000) + 5 * many,
  );
  new IntersectionObserver((entries) => {
    const before = seen;
    seen = entries.at(-1).isIntersecting;
    if (seen && !before) soon();
  }).observe($("connections-title").closest("section"));
}
