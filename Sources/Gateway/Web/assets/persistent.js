// @ts-check

/**
 * Keeps a session alive across server restarts and network changes: when one is lost, it opens the next after a
 * growing pause.
 */

import { MediaSession, SignallingError } from "./session.js";

/** First and longest pause between attempts, in milliseconds. */
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 8000;
/** Longest pause while the session is not missed. */
const CALM_PAUSE_MS = 60_000;
/** After a session that lasted this long, the next pause is short again, in milliseconds. */
const STEADY_MS = 10_000;
/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;
/** Status codes for an unknown session, or a token that is not accepted. */
const FORGOTTEN = [401, 403, 404, 410];

/**
 * @typedef {"connecting" | "connected" | "interrupted" | "retrying" | "failed" | "closed"} PersistentState
 * `retrying`: waits for the next attempt; `failed`: the server refused for good, `error` tells why.
 */

/** Fires `statechange`. */
export class Persistent extends EventTarget {
  /** @type {PersistentState} */
  state = "closed";
  /** Why the last attempt failed. @type {Error | null} */
  error = null;
  /** @type {MediaSession | null} */
  session = null;
  /** Whether it is not missed, as something else plays meanwhile. */
  isCalm = false;

  #pause = FIRST_PAUSE_MS;
  /** @type {number | undefined} */
  #timer;
  /** @type {AbortController | null} */
  #attempt = null;
  #connectedAt = 0;
  #online = () => this.retryNow();
  #visible = () => document.visibilityState === "visible" && this.retryNow();

  /** @param {(signal: AbortSignal) => Promise<MediaSession>} open */
  constructor(open) {
    super();
    this.#open = open;
  }

  /** @type {(signal: AbortSignal) => Promise<MediaSession>} */
  #open;

  start() {
    addEventListener("online", this.#online);
    document.addEventListener("visibilitychange", this.#visible);
    this.#pause = FIRST_PAUSE_MS;
    this.#connect();
  }

  /** Ends the pause; a session that works is left alone. */
  retryNow() {
    if (this.state === "retrying") this.#connect();
  }

  /** Replaces a session that is known to be dead. */
  renew() {
    if (this.state === "connected" || this.state === "interrupted") this.session?.abandon();
  }

  /**
   * Checks whether the session still exists after the server was out of reach: a restarted server has forgotten it,
   * which ICE would notice much later. Without an answer, the session stays.
   */
  async recheck() {
    const { session } = this;
    if (!session?.resource) return this.retryNow();
    if (await isForgotten(session) && session === this.session) this.renew();
  }

  close() {
    // The listener would keep a player in memory that was removed from its page.
    removeEventListener("online", this.#online);
    document.removeEventListener("visibilitychange", this.#visible);
    clearTimeout(this.#timer);
    this.#attempt?.abort();
    this.session?.close();
    this.session = null;
    this.#become("closed");
  }

  async #connect() {
    clearTimeout(this.#timer);
    this.#attempt?.abort();
    const attempt = this.#attempt = new AbortController();
    this.#become("connecting");
    try {
      const session = await this.#open(attempt.signal);
      if (attempt.signal.aborted) return session.close();
      this.session = session;
      this.error = null;
      session.addEventListener("statechange", () => this.#sessionChanged(session));
      this.#sessionChanged(session);
    } catch (error) {
      if (!attempt.signal.aborted) this.#failed(/** @type {Error} */ (error));
    }
  }

  /** @param {MediaSession} session */
  #sessionChanged(session) {
    if (session !== this.session) return;
    switch (session.state) {
      case "connected":
        this.#connectedAt = performance.now();
        return this.#become("connected");
      case "interrupted":
        return this.#become("interrupted");
      case "lost":
        this.session = null;
        if (this.#connectedAt && performance.now() - this.#connectedAt > STEADY_MS) this.#pause = FIRST_PAUSE_MS;
        this.#connectedAt = 0;
        return this.#retry(this.#pause);
    }
  }

  /** @param {Error} error */
  #failed(error) {
    this.error = error;
    this.session = null;
    // `fetch` throws these if the server is out of reach or does not answer, which may change.
    const isTemporary = error instanceof SignallingError
      ? error.isTemporary : error instanceof TypeError || error.name === "TimeoutError";
    if (!isTemporary) return this.#become("failed");
    const asked = error instanceof SignallingError ? error.retryAfter : null;
    this.#retry(Math.max(asked ?? 0, this.#pause));
  }

  /** @param {number} pause */
  #retry(pause) {
    // Random, so that viewers do not all come back at the same moment.
    this.#timer = setTimeout(() => this.#connect(), pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, this.isCalm ? CALM_PAUSE_MS : LONGEST_PAUSE_MS);
    this.#become("retrying");
  }

  /** @param {PersistentState} state */
  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }
}

/**
 * Whether the server has forgotten a session; null if it does not say, which may change.
 * @param {MediaSession} session
 * @param {AbortSignal} [signal]
 * @returns {Promise<boolean | null>}
 */
export async function isForgotten({ resource, options: { token } }, signal) {
  if (!resource) return true;
  const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
  const end = AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(signal ? [signal] : [])]);
  const status = await fetch(resource, { headers, signal: end }).then((response) => response.status, () => 0);
  return FORGOTTEN.includes(status) || (status >= 200 && status < 300 ? false : null);
}
