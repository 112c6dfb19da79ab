// @ts-check

/**
 * The token with which a player watches: the one that its page gave it, or, for an invitation, which many people may
 * share, one of its own. It is renewed before it expires, because the server then stops sending news.
 */

import { SignallingError } from "../session.js";
import { claimsOf, exchange, post } from "../tokens.js";

/**
 * A token is renewed this long before it expires, or when half of the time that is left has passed, whichever is later,
 * in milliseconds.
 */
const RENEWAL_MS = 180_000;
/** If the server does not answer and less than this is left, it is not asked again, in milliseconds. */
const LEAST_LEFT_MS = 5000;
/** Browsers' timers cannot run longer, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Access {
  /** @type {string | null} */
  #token = null;
  /** An invitation that is being exchanged. @type {Promise<string | null> | null} */
  #exchange = null;
  #isClosed = false;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} address where tokens of the stream are made
   * @param {string | null} given
   */
  constructor(address, given) {
    this.address = address;
    this.given = given;
    this.isInvitation = claimsOf(given)?.use === "invitation";
    if (!this.isInvitation) this.#keep(given);
  }

  /**
   * Watches with another token from now on.
   * @param {string} token
   * @returns {boolean} false for an invitation, which is somebody else's
   */
  take(token) {
    if (this.isInvitation || claimsOf(token)?.use === "invitation") return false;
    this.given = token;
    this.#keep(token);
    return true;
  }

  get hasToken() {
    return this.given !== null;
  }

  /** The one that is known, for addresses. */
  get known() {
    return this.#token;
  }

  /**
   * @returns {Promise<string | null>}
   * @throws {SignallingError} when nobody is let in by the invitation
   */
  async token() {
    if (!this.isInvitation || this.#token) return this.#token;
    this.#exchange ??= this.#take().finally(() => (this.#exchange = null));
    return this.#exchange;
  }

  /** Another one than the server refused; null if there is none. @param {string} refused */
  async another(refused) {
    if (refused === this.#token && this.isInvitation) this.#token = null;
    const token = await this.token();
    return token === refused ? null : token;
  }

  /** Renews no more. */
  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #take() {
    const response = await exchange(this.address, {}, this.given);
    if (!response.ok) throw await SignallingError.from(response);
    this.#keep((await response.json()).token);
    return this.#token;
  }

  /** @param {string | null} token */
  #keep(token) {
    this.#token = token;
    clearTimeout(this.#timer);
    if (this.#left > 0) this.#plan();
  }

  /** Milliseconds until the token expires; 0 for none, and for one that does not say. */
  get #left() {
    const { exp } = /** @type {{ exp?: unknown }} */ (claimsOf(this.#token) ?? {});
    return typeof exp === "number" ? exp * 1000 - Date.now() : 0;
  }

  #plan() {
    if (this.#isClosed) return;
    const wait = Math.max(this.#left - RENEWAL_MS, this.#left / 2);
    this.#timer = setTimeout(() => this.#renew(), Math.min(wait, LONGEST_TIMER_MS));
  }

  /** A token that is not renewed expires, and then the player says so. */
  async #renew() {
    const asked = this.#token;
    const response = await post(this.address, {}, asked).catch(() => null);
    const fresh = response?.ok ? await response.json().catch(() => null) : null;
    // The page may have set another one meanwhile.
    if (this.#isClosed || asked !== this.#token) return;
    if (fresh) return this.#keep(fresh.token);
    const isRefused = response !== null && !response.ok && response.status !== 429 && response.status < 500;
    if (!isRefused && this.#left > LEAST_LEFT_MS) this.#plan();
  }
}
