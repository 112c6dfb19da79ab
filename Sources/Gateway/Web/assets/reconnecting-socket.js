// @ts-check

/** A WebSocket of the server that shows a token, says that it is here, and comes back after an interruption. */

/** First and longest pause before it is tried again, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** How often we say that we are here, in milliseconds. */
const HEARTBEAT_MS = 5000;
/** A socket that was silent for so long is dead, in milliseconds. */
const SILENCE_MS = 15_000;
/** State of a socket that is not open yet. */
const CONNECTING = 0;

/**
 * @typedef {object} Loss
 * @property {number} code of the close frame
 * @property {string} reason of the close frame
 * @property {string | null} token that the socket showed
 * @property {boolean} wasTaken whether the server took it
 */

/**
 * Fires `open` when it may say something, `message` (detail: what the server says), `resume` when it works again after
 * an interruption, and `lost` (detail: a {@link Loss}), whose listener may stop it.
 */
export class ReconnectingSocket extends EventTarget {
  #pause = FIRST_PAUSE_MS;
  #isWanted = false;
  #wasOpen = false;
  #wasTaken = false;
  #heardAt = 0;
  /** Counts connections, so that only the last one that was asked for is made. */
  #attempt = 0;
  /** What the present socket shows. @type {string | null} */
  #token = null;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #heartbeat;
  #retry = () => this.#isWanted && !this.#socket && this.#connect();

  /**
   * @param {() => URL} address asked for before each connection, as HTTP
   * @param {() => string | null | Promise<string | null>} token asked for before each connection
   */
  constructor(address, token) {
    super();
    this.address = address;
    this.token = token;
  }

  /** False once it was stopped. */
  get isWanted() {
    return this.#isWanted;
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  start() {
    if (this.#isWanted) return;
    this.#wasOpen = false;
    this.#pause = FIRST_PAUSE_MS;
    this.reconnect();
  }

  stop() {
    this.#isWanted = false;
    removeEventListener("online", this.#retry);
    this.#drop();
  }

  /** Connects anew, with another token or after it was stopped. */
  reconnect() {
    this.#drop();
    this.#isWanted = true;
    addEventListener("online", this.#retry);
    this.#connect();
  }

  /** Nothing happens while it is not open. @param {object} message */
  send(message) {
    if (this.isOpen) this.#socket?.send(JSON.stringify(message));
  }

  #drop() {
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    // Closed before it is open, it would be a fault to the browser, which says so.
    if (socket?.readyState === CONNECTING) socket.addEventListener("open", () => socket.close());
    else socket?.close();
  }

  async #connect() {
    clearTimeout(this.#timer);
    const attempt = ++this.#attempt;
    const token = await this.token();
    if (attempt !== this.#attempt || !this.#isWanted || this.#socket) return;
    const address = this.address();
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    this.#token = token;
    this.#wasTaken = false;
    // A WebSocket cannot carry an Authorization header, and its address ends up in logs.
    if (token) address.searchParams.set("authenticate", "message");
    const socket = this.#socket = new WebSocket(address);
    socket.addEventListener("open", () => socket === this.#socket && this.#opened(socket));
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket || typeof data !== "string") return;
      if (!this.#wasTaken) this.#taken();
      this.#heardAt = performance.now();
      this.dispatchEvent(new CustomEvent("message", { detail: JSON.parse(data) }));
    });
    socket.addEventListener("close", (event) => socket === this.#socket && this.#lost(event));
  }

  /** @param {WebSocket} socket */
  #opened(socket) {
    if (this.#token) this.send({ type: "token", token: this.#token });
    else this.#taken();
    this.#heardAt = performance.now();
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => {
      if (performance.now() - this.#heardAt > SILENCE_MS) socket.close();
      else this.send({ type: "heartbeat" });
    }, HEARTBEAT_MS);
    this.dispatchEvent(new Event("open"));
  }

  /** The server tells us what we ask for: at once where that takes no token, else with its first message. */
  #taken() {
    this.#wasTaken = true;
    this.#pause = FIRST_PAUSE_MS;
    if (this.#wasOpen) this.dispatchEvent(new Event("resume"));
    this.#wasOpen = true;
  }

  /** @param {CloseEvent} event */
  #lost({ code, reason }) {
    this.#drop();
    /** @type {Loss} */
    const detail = { code, reason, token: this.#token, wasTaken: this.#wasTaken };
    this.dispatchEvent(new CustomEvent("lost", { detail }));
    if (!this.#isWanted || this.#socket) return;
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}
