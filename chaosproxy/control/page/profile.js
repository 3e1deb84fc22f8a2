// Choosing a profile, its text, what is wrong with it at its line, and putting it in force.

import { ask, part } from "./api.js";
import { $, el, say } from "./dom.js";
import { inForce, onForce, show } from "./force.js";
import { announce } from "./said.js";

/** The choice that stands for what is in force, which need not be a shipped one. */
const IN_FORCE = "";
const MOST_PROBLEMS = 100;
const CHECK_AFTER = 350;
const TAB = 2;

/** By choice: the text as it was read, and as it was edited (undefined: it was not). */
const read = new Map();
const drafts = new Map();
const summaries = new Map();
let chosen = IN_FORCE;
let checking = 0;
let round = 0;

const yaml = () => $("yaml");

async function list() {
  const { profiles } = await ask("GET", "/profiles");
  for (const { name, summary } of profiles) {
    summaries.set(name, summary);
    $("choice").append(el("option", { value: name }, name));
  }
}

async function choose(choice) {
  chosen = choice;
  const turn = ++round;
  problems([]);
  say($("about"), summaries.get(choice || inForce()?.name) ?? "");
  try {
    if (!read.has(choice)) read.set(choice, choice ? await ask("GET", `/profiles/${part(choice)}`) : inForce().yaml);
  } catch (error) {
    announce(`Not read: ${error.message}`, { bad: true });
    return;
  }
  // Another one may have been chosen meanwhile.
  if (turn !== round) return;
  yaml().value = drafts.get(choice) ?? read.get(choice);
  yaml().scrollTo(0, 0);
  edited();
  if (drafts.has(choice)) checkSoon();
}

/** The text is what it is: remember it, number its lines, say whether it was changed. */
function edited() {
  const text = yaml().value;
  if (text === read.get(chosen)) drafts.delete(chosen);
  else drafts.set(chosen, text);
  const changed = drafts.has(chosen);
  $("discard").disabled = !changed;
  say($("draft-state"), changed ? "edited" : "");
  named();
  const lines = text.split("\n").length;
  say($("gutter-numbers"), Array.from({ length: lines }, (_, index) => index + 1).join("\n"));
  scrolled();
}

/** Each choice is called what it is, and whether it was changed. */
function named() {
  for (const option of $("choice").options) {
    const name = option.value || nameOfForce();
    say(option, drafts.has(option.value) ? `${name}, edited` : name);
  }
}

const nameOfForce = () => `in force: ${inForce()?.name ?? "…"}`;

function scrolled() {
  const { scrollTop, scrollLeft } = yaml();
  $("gutter-lines").style.transform = `translateY(${-scrollTop}px)`;
  $("under-lines").style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
}

function checkSoon() {
  clearTimeout(checking);
  checking = setTimeout(check, CHECK_AFTER);
}

async function check() {
  const text = yaml().value;
  try {
    const said = await ask("POST", "/profile/check", { body: { yaml: text } });
    if (text === yaml().value) problems(said.problems);
  } catch {
    // It is said once it is to be put in force.
  }
}

function problems(found) {
  const listed = found.slice(0, MOST_PROBLEMS);
  const lines = yaml().value.split("\n");
  yaml().setAttribute("aria-invalid", listed.length > 0);
  const byLine = Map.groupBy(listed, (problem) => problem.line);
  $("gutter-marks").replaceChildren(...[...byLine.keys()].filter(Boolean).map((line) => at(line, el("span", { class: "mark" }))));
  $("under-marks").replaceChildren(
    ...[...byLine].filter(([line]) => line > 0).map(([line, here]) => {
      const message = el("span", { class: "message" }, here.map(told).join("; "));
      message.style.marginInlineStart = `${width(lines[line - 1] ?? "") + 2}ch`;
      return at(line, el("div", { class: "mark" }, message));
    }),
  );
  const head = found.length === 1 ? "1 problem" : `${found.length} problems`;
  say($("problem-count"), found.length > 0 ? head : "");
  $("problem-list").replaceChildren(...listed.map(problemItem));
}

