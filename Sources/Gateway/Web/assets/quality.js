// @ts-check

/** Tells from a connection's numbers whether somebody should be warned. */

/** A trouble must last this many seconds before it is told, and be gone as long before it is taken back. */
const PATIENCE = 4;
/** Browsers call a connection slow for as long as they find out how fast it is. */
const LIMIT_PATIENCE = 12;
/** Share of packets lost that one sees and hears. */
const LOSS = 0.05;
/** Round trip at which people begin to talk over each other, in milliseconds. */
const DELAY_MS = 500;

/**
 * In the order in which they are told.
 * @type {{ patience: number, isThere: (numbers: import("./stats.js").Numbers) => boolean, words: string }[]}
 */
const TROUBLES = [
  {
    patience: PATIENCE,
    isThere: ({ lossShare }) => lossShare > LOSS,
    words: "Your connection loses data: picture and sound may break up.",
  },
  {
    patience: LIMIT_PATIENCE,
    isThere: ({ limitation }) => limitation === "bandwidth",
    words: "Your connection is slow: others get a smaller picture.",
  },
  {
    patience: LIMIT_PATIENCE,
    isThere: ({ limitation }) => limitation === "cpu",
    words: "This device is busy: others get a smaller picture. Close other programs.",
  },
  {
    patience: PATIENCE,
    isThere: ({ roundTrip }) => (roundTrip ?? 0) > DELAY_MS,
    words: "Your connection is far away or crowded: others hear you late.",
  },
];

/** One reading a second goes in, at most one warning comes out. */
export class QualityJudge {
  /** Seconds of each trouble, up to its patience. */
  #lasting = TROUBLES.map(() => 0);
  #isTold = TROUBLES.map(() => false);

  /**
   * @param {import("./stats.js").Numbers} numbers
   * @returns {string | null}
   */
  judge(numbers) {
    for (const [index, { patience, isThere }] of TROUBLES.entries()) {
      const lasting = this.#lasting[index] + (isThere(numbers) ? 1 : -1);
      this.#lasting[index] = Math.min(Math.max(lasting, 0), patience);
      if (this.#lasting[index] === patience) this.#isTold[index] = true;
      if (this.#lasting[index] === 0) this.#isTold[index] = false;
    }
    return TROUBLES.find((_, index) => this.#isTold[index])?.words ?? null;
  }

  /** Forgets what was, for instance because the connection is a new one. */
  reset() {
    this.#lasting.fill(0);
    this.#isTold.fill(false);
  }
}
