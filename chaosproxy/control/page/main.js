// The page: its parts are started, and the few things that belong to none of them.

import { ask, onHealth, onTokenNeeded, pause } from "./api.js";
import * as connections from "./connections.js";
import { $, say } from "./dom.js";
import * as events from "./events.js";
import * as force from "./force.js";
import * as profile from "./profile.js";
import * as timeline from "./timeline.js";

const WORDS = { live: "Live", paused: "Paused", lost: "Trying again" };

onHealth((state, why) => {
  $("health").dataset.state = state;
  say($("health-text"), why ? `${WORDS[state]}: ${why}` : WORDS[state]);
});

onTokenNeeded((refused) => {
  const dialog = $("token-dialog");
  say($("token-wrong"), refused ? "That token was refused." : "");
  $("token").value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((give) => {
    // Without one there is nothing to see.
    dialog.oncancel = (event) => event.preventDefault();
    $("token-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
      give($("token").value);
      $("token").value = "";
    };
  });
});

$("pause").addEventListener("click", () => {
  const wanted = $("pause").getAttribute("aria-pressed") !== "true";
  $("pause").setAttribute("aria-pressed", wanted);
  pause(wanted);
});
$("calm").addEventListener("click", force.calm);

ask("GET", "/healthz").then(
  ({ version }) => say($("version"), version),
  () => {},
);

// What was written and is in force nowhere would be gone with the page.
addEventListener("beforeunload", (event) => {
  if (profile.hasDrafts()) event.preventDefault();
});

for (const part of [force, profile, timeline, events, connections]) part.start();
