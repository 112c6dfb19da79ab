// @ts-check

/** Reads the feed page by page; a cursor keeps the pages consistent while the list changes. */

import { SignallingError } from "../session.js";

/** Stories on a page. */
const PAGE = 20;
/** The most that the server puts on a page. */
const LARGEST_PAGE = 100;
/** Stories read beyond the known ones, to tell those that have ended from those that have moved. */
export const BEYOND = LARGEST_PAGE;
/** The most pages read in one go to find out what is still live. */
const PAGES_ANEW = 5;
/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;

/** @typedef {import("./list.js").Story} Story */

export class FeedReader {
  /** How many streams there are, as the server last said; 0 while it has not. */
  count = 0;
  hasRead = false;
  isBusy = false;
  /** Whether the last page that there is now was read. */
  isWhole = false;
  /** The server does not let us read, and would not if it were asked again. */
  isRefused = false;

  /** @type {string | null} */
  #cursor = null;
  #readAnew = 0;

  /**
   * @param {string} origin
   * @param {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken
   */
  constructor(origin, withToken) {
    this.origin = origin;
    this.withToken = withToken;
  }

  /**
   * The next page; null when it cannot be had now.
   * @returns {Promise<Story[] | null>}
   */
  async read() {
    if (this.isBusy) return null;
    this.isBusy = true;
    try {
      const page = await this.#page(PAGE, this.#cursor);
      this.#cursor = page.next;
      this.isWhole = page.last;
      this.hasRead = true;
      return page.items;
    } catch (error) {
      // The server does not keep orders for ever: what it has now is read from the beginning.
      if (error instanceof SignallingError && (error.status === 410 || error.status === 400)) this.#cursor = null;
      return null;
    } finally {
      this.isBusy = false;
    }
  }

  /**
   * The list's head as it is now, at least so many if there are so many. What is read next follows on it.
   * @param {number} count
   * @returns {Promise<Story[] | null>}
   */
  async readAnew(count) {
    const items = [];
    /** @type {string | null} */
    let cursor = null;
    try {
      for (let page = 0; page < PAGES_ANEW; page++) {
        /** @type {{ items: Story[], next: string, last: boolean }} */
        const answer = await this.#page(LARGEST_PAGE, cursor);
        items.push(...answer.items);
        cursor = answer.next;
        this.isWhole = answer.last;
        if (answer.last || items.length >= count) break;
      }
    } catch {
      return null;
    }
    this.#cursor = cursor;
    this.#readAnew = items.length;
    return items;
  }

  /**
   * Whether what was read anew is all, or so much more that what is not in it is gone.
   * @param {number} count
   */
  reachesBeyond(count) {
    return this.isWhole || this.#readAnew >= count + BEYOND;
  }

  /**
   * What is known of one stream; null if it is not live.
   * @param {string} id
   * @returns {Promise<Story | null>}
   */
  async describe(id) {
    const stream = await this.ask(id).catch(() => null);
    return stream?.state === "live" ? stream : null;
  }

  /**
   * What the server says of one stream, live or not; null if there is none of that name.
   * @param {string} id
   * @returns {Promise<(Story & { state: string, startsAt?: string | null }) | null>}
   * @throws {SignallingError} when it does not say
   */
  async ask(id) {
    try {
      return { ...await this.#get(`/v1/streams/${encodeURIComponent(id)}`), id };
    } catch (error) {
      if (error instanceof SignallingError && error.status === 404) return null;
      throw error;
    }
  }

  /**
   * @param {number} limit
   * @param {string | null} cursor
   * @returns {Promise<{ items: Story[], next: string, last: boolean }>}
   */
  #page(limit, cursor) {
    const after = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    return this.#get(`/v1/feed?limit=${limit}${after}`);
  }

  /**
   * @param {string} path
   * @returns {Promise<any>}
   */
  #get(path) {
    return this.withToken(async (token) => {
      const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
      const response = await fetch(new URL(path, this.origin), { headers, signal: AbortSignal.timeout(ANSWER_MS) });
      this.isRefused = response.status === 401;
      if (!response.ok) throw await SignallingError.from(response);
      return response.json();
    });
  }
}
