// @ts-check

/** The name under which others on a stream see this page's person, and how the server learns it. */

import { keepName, ownName } from "./person.js";
import { SignallingError } from "./session.js";
import { claimsOf, knownClaims, knownToken, renameGuest } from "./tokens.js";

export class Naming {
  /** The name that was entered on this page. @type {string | null} */
  #chosen = null;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.room = room;
  }

  /** The name that others see, or will see; empty if there is none yet. */
  get name() {
    return this.#chosen ?? this.#tokensName ?? ownName();
  }

  /** The name in a token that was made for this person, not for anyone who asked. @returns {string | null} */
  get #tokensName() {
    const { name, sub } = knownClaims(this.room.stream, this.room.tokenRole) ?? {};
    const isMadeUp = sub?.startsWith("guest-") && (name === "Host" || name === "Guest");
    return name && !isMadeUp ? name : null;
  }

  /** The default title of our stream. */
  get usualTitle() {
    return this.name ? `${this.name} is live` : this.room.stream;
  }

  /** @param {string} name */
  choose(name) {
    if (name.trim() === this.name) return;
    this.#chosen = name.trim();
    keepName(name);
    this.room.changed();
  }

  /** Whether there is a name for others; asks once if there is none. @param {() => Promise<string | null>} ask */
  async isKnown(ask) {
    if (this.name) return true;
    const given = await ask();
    if (given !== null) this.choose(given);
    return given !== null;
  }

  /** Gets a token with our name. If the server refuses it, the token keeps its name; without an answer, it is tried again. */
  async use() {
    const { name, room: { api, sync } } = this;
    try {
      if (await useName(api, name)) sync.reconnect();
    } catch (error) {
      if (error instanceof SignallingError && !error.isTemporary) this.#chosen = null;
    }
  }
}

/**
 * Gets a token with another name.
 * @param {import("./stage-api.js").StageAPI} api
 * @param {string} name
 * @returns {Promise<boolean>} whether there is a new token
 * @throws {Error} if the server refuses the name, or does not answer
 */
export async function useName(api, name) {
  const known = knownToken(api.stream, api.role);
  if (!name || !known || claimsOf(known)?.name === name) return false;
  if (!(await renameGuest(api.stream, api.role))) await api.renewToken(name);
  return true;
}
