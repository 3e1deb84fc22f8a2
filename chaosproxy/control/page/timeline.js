// The last minutes: commands per second, added delay, and when each fault fired.

import { again, ask } from "./api.js";
import { $, clock, count, duration, el, rough, say, svg } from "./dom.js";

const KEPT = 900;
const REST = 1000;
const LANES = 12;
const ROW = 10;
/** Heights and places in the drawing, in pixels. */
const CHART = { commands: 64, delay: 44, title: 18, gap: 12, lane: 26, axis: 18, profiles: 16 };
/** How wide a letter of a profile's name is at most, and how many are shown. */
const LETTER = 7.4;
const LONGEST = 40;

let seconds = [];
let last = 0;
/** Where the pointer is, in pixels from the left; null: elsewhere. */
let pointer = null;

async function look() {
  // The last one that is known is asked for once more: one of that number and another time is another proxy's.
  const known = seconds.at(-1);
  const said = await ask("GET", `/timeline?after=${Math.max(0, last - 1)}`);
  const same = said.seconds.find((second) => second.n === last);
  if (said.last < last || (known && same && same.at !== known.at)) {
    // It has been started anew.
    seconds = [];
    last = 0;
    return;
  }
  const fresh = said.seconds.filter((second) => second.n > last);
  for (const second of fresh) second.end = Date.parse(second.at);
  seconds = seconds.concat(fresh).slice(-KEPT);
  last = said.last;
  draw();
}

const perSecond = (second) => second.commands / second.seconds;
const delayOf = (second) => (second.delayed ? second.delay / second.delayed : 0);
const firedIn = (some) => {
  const sums = new Map();
  for (const second of some)
    for (const [name, number] of Object.entries(second.fired)) sums.set(name, (sums.get(name) ?? 0) + number);
  return sums;
};

function draw() {
  const now = seconds.at(-1);
  if (!now) return;
  say($("rate"), rough(perSecond(now)));
  say($("open"), count(now.connections));
  const span = Number($("span").value);
  const from = now.end - span * 1000;
  const shown = seconds.filter((second) => second.end > from);
  const box = $("chart");
  const width = Math.max(240, Math.floor(box.clientWidth));
  const drawing = picture(shown, width, from, now.end);
  box.replaceChildren(drawing);
  pointAt(drawing, shown, width, from, now.end);
  tell(shown, span);
  if ($("timeline-more").open) table(shown);
}

/** What happened in the second below the pointer; without one nothing. The table has all of it. */
function pointAt(drawing, shown, width, from, to) {
  const time = pointer === null ? 0 : from + (pointer / width) * (to - from);
  const second = shown.find((each) => time > each.end - each.seconds * 1000 && time <= each.end);
  if (second === undefined) {
    say($("timeline-at"), "");
    return;
  }
  drawing.append(svg("line", { x1: pointer, x2: pointer, y1: CHART.profiles, y2: drawing.getAttribute("height"), class: "pointer" }));
  const fired = Object.entries(second.fired).map(([name, number]) => `${name} ${count(number)}`);
  const words = [
    `${clock(new Date(second.end))} ${second.profile}`,
    `${rough(perSecond(second))} commands/s`,
    second.delayed ? `${duration(delayOf(second))} added` : "",
    ...fired,
  ];
  say($("timeline-at"), words.filter(Boolean).join(" · "));
}

function picture(shown, width, from, to) {
  const x = (time) => ((time - from) / (to - from)) * width;
  const most = Math.max(...shown.map(perSecond), 1);
  const longest = Math.max(...shown.map(delayOf), 0);
  const fired = [...firedIn(shown)].sort((a, b) => b[1] - a[1]);
  const lanes = fired.slice(0, LANES).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  let y = CHART.profiles;
  const parts = [];
  const chart = (name, height, value, peak, title) => {
    y += CHART.title;
    parts.push(svg("text", { x: 0, y: y - 6, class: "title" }, title));
    parts.push(svg("line", { x1: 0, x2: width, y1: y + height, y2: y + height, class: "base" }));
    if (peak > 0) parts.push(area(shown, x, y, height, value, peak, name));
    y += height + CHART.gap;
  };
  chart("commands", CHART.commands, perSecond, most, `Commands per second, at most ${rough(most)}`);
  const delays = longest > 0 ? `Delay added, on average, at most ${duration(longest)}` : "No delay added";
  chart("delay", longest > 0 ? CHART.delay : 4, delayOf, longest, delays);
  for (const [name, number] of lanes) {
    y += CHART.title;
    parts.push(svg("text", { x: 0, y: y - 7, class: "title" }, `${name}, ${count(number)} fired`));
    parts.push(svg("line", { x1: 0, x2: width, y1: y + 5, y2: y + 5, class: "lane" }));
    parts.push(marks(shown, x, y, name));
    y += CHART.lane - CHART.title + 5;
  }
  if (fired.length > LANES) {
    y += CHART.title;
    parts.push(svg("text", { x: 0, y: y - 6, class: "title" }, `and ${fired.length - LANES} faults more`));
  }
  const bottom = y;
  parts.unshift(...axis(width, from, to, x, bottom), ...switches(shown, x, bottom, width));
  const height = bottom + CHART.axis;
  return svg(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "timeline-title timeline-text" },
    ...parts,
  );
}

