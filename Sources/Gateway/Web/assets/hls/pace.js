// @ts-check

/** Where in a stream a player is, and how it stays there: near its end, or so far behind it as its viewer went back. */

import { chunksFrom, chunksFromBehind, endOf, firstChunks } from "./playlist.js";
import { choicesOf, sourceOf } from "./renditions.js";
import { StuckRule } from "./stuck.js";

/** Further behind than it is to be it plays faster; much further, it jumps. In seconds. */
const LATE_S = 0.5;
export const FAR_S = 4;
/** Nobody hears that it plays so much faster. */
const CATCH_UP_RATE = 1.06;
/** Each time that it stands still it stays so much further behind, up to a limit, in seconds. */
const STEP_BACK_S = 0.5;
const FURTHEST_BACK_S = 3;
/** Less than this is nothing to play, in seconds. */
export const EMPTY_S = 0.1;
/** Nothing is loaded while there is so much to be played, in seconds: by a live player while its video does not play. */
const ENOUGH_S = 10;
/** Who went back begins with so much, in seconds. */
const BEGINNING_S = 1;

/**
 * @typedef {import("./buffer.js").LiveBuffer} LiveBuffer
 * @typedef {import("./playlist.js").Playlist} Playlist
 * @typedef {import("./playlist.js").Position} Position
 * @typedef {import("./playlist.js").Variant} Variant
 */

/** As near to what is live as the server wants it and the link lets it. */
export class LivePace {
  hasBegun = false;
  /** It waits until there is enough to go on with. */
  isHeld = true;
  /** Other renditions may be taken. */
  isLive = true;
  #stuck = new StuckRule();
  #holdBack = 0;
  /** How much further behind than the server says, because of what stood still. */
  #steppedBack = 0;

  /**
   * @param {Variant[]} variants those that there are
   * @param {(codecs: string) => boolean} plays whether this browser plays them
   * @returns {Variant[]} those to choose from
   */
  variants(variants, plays) {
    return choicesOf(variants, plays);
  }

  /** What is to be loaded. @param {Playlist} playlist @param {Position | null} position @param {boolean} isFirst */
  next(playlist, position, isFirst) {
    this.#holdBack = playlist.holdBack;
    if (isFirst && !position) return { chunks: firstChunks(playlist), isJump: false };
    return chunksFrom(playlist, position);
  }

  /** From where to go on if something is not there any more. @returns {Position | null} */
  afterLoss() {
    return null;
  }

  /** The next thing that comes has a source of its own. */
  startAnew() {
    this.#stuck.startAnew();
    this.hasBegun = false;
    this.isHeld = true;
  }

  /** Something new is there. @param {LiveBuffer} buffer @param {HTMLVideoElement} video @returns {boolean} whether it plays */
  came(buffer, video) {
    const wanted = this.#holdBack + this.#steppedBack;
    const isFar = buffer.ahead > wanted + FAR_S && !video.paused;
    if (this.isHeld && buffer.ahead < wanted) {
      video.playbackRate = 0;
      return false;
    }
    if (!this.hasBegun || isFar) video.currentTime = buffer.end - wanted;
    if (this.isHeld || buffer.ahead <= wanted) video.playbackRate = 1;
    else if (buffer.ahead > wanted + LATE_S) video.playbackRate = CATCH_UP_RATE;
    this.hasBegun = true;
    this.isHeld = false;
    return true;
  }

  /**
   * Whether the browser shows nothing of what it has, and is to be given another source now.
   * @param {LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {number} now in seconds
   */
  isStuck(buffer, video, now) {
    return this.#stuck.look(buffer, video, now);
  }

  /** What came was played: the next time there is to be more before that. */
  stood() {
    this.#steppedBack = Math.min(this.#steppedBack + STEP_BACK_S, FURTHEST_BACK_S);
    this.isHeld = true;
  }

  /**
   * What does not play loads no more than it may need.
   * @param {LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} whether what it has is old by now
   */
  async whileEnough(buffer, video, signal) {
    if (!this.hasBegun || !video.paused || buffer.ahead < ENOUGH_S || this.#stuck.isStuck(buffer, video)) return false;
    await happens(video, "play", signal);
    return true;
  }
}

/** As far behind as somebody went back. It goes neither faster nor further ahead, and takes the source alone. */
export class PastPace {
  hasBegun = false;
  isHeld = true;
  isLive = false;
  /** How far it can go back, in seconds; null before that is known. @type {number | null} */
  reach = null;
  /** Where in what comes first it begins, in seconds. */
  #offset = 0;
  /** Seconds to be played from there on, as far as they are there, and when that was told. */
  #end = { date: /** @type {number | null} */ (null), at: 0 };

  /** @param {number} behind in seconds */
  constructor(behind) {
    this.behind = behind;
  }

  /** @param {Variant[]} variants */
  variants(variants) {
    return [{ ...sourceOf(variants), uri: "dvr.m3u8" }];
  }

  /** @param {Playlist} playlist @param {Position | null} position */
  next(playlist, position) {
    const { segments } = playlist;
    this.reach = segments.reduce((sum, { duration }) => sum + duration, 0);
    const last = segments.at(-1);
    this.#end = { date: last?.date == null ? null : last.date + last.duration * 1000, at: performance.now() };
    if (position && position.number >= endOf(playlist).number) return chunksFrom(playlist, position);
    // What it was to go on with is not there any more: what is oldest now is nearest to it.
    const isLost = position !== null && position.number < playlist.first;
    const { chunks, offset } = chunksFromBehind(playlist, isLost ? Infinity : this.behind, isLost ? null : position);
    if (!position) this.#offset = offset;
    return { chunks, isJump: isLost };
  }

  /** @param {Position | null} position */
  afterLoss(position) {
    return position;
  }

  startAnew() {
    this.hasBegun = false;
    this.isHeld = true;
  }

  /** @param {LiveBuffer} buffer @param {HTMLVideoElement} video */
  came(buffer, video) {
    if (!this.hasBegun) video.currentTime = Math.min(this.#offset, buffer.end);
    this.hasBegun = true;
    if (this.isHeld && buffer.ahead < BEGINNING_S) {
      video.playbackRate = 0;
      return false;
    }
    this.isHeld = false;
    video.playbackRate = 1;
    return true;
  }

  /** It loads far ahead, and would not notice soon. */
  isStuck() {
    return false;
  }

  stood() {
    this.isHeld = true;
  }

  /** @param {LiveBuffer} buffer @param {HTMLVideoElement} video @param {AbortSignal} signal */
  async whileEnough(buffer, video, signal) {
    while (this.hasBegun && buffer.ahead >= ENOUGH_S) await happens(video, "timeupdate", signal);
    return false;
  }

  /**
   * How far behind what is live is shown, in seconds; null where nobody told.
   * @param {number | null} date when what is at the end of the buffer was captured
   * @param {number} ahead seconds that are to be played before that
   */
  behindNow(date, ahead) {
    if (date === null || this.#end.date === null) return null;
    return Math.max(0, (this.#end.date + performance.now() - this.#end.at - date) / 1000 + ahead);
  }
}

/** Waits for an event. @param {EventTarget} target @param {string} event @param {AbortSignal} signal */
async function happens(target, event, signal) {
  await new Promise((resolve) => {
    const done = () => {
      target.removeEventListener(event, done);
      // A viewer who went back waits some times a second, and would leave a listener each time.
      signal.removeEventListener("abort", done);
      resolve(undefined);
    };
    target.addEventListener(event, done);
    signal.addEventListener("abort", done);
  });
  signal.throwIfAborted();
}
