// @ts-check

/**
 * Follows a stream over a WebSocket: its state, who is on stage and who watches, hands, invitations, and messages for
 * this participant alone. First the whole state arrives, then changes; after an interruption, what was missed. While
 * the socket does not work, the stream itself is asked from time to time.
 */

import { ReconnectingSocket } from "./reconnecting-socket.js";
import { SignallingError } from "./session.js";

/** Close codes of the server: the participant was removed (the reason says how), or the token has expired. */
const CLOSED_REMOVED = 4403;
/** @type {Record<string, "banned" | "revoked">} */
const REASONS = { banned: "banned", "link-revoked": "revoked" };
const CLOSED_EXPIRED = 4401;
/** Longest time the server may take to answer a request, in milliseconds. */
const ANSWER_MS = 10_000;
/** Longest wait for the first message, in milliseconds: some proxies never complete a handshake. */
const FIRST_NEWS_MS = 3000;

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
 * @property {boolean} [final] it has ended for good
 * @property {boolean} [doorsOpen]
 * @property {number} [maxSpeakers] on stage beside the host at once
 * @property {string} [programme]
 * @property {string[]} [layers]
 * @property {unknown[]} [tracks]
 * @property {{ tier: string, freeSeconds: number, unlock: string | null } | null} [gate] what watching requires
 * @property {boolean} [isRecording]
 * @property {boolean} [isKept] whether HLS viewers can go back in it now
 * @property {{ url: string, blurHash: string } | null} [preview] only if the stream itself was asked
 * @property {"manual" | "automatic"} [recording]
 * @property {"off" | "moderators" | "everybody"} [clips] who may make them
 * @property {"on" | "off"} [hls] whether it may be watched over HLS
 * @property {number} [dvrSeconds] how far HLS viewers can go back
 *
 * @typedef {object} Member someone on stage
 * @property {string | null} name
 * @property {"host" | "speaker"} role
 * @property {string} since
 * @property {boolean} present
 * @property {boolean} audioMuted
 * @property {boolean} videoMuted
 * @property {boolean} paused
 * @property {boolean} weakUplink part of what they send gets lost
 *
 * @typedef {{ name: string | null, since: string }} Entry an invitation
 *
 * @typedef {Entry & { order: number, held: boolean }} Hand a raised hand; the lowest order is next
 *
 * @typedef {object} Known what everyone may know
 * @property {StreamInfo} stream
 * @property {Record<string, Member>} speakers
 * @property {Record<string, { name: string | null, moderator?: boolean }>} viewers
 * @property {Record<string, Hand>} raisedHands
 * @property {Record<string, Entry>} invitations
 * @property {{ viewers?: number, waiting?: number, speakers?: number, raisedHands?: number }} counts
 * @property {{ ready?: boolean, audio?: boolean, video?: boolean, paused?: boolean }} programme
 *
 * @typedef {object} You
 * @property {string} id
 * @property {string | null} name
 * @property {"host" | "speaker" | "viewer"} role
 * @property {boolean} isModerator
 * @property {boolean} mayModerate comments and their authors
 * @property {string[]} tiers of our token
 * @property {boolean} handRaised
 * @property {number | null} [handPlace] 1 is next; null while the host holds it
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
    if (value === null) {
      delete result[name];
      continue;
    }
    const merged = mergePatch(memberOf(result, name), value);
    // Not by assignment: a participant may be called __proto__, and would be in nobody's list.
    Object.defineProperty(result, name, { value: merged, writable: true, enumerable: true, configurable: true });
  }
  return result;
}

/**
 * A member by a name that somebody chose, such as a participant's identity: every object has a `constructor`.
 * @template Value
 * @param {Record<string, Value> | null | undefined} members
 * @param {string} name
 * @returns {Value | undefined}
 */