function at(line, node) {
  node.style.top = `calc(${line - 1} * var(--line))`;
  return node;
}

/** How many columns a line takes. */
const width = (line) => [...line].reduce((sum, char) => sum + (char === "\t" ? TAB - (sum % TAB) : 1), 0);

const told = ({ message, suggestion }) => (suggestion ? `${message}; did you mean ${suggestion}?` : message);

function problemItem(problem) {
  if (!problem.line) return el("li", {}, told(problem));
  const where = `Line ${problem.line}, column ${problem.column}`;
  return el(
    "li",
    {},
    el("button", { type: "button", class: "link", onclick: () => goTo(problem) }, where),
    el("span", {}, `: ${told(problem)}`),
  );
}

/** Put the caret where the problem is. */
function goTo({ line, column }) {
  const area = yaml();
  const start = area.value.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const place = Math.min(start + column - 1, area.value.length);
  area.focus();
  area.setSelectionRange(place, place);
  area.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(area).lineHeight));
}

async function apply(event) {
  event.preventDefault();
  const body = wanted();
  if (body === null) return;
  const button = $("apply");
  button.setAttribute("aria-busy", "true");
  try {
    const force = await ask("PUT", "/profile", { body });
    problems([]);
    show(force);
    if (body.yaml !== undefined) showInForce();
    const warned = force.warnings?.length ? `. Mind: ${force.warnings.join("; ")}` : "";
    announce(`${force.name} is in force, generation ${force.generation}${warned}`);
  } catch (error) {
    problems(error.problems ?? []);
    const first = error.problems?.[0];
    const where = first?.line ? `: line ${first.line}, ${told(first)}` : "";
    announce(`Not put in force: ${error.message}${where}`, { bad: true });
  }
  button.removeAttribute("aria-busy");
}

/** What was written is what is in force: it is no draft any more. */
function showInForce() {
  drafts.delete(chosen);
  $("choice").value = IN_FORCE;
  choose(IN_FORCE);
}

/** Whether anything was written that is not in force. */
export const hasDrafts = () => drafts.size > 0;

/** What to put in force, or null if the seed is none. */
function wanted() {
  const seed = $("new-seed").value.trim();
  const number = Number(seed);
  const wrong = seed !== "" && !(/^\d+$/.test(seed) && Number.isSafeInteger(number));
  $("new-seed").setAttribute("aria-invalid", wrong);
  if (wrong) {
    announce("Not put in force: a seed is a whole number", { bad: true });
    $("new-seed").focus();
    return null;
  }
  const body = seed === "" ? {} : { seed: number };
  const changed = drafts.has(chosen);
  if (chosen && !changed) return { ...body, name: chosen };
  const name = chosen || inForce().name;
  return { ...body, name: changed && !name.endsWith("-edited") ? `${name}-edited` : name, yaml: yaml().value };
}

export async function start() {
  $("choice").append(el("option", { value: IN_FORCE }, nameOfForce()));
  $("choice").addEventListener("change", () => choose($("choice").value));
  $("chooser").addEventListener("submit", apply);
  $("discard").addEventListener("click", () => {
    drafts.delete(chosen);
    choose(chosen);
    yaml().focus();
  });
  yaml().addEventListener("input", () => {
    edited();
    checkSoon();
  });
  yaml().addEventListener("scroll", scrolled);
  onForce((_, fresh) => {
    if (!fresh) return;
    read.delete(IN_FORCE);
    if (chosen === IN_FORCE && !drafts.has(IN_FORCE)) choose(IN_FORCE);
    // The text is another one's, or is still to come.
    else named();
  });
  try {
    await list();
  } catch (error) {
    announce(`The profiles that ship are not known: ${error.message}`, { bad: true });
  }
}
