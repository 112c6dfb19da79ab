// @ts-check

/** Finds out why a picture is frozen, from the numbers of what arrives each second. */

/** A picture that is frozen for this long is reported, in seconds. */
const STILL_S = 3;
/** Seconds in a row with pictures until it has recovered. */
const STEADY_S = 2;

/**
 * @typedef {object} Arrivals totals of a slot since the connection began
 * @property {number} frames decoded
 * @property {number} packets received, of sound and picture
 * @property {number} lost packets
 *
 * @typedef {"fine" | "weak" | "silent"} Condition `weak`: too many packets are lost for a picture. `silent`: nothing
 *   arrives. Sound alone, without losses, is fine: the host has turned the picture off
 */

export class Health {
  /** @type {Condition} */
  condition = "fine";

  /** @type {Arrivals | null} */
  #before = null;
  #still = 0;
  #steady = 0;
  /** Received and lost packets since the last picture. */
  #since = { packets: 0, lost: 0 };

  /** Starts over for another story or connection. */
  reset() {
    this.condition = "fine";
    this.#before = null;
    this.#still = this.#steady = 0;
    this.#since = { packets: 0, lost: 0 };
  }

  /**
   * Takes in the totals, once a second.
   * @param {Arrivals} now
   * @returns {Condition}
   */
  take(now) {
    const before = this.#before;
    this.#before = now;
    if (!before) return this.condition;
    if (now.frames > before.frames) {
      this.#steady += 1;
      this.#still = 0;
      this.#since = { packets: 0, lost: 0 };
      if (this.#steady >= STEADY_S) this.condition = "fine";
    } else {
      this.#steady = 0;
      this.#still += 1;
      this.#since.packets += now.packets - before.packets;
      this.#since.lost += Math.max(0, now.lost - before.lost);
      if (this.#still >= STILL_S) this.condition = this.#judge();
    }
    return this.condition;
  }

  /** @returns {Condition} */
  #judge() {
    if (this.#since.lost > 0) return "weak";
    return this.#since.packets > 0 ? "fine" : "silent";
  }
}
