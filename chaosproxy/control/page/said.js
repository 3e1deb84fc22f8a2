// The line that says what became of what was asked for; a screen reader reads it out.

import { $, clock } from "./dom.js";

/** Say this to the user. */
export function announce(text, { bad = false } = {}) {
  const line = $("said");
  line.classList.toggle("bad", bad);
  // The same words twice are said twice: the time tells them apart.
  line.textContent = text ? `${clock(new Date())} ${text}.` : "";
}

/** Do what was asked for, and say that it is done or why not. Gives what came of it, or undefined. */
export async function attempt(done, task) {
  try {
    const result = await task();
    announce(typeof done === "function" ? done(result) : done);
    return result ?? true;
  } catch (error) {
    announce(`Not done: ${error.message}`, { bad: true });
    return undefined;
  }
}
