// @ts-check

/**
 * The player: keeps a session as long as the page is open, and says in words what is going on.
 *
 * The address may say `?codec=vp8|vp9|h264|av1` to accept only that one.
 */

import { $, copyFrom, formatDuration, formatViewers, setText, streamFromAddress } from "./dom.js";
import { Persistent } from "./persistent.js";
import { SignallingError } from "./session.js";
import { formatBitrate, formatMilliseconds, formatPicture, StatsReader } from "./stats.js";
import { StreamSync } from "./sync.js";
import { readTimeCode, timeCodeAge } from "./timecode.js";
import { knownToken, withToken } from "./tokens.js";
import { play } from "./whep.js";

/** A session for a stream that has not begun is asked to wait this long, in seconds. */
const WAIT_SECONDS = 60;
/** Media that stays away this long while the stream is live means the session is broken, in milliseconds. */
const STALL_MS = 6000;
/** Sound without a picture counts as a live stream after this time, in milliseconds. */
const SOUND_ONLY_MS = 3000;
/** An ended stream's session is given up after this time, in milliseconds. */
const LINGER_MS = 20_000;
/** Controls fade this long after the last movement, in milliseconds. */
const FADE_MS = 3000;

const stream = streamFromAddress();
const query = new URLSearchParams(location.search);
const video = /** @type {HTMLVideoElement} */ ($("video"));

/** @type {StatsReader | null} */
let stats = null;
/** Totals of the current session when they last grew. */
let bytes = 0;
let frames = 0;
/** When a picture of the current session was last seen, or its sound heard; 0 when none was. */
let mediaAt = 0;
/** Since when the current session has been without media. */
let quietSince = 0;
let hasPlayed = false;
let isBlocked = false;
let lost = 0;
/** What the server last said of the stream. @type {string | undefined} */
let told;
/** @type {number | undefined} */
let lingering;

const connection = new Persistent(openSession);
const sync = new StreamSync(stream, async () => knownToken(stream, "viewer"));

/** @param {AbortSignal} signal */
async function openSession(signal) {
  const media = new MediaStream();
  bytes = frames = mediaAt = 0;
  const session = await withToken(stream, "viewer", (token) => play({
    endpoint: `/whep/${encodeURIComponent(stream)}?wait=${WAIT_SECONDS}`,
    token,
    codec: query.get("codec"),
    signal,
    onTrack(track) {
      media.addTrack(track);
      if (video.srcObject !== media) show(media);
    },
  }));
  stats = new StatsReader(session.peer);
  return session;
}

/** @param {MediaStream} media */
async function show(media) {
  video.srcObject = media;
  video.requestVideoFrameCallback?.(() => {
    performance.mark("rostrum:first-frame");
    mediaAt = performance.now();
    update();
  });
  try {
    await video.play();
    isBlocked = false;
  } catch (error) {
    // Some browsers refuse even silent playback without a tap, for instance to save power.
    isBlocked = /** @type {DOMException} */ (error).name === "NotAllowedError";
  }
  update();
}

/** A small copy of what was seen last: shown dimmed and blurred while there is nothing newer. */
function keepPicture() {
  if (!video.videoWidth) return;
  const canvas = $("last");
  canvas.width = 320;
  canvas.height = Math.round(320 * video.videoHeight / video.videoWidth);
  canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
}

/** @returns {"connecting" | "waiting" | "live" | "reconnecting" | "ended" | "failed"} */
function currentState() {
  if (connection.state === "failed") return "failed";
  if (told === "ended") return "ended";
  if (connection.state === "connected") {
    // Nothing else is heard from a server without sync: media that flows is live.
    if (mediaAt) return told === "waiting" ? "waiting" : "live";
    return told === "live" ? (hasPlayed ? "reconnecting" : "connecting") : "waiting";
  }
  if (connection.error instanceof SignallingError && [404, 409].includes(connection.error.status)) return "waiting";
  if (hasPlayed) return "reconnecting";
  return told === "waiting" || told === "backstage" ? "waiting" : "connecting";
}

/** @type {Record<ReturnType<typeof currentState>, [string, string]>} */
const WORDS = {
  connecting: ["Connecting…", ""],
  waiting: ["Waiting for the stream", "It starts here by itself as soon as the host goes live."],
  live: ["Live", ""],
  reconnecting: ["Reconnecting…", "The connection was lost. Hold on, this mends itself."],
  ended: ["The stream has ended", "Thanks for watching. Should the host come back, it goes on here."],
  failed: ["This stream cannot be played", ""],
};

function update() {
  const state = currentState();
  const isLive = state === "live";
  if (isLive) hasPlayed = true;
  document.body.dataset.state = state;
  const [words, hint] = WORDS[state];
  setText($("state"), words);
  setText($("hint"), state === "failed" ? explain(connection.error) : hint);
  document.title = `${isLive ? "● " : ""}${stream} – Rostrum`;

  $("badge").hidden = !isLive;
  $("viewers").hidden = !isLive || !sync.stream;
  setText($("viewers"), formatViewers(sync.stream?.viewers ?? 0));
  $("retry").hidden = state !== "failed" && state !== "reconnecting";
  setText($("retry"), state === "failed" ? "Try again" : "Try now");
  $("home").hidden = state !== "ended" && state !== "failed";
  $("unmute").hidden = !isLive || !(video.muted || isBlocked);
  setText(/** @type {HTMLElement} */ ($("unmute").querySelector("span")), isBlocked ? "Tap to play" : "Tap for sound");
  $("mute").setAttribute("aria-pressed", String(video.muted));
  showTime();
}

