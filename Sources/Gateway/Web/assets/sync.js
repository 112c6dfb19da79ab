// @ts-check

/**
 * Follows a stream's public state (waiting, live, ended, viewers) over a WebSocket, and by asking now and
 * then while the socket does not work.
 */

/** First and longest pause before the socket is tried again, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/**
 * @typedef {object} StreamInfo
 * @property {string} id
 * @property {"waiting" | "backstage" | "live" | "ended"} state
 * @property {number} viewers
 * @property {string | null} [startedAt] ISO 8601
 * @property {string} [title]
 */

/** Fires `change` when `stream` changed, and `resume` when a broken socket works again. */
export class StreamSync extends EventTarget {
  /** Null until something was heard. @type {StreamInfo | null} */
  stream = null;

  #version = 0;
  #pause = FIRST_PAUSE_MS;
  #wasOpen = false;
  #isClosed = false;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} id
   * @param {() => Promise<string | null>} token asked for before each connection
   */
  constructor(id, token) {
    super();
    this.id = id;
    this.token = token;
    this.#connect();
    addEventListener("online", () => !this.#socket && this.#connect());
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  async #connect() {
    clearTimeout(this.#timer);
    const token = await this.token().catch(() => null);
    if (this.#isClosed || this.#socket) return;
    const address = new URL(`/v1/streams/${encodeURIComponent(this.id)}/sync`, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    if (this.#version) address.searchParams.set("since", String(this.#version));
    // A WebSocket cannot carry an Authorization header.
    if (token) address.searchParams.set("access_token", token);
    const socket = this.#socket = new WebSocket(address);
    socket.addEventListener("open", () => {
      this.#pause = FIRST_PAUSE_MS;
      if (this.#wasOpen) this.dispatchEvent(new Event("resume"));
      this.#wasOpen = true;
    });
    socket.addEventListener("message", (event) => this.#received(event.data));
    socket.addEventListener("close", () => {
      this.#socket = null;
      if (this.#isClosed) return;
      this.#ask();
      this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    });
  }

  /** @param {unknown} data */
  #received(data) {
    if (typeof data !== "string") return;
    const message = JSON.parse(data);
    if (message.type === "snapshot" || message.type === "change") {
      this.#version = message.version;
      this.#learn(message.stream);
    }
  }

  /** @param {Partial<StreamInfo>} news fields that changed, or all */
  #learn(news) {
    this.stream = /** @type {StreamInfo} */ ({ ...this.stream, ...news });
    this.dispatchEvent(new Event("change"));
  }

  /** The list of streams tells the most needful without a socket. */
  async #ask() {
    const streams = await listStreams().catch(() => null);
    if (!streams || this.#socket?.readyState === WebSocket.OPEN) return;
    const mine = streams.find((stream) => stream.id === this.id);
    if (mine) this.#learn(mine);
    else if (this.stream?.state === "live") this.#learn({ state: "ended" });
  }
}

/**
 * All streams the server knows of, those that wait or have ended included.
 * @param {AbortSignal} [signal]
 * @returns {Promise<StreamInfo[]>}
 */
export async function listStreams(signal) {
  const response = await fetch("/v1/streams", { signal });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()).streams;
}
