// @ts-check

/** Tells why a picture stands still, from what arrives: numbers of each second in, one word out. */

/** A picture that stands still for so long is worth a word, in seconds. */
const STILL_S = 3;
/** Seconds in a row with pictures after which all is well again. */
const STEADY_S = 2;

/**
 * @typedef {object} Arrivals totals of a slot since its connection began
 * @property {number} frames that were decoded
 * @property {number} packets that arrived, of sound and picture
 * @property {number} lost packets
 *
 * @typedef {"fine" | "weak" | "silent"} Condition `weak`: packets are lost, and no picture can be made of the others.
 *   `silent`: nothing arrives. Sound alone, without losses, is how its host wants it
 */

export class Health {
  /** @type {Condition} */
  condition = "fine";

  /** @type {Arrivals | null} */
  #before = null;
  #still = 0;
  #steady = 0;
  /** Packets that arrived, and that were lost, since the last picture. */
  #since = { packets: 0, lost: 0 };

  /** Another story, or another connection: what was before says nothing. */
  reset() {
    this.condition = "fine";
    this.#before = null;
    this.#still = this.#steady = 0;
    this.#since = { packets: 0, lost: 0 };
  }

  /**
   * Once a second.
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
