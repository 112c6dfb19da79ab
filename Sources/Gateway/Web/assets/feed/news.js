// @ts-check

/** Keeps the list up to date: reads it page by page as the viewer goes on, and follows changes over a WebSocket. */

import { FeedFollower } from "./follower.js";
import { StoryList } from "./list.js";
import { BEYOND, FeedReader } from "./reader.js";

/** The next page is read when fewer stories than this are ahead of the viewer. */
const READ_AHEAD = 6;
/** First and longest pause before a page that could not be read is requested again, in milliseconds. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 32_000;
/** A new order is read after a random time up to this, in milliseconds, so that not all viewers ask at once. */
const SPREAD_MS = 3000;

/** @typedef {import("./list.js").Story} Story */

/**
 * Fires `change`, `gone` (detail: its id) when the current story has ended, which stays in the list until it is taken
 * out, and `resume` when the connection is there again after an interruption.
 */
export class FeedNews extends EventTarget {
  list = new StoryList();

  #isOn = false;
  #pause = FIRST_PAUSE_MS;
  /** @type {number | undefined} */
  #retry;
  /** @type {number | undefined} */
  #reordering;

  /**
   * @param {string} origin
   * @param {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken
   * @param {() => string | null | Promise<string | null>} token for the socket
   */
  constructor(origin, withToken, token) {
    super();
    this.reader = new FeedReader(origin, withToken);
    this.follower = new FeedFollower(origin, token);
    this.follower.addEventListener("message", (event) => this.#heard(/** @type {CustomEvent} */ (event).detail));
    // Without the socket, the list is read after each failed attempt.
    this.follower.addEventListener("lost", () => this.reader.hasRead && this.verify());
    this.follower.addEventListener("resume", () => this.dispatchEvent(new Event("resume")));
  }

  /** The number of stories according to the server, but at least the number of known ones. */
  get count() {
    return Math.max(this.reader.count, this.list.length);
  }

  start() {
    this.#isOn = true;
    this.follower.start();
    this.read();
  }

  stop() {
    this.#isOn = false;
    this.#hurry();
    clearTimeout(this.#reordering);
    this.#reordering = undefined;
    this.follower.stop();
  }

  /** Reads the next page if the viewer is near the end of the known stories. */
  async read() {
    const { reader, list } = this;
    if (!this.#isOn || reader.isBusy || this.#retry !== undefined) return;
    if (reader.hasRead && (reader.isWhole || list.length - list.index > READ_AHEAD)) return;
    const items = await reader.read();
    if (!this.#isOn) return;
    if (reader.isRefused) return this.follower.stop();
    if (!items) {
      this.#retry = setTimeout(() => {
        this.#retry = undefined;
        this.read();
      }, this.#pause);
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
      return;
    }
    this.#pause = FIRST_PAUSE_MS;
    list.append(items);
    this.follower.watch(items.map(({ id }) => id));
    this.#changed();
  }

  /**
   * Asks about a stream that was on no page; null if it is not live.
   * @param {string} id
   */
  async describe(id) {
    const story = await this.reader.describe(id);
    if (story) this.follower.watch([id]);
    if (story && this.list.edit(id, story)) this.#changed();
    return story;
  }

  /**
   * Asks about a stream, live or not; null if there is none of that name.
   * @param {string} id
   * @throws {SignallingError} if the server refuses to answer
   */
  async ask(id) {
    const stream = await this.reader.ask(id);
    if (stream?.state === "live") this.follower.watch([id]);
    return stream;
  }

  /** @param {string} id */
  forget(id) {
    this.follower.forget(id);
    this.list.remove(id);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** Ends the pause after a failure. */
  #hurry() {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#pause = FIRST_PAUSE_MS;
  }

  /**
   * Takes in a message of the WebSocket.
   * @param {any} message
   */
  #heard(message) {
    if (message.type === "snapshot") {
      // The server can be reached.
      this.#hurry();
      this.reader.count = message.count ?? 0;
      const isNews = this.reader.hasRead;
      this.list.append(message.items);
      if (isNews) this.verify();
    } else if (message.type === "change") {
      this.#take(message);
    } else {
      return;
    }
    this.#changed();
  }

  /** @param {any} change */
  #take({ added = [], ended = [], moved = [], viewers = {}, edited = [], previews = {}, reordered = false }) {
    const { list, reader } = this;
    for (const { item, after } of added) {
      // After an unknown story, it is on a page that is still to be read.
      if (!after || list.get(after) || reader.isWhole) list.insert(item, after);
      this.dispatchEvent(new CustomEvent("live", { detail: item }));
    }
    if (added.length) this.follower.watch(added.map(({ item }) => item.id));
    for (const id of ended) this.#end(id);
    for (const { id, after } of moved) list.move(id, after);
    for (const [id, count] of Object.entries(viewers)) list.edit(id, { viewers: count });
    for (const item of edited) list.edit(item.id, item);
    for (const [id, preview] of Object.entries(previews)) list.edit(id, { preview });
    reader.count = Math.max(0, reader.count + added.length - ended.length);
    if (reordered) this.#expectOrder();
  }

  /** Reads the whole order, once for all such events meanwhile: more stories moved than the server names. */
  #expectOrder() {
    this.#reordering ??= setTimeout(async () => {
      this.#reordering = undefined;
      // The first page has not arrived yet, or the page on its way continues the old order.
      if (!this.reader.hasRead || this.reader.isBusy) return this.#isOn && this.#expectOrder();
      const stories = await this.reader.readAnew(this.list.length);
      if (stories && this.#isOn) this.#arrange(stories);
    }, Math.random() * SPREAD_MS);
  }

  /** @param {Story[]} stories */
  #arrange(stories) {
    this.list.arrange(stories);
    this.follower.watch(stories.map(({ id }) => id));
    this.#changed();
  }

  /** @param {string} id */
  #end(id) {
    if (id === this.list.current) this.dispatchEvent(new CustomEvent("gone", { detail: id }));
    else this.forget(id);
  }

  /** Compares the list with the server's after changes may have been missed. */
  async verify() {
    const known = this.list.stories.map(({ id }) => id);
    const live = await this.reader.readAnew(known.length + BEYOND);
    if (this.reader.isRefused) this.follower.stop();
    if (!live || !this.#isOn) return;
    const ids = new Set(live.map(({ id }) => id));
    if (this.reader.reachesBeyond(known.length)) for (const id of known) if (!ids.has(id)) this.#end(id);
    this.#arrange(live);
  }
}
