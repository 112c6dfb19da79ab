// @ts-check

/** A stream as a player sees it: its addresses, the token, and what the server tells about it. */

import { SignallingError } from "../session.js";
import { askForStream, StreamSync } from "../sync.js";
import { Access } from "./access.js";

/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;
/** First and longest pause before the stream is looked up again while no one watches, in milliseconds. */
const FIRST_LOOK_MS = 10_000;
const LAST_LOOK_MS = 160_000;

/**
 * @typedef {object} Place
 * @property {string} origin of the server
 * @property {string} id the name of the stream
 * @property {string | null} token in the address
 */

/**
 * Reads the address of a stream's page, or of its WHEP endpoint: `https://host/watch/demo`, perhaps with `#token=…`.
 * @param {string} address may be relative to the page
 * @returns {Place | null}
 */
export function placeOf(address) {
  try {
    const url = new URL(address, document.baseURI);
    const [, name] = url.pathname.match(/^\/(?:watch|live|whep)\/([^/]+)\/?$/) ?? [];
    if (!name || !/^https?:$/.test(url.protocol)) return null;
    const token = new URLSearchParams(url.hash.slice(1)).get("token") ?? url.searchParams.get("access_token");
    return { origin: url.origin, id: decodeURIComponent(name), token };
  } catch {
    return null;
  }
}

/**
 * A stream for `Viewing` and `Recordings`; fires `change`. Until someone watches, it only looks the stream up from time
 * to time, because followers count as viewers.
 */
export class WatchedStream extends EventTarget {
  /** Null: any codec that the browser supports. */
  codec = null;
  /** The preview, which sync does not contain. @type {{ url: string, blurHash: string } | null} */
  preview = null;
  /** Why the server refuses to describe the stream. @type {SignallingError | null} */
  problem = null;

  #end = new AbortController();
  #isFollowed = false;
  #pause = FIRST_LOOK_MS;
  /** @type {number | undefined} */
  #timer;

  /** @param {Place} place @param {string | null} token */
  constructor({ origin, id }, token) {
    super();
    this.origin = origin;
    this.id = id;
    this.path = `/v1/streams/${encodeURIComponent(id)}`;
    this.endpoint = `${origin}/whep/${encodeURIComponent(id)}`;
    this.hls = `${origin}/hls/${encodeURIComponent(id)}/`;
    this.access = new Access(`${origin}${this.path}/tokens`, token);
    this.sync = new StreamSync(id, () => this.#tokenForSync(), (refused) => this.access.another(refused), {
      origin, begins: false,
    });
    this.sync.addEventListener("change", () => this.#changed());
    this.api = { recordings: () => this.#ask("/recordings") };
    this.#look();
  }

  /** Stops everything. */
  close() {
    this.#end.abort();
    clearTimeout(this.#timer);
    this.sync.close();
    this.access.close();
  }

  /** Follows the stream when someone starts watching. */
  follow() {
    this.#isFollowed = true;
    this.sync.start();
  }

  /** Stops following when no one watches anymore. */
  rest() {
    this.#isFollowed = false;
    this.sync.close();
    this.#pause = FIRST_LOOK_MS;
    this.#look();
  }

  get info() {
    return this.sync.stream;
  }

  get hasToken() {
    return this.access.hasToken;
  }

  /** Whether our invitation is no longer valid; sync knows why. */
  get isLinkDead() {
    return this.sync.refusal === "expired" || this.sync.refusal === "revoked";
  }

  /**
   * Runs an action with our token, and once more with a fresh one if the server refuses the first (401).
   * @template T
   * @param {(token: string | null) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async withToken(action) {
    const token = await this.access.token();
    try {
      return await action(token);
    } catch (error) {
      if (!(error instanceof SignallingError && error.status === 401) || !token) throw error;
      const fresh = await this.access.another(token);
      if (!fresh) throw error;
      return action(fresh);
    }
  }

  /** The address of a file, with the token in it, because a `<video>` cannot set headers. @param {string} path */
  addressOf(path) {
    const url = new URL(path, this.origin);
    if (this.access.known) url.searchParams.set("access_token", this.access.known);
    return url.href;
  }

  /** The address of the preview; null if there is none. */
  get previewAddress() {
    return this.preview && new URL(this.preview.url, this.origin).href;
  }

  async #tokenForSync() {
    try {
      return await this.access.token();
    } catch (error) {
      if (error instanceof SignallingError && !error.isTemporary) {
        this.sync.refuse(error.rule === "link-revoked" ? "revoked" : "expired");
      }
      throw error;
    }
  }

  /** Looks the stream up, with its preview, or why we may not watch. */
  async #look() {
    clearTimeout(this.#timer);
    const { signal } = this.#end;
    try {
      const stream = await this.withToken((token) => askForStream(this.id, { token, origin: this.origin, signal }));
      this.preview = stream?.preview ?? this.preview;
      this.sync.learn(stream);
    } catch (error) {
      if (error instanceof SignallingError && !error.isTemporary) this.problem = error;
    }
    if (signal.aborted) return;
    this.#changed();
    if (this.#isFollowed || this.problem) return;
    this.#timer = setTimeout(() => this.#look(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LAST_LOOK_MS);
  }

  /** @param {string} path below that of the stream */
  #ask(path) {
    return this.withToken(async (token) => {
      const response = await fetch(`${this.origin}${this.path}${path}`, {
        headers: token ? { Authorization: `Bearer ${token}` } : undefined,
        signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), this.#end.signal]),
      });
      if (!response.ok) throw await SignallingError.from(response);
      return response.json();
    });
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
