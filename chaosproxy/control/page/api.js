// The control API: asked for with the token, if there is one, and again after a while when there is no answer.

const KEY = "chaosproxy-token";
const PATIENCE = 10_000;
const SLOWEST = 15_000;

/** An answer that is not what was asked for; `problems` are a profile's, status 0: no answer at all. */
export class Refused extends Error {
  constructor(status, message, problems = []) {
    super(message);
    this.status = status;
    this.problems = problems;
  }
}

let token = remembered();
let asking = null;
let askUser = async () => "";

/** Who asks the user for a token: a function of "was one refused?" that gives a promise of it. */
export function onTokenNeeded(ask) {
  askUser = ask;
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

async function newToken(refused) {
  if (token !== refused) return;
  asking ??= askUser(refused !== null).finally(() => (asking = null));
  token = await asking;
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // It is kept in memory, then.
  }
}

/** UTF-8 as a header takes it, a character for each byte: fetch sends some characters otherwise, and others not at all. */
const asBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/** Ask a route; gives its JSON, or its text if it is none. Raises Refused. */
export async function ask(method, path, { body, patience = PATIENCE } = {}) {
  for (;;) {
    const sent = token;
    const headers = { Accept: "application/json" };
    if (sent !== null) headers.Authorization = `Bearer ${asBytes(sent)}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    let said;
    try {
      // Relative, so that it also works below a path of somebody's own.
      answer = await fetch(`.${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        signal: AbortSignal.timeout(patience),
      });
      const json = answer.headers.get("Content-Type")?.startsWith("application/json");
      said = await (json ? answer.json() : answer.text());
    } catch (error) {
      throw new Refused(0, error.name === "TimeoutError" ? "no answer in time" : "chaosproxy does not answer");
    }
    if (answer.ok) return said;
    if (answer.status === 401) {
      await newToken(sent);
      continue;
    }
    throw new Refused(answer.status, said?.error ?? `status ${answer.status}`, said?.problems ?? []);
  }
}

/** A part of a path. */
export const part = (name) => encodeURIComponent(name);

// What is asked again and again: each when it may, none while the page is hidden or paused.

const pollers = new Set();
let paused = false;
let changed = () => {};

/** Tell of the state of the polls: "live", "paused", or "lost" with what went wrong. */
export function onHealth(tell) {
  changed = () => {
    const failing = [...pollers].filter((poller) => poller.error !== null);
    if (paused) tell("paused", "");
    else if (failing.length > 0) tell("lost", failing[0].error.message);
    else if ([...pollers].some((poller) => poller.worked)) tell("live", "");
  };
}

/** Stop asking, or go on. */
export function pause(wanted) {
  paused = wanted;
  if (!paused) pollers.forEach((poller) => poller.soon());
  changed();
}

/**
 * Do `task` now and `rest()` milliseconds after it is done, again and again; after a failure later and later. Gives a
 * function that has it done at once, even while paused if that is asked for.
 */
export function again(task, rest) {
  const poller = { error: null, worked: false, timer: 0, running: false, failures: 0, wanted: false, evenPaused: false, soon };

  function soon(evenPaused = false) {
    clearTimeout(poller.timer);
    if (poller.running) {
      poller.wanted = true;
      poller.evenPaused ||= evenPaused;
    } else run(evenPaused);
  }

  async function run(evenPaused = false) {
    if ((paused && !evenPaused) || document.hidden) return;
    poller.running = true;
    poller.wanted = poller.evenPaused = false;
    try {
      await task();
      poller.failures = 0;
      poller.error = null;
      poller.worked = true;
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      poller.failures += 1;
      poller.error = error;
    }
    poller.running = false;
    changed();
    const wait = poller.failures ? Math.min(SLOWEST, 500 * 2 ** poller.failures) : rest();
    poller.timer = setTimeout(() => run(poller.evenPaused), poller.wanted ? 0 : wait);
  }

  pollers.add(poller);
  run();
  return soon;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) pollers.forEach((poller) => poller.soon());
});
