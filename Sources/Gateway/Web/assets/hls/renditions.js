// @ts-check

/**
 * Which of a stream's renditions a player takes: the richest that its link carries, or the one that somebody chose. No
 * network, no clock.
 */

/**
 * What the link takes is known by two averages of how long a bit takes: one that follows quickly, and one that does not; in
 * seconds of media.
 */
const HALF_LIVES_S = [2, 5];
/** Less comes all at once, on any link, in bytes. */
const LEAST_BYTES = 16_000;
/** A transfer cannot be told from a shorter one, in seconds. */
const SHORTEST_S = 0.005;
/** What is known of the link is forgotten after this time, in seconds: a poor rendition tells little. */
const MEMORY_S = 10;
/** A rendition takes a link that carries so many times its bits, and another one so many to go up. */
const NEEDED = 1.1;
const NEEDED_ABOVE = 1.5;
/** A link that carries so many times what is taken is not why something did not come. */
const AMPLE = 2.5;
/** What comes slowly is not given up before this time, in seconds. */
const GIVE_UP_S = 1;
/** Who went down stays there for so long, in seconds, and for longer each time that going up did not last. */
const REST_S = 10;
const LONGEST_REST_S = 160;
const LASTING_S = 30;

/** @typedef {import("../picture-choice.js").ChoiceName} ChoiceName */

/** How playlists name what every player takes, and what goes on as its publisher sends it. */
const SOURCE = "media.m3u8";
const ORIGINAL = "media.m3u8?rendition=original";

/** @param {import("./playlist.js").Variant[]} variants @returns {import("./playlist.js").Variant} what every player takes */
export function sourceOf(variants) {
  return variants.find(({ uri }) => uri === SOURCE) ?? variants[0];
}

/**
 * What a player chooses from: where its browser plays what the publisher sends, that takes the place of the source, which
 * would have to be made, and what takes no less than it is no use.
 * @param {import("./playlist.js").Variant[]} variants the richest first
 * @param {(codecs: string) => boolean} plays whether this browser plays them
 */
export function choicesOf(variants, plays) {
  const others = variants.filter(({ uri }) => uri !== ORIGINAL);
  const original = variants.find(({ uri, codecs }) => uri === ORIGINAL && plays(codecs));
  if (!original) return others;
  return [original, ...others.filter(({ uri, bitrate }) => uri !== SOURCE && bitrate < original.bitrate)];
}

export class RenditionRule {
  /** Of the renditions, the richest first. */
  #index = 0;
  /** In seconds a bit; null before anything came. @type {number[] | null} */
  #averages = null;
  #sampledAt = -Infinity;
  /** Of the rendition that is taken, as it comes, in bit/s; null before anything came. @type {number | null} */
  #bitrate = null;
  #wentUpAt = -Infinity;
  #wentDownAt = -Infinity;
  #rest = REST_S;
  #hasStood = false;

  /** What the link takes, in bit/s, as far as is known at a time in seconds. @param {number} now */
  estimate(now) {
    return this.#averages && now - this.#sampledAt <= MEMORY_S ? 1 / Math.max(...this.#averages) : null;
  }

  /**
   * Something came.
   * @param {number} bytes
   * @param {number} seconds from its first byte to its last
   * @param {number} duration that it is played, in seconds
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

  /** What there was is played, and nothing more is there. */
  stood() {
    this.#hasStood = true;
  }

  /**
   * Whether something comes so slowly that it would be there too late.
   * @param {number} bytes that are there
   * @param {number} total
   * @param {number} seconds since the first one came
   * @param {number} ahead what there is to be played yet, in seconds
   */
  isHopeless(bytes, total, seconds, ahead) {
    return seconds >= GIVE_UP_S && (total - bytes) * seconds > ahead * bytes;
  }

  /**
   * @param {import("./playlist.js").Variant[]} variants the richest first
   * @param {ChoiceName} choice
   * @param {number} now in seconds
   * @returns {number} which of them is taken from now on
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
    // What is taken now may be less than what was said of it.
    const bitrateOf = (/** @type {number} */ at) => at === index && this.#bitrate || variants[at].bitrate;
    while (lower < last && estimate !== null && estimate < bitrateOf(lower) * NEEDED) lower += 1;
    // Where the link carries much more, it stood still because nothing was made.
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