/** @param {Error | null} error */
function explain(error) {
  if (error instanceof SignallingError && (error.status === 401 || error.status === 403)) {
    return "You need an invitation to watch this stream. Open it with the link you were given.";
  }
  return error?.message ?? "";
}

function showTime() {
  const startedAt = sync.stream?.state === "live" && sync.stream.startedAt;
  $("time").hidden = !startedAt;
  if (startedAt) setText($("time"), formatDuration(Date.now() - Date.parse(startedAt)));
}

/** @param {import("./stats.js").Numbers} numbers */
function noteMedia(numbers) {
  const now = performance.now();
  const isSeen = numbers.frames > frames;
  const isHeard = numbers.bytes > bytes && now - quietSince > SOUND_ONLY_MS;
  frames = numbers.frames;
  bytes = numbers.bytes;
  if (isSeen || (isHeard && !numbers.frames)) {
    mediaAt = quietSince = now;
    keepPicture();
    update();
  } else if (sync.stream?.state === "live" && now - quietSince > STALL_MS) {
    mediaAt = 0;
    connection.renew();
  }
}

/** Once a second: does media flow, and how well? */
async function examine() {
  showTime();
  if (!stats || connection.state !== "connected") return;
  const numbers = await stats.read();
  noteMedia(numbers);
  lost += numbers.lost;
  if ($("numbers").hidden) return;
  setText($("bitrate"), formatBitrate(numbers.bitrate));
  setText($("round-trip"), formatMilliseconds(numbers.roundTrip));
  setText($("picture"), formatPicture(numbers));
  setText($("codec"), numbers.codec ?? "–");
  setText($("buffer"), formatMilliseconds(numbers.buffer));
  setText($("lost"), String(lost));
  const code = readTimeCode(video);
  const age = code === null ? Infinity : timeCodeAge(code);
  // Older than that only if the other clock differs from ours.
  $("latency-row").hidden = age > 5000;
  setText($("latency"), formatMilliseconds(age));
}

connection.addEventListener("statechange", () => {
  // After the end nobody needs a session; the sync socket tells when to come back.
  if (connection.state === "retrying" && sync.stream?.state === "ended") connection.close();
  if (connection.state === "connected") quietSince = performance.now();
  update();
});

sync.addEventListener("change", () => {
  const state = sync.stream?.state;
  if (state !== "ended") clearTimeout(lingering);
  if (state === "ended") {
    if (told === "ended") return update();
    mediaAt = 0;
    lingering = setTimeout(() => connection.close(), LINGER_MS);
  } else if (connection.state === "closed") {
    connection.start();
  } else if (state === "live" && told !== "live") {
    quietSince = performance.now();
    connection.retryNow();
  }
  told = state;
  update();
});

// The server was away: if it was started again it has forgotten our session, long before ICE finds out.
sync.addEventListener("resume", async () => {
  const session = connection.session;
  if (!session) return connection.retryNow();
  if (!(await session.exists()) && session === connection.session) connection.renew();
});

function toggleSound() {
  video.muted = !video.muted;
  if (video.paused && video.srcObject) show(/** @type {MediaStream} */ (video.srcObject));
  update();
}

async function toggleFullScreen() {
  if (document.fullscreenElement) await document.exitFullscreen();
  else if (document.documentElement.requestFullscreen) await document.documentElement.requestFullscreen();
  // iPhones show only a video itself on the full screen.
  else /** @type {any} */ (video).webkitEnterFullscreen?.();
}

function toggleNumbers() {
  $("numbers").hidden = !$("numbers").hidden;
  $("show-numbers").setAttribute("aria-expanded", String(!$("numbers").hidden));
}

/** @type {number | undefined} */
let fading;
function wake() {
  document.body.classList.remove("idle");
  clearTimeout(fading);
  fading = setTimeout(() => document.body.classList.add("idle"), FADE_MS);
}

$("unmute").addEventListener("click", () => {
  video.muted = true;
  toggleSound();
});
$("mute").addEventListener("click", toggleSound);
$("full").addEventListener("click", toggleFullScreen);
$("show-numbers").addEventListener("click", toggleNumbers);
$("copy").addEventListener("click", () => copyFrom($("copy"), location.href.split(/[?#]/)[0]));
$("retry").addEventListener("click", () => {
  if (connection.state === "failed") connection.start();
  else connection.retryNow();
});
video.addEventListener("volumechange", update);
addEventListener("keydown", (event) => {
  wake();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = { m: toggleSound, f: toggleFullScreen, n: toggleNumbers }[event.key];
  action?.();
});
for (const event of ["pointermove", "pointerdown"]) addEventListener(event, wake);
addEventListener("pagehide", () => connection.close());
addEventListener("pageshow", (event) => event.persisted && connection.start());

setText($("name"), stream);
setInterval(examine, 1000);
connection.start();
wake();
update();

// For the console, and for tests that look at the peer connection itself.
Object.assign(globalThis, { rostrum: { connection, sync } });
