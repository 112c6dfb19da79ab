// @ts-check

/** Where a viewer is in the feed, which stories are next to that, and their gates. */

import { readGate } from "../gate.js";

/**
 * @typedef {import("./list.js").Story} Story
 * @typedef {import("./swipe.js").Direction} Direction
 */

/**
 * How long a viewer is brought back to a story that was gone for a moment, in milliseconds: the server was restarted.
 */
const RETURN_MS = 30_000;

export class FeedPlace extends EventTarget {
  /**
   * The direction of the last swipe.
   * @type {Direction}
   */
  direction = "forward";
  /** Whether the viewer has swiped past the last story. */
  isAtEnd = false;

  /**
   * Where the viewer was, if the server could not bring them back there.
   * @type {{ id: string, until: number } | null}
   */
  lost = null;

  #isDelayed = false;

  /**
   * The gates of stories that require a tier that we do not have, as far as the server has reported them.
   * @internal
   * @type {Map<string, import("../gate.js").Gate>}
   */
  gates = new Map();

  /** @param {import("./news.js").FeedNews} news */
  constructor(news) {
    super();
    /** @internal */
    this.news = news;
    /** @internal */
    this.list = news.list;
  }

  /** Set while the page plays the current story in another way, without a connection: the state is `playing` then. */
  get isDelayed() {
    return this.#isDelayed;
  }

  set isDelayed(isDelayed) {
    if (isDelayed === this.#isDelayed) return;
    this.#isDelayed = isDelayed;
    this.news.dispatchEvent(new Event("change"));
  }

  /**
   * In swipe order.
   * @returns {Story[]}
   */
  get stories() {
    return this.list.stories;
  }

  /** The current story. After the last one it stays the last one: see `isAtEnd`. */
  get current() {
    return this.list.get(this.list.current);
  }

  /** The current story's index in `stories`; −1 if there is none. */
  get index() {
    return this.list.index;
  }

  /** How many stories there are according to the server; never fewer than are known. */
  get count() {
    return this.news.count;
  }

  /**
   * @param {string | null | undefined} id
   * @returns {Story | null}
   */
  story(id) {
    return this.list.get(id);
  }

  /**
   * The story that a swipe in this direction leads to; null if there is none.
   * @param {Direction} direction
   */
  beside(direction) {
    if (this.isAtEnd) return direction === "backward" ? this.current : this.list.beside(1);
    return this.list.beside(direction === "forward" ? 1 : -1);
  }

  /**
   * Whether the viewer can swipe that way: after the last story comes the end.
   * @param {Direction} direction
   */
  mayGo(direction) {
    return this.beside(direction) !== null || direction === "forward" && !this.isAtEnd && this.current !== null;
  }

  /**
   * The gate of a story; null if it has none, or if the story has not been requested yet.
   * @param {string | null | undefined} id
   */
  gateOf(id) {
    return this.gates.get(id ?? "") ?? null;
  }

  /**
   * Applies a new token: what it opens arrives on the existing connection. If the last one let the viewer see nothing,
   * it begins anew.
   */
  async showToken() {
    const feed = /** @type {import("../story-feed.js").StoryFeed} */ (/** @type {unknown} */ (this));
    if (feed.state === "failed" || feed.missing?.why === "forbidden") {
      feed.stop();
      return feed.play();
    }
    const session = /** @type {import("./session.js").FeedSession | null} */ (feed.connection.session);
    if (session) await this.news.reader.withToken(async (token) => token && session.openGate(token)).catch(() => {});
  }

  /**
   * @internal
   * @param {any} notice
   */
  takeGate(notice) {
    const gate = readGate(notice);
    if (gate) this.gates.set(notice.stream, gate);
    else this.gates.delete(notice.stream);
    this.dispatchEvent(new CustomEvent("gate", { detail: notice.stream }));
    this.dispatchEvent(new Event("change"));
  }

  /**
   * @internal
   * @param {string} id of a story that may come back
   */
  miss(id) {
    this.lost = { id, until: performance.now() + RETURN_MS };
  }

  /**
   * Looks for the lost story in the list: it may have come back before we learned that it was gone.
   * @internal
   */
  lookForLost() {
    if (this.lost) this.news.verify();
  }

  /** The story that is probably next: in the viewer's direction or, at an end of the feed, the other way. */
  get ahead() {
    const step = this.direction === "forward" ? 1 : -1;
    return this.list.beside(step) ?? this.list.beside(step === 1 ? -1 : 1);
  }
}
