// @ts-check

/**
 * Detects a browser that does not show what it has buffered: WebKit on GStreamer sometimes never completes a seek.
 * Giving it a new source helps.
 */

/** Longest time until buffered media is shown, in seconds. */
const TIMEOUT_S = 10;
/** After this many new sources in a row without success, another would not help, either. */
const MOST_TIMES = 3;
/** With more than this buffered there is something to show, in seconds. */
const SOMETHING_S = 1;

export class StuckRule {
  /** When it last worked, and when it was last checked, in seconds; null for a new source. */
  #wellAt = /** @type {number | null} */ (null);
  #lookedAt = /** @type {number | null} */ (null);
  /** New sources since something was last shown. */
  #times = 0;

  /** The video gets another source. */
  startAnew() {
    this.#wellAt = this.#lookedAt = null;
  }

  /**
   * Whether buffered media is not shown, and a new source may help. A hidden page need not show anything.
   * @param {import("./buffer.js").LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   */
  isStuck(buffer, video) {
    const hasNothing = video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA;
    return hasNothing && buffer.ahead > SOMETHING_S && this.#times < MOST_TIMES && !document.hidden;
  }

  /**
   * Call it regularly.
   * @param {import("./buffer.js").LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {number} now in seconds
   * @returns {boolean} whether the video needs another source now
   */
  look(buffer, video, now) {
    if (video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) this.#times = 0;
    // After a gap between checks nothing is known: a video that was paused may simply be seeking.
    const isNew = this.#lookedAt === null || now - this.#lookedAt > TIMEOUT_S;
    this.#lookedAt = now;
    if (isNew || this.#wellAt === null || !this.isStuck(buffer, video)) this.#wellAt = now;
    if (now - this.#wellAt < TIMEOUT_S) return false;
    this.#times += 1;
    this.#wellAt = now;
    return true;
  }
}