/** A filled line over the seconds; where nobody looked there is nothing. */
function area(shown, x, y, height, value, peak, name) {
  const floor = y + height;
  const up = (second) => (floor - (value(second) / peak) * height).toFixed(1);
  let path = "";
  let open = null;
  let before = null;
  for (const second of shown) {
    const start = x(second.end - second.seconds * 1000);
    if (open !== null && second.end - second.seconds * 1000 - before.end > 1500) {
      path += `L${x(before.end).toFixed(1)} ${floor}Z`;
      open = null;
    }
    if (open === null) path += `M${Math.max(0, start).toFixed(1)} ${floor}`;
    open = true;
    path += `L${Math.max(0, start).toFixed(1)} ${up(second)}L${x(second.end).toFixed(1)} ${up(second)}`;
    before = second;
  }
  if (before !== null) path += `L${x(before.end).toFixed(1)} ${floor}Z`;
  return svg("path", { d: path, class: `area ${name}` });
}

/** A stroke for each second in which a fault fired, taller the more often. */
function marks(shown, x, y, name) {
  let path = "";
  for (const second of shown) {
    const number = second.fired[name];
    if (!number) continue;
    const tall = Math.min(9, 4 + 2 * Math.log2(number));
    path += `M${x(second.end - second.seconds * 500).toFixed(1)} ${(y + 5).toFixed(1)}v${-tall.toFixed(1)}`;
  }
  const thick = Math.min(2, Math.max(0.75, x(1000) - x(0) - 1));
  return svg("path", { d: path, class: "marks", "stroke-width": thick.toFixed(2) });
}

function axis(width, from, to, x, bottom) {
  const span = (to - from) / 1000;
  const steps = [15, 30, 60, 120, 180, 300];
  const step = steps.find((each) => (each / span) * width >= 90) ?? 300;
  const parts = [];
  for (let time = Math.ceil(from / 1000 / step) * step * 1000; time <= to; time += step * 1000) {
    const place = x(time);
    parts.push(svg("line", { x1: place, x2: place, y1: CHART.profiles, y2: bottom, class: "grid" }));
    const end = place > width - 30 ? "end" : place < 30 ? "start" : "middle";
    parts.push(svg("text", { x: place, y: bottom + 13, class: "time", "text-anchor": end }, clock(new Date(time))));
  }
  return parts;
}

/** Which profile was in force when: a line at each switch, a name where there is room, the latest always. */
function switches(shown, x, bottom, width) {
  const begun = shown.filter((second, index) => index === 0 || second.generation !== shown[index - 1].generation);
  const parts = [];
  let room = width;
  for (const second of begun.reverse()) {
    const place = Math.max(0, x(second.end - second.seconds * 1000));
    const name = second.profile.length > LONGEST ? `${second.profile.slice(0, LONGEST)}…` : second.profile;
    const wide = name.length * LETTER;
    const latest = parts.length === 0;
    const left = latest ? Math.max(0, Math.min(place + 4, width - wide)) : place + 4;
    if (latest || left + wide <= room) {
      parts.push(svg("text", { x: left, y: 11, class: "switch" }, name));
      room = left - 8;
    }
    if (second !== shown[0]) parts.push(svg("line", { x1: place, x2: place, y1: CHART.profiles, y2: bottom, class: "switch" }));
  }
  return parts;
}

function tell(shown, span) {
  const commands = shown.reduce((sum, second) => sum + second.commands, 0);
  const took = shown.reduce((sum, second) => sum + second.seconds, 0);
  const delayed = shown.reduce((sum, second) => sum + second.delayed, 0);
  const delay = shown.reduce((sum, second) => sum + second.delay, 0);
  const fired = [...firedIn(shown)].map(([name, number]) => `${name} ${number === 1 ? "once" : `${count(number)} times`}`);
  const words = [
    `In the last ${duration(Math.min(span, Math.round(took)))}: ${count(commands)} commands, ${rough(commands / took)} a second.`,
    delayed > 0 ? `${count(delayed)} delays were added, ${duration(delay / delayed)} on average.` : "No delay was added.",
    fired.length > 0 ? `Fired: ${fired.slice(0, LANES).join(", ")}.` : "No fault fired.",
  ];
  say($("timeline-text"), words.join(" "));
}

function table(shown) {
  const rows = [];
  const groups = Map.groupBy(shown, (second) => Math.floor((second.end - 1) / (ROW * 1000)));
  for (const [ten, some] of [...groups].reverse()) {
    const took = some.reduce((sum, second) => sum + second.seconds, 0);
    const commands = some.reduce((sum, second) => sum + second.commands, 0);
    const delayed = some.reduce((sum, second) => sum + second.delayed, 0);
    const delay = some.reduce((sum, second) => sum + second.delay, 0);
    const fired = [...firedIn(some)].map(([name, number]) => `${name} ${count(number)}`);
    rows.push(
      el(
        "tr",
        {},
        el("th", { scope: "row", class: "name" }, clock(new Date(ten * ROW * 1000))),
        el("td", { class: "number" }, rough(commands / took)),
        el("td", { class: "number" }, delayed ? duration(delay / delayed) : "–"),
        el("td", { class: "text" }, fired.join(", ") || "–"),
      ),
    );
  }
  $("timeline-rows").replaceChildren(...rows);
}

export function start() {
  $("span").addEventListener("change", draw);
  $("timeline-more").addEventListener("toggle", draw);
  $("chart").addEventListener("pointermove", (event) => {
    pointer = event.clientX - $("chart").getBoundingClientRect().left;
    draw();
  });
  $("chart").addEventListener("pointerleave", () => {
    pointer = null;
    draw();
  });
  new ResizeObserver(draw).observe($("chart"));
  again(look, () => REST);
}
