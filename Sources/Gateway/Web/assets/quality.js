// @ts-check

/** Tells from a connection's numbers whether somebody should be warned. */

/** A trouble must last this many seconds before it is told, and be gone as long before it is taken back. */
const PATIENCE = 4;
/** Share of packets lost that one sees and hears. */
const LOSS = 0.05;
/** Round trip at which people begin to talk over each other, in milliseconds. */
const DELAY_MS = 500;

/** In the order in which they are told. @type {[string, (numbers: import("./stats.js").Numbers) => boolean, string][]} */
const TROUBLES = [
  ["loss", ({ lossShare }) => lossShare > LOSS, "Your connection loses data: picture and sound may break up."],
  ["bandwidth", ({ limitation }) => limitation === "bandwidth", "Your connection is slow: others get a smaller picture."],
  ["cpu", ({ limitation }) => limitation === "cpu", "This device is busy: others get a smaller picture. Close other programs."],
  ["delay", ({ roundTrip }) => (roundTrip ?? 0) > DELAY_MS, "Your connection is far away or crowded: others hear you late."],
];

/** One reading a second goes in, at most one warning comes out. */
export class QualityJudge {
  /** Seconds of each trouble, up to the patience. @type {Map<string, number>} */
  #lasting = new Map();
  /** @type {Set<string>} */
  #told = new Set();

  /**
   * @param {import("./stats.js").Numbers} numbers
   * @returns {string | null}
   */
  judge(numbers) {
    for (const [name, isThere] of TROUBLES) {
      const before = this.#lasting.get(name) ?? 0;
      const lasting = isThere(numbers) ? Math.min(before + 1, PATIENCE) : Math.max(before - 1, 0);
      this.#lasting.set(name, lasting);
      if (lasting === PATIENCE) this.#told.add(name);
      if (lasting === 0) this.#told.delete(name);
    }
    return TROUBLES.find(([name]) => this.#told.has(name))?.[2] ?? null;
  }

  /** Forgets what was, for instance because the connection is a new one. */
  reset() {
    this.#lasting.clear();
    this.#told.clear();
  }
}
