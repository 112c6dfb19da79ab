// @ts-check

/** Reports to the server whether this person's microphone and camera are on, which everyone sees. */

import { SignallingError } from "./session.js";

/** Pause before a report that failed is sent again if the server does not say when, in milliseconds. */
const PAUSE_MS = 2000;

/** @typedef {{ audioMuted: boolean, videoMuted: boolean, paused: boolean }} Mutes */

export class Mutes {
  /** The last report, which may be newer than what the server says about us. @type {Mutes | null} */
  #told = null;
  #isTelling = false;
  /** Whether something changed while a report was being sent. */
  #hasMore = false;
  /** @type {number | undefined} */
  #timer;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.room = room;
  }

  /** Reports the current state, unless the server knows it. */
  async tell() {
    const { api, isOnStage, own, you } = this.room;
    if (!you || !isOnStage) return;
    // One report at a time, so that the last one counts.
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
      // Too many reports, or the server is out of reach: the state of then is reported later. Nothing else would do it,
      // and others would keep seeing the old state.
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
