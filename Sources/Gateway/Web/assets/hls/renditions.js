// @ts-check

/**
 * Chooses the rendition to load: the best that the connection carries, or the one that the viewer chose. Has no network
 * and no clock.
 */

/**
 * Bandwidth is estimated from two moving averages of the time per bit, a fast and a slow one. These are their
 * half-lives, in seconds of media.
 */
const HALF_LIVES_S = [2, 5];
/** Smaller downloads say nothing about bandwidth, because they arrive all at once, in bytes. */
const LEAST_BYTES = 16_000;
/** The shortest transfer that can be measured, in seconds. */
const SHORTEST_S = 0.005;
/** An estimate expires after this time, in seconds: small downloads do not refresh it. */
const MEMORY_S = 10;
/** How many times its bitrate a rendition needs to stay, and to be switched up to. */
const NEEDED = 1.1;
const NEEDED_ABOVE = 1.5;
/** A connection that carries this many times the current bitrate is not the cause of a stall. */
const AMPLE = 2.5;
/** A slow download is not given up before this time, in seconds. */
const GIVE_UP_S = 1;
/** Shortest time at a lower rendition, in seconds; doubled, up to a limit, each time that going up did not last. */
const REST_S = 10;
const LONGEST_REST_S = 160;
const LASTING_S = 30;

/** @typedef {import("../picture-choice.js").ChoiceName} ChoiceName */

/** The addresses of the rendition that every player supports, and of the publisher's own stream. */
const SOURCE = "media.m3u8";
const ORIGINAL = "media.m3u8?rendition=original";

/** The one that every player supports. @param {import("./playlist.js").Variant[]} variants */
export function sourceOf(variants) {
  return variants.find(({ uri }) => uri === SOURCE) ?? variants[0];
}

/**
 * The renditions to choose from. If the browser plays the publisher's own stream, that replaces the one that the server
 * would have to encode, and renditions with no lower bitrate are left out.
 * @param {import("./playlist.js").Variant[]} variants best first
 * @param {(codecs: string) => boolean} plays whether this browser plays them
 */
export function choicesOf(variants, plays) {
  const others = variants.filter(({ uri }) => uri !== ORIGINAL);
  const original = variants.find(({ uri, codecs }) => uri === ORIGINAL && plays(codecs));
  if (!original) return others;
  return [original, ...others.filter(({ uri, bitrate }) => uri !== SOURCE && bitrate < original.bitrate)];
}

export class RenditionRule {
  /** The current rendition. */
  #index = 0;
  /** Seconds per bit; null before the first download. @type {number[] | null} */
  #averages = null;
  #sampledAt = -Infinity;
  /** Measured bitrate of the current rendition, in bit/s; null before its first download. @type {number | null} */
  #bitrate = null;
  #wentUpAt = -Infinity;
  #wentDownAt = -Infinity;
  #rest = REST_S;
  #hasStood = false;

  /** The estimated bandwidth in bit/s; null if it is unknown. @param {number} now in seconds */
  estimate(now) {
    return this.#averages && now - this.#sampledAt <= MEMORY_S ? 1 / Math.max(...this.#averages) : null;
  }

  /**
   * Takes in a download.
   * @param {number} bytes
   * @param {number} seconds from the first byte to the last
   * @param {number} duration of the media, in seconds
   * @param {number} now
   */
  note(bytes, seconds, duration, now) {
    const bitrate = bytes * 8 / duration;
    this.#bitrate = bitrate + ((this.#bitrate ?? bitrate) - bitrate) * 0.5 ** (duration / HALF_LIVES_S[1]);
    if (bytes < LEAST_BYTES) return;
    const each = Math.max(seconds, SHORTEST_S) / (bytes * 8);
    const known = now - this.#sampledAt <= MEMORY_S ? this.#averages : null;
    this.#averages = HALF_LIVES_S.map((life, index) => {
      const before = known?.[index] ?? each;
      return each + (before - each) * 0.5 ** (duration / life);
    });
    this.#sampledAt = now;
  }

  /** Playback stalled: everything was played. */
  stood() {
    this.#hasStood = true;
  }

  /**
   * Whether a download is so slow that it would finish too late.
   * @param {number} bytes received so far
   * @param {number} total
   * @param {number} seconds since the first byte
   * @param {number} ahead buffered media, in seconds
   */
  isHopeless(bytes, total, seconds, ahead) {
    return seconds >= GIVE_UP_S && (total - bytes) * seconds > ahead * bytes;
  }

  /**
   * @param {import("./playlist.js").Variant[]} variants best first
   * @param {ChoiceName} choice
   * @param {number} now in seconds
   * @returns {number} the index of the rendition to load
   */
  choose(variants, choice, now) {
    const before = this.#index;
    const index = this.#index = this.#next(variants, choice, now);
    if (index !== before) this.#bitrate = null;
    return index;
  }

  /** @param {import("./playlist.js").Variant[]} variants @param {ChoiceName} choice @param {number} now */
  #next(variants, choice, now) {
    const last = variants.length - 1;
    const hasStood = this.#hasStood;
    this.#hasStood = false;
    if (choice !== "auto") {
      /** @param {import("./playlist.js").Variant} variant */
      const isWanted = ({ height }) => choice === "sound" ? height === null : height !== null;
      return choice === "high" ? 0 : Math.max(variants.findLastIndex(isWanted), 0);
    }
    const index = Math.min(this.#index, last);
    const estimate = this.estimate(now);
    let lower = index;
    // The measured bitrate can be lower than the declared one.
    const bitrateOf = (/** @type {number} */ at) => at === index && this.#bitrate || variants[at].bitrate;
    while (lower < last && estimate !== null && estimate < bitrateOf(lower) * NEEDED) lower += 1;
    // If the connection carries much more, playback stalled because the server had nothing to send.
    const isLinkPoor = estimate === null || estimate < bitrateOf(index) * AMPLE;
    if (hasStood && isLinkPoor && lower === index) lower = Math.min(lower + 1, last);
    if (lower > index) {
      this.#rest = now - this.#wentUpAt < LASTING_S ? Math.min(this.#rest * 2, LONGEST_REST_S) : REST_S;
      this.#wentDownAt = now;
      return lower;
    }
    if (index > 0 && now - Math.max(this.#wentDownAt, this.#wentUpAt) >= this.#rest) {
      if (estimate === null || estimate >= variants[index - 1].bitrate * NEEDED_ABOVE) {
        this.#wentUpAt = now;
        return index - 1;
      }
    }
    return index;
  }
}
