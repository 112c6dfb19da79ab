// @ts-check

/**
 * Follows a stream over a WebSocket: its state, who is on stage and who watches, hands, invitations, and what only
 * oneself is told. First comes all of it, then changes; after an interruption what was missed. While the socket does
 * not work, it asks now and then.
 */

import { ReconnectingSocket } from "./reconnecting-socket.js";
import { SignallingError } from "./session.js";

/** The server's reasons for closing: who is kept out, as its words say, and a token that has ended. */
const CLOSED_REMOVED = 4403;
/** @type {Record<string, "banned" | "revoked">} */
const REASONS = { banned: "banned", "link-revoked": "revoked" };
const CLOSED_EXPIRED = 4401;
/** Longest time the server may take to answer a request, in milliseconds. */
const ANSWER_MS = 10_000;
/** How long a socket's first news are worth waiting for, in milliseconds; some proxies hold sockets up for ever. */
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
 * @property {boolean} [final] it has ended, and nothing makes it live again
 * @property {boolean} [doorsOpen]
 * @property {number} [maxSpeakers] on stage beside the host at once
 * @property {string} [programme]
 * @property {string[]} [layers]
 * @property {unknown[]} [tracks]
 * @property {{ tier: string, freeSeconds: number, unlock: string | null } | null} [gate] what watching takes
 * @property {boolean} [isRecording]
 * @property {boolean} [isKept] whether viewers by HLS can go back in it now
 * @property {{ url: string, blurHash: string } | null} [preview] only where the stream itself was asked
 * @property {"manual" | "automatic"} [recording]
 * @property {"off" | "moderators" | "everybody"} [clips] who may make them
 * @property {"on" | "off"} [hls] whether it may be watched by HLS
 * @property {number} [dvrSeconds] how far viewers by HLS can go back
 *
 * @typedef {object} Member somebody on stage
 * @property {string | null} name
 * @property {"host" | "speaker"} role
 * @property {string} since
 * @property {boolean} present
 * @property {boolean} audioMuted
 * @property {boolean} videoMuted
 * @property {boolean} paused
 * @property {boolean} weakUplink less of what they send comes than should
 *
 * @typedef {{ name: string | null, since: string }} Entry an invitation
 *
 * @typedef {Entry & { order: number, held: boolean }} Hand one that is raised; the least order is next
 *
 * @typedef {object} Known everything all may know
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
 * @property {boolean} mayModerate comments and who writes them
 * @property {string[]} tiers what our token says that we have paid for, or been given
 * @property {boolean} handRaised
 * @property {number | null} [handPlace] 1 for who is next; null where the host holds it
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
 * Fires `change` when anything of `known` or `you` changed, `mute` (detail: kind, by) when the host asks us to mute,
 * `interaction` (detail: the message) when the audience said or tapped something, `refused` when the server sent us away
 * for good, and `resume` when a broken socket works again.
 */
export class StreamSync extends EventTarget {
  /** Null until something was heard. @type {Known | null} */
  known = null;
  /** What we are here; null for those without a token. @type {You | null} */
  you = null;
  /**
   * Why we may not follow any more; `expired`: our token is not, or no longer, valid; `revoked`: the link we came by.
   * @type {"removed" | "banned" | "expired" | "revoked" | null}
   */
  refusal = null;

  /** How often the socket broke. */
  interruptions = 0;

  #version = 0;
  #claimed = "";
  /** With which the socket was opened. @type {string | null} */
  #shown = null;
  #socket = new ReconnectingSocket(() => this.#address(), () => this.#present());

  /**
   * @param {string} id
   * @param {() => Promise<string | null>} token asked for before each connection
   * @param {(refused: string) => Promise<string | null>} [another] asked for when the server refused a token; null if
   * there is none
   * @param {{ origin?: string, begins?: boolean }} [options] the server's origin, by default the page's; and whether it
   * begins at once, which makes who watches a viewer
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

  /** Goes on where it was closed. */
  start() {
    this.#socket.start();
  }

  /** @returns {StreamInfo | null} */
  get stream() {
    return this.known?.stream ?? null;
  }

  /** Whether the doors are closed to us. */
  get isShut() {
    return this.stream?.state === "backstage" && !this.stream.doorsOpen && !this.you?.admitted;
  }

  /** The host was there, and for the moment is not; nor is anybody else whom viewers would see instead. */
  get isHostAway() {
    const speakers = Object.values(this.known?.speakers ?? {});
    const isAway = speakers.some(({ role, present }) => role === "host" && !present);
    return isAway && (this.stream?.programme === "host" || !speakers.some(({ present }) => present));
  }

  /** Nothing can come: nobody sends, or who does says that they are away. */
  get isProgrammeSilent() {
    const { programme } = this.known ?? {};
    return programme?.paused === true || programme?.ready === false;
  }

  /** The host decided that we do not follow the stream any more. */
  get isKeptOut() {
    return this.refusal === "removed" || this.refusal === "banned";
  }

  /** Whether the server itself tells what is known; without the socket some of it is a guess. */
  get isOpen() {
    return this.#socket.isOpen;
  }

  /** False once it was closed, by us or because the server would never let us in. */
  get isWanted() {
    return this.#socket.isWanted;
  }

  close() {
    this.#socket.stop();
  }

  /** Waits until something is known, or the socket is lost, or silent for long. @param {AbortSignal} signal */
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
   * Says which session is ours that was made before we had a name, so that we are not counted twice.
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
   * Says something to the stream; nothing happens while the socket does not work.
   * @param {object} message
   */
  say(message) {
    this.#socket.send(message);
  }

  /** Connects anew, with another token or after a refusal; nothing known is lost by it. */
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

  /** Stays away for good, until `reconnect`. @param {"removed" | "banned" | "expired" | "revoked"} refusal */
  refuse(refusal) {
    this.close();
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
    const response = await fetch(`${this.origin}/v1/streams/${encodeURIComponent(this.id)}/participants`, {
      headers: { Authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(ANSWER_MS),
    }).catch(() => null);
    if (response?.status !== 401) return;
    const another = await this.another(token).catch(() => undefined);
    if (another === null && this.#socket.isWanted && token === this.#shown) this.refuse("expired");
  }

  /**
   * Learns from one message.
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

  /** The stream itself tells the most needful without a socket. */
  async #ask() {
    const stream = await askForStream(this.id, { token: this.#shown, origin: this.origin }).catch((error) => {
      // Whoever needs a token and has none is not let in for asking again.
      if (error instanceof SignallingError && error.status === 401 && !this.#shown) this.close();
      return undefined;
    });
    if (stream !== undefined) this.learn(stream);
  }

  /** Learns what the stream itself told; what comes by the socket is newer. @param {StreamInfo | null} stream */
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
