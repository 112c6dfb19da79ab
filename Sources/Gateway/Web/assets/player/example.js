// @ts-check

/** The player's example page: plays what is live on this server, or any stream you enter. */

import { copyFrom, h, setText } from "../dom.js";

/** The most events to list. */
const MOST_EVENTS = 50;

const player = /** @type {import("../rostrum-player.js").RostrumPlayer} */ (document.getElementById("player"));
const form = /** @type {HTMLFormElement} */ (document.getElementById("choice"));
const field = /** @type {HTMLInputElement} */ (document.getElementById("stream"));
const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const snippet = /** @type {HTMLElement} */ (document.getElementById("snippet"));
const copy = /** @type {HTMLButtonElement} */ (document.getElementById("copy"));
const events = /** @type {HTMLElement} */ (document.getElementById("events"));

/** The address of a stream's page, from its name or address. @param {string} text */
function addressOf(text) {
  return /^https?:/.test(text) ? text : `${location.origin}/watch/${encodeURIComponent(text)}`;
}

function flags() {
  return [...form.querySelectorAll("input[type=checkbox]")].filter((box) => /** @type {HTMLInputElement} */ (box).checked)
    .map((box) => /** @type {HTMLInputElement} */ (box).name);
}

function showSnippet() {
  const address = addressOf(field.value.trim() || "demo").split("#")[0];
  setText(snippet, `<script type="module" src="${location.origin}/assets/v1/rostrum-player.js"></script>\n`
    + `<rostrum-player ${[`src="${address}"`, ...flags()].join(" ")}></rostrum-player>`);
}

/** @param {string} text */
function note(text) {
  events.prepend(h("li", {}, `${new Date().toLocaleTimeString()}  ${text}`));
  while (events.childElementCount > MOST_EVENTS) events.lastElementChild?.remove();
}

/** Plays the first live stream, unless the address of this page names one. */
async function choose() {
  const named = new URLSearchParams(location.search).get("stream");
  const response = await fetch("/v1/feed?limit=20").catch(() => null);
  const { items = [] } = response?.ok ? await response.json() : {};
  document.getElementById("streams")?.append(...items.map((/** @type {{ id: string, title?: string }} */ { id, title }) =>
    h("option", { value: id }, title ?? id)));
  field.value = named ?? items[0]?.id ?? "";
  if (field.value) player.src = addressOf(field.value);
  else setText(said, "No one is live here. Enter a stream’s name, or go live, to see it play.");
  showSnippet();
}

for (const type of ["statechange", "error", "volumechange"]) {
  player.addEventListener(type, (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    note(detail ? `${type}: ${JSON.stringify(detail)}` : `${type}: volume ${player.volume}, muted ${player.muted}`);
  });
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  setText(said, "");
  if (field.value.trim()) player.src = addressOf(field.value.trim());
});
form.addEventListener("input", () => {
  const on = flags();
  player.controls = on.includes("controls");
  player.autoplay = on.includes("autoplay");
  player.muted = on.includes("muted");
  showSnippet();
});
copy.addEventListener("click", () => copyFrom(copy, snippet.textContent ?? ""));
await choose();
