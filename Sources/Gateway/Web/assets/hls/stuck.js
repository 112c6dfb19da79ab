// @ts-check

/**
 * When a browser shows nothing of what it has: WebKit on GStreamer now and then does not come to the end of a seek, and
 * waits for ever. Another source helps.
 */

/** So long it may take to show what it has, in seconds. */
const TIMEOUT_S = 10;
/** What did not help so many times does not help. */
const MOST_TIMES = 3;
/** There is something to show if there is more than this, in seconds. */
const SOMETHING_S = 1;

export class StuckRule {
  /** When it was last seen to be well, and when it was last looked at, in seconds; null where that says nothing of the source. */
  #wellAt = /** @type {number | null} */ (null);
  #lookedAt = /** @type {number | null} */ (null);
  /** How many sources it was given since something was shown. */
  #times = 0;

  /** What comes next has another source. */
  startAnew() {
    this.#wellAt = this.#lookedAt = null;
  }

  /**
   * Whether it shows nothing of what it has, and may yet be helped. What nobody sees need not be shown.
   * @param {import("./buffer.js").LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   */
  isStuck(buffer, video) {
    const hasNothing = video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA;
    return hasNothing && buffer.ahead > SOMETHING_S && this.#times < MOST_TIMES && !document.hidden;
  }

  /**
   * To be called now and then.
   * @param {import("./buffer.js").LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {number} now in seconds
   * @returns {boolean} whether it is to be given another source now
   */
  look(buffer, video, now) {
    if (video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) this.#times = 0;
    // Nothing is known of a time in which nobody looked: a video that was paused may be well, and just seek.
    const isNew = this.#lookedAt === null || now - this.#lookedAt > TIMEOUT_S;
    this.#lookedAt = now;
    if (isNew || this.#wellAt === null || !this.isStuck(buffer, video)) this.#wellAt = now;
    if (now - this.#wellAt < TIMEOUT_S) return false;
    this.#times += 1;
    this.#wellAt = now;
    return true;
  }
}
