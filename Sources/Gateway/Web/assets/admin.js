// @ts-check

/** The admin page: what the server is doing now, its streams and sessions, and actions on them. */

import { confirm } from "./dialog.js";
import { $, h, setText } from "./dom.js";
import { keepFocus } from "./focus.js";
import { ask, keep, Refusal, takeTokenFromAddress } from "./admin/access.js";
import { DossierPanel } from "./admin/dossier.js";
import { age, bits, bytes, count, percent, rate, seconds } from "./admin/format.js";
import { sessionList, streamList } from "./admin/lists.js";
import { Plot } from "./admin/plot.js";
import { Series } from "./admin/series.js";
import { askAndSave } from "./saving.js";

/** Time between two updates of the numbers, in milliseconds. */
const LOOK_MS = 1000;
/** Lists and the dossier are updated with every n-th of them. */
const LIST_LOOKS = 5;
const DOSSIER_LOOKS = 2;

const PLOTS = [
  {
    name: "sessions", title: "Sessions", format: count, isStacked: true, least: 4,
    lines: [
      { key: "publish", label: "Publishers" }, { key: "stage", label: "On stage" }, { key: "watch", label: "Players" },
      { key: "audience", label: "Viewers" }, { key: "feed", label: "Feed" },
    ],
  },
  { name: "viewers", title: "Viewers", format: count, least: 4, lines: [{ key: "viewers", label: "Watching" }] },
  {
    name: "bitrate", title: "Bitrate", format: bits, least: 1e5,
    lines: [{ key: "bitsIn", label: "In" }, { key: "bitsOut", label: "Out" }],
  },
  {
    name: "packets", title: "Packets", format: rate, least: 100,
    lines: [{ key: "packetsIn", label: "In" }, { key: "packetsOut", label: "Out" }],
  },
  {
    name: "loss", title: "Retransmissions", format: percent, least: 0.02, most: 1,
    lines: [{ key: "lossIn", label: "From publishers" }, { key: "lossOut", label: "To viewers" }],
  },
  {
    name: "joins", title: "Viewer join time, median", format: seconds, least: 0.01,
    lines: [
      { key: "join-answer", label: "Answer" }, { key: "join-check", label: "Check" }, { key: "join-dtls", label: "DTLS" },
      { key: "join-media", label: "Media" },
    ],
  },
  { name: "load", title: "Worker load", format: percent, least: 0.1, most: 1, lines: [] },
  {
    name: "latency", title: "Forwarding latency", format: seconds, least: 0.0001,
    lines: [{ key: "latency50", label: "Median" }, { key: "latency99", label: "99%" }],
  },
  { name: "cpu", title: "Process CPU", format: percent, least: 0.1, lines: [{ key: "cpu", label: "Of one core" }] },
  { name: "memory", title: "Memory", format: bytes, least: 1e7, lines: [{ key: "memory", label: "Resident" }] },
].map((plan) => new Plot(plan));

/** The figures above the plots. @type {[string, (values: Record<string, any>) => string][]} */
const FIGURES = [
  ["Sessions", (values) => count(values.total)], ["Viewers", (values) => count(values.viewers)],
  ["In", (values) => bits(values.bitsIn)], ["Out", (values) => bits(values.bitsOut)],
  ["Dropped by server", (values) => rate(values.drops)], ["Joins per minute", (values) => count(values.joins)],
  ["CPU", (values) => percent(values.cpu)], ["Memory", (values) => bytes(values.memory)],
];

const series = new Series();
const dossier = new DossierPanel(endSession, toast);
const sessions = sessionList((id) => attempt(dossier.open(id)));
const streams = streamList((stream) => attempt(placeStream(stream)), (stream) => attempt(endStream(stream)));
const figures = FIGURES.map(([name]) => h("dd", {}, "–"));
let looks = 0;
/** @type {number} */
let timer = 0;

takeTokenFromAddress();
addEventListener("hashchange", () => {
  takeTokenFromAddress();
  look();
});
$("figures").append(...FIGURES.map(([name], index) => h("div", {}, h("dt", {}, name), figures[index])));
$("plots").append(...PLOTS.map((plot) => plot.element));
setText($("command"), `rostrum token --role admin --link ${location.origin}`);
$("entrance").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  keep($("token").value);
  $("token").value = "";
  look();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  // Whoever fetches a token elsewhere has not tried one yet, and is told nothing.
  else if (document.body.dataset.state !== "locked") look();
});
const redraw = () => PLOTS.forEach((plot) => plot.draw(series.samples));
new ResizeObserver(redraw).observe($("plots"));
matchMedia("(prefers-color-scheme: light)").addEventListener("change", redraw);
// Rows go away with what they are about.
keepFocus(document.body);
look();

