// @ts-check

/** Checks once a second whether the story in view can be seen, why not, and whether a new connection would help. */

import { Health } from "./health.js";

/** If pictures are decoded but not shown for this long, a new connection is opened, in seconds. */
const UNSEEN_S = 5;
/** Shortest time between two such connections, in milliseconds; doubled each time, up to the longest. */
const HEAL_AGAIN_MS = 20_000;
const LONGEST_HEAL_MS = 600_000;

export class Watching {
  #health = new Health();
  /** What the last check was about. */
  #key = "";
  /** @type {unknown} */
  #session = null;
  /** For how many seconds pictures have been decoded without being shown, and their number at the start. */
  #unseen = { seconds: 0, frames: 0 };
  #healedAt = -Infinity;
  #healAgain = HEAL_AGAIN_MS;

  /** @param {import("../story-feed.js").StoryFeed} feed */
  constructor(feed) {
    this.feed = feed;
  }

  /**
   * @param {boolean} isSeen whether there is a picture of the current story, and it moves
   * @returns {Promise<import("./health.js").Condition>}
   */
  async look(isSeen) {
    const { feed } = this;
    const { current } = feed;
    const slot = feed.slotOf(current?.id);
    const session = /** @type {import("./session.js").FeedSession | null} */ (feed.connection.session);
    const key = `${slot?.index} ${current?.id} ${current?.paused}`;
    if (key !== this.#key || session !== this.#session) {
      this.#key = key;
      this.#session = session;
      this.#health.reset();
      this.#unseen = { seconds: 0, frames: 0 };
    }
    if (!slot || !session || feed.state !== "playing" || current?.paused) return "fine";
    const arrivals = await session.arrivalsOf(slot);
    this.#heal(isSeen, arrivals.frames);
    return this.#health.take(arrivals);
  }

  /**
   * Renews a connection whose pictures are decoded but not shown: some browsers wait for a presentation time far in the
   * future.
   * @param {boolean} isSeen
   * @param {number} frames
   */
  #heal(isSeen, frames) {
    const unseen = this.#unseen;
    // Hidden pages draw nothing.
    if (isSeen || document.visibilityState !== "visible") {
      unseen.seconds = 0;
      return;
    }
    unseen.seconds += 1;
    if (unseen.seconds <= 2) unseen.frames = frames;
    const now = performance.now();
    if (unseen.seconds < UNSEEN_S || frames <= unseen.frames + 5 || now - this.#healedAt < this.#healAgain) return;
    if (this.#healedAt > 0) this.#healAgain = Math.min(this.#healAgain * 2, LONGEST_HEAL_MS);
    this.#healedAt = now;
    this.feed.connection.renew();
  }
}
