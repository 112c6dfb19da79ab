// @ts-check

/**
 * The feed's WebSocket: which streams go live, end, move and change. Nothing is resumed: each new connection begins
 * with a snapshot of the top of the list.
 */

import { ReconnectingSocket } from "../reconnecting-socket.js";

/** Close code of the server for a token that it refuses. */
const CLOSED_FORBIDDEN = 4403;
/** Most names in one message; the longest names have 64 characters. */
const NAMES_AT_ONCE = 200;

/** Fires `message` (detail: the message), `lost` when the connection is lost, and `resume` when there is one again. */
export class FeedFollower extends EventTarget {
  /** @type {ReconnectingSocket} */
  #socket;
  /**
   * The streams on the pages that we have read, which each new socket is told again.
   * @type {Set<string>}
   */
  #watched = new Set();

  /**
   * @param {string} origin of the server
   * @param {() => string | null | Promise<string | null>} token called before each connection
   */
  constructor(origin, token) {
    super();
    this.#socket = new ReconnectingSocket(() => new URL("/v1/feed/sync", origin), token);
    this.#socket.addEventListener("open", () => this.#watched.size && this.#watch([...this.#watched]));
    this.#socket.addEventListener("message", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      this.dispatchEvent(new CustomEvent("message", { detail }));
    });
    this.#socket.addEventListener("resume", () => this.dispatchEvent(new Event("resume")));
    this.#socket.addEventListener("lost", (event) => {
      if (/** @type {CustomEvent} */ (event).detail.code === CLOSED_FORBIDDEN) this.stop();
      this.dispatchEvent(new Event("lost"));
    });
  }

  start() {
    this.#socket.start();
  }

  stop() {
    this.#socket.stop();
  }

  /**
   * Asks for changes of these streams, too.
   * @param {string[]} streams
   */
  watch(streams) {
    const fresh = streams.filter((stream) => !this.#watched.has(stream));
    for (const stream of fresh) this.#watched.add(stream);
    for (const stream of this.#watched) if (this.#watched.size > 500) this.#watched.delete(stream);
    if (fresh.length) this.#watch(fresh);
  }

  /** @param {string} stream */
  forget(stream) {
    this.#watched.delete(stream);
  }

  /**
   * Sends them in pieces, as the server accepts messages of up to 16 KiB.
   * @param {string[]} streams
   */
  #watch(streams) {
    for (let first = 0; first < streams.length; first += NAMES_AT_ONCE) {
      this.#socket.send({ type: "watch", streams: streams.slice(first, first + NAMES_AT_ONCE) });
    }
  }
}
