// @ts-check

/** The story that a link or a reload names to start with, and its state if it is not live. */

import { SignallingError } from "../session.js";

/** First and longest pause before a server that did not answer is asked again, in milliseconds. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 32_000;
/** Valid names of streams. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * @typedef {import("./list.js").Story} Story
 *
 * @typedef {object} Missing a story that was asked for but is not live
 * @property {string} id
 * @property {"ended" | "backstage" | "unknown" | "forbidden"} why `unknown`: there is no such stream; `forbidden`: the
 *   token is for another stream
 * @property {string | null} [title]
 * @property {string | null} [hostName]
 * @property {string | null} [startsAt] ISO 8601
 */

/** Fires `change` when the story was found, or turned out not to be live. */
export class Wish extends EventTarget {
  /** The id of the story; null if there is none, or no longer. @type {string | null} */
  id;
  /** Set once the server has answered that it is not live. @type {Missing | null} */
  missing = null;

  #isFound = false;
  #pause = FIRST_PAUSE_MS;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string | null} id
   * @param {import("./news.js").FeedNews} news
   */
  constructor(id, news) {
    super();
    this.id = id || null;
    this.news = news;
    // It may be on a page of the list that is never read.
    news.addEventListener("live", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      if (this.missing && detail.id === this.id) this.#found(detail);
    });
  }

  /** Asks the server whether the story is live: it may be on a page of the list that was not read. */
  async look() {
    const { id } = this;
    clearTimeout(this.#timer);
    if (id === null) return;
    if (!NAME.test(id)) return this.#lacks({ id, why: "unknown" });
    try {
      const stream = await this.news.ask(id);
      if (id !== this.id) return;
      if (stream?.state === "live") return this.#found(stream);
      const { title = null, hostName = null, startsAt = null, state } = stream ?? {};
      const why = state === "ended" ? "ended" : state === "backstage" ? "backstage" : "unknown";
      this.#lacks({ id, why, title, hostName, startsAt });
    } catch (error) {
      if (id !== this.id) return;
      const status = error instanceof SignallingError ? error.status : 0;
      if (status === 403) this.#lacks({ id, why: "forbidden" });
      // The connection fails with the same error, which is shown.
      else if (status === 401) this.rest();
      else {
        this.#timer = setTimeout(() => this.look(), this.#pause);
        this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  /** Whether the story is live, by the server's answer or by the list. */
  get isThere() {
    return this.#isFound || this.news.list.get(this.id) !== null;
  }

  /** Forgets the story. */
  drop() {
    this.rest();
    this.id = null;
  }

  /** Stops asking for now. */
  rest() {
    clearTimeout(this.#timer);
    this.#pause = FIRST_PAUSE_MS;
    this.missing = null;
    this.#isFound = false;
  }

  /** @param {Story} story */
  #found(story) {
    this.#isFound = true;
    this.missing = null;
    this.news.list.begin(story);
    this.dispatchEvent(new Event("change"));
  }

  /** @param {Missing} missing */
  #lacks(missing) {
    if (this.isThere) return;
    this.missing = missing;
    this.dispatchEvent(new Event("change"));
  }
}
