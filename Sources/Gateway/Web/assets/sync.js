// @ts-check

/**
 * Follows a stream over a WebSocket: its state, who is on stage and who watches, hands, invitations, and what only
 * oneself is told. First comes all of it, then changes; after an interruption what was missed. While the socket does
 * not work, it asks now and then.
 */

import { SignallingError } from "./session.js";

/** First and longest pause before the socket is tried again, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** How often we say that we are here, in milliseconds. */
const HEARTBEAT_MS = 5000;
/** A socket that was silent for so long is dead, in milliseconds. */
const SILENCE_MS = 15_000;
/** The server's reasons for closing: removed or banned, and a token that has ended. */
const CLOSED_REMOVED = 4403;
const CLOSED_EXPIRED = 4401;

/**
 * @typedef {object} StreamInfo
 * @property {string} id
 * @property {"waiting" | "backstage" | "live" | "ended"} state
 * @property {number} viewers
 * @property {number} [waiting]
 * @property {string | null} [title]
 * @property {string | null} [host]
 * @property {string | null} [hostName]
 * @property {string | null} [startsAt] ISO 8601
 * @property {number} [joinAheadSeconds]
 * @property {string | null} [startedAt] ISO 8601
 * @property {string | null} [endedAt] ISO 8601
 * @property {string | null} [endReason]
 * @property {boolean} [final] it has ended, and nothing makes it live again
 * @property {boolean} [doorsOpen]
 * @property {string} [programme]
 * @property {string[]} [layers]
 * @property {unknown[]} [tracks]
 * @property {boolean} [isRecording]
 * @property {"manual" | "automatic"} [recording]
 *
 * @typedef {object} Member somebody on stage
 * @property {string | null} name
 * @property {"host" | "speaker"} role
 * @property {string} since
 * @property {boolean} present
 * @property {boolean} audioMuted
 * @property {boolean} videoMuted
 * @property {boolean} paused
 *
 * @typedef {{ name: string | null, since: string }} Entry a raised hand or an invitation
 *
 * @typedef {object} Known everything all may know
 * @property {StreamInfo} stream
 * @property {Record<string, Member>} speakers
 * @property {Record<string, { name: string | null }>} viewers
 * @property {Record<string, Entry>} raisedHands
 * @property {Record<string, Entry>} invitations
 * @property {{ viewers?: number, waiting?: number, speakers?: number, raisedHands?: number }} counts
 * @property {{ ready?: boolean, audio?: boolean, video?: boolean, paused?: boolean }} programme
 *
 * @typedef {object} You
 * @property {string} id
 * @property {string | null} name
 * @property {"host" | "speaker" | "viewer"} role
 * @property {boolean} isModerator
 * @property {boolean} handRaised
 * @property {boolean} invited
 * @property {boolean} admitted
 * @property {boolean} audioMuted
 * @property {boolean} videoMuted
 * @property {boolean} paused
 */

const NOTHING = { speakers: {}, viewers: {}, raisedHands: {}, invitations: {}, counts: {}, programme: {} };

/**
 * A JSON merge patch (RFC 7396): objects merge, null deletes, anything else replaces. Neither argument changes.
 * @param {any} target
 * @param {any} patch
 * @returns {any}
 */
export function mergePatch(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    // A participant may be called __proto__; nothing of ours is.
    if (name === "__proto__") continue;
    if (value === null) delete result[name];
    else result[name] = mergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value);
  }
  return result;
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Fires `change` when anything of `known` or `you` changed, `mute` (detail: kind, by) when the host asks us to mute,
 * `refused` when the server sent us away for good, and `resume` when a broken socket works again.
 */
export class StreamSync extends EventTarget {
  /** Null until something was heard. @type {Known | null} */
  known = null;
  /** What we are here; null for those without a token. @type {You | null} */
  you = null;
  /** Why we may not follow any more; `expired`: our token is not, or no longer, valid. @type {"removed" | "banned" | "expired" | null} */
  refusal = null;

  /** How often the socket broke. */
  interruptions = 0;

  #version = 0;
  #pause = FIRST_PAUSE_MS;
  #wasOpen = false;
  #claimed = "";
  /** With which the socket was opened. @type {string | null} */
  #shown = null;
  /** Whether that socket worked. */
  #wasTaken = false;
  #isClosed = false;
  /** @type {WebSocket | null} */
  #socket = null;
  #heardAt = 0;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #heartbeat;

