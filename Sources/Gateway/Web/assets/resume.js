// @ts-check

/** Puts somebody who was on the air back there when a reload interrupted them. */

import { tabStorage } from "./storage.js";
import { knownToken } from "./tokens.js";

/** @typedef {import("./room.js").Room} Room @typedef {import("./sync.js").StreamInfo} StreamInfo */

/** A reload takes less than that, on clocks that agree about as well, in milliseconds. */
const RECENT_MS = 60_000;

/**
 * Opens camera and microphone if that takes no question, and goes on where a reload interrupted us. Nobody's camera opens
 * for a link that is no longer valid: where there is a token, the server speaks first.
 * @param {Room} room
 */
export async function resume(room) {
  // Read before anything else is heard: that the stream has ended meanwhile would have it forgotten.
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

/** Whether a stream that lives as long as somebody sends it ended because of the reload. @param {StreamInfo} info */
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

/** @param {string} stream @returns {import("./capture.js").SourceKind | null} what this tab was on the air with */
function onAirBefore(stream) {
  return /** @type {any} */ (tabStorage.getItem(`rostrum:on-air:${stream}`));
}

/**
 * Remembers that this tab is on the air, and with what; null when that is over.
 * @param {string} stream
 * @param {import("./capture.js").SourceKind | null} kind
 */
export function keepOnAir(stream, kind) {
  if (kind) tabStorage.setItem(`rostrum:on-air:${stream}`, kind);
  else tabStorage.removeItem(`rostrum:on-air:${stream}`);
}

/** Whether this is the page that was here before; a copy of its tab must not take its place. */
function wasReloaded() {
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  return entry?.type === "reload";
}
