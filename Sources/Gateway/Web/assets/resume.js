// @ts-check

/** Puts someone who was on the air back there after a reload. */

import { tabStorage } from "./storage.js";
import { knownToken } from "./tokens.js";

/** @typedef {import("./room.js").Room} Room @typedef {import("./sync.js").StreamInfo} StreamInfo */

/** Longest time for a reload, including the difference between the clocks, in milliseconds. */
const RECENT_MS = 60_000;

/**
 * Opens camera and microphone if the browser allows it without asking, and goes back on the air after a reload. If
 * there is a token, it waits until the server accepts it: no camera opens for a link that is no longer valid.
 * @param {Room} room
 */
export async function resume(room) {
  // Read this first: once we hear that the stream has ended meanwhile, it is deleted.
  const was = wasReloaded() ? onAirBefore(room.stream) : null;
  if (!(await isWelcome(room))) return;
  if (was && !room.query.has("source")) room.own.kind = was;
  await room.own.openIfAllowed();
  if (!was || !room.own.source) return;
  const goOn = () => {
    const { info } = room;
    if (!info || room.isOpen && !room.isOnStage) return;
    room.sync.removeEventListener("change", goOn);
    if (room.onAir.isOn) return;
    if (room.isOpen) room.onAir.start();
    else if (hasJustEnded(info)) {
      Object.assign(room.wishes, { title: info.title ?? null, programme: info.programme ?? room.wishes.programme });
      room.goLive();
    }
  };
  room.sync.addEventListener("change", goOn);
  goOn();
}

/**
 * Whether a stream that exists only while someone publishes has ended because of the reload.
 * @param {StreamInfo} info
 */
function hasJustEnded({ state, final, endedAt }) {
  return state === "ended" && final !== true && Date.now() - Date.parse(endedAt ?? "") < RECENT_MS;
}

/** @param {Room} room @returns {Promise<boolean>} */
function isWelcome(room) {
  if (!knownToken(room.stream, room.tokenRole)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const look = () => {
      const isTaken = room.sync.isOpen && room.sync.known !== null;
      if (!isTaken && !room.isOut) return;
      room.sync.removeEventListener("change", look);
      resolve(isTaken);
    };
    room.sync.addEventListener("change", look);
    look();
  });
}

/**
 * @param {string} stream
 * @returns {import("./capture.js").SourceKind | null} the source with which this tab was on the air
 */
function onAirBefore(stream) {
  return /** @type {any} */ (tabStorage.getItem(`rostrum:on-air:${stream}`));
}

/**
 * Remembers that this tab is on the air.
 * @param {string} stream
 * @param {import("./capture.js").SourceKind | null} kind of source; null when it is no longer on the air
 */
export function keepOnAir(stream, kind) {
  if (kind) tabStorage.setItem(`rostrum:on-air:${stream}`, kind);
  else tabStorage.removeItem(`rostrum:on-air:${stream}`);
}

/** Whether the page was reloaded: a duplicated tab must not take the place of its original. */
function wasReloaded() {
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  return entry?.type === "reload";
}