export function memberOf(members, name) {
  return members && Object.hasOwn(members, name) ? members[name] : undefined;
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Fires `change` when `known` or `you` changed, `mute` (detail: kind, by) when the host asks us to mute, `interaction`
 * (detail: the message) for what the audience does, `refused` when the server has sent us away for good, and `resume`
 * when the socket works again after an interruption.
 */
export class StreamSync extends EventTarget {
  /** Null before the first message. @type {Known | null} */
  known = null;
  /** Ourselves; null without a token. @type {You | null} */
  you = null;
  /**
   * Why we may no longer follow. `expired`: our token is not, or no longer, valid; `revoked`: the link that we came by
   * is.
   * @type {"removed" | "banned" | "expired" | "revoked" | null}
   */
  refusal = null;

  /** How many times the socket was lost. */
  interruptions = 0;

  #version = 0;
  #claimed = "";
  /** The token that the socket was opened with. @type {string | null} */
  #shown = null;
  #socket = new ReconnectingSocket(() => this.#address(), () => this.#present());

  /**
   * @param {string} id
   * @param {() => Promise<string | null>} token called before each connection
   * @param {(refused: string) => Promise<string | null>} [another] called when the server has refused a token; null if
   *   there is no other
   * @param {{ origin?: string, begins?: boolean }} [options] the server's origin, by default the page's; and whether to
   *   start at once, from when on this participant counts as a viewer
   */
  constructor(id, token, another = async () => null, { origin = location.origin, begins = true } = {}) {
    super();
    this.id = id;
    this.token = token;
    this.another = another;
    this.origin = origin;
    this.#socket.addEventListener("open", () => this.#sayClaimed());
    this.#socket.addEventListener("message", (event) => this.#receive(/** @type {CustomEvent} */ (event).detail));
    this.#socket.addEventListener("resume", () => this.dispatchEvent(new Event("resume")));
    this.#socket.addEventListener("lost", (event) => this.#lost(/** @type {CustomEvent} */ (event).detail));
    if (begins) this.start();
  }

  /** Starts, or continues after `close()`. */
  start() {
    this.#socket.start();
  }

  /** @returns {StreamInfo | null} */
  get stream() {
    return this.known?.stream ?? null;
  }

  /** Whether the stream is backstage and does not let us in. */
  get isShut() {
    return this.stream?.state === "backstage" && !this.stream.doorsOpen && !this.you?.admitted;
  }

  /** Whether the host has left for the moment, and no one else would be seen instead. */
  get isHostAway() {
    const speakers = Object.values(this.known?.speakers ?? {});
    const isAway = speakers.some(({ role, present }) => role === "host" && !present);
    return isAway && (this.stream?.programme === "host" || !speakers.some(({ present }) => present));
  }

  /** Nothing can arrive: no one sends, or those who do have paused. */
  get isProgrammeSilent() {
    const { programme } = this.known ?? {};
    return programme?.paused === true || programme?.ready === false;
  }

  /** The host has removed or banned us. */
  get isKeptOut() {
    return this.refusal === "removed" || this.refusal === "banned";
  }

  /** Whether the socket is open; without it, what is known may be out of date. */
  get isOpen() {
    return this.#socket.isOpen;
  }

  /** False after it was closed, by us or because the server refused us for good. */
  get isWanted() {
    return this.#socket.isWanted;
  }

  close() {
    this.#socket.stop();
  }

  /** Waits until something is known, the socket is lost, or a few seconds have passed. @param {AbortSignal} signal */
  async firstNews(signal) {
    if (this.known || this.interruptions > 0 || signal.aborted) return;
    const end = AbortSignal.any([signal, AbortSignal.timeout(FIRST_NEWS_MS)]);
    await new Promise((resolve) => {
      this.addEventListener("change", resolve, { once: true, signal: end });
      this.#socket.addEventListener("lost", resolve, { once: true, signal: end });
      end.addEventListener("abort", resolve);
    });
  }

  /**
   * Tells the server which session is ours that was opened without a token, so that we are not counted twice.
   * @param {string} resource its address
   */
  claim(resource) {
    this.#claimed = resource.split("/").pop() ?? "";
    this.#sayClaimed();
  }

  #sayClaimed() {
    if (this.#claimed) this.#socket.send({ type: "session", id: this.#claimed });
  }

  /**
   * Sends a message; does nothing while the socket is not open.
   * @param {object} message
   */
  say(message) {
    this.#socket.send(message);
  }

  /** Opens a new connection, with another token or after a refusal. What is known is kept. */
  reconnect() {
    this.refusal = null;
    this.#socket.reconnect();
  }

  #address() {
    const address = new URL(`/v1/streams/${encodeURIComponent(this.id)}/sync`, this.origin);
    if (this.#version) address.searchParams.set("since", String(this.#version));
    return address;
  }

  async #present() {
    this.#shown = await this.token();
    if (!this.#shown) this.you = null;
    return this.#shown;
  }

  /** @param {import("./reconnecting-socket.js").Loss} loss */
  #lost({ code, reason, token, wasTaken }) {
    this.interruptions++;
    if (code === CLOSED_REMOVED) return this.refuse(REASONS[reason] ?? "removed");
    if (token && (code === CLOSED_EXPIRED || !wasTaken)) this.#doubt(token);
    this.#ask();
  }

  /** Closes the socket until `reconnect()`. @param {"removed" | "banned" | "expired" | "revoked"} refusal */
  refuse(refusal) {
    this.close();
    this.you = null;
    this.refusal = refusal;
    this.dispatchEvent(new Event("refused"));
    this.#changed();
  }

  /**
   * Browsers do not tell why a WebSocket was refused. If the token is the reason, it would be refused for ever.
   * @param {string} token
   */
  async #doubt(token) {
    const response = await fetch(`${this.origin}/v1/streams/${encodeURIComponent(this.id)}/participants`, {
      headers: { Authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(ANSWER_MS),
    }).catch(() => null);
    if (response?.status !== 401) return;
    const another = await this.another(token).catch(() => undefined);
    if (another === null && this.#socket.isWanted && token === this.#shown) this.refuse("expired");
  }

  /**
   * Takes in one message.
   * @param {any} message
   */
  #receive(message) {
    const { type, version, you, interaction, ...news } = message;
    switch (type) {
      case "snapshot":
        this.#version = version;
        this.known = { ...NOTHING, ...news };
        this.#tellInteraction({ type: "snapshot", interaction });
        return this.#changed();
      case "interaction-snapshot":
        return this.#tellInteraction({ type: "snapshot", interaction });
      case "interaction":
        return this.#tellInteraction(message);
      case "change":
        this.#version = version;
        this.known = mergePatch(this.known ?? NOTHING, news);
        return this.#changed();
      case "you":
        this.you = you;
        return this.#changed();
      case "mute":
        return this.dispatchEvent(new CustomEvent("mute", { detail: { kind: message.kind, by: message.by } }));
      case "encoder":
        return this.dispatchEvent(new CustomEvent("encoder", { detail: message }));
      case "restream":
        this.dispatchEvent(new CustomEvent("restream", { detail: message }));
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** @param {object} detail */
  #tellInteraction(detail) {
    this.dispatchEvent(new CustomEvent("interaction", { detail }));
  }

  /** Asks the stream itself for what matters most while there is no socket. */
  async #ask() {
    const stream = await askForStream(this.id, { token: this.#shown, origin: this.origin }).catch((error) => {
      // Where a token is needed and there is none, asking again does not help.
      if (error instanceof SignallingError && error.status === 401 && !this.#shown) this.close();
      return undefined;
    });
    if (stream !== undefined) this.learn(stream);
  }

  /** Takes in what the stream itself answered, unless the socket is open. @param {StreamInfo | null} stream */
  learn(stream) {
    if (this.isOpen) return;
    const state = stream ?? (this.stream?.state === "live" ? { state: "ended" } : null);
    if (!state) return;
    this.known = mergePatch(this.known ?? NOTHING, { stream: state });
    this.#changed();
  }
}

/**
 * @param {string} id
 * @param {{ token?: string | null, signal?: AbortSignal, origin?: string }} [options] `origin` of the server
 * @returns {Promise<StreamInfo | null>} null if there is none of that name
 */
export async function askForStream(id, { token, signal, origin = "" } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
  const response = await fetch(`${origin}/v1/streams/${encodeURIComponent(id)}`, {
    headers, signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(signal ? [signal] : [])]),
  });
  if (response.status === 404) return null;
  if (!response.ok) throw await SignallingError.from(response);
  return response.json();
}
