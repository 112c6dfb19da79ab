// @ts-check

/** Recent statistics, and rates from the differences of their totals. Has no elements and no timers. */

/**
 * @typedef {{ count: number, seconds: number, buckets: [number, number][] }} Histogram
 * @typedef {Record<string, any>} Statistics the answer to `GET /v1/admin/statistics`
 * @typedef {{ seconds: number, values: Record<string, number | null> }} Sample
 */

/** How long samples are kept, in seconds. */
export const SPAN = 300;
/** Joins are rare: their times are measured over this many seconds. */
const JOIN_WINDOW = 60;
/** Forwarding times are measured over this many seconds. */
const LATENCY_WINDOW = 10;

export class Series {
  /** @type {Sample[]} */
  samples = [];
  /** Latest first. @type {Statistics[]} */
  #past = [];

  /**
   * Takes in the next statistics. After a restart of the server, or numbers that are not newer, it starts over.
   * @param {Statistics} now
   * @returns {Sample | null} null if there are no rates yet
   */
  add(now) {
    const before = this.#past[0];
    if (before && (now.seconds <= before.seconds || now.process.startedAt !== before.process.startedAt)) {
      this.#past = [now];
      return null;
    }
    this.#past.unshift(now);
    this.#past = this.#past.filter((past) => past.seconds > now.seconds - JOIN_WINDOW - 2);
    if (!before) return null;
    const sample = { seconds: now.seconds, values: this.#values(now, before) };
    this.samples.push(sample);
    this.samples = this.samples.filter((old) => old.seconds > now.seconds - SPAN);
    return sample;
  }

  /** @param {Statistics} now @param {Statistics} before */
  #values(now, before) {
    const elapsed = now.seconds - before.seconds;
    /** @param {(statistics: Statistics) => number} total */
    const rate = (total) => Math.max(0, total(now) - total(before)) / elapsed;
    /** @type {Record<string, number | null>} */
    const values = {
      ...now.sessions, viewers: now.viewers,
      bitsIn: rate((of) => sum(of.workers, "bytesReceived")) * 8,
      bitsOut: rate((of) => sum(of.workers, "bytesSent")) * 8,
      packetsIn: rate((of) => of.received.packets), packetsOut: rate((of) => of.sent.packets),
      lossIn: share(rate((of) => of.received.requestedAgain), rate((of) => of.received.packets)),
      lossOut: share(rate((of) => of.sent.requestedAgain), rate((of) => of.sent.packets)),
      drops: rate((of) => sum(of.workers, "drops")),
      memory: now.process.residentBytes,
      cpu: now.process.cpuSeconds === null ? null : rate((of) => of.process.cpuSeconds),
    };
    for (const worker of now.workers) values[`worker${worker.index}`] = worker.load;
    const recent = this.#at(now.seconds - LATENCY_WINDOW);
    values.latency50 = quantile(now.latency, recent.latency, 0.5);
    values.latency99 = quantile(now.latency, recent.latency, 0.99);
    const past = this.#at(now.seconds - JOIN_WINDOW);
    for (const phase of ["answer", "check", "dtls", "media"]) {
      values[`join-${phase}`] = quantile(now.joins.viewer[phase], past.joins.viewer[phase], 0.5);
    }
    values.joins = now.joins.viewer.answer.count - past.joins.viewer.answer.count;
    return values;
  }

  /** The statistics at a time, or the earliest known ones. @param {number} seconds */
  #at(seconds) {
    return this.#past.find((past) => past.seconds <= seconds) ?? this.#past[this.#past.length - 1];
  }
}

/** @param {Record<string, any>[]} items @param {string} key */
function sum(items, key) {
  return items.reduce((total, item) => total + item[key], 0);
}

/** @param {number} part @param {number} whole */
function share(part, whole) {
  return whole > 0 ? Math.min(1, part / whole) : 0;
}

/**
 * A quantile of what a histogram has counted since an earlier one, interpolated within its bucket; null if nothing was
 * counted.
 * @param {Histogram} now
 * @param {Histogram} before
 * @param {number} part from 0 to 1
 */
export function quantile(now, before, part) {
  const total = now.count - before.count;
  if (total <= 0) return null;
  const wanted = total * part;
  let [lower, below] = [0, 0];
  for (let index = 0; index < now.buckets.length; index++) {
    const [bound, cumulative] = now.buckets[index];
    const here = cumulative - before.buckets[index][1];
    if (here >= wanted && here > below) return lower + (bound - lower) * Math.max(0, (wanted - below) / (here - below));
    [lower, below] = [bound, here];
  }
  return lower;
}
