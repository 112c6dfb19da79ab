// @ts-check

/** What others on a stream call this page's person, and how the server learns of it. */

import { keepName, ownName } from "./person.js";
import { claimsOf, knownClaims, knownToken, renameGuest } from "./tokens.js";

export class Naming {
  /** The name that was given on this page. @type {string | null} */
  #chosen = null;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.room = room;
  }

  /** What others call us, or will; empty while nobody has said. */
  get name() {
    return this.#chosen ?? this.#tokensName ?? ownName();
  }

  /** The name of somebody whose token was made for them, not for whoever asked. @returns {string | null} */
  get #tokensName() {
    const { name, sub } = knownClaims(this.room.stream, this.room.tokenRole) ?? {};
    const isMadeUp = sub?.startsWith("guest-") && (name === "Host" || name === "Guest");
    return name && !isMadeUp ? name : null;
  }

  /** What a stream of ours is called unless its host says otherwise. */
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

  /** Whether others can be told who we are; asks once whoever has no name yet. @param {() => Promise<string | null>} ask */
  async isKnown(ask) {
    if (this.name) return true;
    const given = await ask();
    if (given !== null) this.choose(given);
    return given !== null;
  }

  /** Makes the name that others shall see the one that our token has; a refusal leaves the one that it had. */
  async use() {
    const { name, room: { api, sync } } = this;
    try {
      if (await useName(api, name)) sync.reconnect();
    } catch {
      this.#chosen = null;
    }
  }
}

/**
 * Makes a name the one that a page's token has.
 * @param {import("./stage-api.js").StageAPI} api
 * @param {string} name
 * @returns {Promise<boolean>} whether there is another token now
 * @throws {Error} when the server refuses the name, or does not answer
 */
export async function useName(api, name) {
  const known = knownToken(api.stream, api.role);
  if (!name || !known || claimsOf(known)?.name === name) return false;
  if (!(await renameGuest(api.stream, api.role))) await api.renewToken(name);
  return true;
}