/** Updates all that is due, again and again; pauses while the page is hidden. */
async function look() {
  clearTimeout(timer);
  const began = performance.now();
  try {
    show(await ask("/v1/admin/statistics"));
    const due = [];
    if (looks % LIST_LOOKS === 0) due.push(streams.refresh(), sessions.refresh());
    if (looks % DOSSIER_LOOKS === 0) due.push(dossier.refresh());
    looks += 1;
    await Promise.all(due);
  } catch (error) {
    if (error instanceof Refusal && [401, 403].includes(error.status)) return askForToken(error);
    setText($("connection"), "The server isn’t responding");
    document.body.dataset.state = "away";
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, Math.max(LOOK_MS - (performance.now() - began), LOOK_MS / 2));
}

/** @param {import("./admin/series.js").Statistics} now */
function show(now) {
  document.body.dataset.state = "live";
  // Whoever has signed in begins at the top of what there is now.
  if (!$("entrance").hidden) $("main").focus({ preventScroll: true });
  $("entrance").hidden = true;
  $("desk").hidden = false;
  setText($("connection"), "Live");
  const up = now.process.startedAt ? `, up ${age(Date.parse(now.time) - Date.parse(now.process.startedAt))}` : "";
  setText($("server"), `Version ${now.version || "unknown"}${up}`);
  const sample = series.add(now);
  PLOTS.find(({ plan }) => plan.name === "load")?.setLines(now.workers.slice(0, 6).map(
    (/** @type {{ index: number }} */ { index }) => ({ key: `worker${index}`, label: `Worker ${index}` })));
  redraw();
  if (sample) FIGURES.forEach(([, text], index) => setText(figures[index], text(sample.values)));
}

/** @param {Refusal} refusal */
function askForToken(refusal) {
  document.body.dataset.state = "locked";
  $("desk").hidden = true;
  setText($("connection"), "");
  // What lies over the form would keep everyone from it.
  for (const dialog of /** @type {NodeListOf<any>} */ (document.querySelectorAll("dialog[open]"))) dialog.close();
  const wasShown = !$("entrance").hidden;
  $("entrance").hidden = false;
  setText($("entrance-reason"), refusal.status === 403 || wasShown ? refusal.message : "");
  $("token").focus();
}

/** Shows an error where the action was started. @param {Promise<void>} promise */
async function attempt(promise) {
  try {
    await promise;
  } catch (error) {
    toast(error instanceof Refusal ? error.message : "The server isn’t responding. Try again in a moment.");
  }
}

/** Not looked up each time, because a dialog that closes may remove it from the page. */
const toastLine = $("toast");
/** @type {number} */
let toastTimer = 0;

/** @param {string} text */
function toast(text) {
  // An open dialog covers everything else, so the text is shown in it.
  ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(toastLine);
  setText(toastLine, text);
  toastLine.dataset.shown = "";
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    delete toastLine.dataset.shown;
    // Otherwise the same words would not be read aloud the next time.
    setText(toastLine, "");
  }, 5000);
}

/** @param {string} id */
async function endSession(id) {
  const isMeant = await confirm({
    name: "end-session", title: `End session ${id}?`, yes: "End session",
    text: "Its client is disconnected, but may reconnect. To keep someone out, remove or ban them in the stream.",
  });
  if (!isMeant) return;
  await attempt(ask(`/v1/sessions/${encodeURIComponent(id)}`, { method: "DELETE" }));
  await attempt(Promise.all([dossier.refresh(), sessions.refresh()]).then(() => {}));
}

/** @param {Record<string, any>} stream */
async function endStream(stream) {
  const isMeant = await confirm({
    name: "end-stream", title: `End ${stream.title || stream.id}?`, yes: "End stream",
    text: "It ends for the host and all viewers.",
  });
  if (!isMeant) return;
  await ask(`/v1/streams/${encodeURIComponent(stream.id)}/end`, { method: "POST" });
  toast(`${stream.title || stream.id} has ended.`);
  await streams.refresh();
}

/** Pins a stream in the feed, or boosts it. @param {Record<string, any>} stream */
async function placeStream(stream) {
  const path = `/v1/streams/${encodeURIComponent(stream.id)}/placement`;
  const { pinned, boost } = await ask(path);
  const pin = h("input", { type: "checkbox", checked: pinned !== null });
  const place = h("input", { type: "number", min: 1, max: 1000, value: (pinned ?? 0) + 1, disabled: pinned === null });
  pin.addEventListener("change", () => (place.disabled = !pin.checked));
  const steps = h("input", { type: "number", min: -1000, max: 1000, value: boost });
  const isSaved = await askAndSave({
    name: "placement", title: `${stream.title || stream.id} in the feed`,
    body: [h("div.fields", {},
      h("label.check", {}, pin, h("span", {}, "Pin to the top of the feed")),
      h("label", {}, "Position among pinned streams", place),
      h("label", {}, "Boost, in steps up (negative: down)", steps))],
    choices: [{ value: "save", label: "Save", look: "primary" }, { value: "no", label: "Cancel" }],
  }, async () => {
    if (pin.checked && !place.value) return "Enter the position among pinned streams.";
    const body = { pinned: pin.checked ? Number(place.value) - 1 : null, boost: Number(steps.value) };
    try {
      await ask(path, { method: "PATCH", type: "application/merge-patch+json", body });
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  });
  if (isSaved) toast("Saved.");
}