  /**
   * @param {string} id
   * @param {() => Promise<string | null>} token asked for before each connection
   * @param {(refused: string) => Promise<string | null>} [another] asked for when the server refused a token; null if
   * there is none
   */
  constructor(id, token, another = async () => null) {
    super();
    this.id = id;
    this.token = token;
    this.another = another;
    this.#connect();
    addEventListener("online", () => !this.#socket && this.#connect());
  }

  /** @returns {StreamInfo | null} */
  get stream() {
    return this.known?.stream ?? null;
  }

  /** Whether the server itself tells what is known; without the socket some of it is a guess. */
  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  close() {
    this.#isClosed = true;
    this.#drop();
  }

  /**
   * Says which session is ours that was made before we had a name, so that we are not counted twice.
   * @param {string} resource its address
   */
  claim(resource) {
    this.#claimed = resource.split("/").pop() ?? "";
    this.#sayClaimed();
  }

  #sayClaimed() {
    if (this.isOpen && this.#claimed) this.#socket?.send(JSON.stringify({ type: "session", id: this.#claimed }));
  }

  /** Connects anew, with another token or after a refusal; nothing known is lost by it. */
  reconnect() {
    this.#drop();
    this.#isClosed = false;
    this.refusal = null;
    this.#connect();
  }

  #drop() {
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  async #connect() {
    clearTimeout(this.#timer);
    const token = await this.token().catch(() => null);
    if (this.#isClosed || this.#socket) return;
    const address = new URL(`/v1/streams/${encodeURIComponent(this.id)}/sync`, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    if (this.#version) address.searchParams.set("since", String(this.#version));
    // A WebSocket cannot carry an Authorization header.
    this.#shown = token;
    this.#wasTaken = false;
    if (token) address.searchParams.set("access_token", token);
    else this.you = null;
    const socket = this.#socket = new WebSocket(address);
    socket.addEventListener("open", () => socket === this.#socket && this.#opened(socket));
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket && typeof data === "string") this.receive(JSON.parse(data));
    });
    socket.addEventListener("close", (event) => socket === this.#socket && this.#lost(event));
  }

  /** @param {WebSocket} socket */
  #opened(socket) {
    this.#pause = FIRST_PAUSE_MS;
    this.#wasTaken = true;
    this.#heardAt = performance.now();
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => {
      if (performance.now() - this.#heardAt > SILENCE_MS) socket.close();
      else if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "heartbeat" }));
    }, HEARTBEAT_MS);
    this.#sayClaimed();
    if (this.#wasOpen) this.dispatchEvent(new Event("resume"));
    this.#wasOpen = true;
  }

  /** @param {CloseEvent} event */
  #lost(event) {
    this.#drop();
    this.interruptions++;
    if (event.code === CLOSED_REMOVED) return this.refuse(event.reason === "banned" ? "banned" : "removed");
    if (this.#shown && (event.code === CLOSED_EXPIRED || !this.#wasTaken)) this.#doubt(this.#shown);
    this.#ask();
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }

  /** Stays away for good, until `reconnect`. @param {"removed" | "banned" | "expired"} refusal */
  refuse(refusal) {
    this.#drop();
    this.#isClosed = true;
    this.you = null;
    this.refusal = refusal;
    this.dispatchEvent(new Event("refused"));
    this.#changed();
  }

  /**
   * Nothing tells a page why its WebSocket was refused. Where the token was the reason, it would be so for ever.
   * @param {string} token
   */
  async #doubt(token) {
    const response = await fetch(`/v1/streams/${encodeURIComponent(this.id)}/participants`, {
      headers: { Authorization: `Bearer ${token}` },
    }).catch(() => null);
    if (response?.status !== 401) return;
    const another = await this.another(token).catch(() => undefined);
    if (another === null && !this.#isClosed && token === this.#shown) this.refuse("expired");
  }

  /**
   * Learns from one message.
   * @param {any} message
   */
  receive(message) {
    this.#heardAt = performance.now();
    const { type, version, you, ...news } = message;
    switch (type) {
      case "snapshot":
        this.#version = version;
        this.known = { ...NOTHING, ...news };
        return this.#changed();
      case "change":
        this.#version = version;
        this.known = mergePatch(this.known ?? NOTHING, news);
        return this.#changed();
      case "you":
        this.you = you;
        return this.#changed();
      case "mute":
        this.dispatchEvent(new CustomEvent("mute", { detail: { kind: message.kind, by: message.by } }));
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** The stream itself tells the most needful without a socket. */
  async #ask() {
    const stream = await askForStream(this.id, { token: this.#shown }).catch((error) => {
      // Whoever needs a token and has none is not let in for asking again.
      if (error instanceof SignallingError && error.status === 401 && !this.#shown) this.close();
      return undefined;
    });
    if (stream === undefined || this.#socket?.readyState === WebSocket.OPEN) return;
    const state = stream ?? (this.stream?.state === "live" ? { state: "ended" } : null);
    if (!state) return;
    this.known = mergePatch(this.known ?? NOTHING, { stream: state });
    this.#changed();
  }
}

/**
 * @param {string} id
 * @param {{ token?: string | null, signal?: AbortSignal }} [options]
 * @returns {Promise<StreamInfo | null>} null if there is none of that name
 */
export async function askForStream(id, { token, signal } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
  const response = await fetch(`/v1/streams/${encodeURIComponent(id)}`, { headers, signal });
  if (response.status === 404) return null;
  if (!response.ok) throw await SignallingError.from(response);
  return response.json();
}
