// @ts-check

/** A WebSocket to the server that sends a token and heartbeats, and reconnects after an interruption. */

/** First and longest pause before the next attempt, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** Time between heartbeats, in milliseconds. */
const HEARTBEAT_MS = 5000;
/**
 * A socket that receives nothing for this long is dead, in milliseconds; so is one that takes longer to open. Browsers
 * themselves wait minutes for a handshake that a network or a proxy swallows.
 */
const SILENCE_MS = 15_000;
/** `readyState` of a socket that is not open yet. */
const CONNECTING = 0;

/**
 * @typedef {object} Loss
 * @property {number} code of the close frame
 * @property {string} reason of the close frame
 * @property {string | null} token that the socket showed
 * @property {boolean} wasTaken whether the server took it
 */

/**
 * Fires `open` when it can send, `message` (detail: the parsed message), `resume` when it works again after an
 * interruption, and `lost` (detail: a {@link Loss}), whose listener may stop it.
 */
export class ReconnectingSocket extends EventTarget {
  #pause = FIRST_PAUSE_MS;
  #isWanted = false;
  #wasOpen = false;
  #wasTaken = false;
  #heardAt = 0;
  /** Counts attempts, so that only the latest one opens a socket. */
  #attempt = 0;
  /** The token that the current socket sends. @type {string | null} */
  #token = null;
  /** @type {WebSocket | null} */
  #socket = null;
  /** Until the next attempt. @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #heartbeat;
  #retry = () => this.#isWanted && !this.#socket && this.#connect();

  /**
   * @param {() => URL} address called before each connection; an HTTP address
   * @param {() => string | null | Promise<string | null>} token called before each connection; if it fails, it is
   *   called again after a pause
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

  /** Opens a new connection, for example with another token or after `stop()`. */
  reconnect() {
    this.#drop();
    this.#isWanted = true;
    addEventListener("online", this.#retry);
    this.#connect();
  }

  /** Sends a message; does nothing while the socket is not open. @param {object} message */
  send(message) {
    if (this.isOpen) this.#socket?.send(JSON.stringify(message));
  }

  #drop() {
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    // Browsers log an error if a socket is closed before it opens.
    if (socket?.readyState === CONNECTING) socket.addEventListener("open", () => socket.close());
    else socket?.close();
  }

  async #connect() {
    clearTimeout(this.#timer);
    const attempt = ++this.#attempt;
    const isCurrent = () => attempt === this.#attempt && this.#isWanted && !this.#socket;
    /** @type {WebSocket} */
    let socket;
    try {
      const token = await this.token();
      if (!isCurrent()) return;
      this.#token = token;
      this.#wasTaken = false;
      socket = this.#socket = this.#open(token);
    } catch {
      // Not without a token: where viewers need one, the refusal of a socket that sends none is final.
      if (isCurrent()) this.#rest();
      return;
    }
    // Also if it is not wanted by then: browsers open no second one to the same host before the first.
    setTimeout(() => socket.readyState === CONNECTING && socket.close(), SILENCE_MS);
    socket.addEventListener("open", () => socket === this.#socket && this.#opened(socket));
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket || typeof data !== "string") return;
      // Not when it opens: a server that cannot serve a follower closes a socket that it has accepted.
      this.#pause = FIRST_PAUSE_MS;
      if (!this.#wasTaken) this.#taken();
      this.#heardAt = performance.now();
      this.dispatchEvent(new CustomEvent("message", { detail: JSON.parse(data) }));
    });
    socket.addEventListener("close", (event) => socket === this.#socket && this.#lost(event));
  }

  /** @param {string | null} token */
  #open(token) {
    const address = this.address();
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    // Browsers cannot add an Authorization header to a WebSocket, and addresses end up in logs.
    if (token) address.searchParams.set("authenticate", "message");
    // Throws where a page may not open it, such as one over HTTPS to a server without TLS.
    return new WebSocket(address);
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

  /** The server has accepted us: at once if that takes no token, otherwise with its first message. */
  #taken() {
    this.#wasTaken = true;
    if (this.#wasOpen) this.dispatchEvent(new Event("resume"));
    this.#wasOpen = true;
  }

  /** @param {CloseEvent} event */
  #lost({ code, reason }) {
    this.#drop();
    /** @type {Loss} */
    const detail = { code, reason, token: this.#token, wasTaken: this.#wasTaken };
    this.dispatchEvent(new CustomEvent("lost", { detail }));
    if (this.#isWanted && !this.#socket) this.#rest();
  }

  /** Tries again after a pause, which grows until the server says something. */
  #rest() {
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}
