// @ts-check

/**
 * The feed's WebSocket: what goes live, ends, moves and changes. It has no memory: a new connection begins with a
 * snapshot of the list's head.
 */

/** First and longest pause before the socket is tried again, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** How often we say that we are here, in milliseconds. */
const HEARTBEAT_MS = 5000;
/** A socket that was silent for so long is dead, in milliseconds. */
const SILENCE_MS = 15_000;
/** The server's reason for closing: the token is not good. */
const CLOSED_FORBIDDEN = 4403;

/** Fires `message` (detail: the message), `lost` when it cannot be heard, and `resume` when it can again. */
export class FeedFollower extends EventTarget {
  /** @type {WebSocket | null} */
  #socket = null;
  #pause = FIRST_PAUSE_MS;
  #wasOpen = false;
  #isWanted = false;
  #heardAt = 0;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #heartbeat;
  /**
   * Streams of our pages, told again to each new socket.
   * @type {Set<string>}
   */
  #watched = new Set();

  /**
   * @param {string} origin of the server
   * @param {() => string | null} token asked for before each connection
   */
  constructor(origin, token) {
    super();
    this.origin = origin;
    this.token = token;
    addEventListener("online", () => this.#isWanted && !this.#socket && this.#connect());
  }

  start() {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#pause = FIRST_PAUSE_MS;
    this.#connect();
  }

  stop() {
    this.#isWanted = false;
    this.#wasOpen = false;
    this.#drop();
  }

  /**
   * Asks to be told of these too.
   * @param {string[]} streams
   */
  watch(streams) {
    const fresh = streams.filter((stream) => !this.#watched.has(stream));
    for (const stream of fresh) this.#watched.add(stream);
    for (const stream of this.#watched) if (this.#watched.size > 500) this.#watched.delete(stream);
    if (fresh.length && this.#socket?.readyState === WebSocket.OPEN) this.#say({ type: "watch", streams: fresh });
  }

  /** @param {string} stream */
  forget(stream) {
    this.#watched.delete(stream);
  }

  /** @param {object} message */
  #say(message) {
    this.#socket?.send(JSON.stringify(message));
  }

  #drop() {
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #connect() {
    clearTimeout(this.#timer);
    const address = new URL("/v1/feed/sync", this.origin);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const token = this.token();
    // A WebSocket cannot carry an Authorization header.
    if (token) address.searchParams.set("access_token", token);
    const socket = this.#socket = new WebSocket(address);
    socket.addEventListener("open", () => socket === this.#socket && this.#opened(socket));
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket || typeof data !== "string") return;
      this.#heardAt = performance.now();
      this.dispatchEvent(new CustomEvent("message", { detail: JSON.parse(data) }));
    });
    socket.addEventListener("close", (event) => socket === this.#socket && this.#lost(event));
  }

  /** @param {WebSocket} socket */
  #opened(socket) {
    this.#pause = FIRST_PAUSE_MS;
    this.#heardAt = performance.now();
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => {
      if (performance.now() - this.#heardAt > SILENCE_MS) socket.close();
      else if (socket.readyState === WebSocket.OPEN) this.#say({ type: "heartbeat" });
    }, HEARTBEAT_MS);
    if (this.#watched.size) this.#say({ type: "watch", streams: [...this.#watched] });
    if (this.#wasOpen) this.dispatchEvent(new Event("resume"));
    this.#wasOpen = true;
  }

  /** @param {CloseEvent} event */
  #lost(event) {
    this.#drop();
    this.dispatchEvent(new Event("lost"));
    if (event.code === CLOSED_FORBIDDEN) {
      this.#isWanted = false;
      return;
    }
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}
