// @ts-check

/** Decides from a connection's numbers whether to show a warning. */

/** A problem is shown after this many seconds, and hidden once it has been gone for as long. */
const PATIENCE = 4;
/** Browsers call a connection slow until they have found out how fast it is. */
const LIMIT_PATIENCE = 12;
/** Share of lost packets that people notice. */
const LOSS = 0.05;
/** Round-trip time at which people start to talk over each other, in milliseconds. */
const DELAY_MS = 500;

/**
 * In order of priority.
 * @type {{ patience: number, isThere: (numbers: import("./stats.js").Numbers) => boolean, words: string }[]}
 */
const TROUBLES = [
  {
    patience: PATIENCE,
    isThere: ({ lossShare }) => lossShare > LOSS,
    words: "Your connection is losing data. Picture and sound may break up.",
  },
  {
    patience: LIMIT_PATIENCE,
    isThere: ({ limitation }) => limitation === "bandwidth",
    words: "Your connection is slow. Others see a smaller picture.",
  },
  {
    patience: LIMIT_PATIENCE,
    isThere: ({ limitation }) => limitation === "cpu",
    words: "Your device is busy. Others see a smaller picture. Try closing other apps.",
  },
  {
    patience: PATIENCE,
    isThere: ({ roundTrip }) => (roundTrip ?? 0) > DELAY_MS,
    words: "Your connection has a long delay. Others hear you late.",
  },
];

/** Takes one reading per second, and gives at most one warning. */
export class QualityJudge {
  /** For how many seconds each problem has lasted, up to its patience. */
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

  /** Starts over, for example because the connection is new. */
  reset() {
    this.#lasting.fill(0);
    this.#isTold.fill(false);
  }
}
