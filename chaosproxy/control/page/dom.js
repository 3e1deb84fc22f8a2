// Elements, made and kept: whatever comes from outside becomes text, never markup.

export const $ = (id) => document.getElementById(id);

/** An element; `attributes` are attributes (null or false: none), children are nodes or text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** A table's cell that also knows its column's name, for narrow screens. */
export function cell(label, attributes, ...children) {
  return el("td", { role: "cell", "data-label": label, ...attributes }, ...children);
}

/** Set text only where it differs, so that a selection and a reader's place stay. */
export function say(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/**
 * Make a parent's children show `items` in order: nodes are made once for a key and updated afterwards, so that
 * focus stays where it was. Gives whether anything came or went.
 */
export function sync(parent, items, key, make, update) {
  const known = (parent.known ??= new Map());
  const wanted = new Set();
  let changed = false;
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let node = known.get(name);
    if (node === undefined) {
      node = make(item);
      known.set(name, node);
      changed = true;
    }
    update?.(node, item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const [name, node] of known) {
    if (wanted.has(name)) continue;
    if (node.contains(document.activeElement)) giveFocusTo(parent);
    node.remove();
    known.delete(name);
    changed = true;
  }
  return changed;
}

/** What had the focus goes away: its section's heading takes it, so that nobody starts again at the top. */
function giveFocusTo(parent) {
  const heading = parent.closest("section")?.querySelector("h2");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

/** The options of a select that grows: what is chosen stays chosen. */
export function addOptions(select, values) {
  const there = new Set([...select.options].map((option) => option.value));
  for (const value of values) {
    if (there.has(value)) continue;
    const option = el("option", { value }, value);
    const after = [...select.options].slice(1).find((other) => other.value > value);
    select.insertBefore(option, after ?? null);
  }
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (number) => whole.format(number);
export const rough = (number) => (number >= 1000 ? whole.format(Math.round(number)) : short.format(number));

/** Seconds as people say them: 1.5 ms, 12 s, 3 min. */
export function duration(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 0.001) return `${short.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short.format(seconds * 1e3)} ms`;
  if (seconds < 120) return `${short.format(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** A moment's time of day here. */
export function clock(date, { millis = false } = {}) {
  const two = (number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return millis ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}
