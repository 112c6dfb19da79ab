// @ts-check

/**
 * The studio: choose a source, see it, go live with one button.
 *
 * The address may say `?source=camera|screen|test`, `?quality=1080|720|480`, `?simulcast=1` and
 * `?codec=vp8|vp9|h264|av1`.
 */

import { cameraIsAllowed, CaptureError, devices, openSource } from "./capture.js";
import { $, copyFrom, formatDuration, formatViewers, setText, streamFromAddress } from "./dom.js";
import { Persistent } from "./persistent.js";
import { SignallingError } from "./session.js";
import { formatBitrate, formatMilliseconds, formatPicture, StatsReader } from "./stats.js";
import { listStreams, StreamSync } from "./sync.js";
import { knownToken, withToken } from "./tokens.js";
import { publish, replaceMedia } from "./whip.js";

/** Bitrate of the largest picture by its height, in bit/s. */
const BITRATES = new Map([[1080, 4_500_000], [720, 2_500_000], [480, 1_000_000]]);

const stream = streamFromAddress();
const query = new URLSearchParams(location.search);
const watchLink = new URL(`/watch/${encodeURIComponent(stream)}`, location.href).href;

/** @type {import("./capture.js").Source | null} */
let source = null;
/** Whether the person wants to be live; the connection follows as well as it can. */
let isOn = false;
let isOpening = false;
/** Whether what is chosen was not opened yet. */
let hasNewChoice = false;
let hasConnected = false;
/** @type {number | null} */
let liveSince = null;
/** @type {StatsReader | null} */
let stats = null;
/** @type {import("./session.js").MediaSession | null} */
let previous = null;
/** @type {{ title: string, text: string, canRetry: boolean, offersTest: boolean } | null} */
let problem = null;
/** @type {WakeLockSentinel | null} */
let wakeLock = null;

const connection = new Persistent(openSession);
const sync = new StreamSync(stream, async () => knownToken(stream, "host"));

/** Another window or encoder published the same stream and now has it. */
class TakenOver extends Error {}

/** @param {AbortSignal} signal */
async function openSession(signal) {
  // After a loss: was it the network, or did someone else take the stream? Never fight over it.
  if (previous && !(await previous.exists()) && await isLive(signal)) {
    throw new TakenOver("This stream is now live from somewhere else.");
  }
  if (!source) throw new Error("There is no picture to send.");
  const media = source.media;
  const session = await withToken(stream, "host", (token) => publish({
    endpoint: `/whip/${encodeURIComponent(stream)}`,
    token,
    media,
    simulcast: $("simulcast").checked,
    codec: query.get("codec"),
    maxBitrate: BITRATES.get(Number($("quality").value)),
    signal,
  }));
  previous = session;
  stats = new StatsReader(session.peer);
  return session;
}

/** @param {AbortSignal} signal */
async function isLive(signal) {
  return (await listStreams(signal)).some(({ id, state }) => id === stream && state === "live");
}

/** @returns {import("./capture.js").SourceKind} */
const chosenKind = () => /** @type {any} */ (document.querySelector("input[name=source]:checked")).value;

/**
 * Opens the chosen source in place of the current one, also while live. A choice made meanwhile is opened next.
 * @returns {Promise<boolean>} whether the chosen source is there now
 */
async function open() {
  hasNewChoice = true;
  if (isOpening) return false;
  isOpening = true;
  while (hasNewChoice) {
    hasNewChoice = false;
    problem = null;
    update();
    await openChosen();
  }
  isOpening = false;
  update();
  return problem === null;
}

async function openChosen() {
  const kind = chosenKind();
  const before = source;
  try {
    source = await openSource(kind, {
      height: Number($("quality").value), camera: $("camera").value, microphone: $("microphone").value,
    });
    const opened = source;
    opened.media.getVideoTracks()[0]?.addEventListener("ended", () => opened === source && sourceEnded());
    if (connection.session) await replaceMedia(connection.session, source.media);
    before?.stop();
    applyMutes();
    $("preview").srcObject = source.media;
    $("preview").classList.toggle("mirrored", source.kind === "camera");
    listDevices();
  } catch (error) {
    if (hasNewChoice) return;
    const { title, message } = error instanceof CaptureError
      ? error : { title: "The picture did not start", message: String(error) };
    problem = { title, text: message, canRetry: true, offersTest: kind !== "test" };
    // What was on air stays on air; the choice goes back to it.
    if (before && source === before) select(before.kind);
  }
}

/** The camera was unplugged, or sharing was ended from outside the page. */
function sourceEnded() {
  const what = source?.kind === "screen" ? "Sharing has ended" : "The camera has gone";
  source?.stop();
  source = null;
  $("preview").srcObject = null;
  problem = {
    title: what,
    text: `${isOn ? "You are still live, without a picture. " : ""}Choose a source to go on${isOn ? ", or stop" : ""}.`,
    canRetry: true,
    offersTest: true,
  };
  update();
}

/** @param {import("./capture.js").SourceKind} kind */
function select(kind) {
  const radio = /** @type {HTMLInputElement} */ (document.querySelector(`input[name=source][value=${kind}]`));
  radio.checked = true;
}

async function goLive() {
  if (isOn || isOpening) return;
  if (!source && !(await open())) return;
  isOn = true;
  problem = null;
  hasConnected = false;
  previous = null;
  connection.start();
  update();
  wakeLock = await navigator.wakeLock?.request("screen").catch(() => null) ?? null;
}

function stop() {
  isOn = false;
  connection.close();
  liveSince = null;
  stats = null;
  wakeLock?.release();
  wakeLock = null;
  update();
}

