// @ts-check

/** Decides when a page asks the server what quality it sends, and why not a better one. */

import { weaknessOf } from "./picture-choice.js";

/** @typedef {import("./picture-choice.js").Quality} Quality */

/** Delay of the question after a change, and between questions while the connection is too slow, in milliseconds. */
const SETTLED_MS = 1500;
const WEAK_MS = 5000;
/** How often it asks again, after growing pauses, if the answer explains nothing. */
const MOST_REPEATS = 4;

/**
 * Asks when the picture changes its size or freezes, and as long as the connection is too slow for the chosen quality.
 * While the viewer gets the best quality, there are no questions. All times are in milliseconds, by the same clock.
 */
export class QualityQuestion {
  /** Heights of the picture at the last question, and of the tallest one so far, in pixels. */
  #height = 0;
  #tallest = 0;
  #askAt = Infinity;
  #repeats = 0;

  /** @param {number} height of the picture, in pixels; 0 for none @param {number} now */
  isDue(height, now) {
    if (height !== this.#height) {
      this.#height = height;
      this.#tallest = Math.max(this.#tallest, height);
      this.changed(now);
    }
    if (now < this.#askAt) return false;
    this.#askAt = Infinity;
    return true;
  }

  /** Asks again soon: something other than the size may have changed. @param {number} now */
  changed(now) {
    this.#askAt = now + SETTLED_MS;
    this.#repeats = 0;
  }

  /** @param {Quality | null} quality null without an answer @param {number} now */
  answered(quality, now) {
    if (weaknessOf(quality)) {
      this.#askAt = now + WEAK_MS;
      this.#repeats = 0;
    } else if ((!quality || this.#height < this.#tallest) && this.#repeats < MOST_REPEATS) {
      // The server was too busy, or the publisher sent nothing larger at that moment.
      this.#askAt = now + WEAK_MS * 2 ** this.#repeats++;
    }
  }
}
