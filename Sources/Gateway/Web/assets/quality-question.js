// @ts-check

/** When a page asks the server what it sends, and why it does not send more. */

import { weaknessOf } from "./picture-choice.js";

/** @typedef {import("./picture-choice.js").Quality} Quality */

/** What is sent after a change is asked for so much later, and again while the connection is weak, in milliseconds. */
const SETTLED_MS = 1500;
const WEAK_MS = 5000;
/** An answer that explains nothing is asked for again, after ever longer times, so often. */
const MOST_REPEATS = 4;

/**
 * Asks when the picture changes its size or stands still, and as long as the connection is too slow for what is wanted:
 * a viewer who gets the best there is does not ask again. All times are in milliseconds, by one clock.
 */
export class QualityQuestion {
  /** Height of the picture that the server was last asked about, and of the tallest so far, in pixels. */
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

  /** Something else than the size may have changed. @param {number} now */
  changed(now) {
    this.#askAt = now + SETTLED_MS;
    this.#repeats = 0;
  }

  /** @param {Quality | null} quality null where no answer came @param {number} now */
  answered(quality, now) {
    if (weaknessOf(quality)) {
      this.#askAt = now + WEAK_MS;
      this.#repeats = 0;
    } else if ((!quality || this.#height < this.#tallest) && this.#repeats < MOST_REPEATS) {
      // A busy server may not have answered, or a publisher may have sent nothing larger at that moment.
      this.#askAt = now + WEAK_MS * 2 ** this.#repeats++;
    }
  }
}
