// @ts-check

/**
 * The token with which a player watches: the one that its page gave it, or one of its own for an invitation, which many
 * people may have. It is renewed before it ends, because the server tells no news to one that has ended.
 */

import { SignallingError } from "../session.js";
import { claimsOf, exchange, post } from "../tokens.js";

/** A token is renewed this long before it ends, or after half of what is left of it, in milliseconds. */
const RENEWAL_MS = 180_000;
/** Timers of browsers cannot be set further ahead, in milliseconds. */
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
    const { exp } = /** @type {{ exp?: unknown }} */ (claimsOf(token) ?? {});
    const left = typeof exp === "number" ? exp * 1000 - Date.now() : 0;
    clearTimeout(this.#timer);
    if (left <= 0 || this.#isClosed) return;
    const wait = Math.max(left - RENEWAL_MS, left / 2);
    this.#timer = setTimeout(() => this.#renew(), Math.min(wait, LONGEST_TIMER_MS));
  }

  /** One that cannot be renewed ends in its time, and then the player says so. */
  async #renew() {
    const response = await post(this.address, {}, this.#token).catch(() => null);
    if (!response?.ok || this.#isClosed) return;
    this.#keep((await response.json()).token);
  }
}
