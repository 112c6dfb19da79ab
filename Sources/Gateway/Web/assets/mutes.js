// @ts-check

/** Tells the server whether this page's person sends sound and picture: everybody sees whose microphone and camera are off. */

import { SignallingError } from "./session.js";

/** Told too often, and not when it may be told again: after this time, in milliseconds. */
const PAUSE_MS = 2000;

/** @typedef {{ audioMuted: boolean, videoMuted: boolean, paused: boolean }} Mutes */

export class Mutes {
  /** What was told last: what the server says of us may be older. @type {Mutes | null} */
  #told = null;
  #isTelling = false;
  /** Whether there was something to tell meanwhile. */
  #hasMore = false;
  /** @type {number | undefined} */
  #timer;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.room = room;
  }

  /** Tells what is so now, unless it is known. */
  async tell() {
    const { api, isOnStage, own, you } = this.room;
    if (!you || !isOnStage) return;
    // One after the other: what comes last is what counts.
    if (this.#isTelling) {
      this.#hasMore = true;
      return;
    }
    const now = { audioMuted: own.muted.audio, videoMuted: own.isSoundOnly, paused: own.isPaused };
    if (isSame(you, now) && isSame(this.#told ?? you, now)) return;
    clearTimeout(this.#timer);
    this.#told = now;
    this.#isTelling = true;
    this.#hasMore = false;
    try {
      await api.describe(you.id, now);
    } catch (error) {
      // Too often in a short time, or the server could not be reached: what is so by then is told later. Nothing else
      // would tell it, and others would go on seeing what was so before.
      const refusal = error instanceof SignallingError ? error : null;
      if (!refusal || refusal.status === 429 || refusal.status >= 500) {
        this.#told = null;
        this.#hasMore = false;
        this.#timer = setTimeout(() => this.tell(), refusal?.retryAfter ?? PAUSE_MS);
      }
    }
    this.#isTelling = false;
    if (this.#hasMore) this.tell();
  }
}

/** @param {Mutes} one @param {Mutes} other */
function isSame(one, other) {
  return one.audioMuted === other.audioMuted && one.videoMuted === other.videoMuted && one.paused === other.paused;
}
