// @ts-check

/** Reads the feed page by page; a cursor keeps the pages consistent while the list changes. */

import { SignallingError } from "../session.js";

/** The number of stories on a page. */
const PAGE = 20;
/** The most that the server allows on a page. */
const LARGEST_PAGE = 100;
/** How many more stories than the known ones are read, to tell those that have ended from those that have moved. */
export const BEYOND = LARGEST_PAGE;
/** Most pages read in a row to find out which stories are still live. */
const PAGES_ANEW = 5;
/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;

/** @typedef {import("./list.js").Story} Story */

export class FeedReader {
  /** The number of live streams that the server reported last; 0 before that. */
  count = 0;
  hasRead = false;
  isBusy = false;
  /** Whether the last page was read. */
  isWhole = false;
  /** Whether the server refuses for good to let us read. */
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
   * Reads the next page; null if that fails.
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
      // The cursor has expired: read the current order from the start.
      if (error instanceof SignallingError && (error.status === 410 || error.status === 400)) this.#cursor = null;
      return null;
    } finally {
      this.isBusy = false;
    }
  }

  /**
   * Reads the list from the start, up to a number of stories or its end. The next page continues from there.
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
   * Whether the last `readAnew` read everything, or so much more that known stories that are missing have ended.
   * @param {number} count
   */
  reachesBeyond(count) {
    return this.isWhole || this.#readAnew >= count + BEYOND;
  }

  /**
   * Reads the details of a stream; null if it is not live.
   * @param {string} id
   * @returns {Promise<Story | null>}
   */
  async describe(id) {
    const stream = await this.ask(id).catch(() => null);
    return stream?.state === "live" ? stream : null;
  }

  /**
   * Reads the details of a stream, live or not; null if there is none of that name.
   * @param {string} id
   * @returns {Promise<(Story & { state: string, startsAt?: string | null }) | null>}
   * @throws {SignallingError} if the server refuses to answer
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