function applyMutes() {
  for (const track of source?.media.getTracks() ?? []) {
    track.enabled = $(track.kind === "audio" ? "mute" : "dark").getAttribute("aria-pressed") !== "true";
  }
}

/** @param {HTMLButtonElement} button */
function toggle(button) {
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  applyMutes();
}

async function listDevices() {
  for (const [id, kind] of /** @type {const} */ ([["camera", "videoinput"], ["microphone", "audioinput"]])) {
    const select = $(id);
    const chosen = select.value;
    const options = (await devices(kind))
      .map(({ deviceId, label }) => new Option(label, deviceId, false, deviceId === chosen));
    select.replaceChildren(new Option("Default", ""), ...options);
  }
}

connection.addEventListener("statechange", () => {
  if (connection.state === "connected") {
    hasConnected = true;
    liveSince ??= Date.now();
    // The source may have changed while there was no session.
    if (connection.session && source) replaceMedia(connection.session, source.media);
  }
  if (connection.state === "failed") {
    const error = connection.error;
    isOn = false;
    liveSince = null;
    problem = {
      title: error instanceof TakenOver ? "Live from somewhere else" : "The server did not take the stream",
      text: error instanceof SignallingError && error.status === 401
        ? "This page has no permission to publish here. Open it with a link that carries a host's token."
        : error?.message ?? "",
      canRetry: true,
      offersTest: false,
    };
  }
  update();
});
sync.addEventListener("change", update);

/** @returns {"idle" | "ready" | "starting" | "live" | "reconnecting"} */
function currentState() {
  if (!isOn) return source ? "ready" : "idle";
  if (connection.state === "connected") return "live";
  return hasConnected ? "reconnecting" : "starting";
}

const WORDS = {
  idle: "",
  ready: "",
  starting: "Connecting…",
  live: "You are live.",
  reconnecting: "The connection was lost. Reconnecting…",
};

function update() {
  const state = currentState();
  document.body.dataset.state = state;
  document.title = `${state === "live" ? "● Live" : "Go live"}: ${stream} – Rostrum`;
  setText($("state"), WORDS[state]);
  setText($("notice"), state === "reconnecting" || state === "starting" ? WORDS[state] : source?.notice ?? "");

  $("placeholder").hidden = source !== null;
  setText($("placeholder-text"), isOpening ? "Starting…" : isOn ? "No picture" : "Your picture shows here");
  $("show-preview").hidden = isOpening || problem !== null;
  // Disabled in the document until this script answers to a press.
  $("show-preview").disabled = false;

  $("badge").hidden = !isOn;
  $("badge").classList.toggle("quiet", state !== "live");
  setText($("badge"), state === "live" ? "Live" : state === "starting" ? "Starting" : "Reconnecting");
  $("viewers").hidden = state !== "live" || !sync.stream;
  setText($("viewers"), formatViewers(sync.stream?.viewers ?? 0));
  $("time").hidden = liveSince === null;
  setText($("time"), formatDuration(Date.now() - (liveSince ?? Date.now())));

  $("error").hidden = problem === null;
  setText($("error-title"), problem?.title ?? "");
  setText($("error-text"), problem?.text ?? "");
  $("error-retry").hidden = !problem?.canRetry;
  $("error-test").hidden = !problem?.offersTest;

  $("share").hidden = !isOn;
  $("numbers").hidden = !isOn;
  $("go").hidden = isOn;
  $("go").disabled = isOpening;
  $("stop").hidden = !isOn;
  $("mute").hidden = !source?.media.getAudioTracks().length;
  $("dark").hidden = !source;
  $("simulcast").disabled = isOn;
}

async function showNumbers() {
  if (!isOn || !stats) return;
  setText($("time"), formatDuration(Date.now() - (liveSince ?? Date.now())));
  const numbers = await stats.read();
  setText($("bitrate"), formatBitrate(numbers.bitrate));
  setText($("round-trip"), formatMilliseconds(numbers.roundTrip));
  setText($("picture"), formatPicture(numbers));
  setText($("codec"), numbers.codec ?? "–");
}

for (const radio of document.querySelectorAll("input[name=source]")) radio.addEventListener("change", open);
for (const id of ["camera", "microphone", "quality"]) $(id).addEventListener("change", () => source && open());
$("show-preview").addEventListener("click", open);
$("go").addEventListener("click", goLive);
$("stop").addEventListener("click", stop);
for (const id of ["mute", "dark"]) $(id).addEventListener("click", () => toggle($(id)));
$("copy").addEventListener("click", () => copyFrom($("copy"), watchLink));
$("link").addEventListener("focus", () => $("link").select());
$("error-retry").addEventListener("click", async () => {
  const wasTaken = connection.state === "failed";
  problem = null;
  if (source && wasTaken) goLive();
  else open();
});
$("error-test").addEventListener("click", () => {
  select("test");
  open();
});
// Leaving ends the broadcast on the server at once; coming back out of the page cache starts afresh.
addEventListener("pagehide", () => isOn && stop());

setText($("name"), stream);
$("link").value = watchLink;
$("simulcast").checked = query.get("simulcast") === "1";
if (BITRATES.has(Number(query.get("quality")))) $("quality").value = query.get("quality");
const wanted = query.get("source");
if (wanted === "camera" || wanted === "screen" || wanted === "test") select(wanted);
setInterval(showNumbers, 1000);
update();
if (chosenKind() === "test" || chosenKind() === "camera" && await cameraIsAllowed()) open();

// For the console, and for tests that look at the peer connection itself.
Object.assign(globalThis, { rostrum: { connection, sync } });
