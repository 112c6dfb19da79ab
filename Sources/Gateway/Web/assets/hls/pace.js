// @ts-check

/** Keeps a player at its distance from the end of a stream: near it, or as far behind as its viewer went back. */

import { chunksFrom, chunksFromBehind, endOf, firstChunks } from "./playlist.js";
import { choicesOf, sourceOf } from "./renditions.js";
import { StuckRule } from "./stuck.js";

/** This much further behind than intended, it plays faster; much further, it jumps. In seconds. */
const LATE_S = 0.5;
export const FAR_S = 4;
/** Playback rate to catch up with: too little to be heard. */
const CATCH_UP_RATE = 1.06;
/** Each stall adds this much distance, up to a limit, in seconds. */
const STEP_BACK_S = 0.5;
const FURTHEST_BACK_S = 3;
/** With less than this buffered there is nothing to play, in seconds. */
export const EMPTY_S = 0.1;
/** With this much buffered nothing more is loaded, in seconds; by a live player only while it is paused. */
const ENOUGH_S = 10;
/** After going back, playback starts with this much buffered, in seconds. */
const BEGINNING_S = 1;

/**
 * @typedef {import("./buffer.js").LiveBuffer} LiveBuffer
 * @typedef {import("./playlist.js").Playlist} Playlist
 * @typedef {import("./playlist.js").Position} Position
 * @typedef {import("./playlist.js").Variant} Variant
 */

/** As close to live as the server asks for and the connection allows. */
export class LivePace {
  hasBegun = false;
  /** Waits until enough is buffered to continue. */
  isHeld = true;
  /** Plays live, and may switch renditions. */
  isLive = true;
  #stuck = new StuckRule();
  #holdBack = 0;
  /** How much further behind than the server asks for, because of stalls. */
  #steppedBack = 0;

  /**
   * @param {Variant[]} variants all of them
   * @param {(codecs: string) => boolean} plays whether this browser plays them
   * @returns {Variant[]} those to choose from
   */
  variants(variants, plays) {
    return choicesOf(variants, plays);
  }

  /** What to load. @param {Playlist} playlist @param {Position | null} position @param {boolean} isFirst */
  next(playlist, position, isFirst) {
    this.#holdBack = playlist.holdBack;
    if (isFirst && !position) return { chunks: firstChunks(playlist), isJump: false };
    return chunksFrom(playlist, position);
  }

  /** Where to continue if something is gone from the server. @returns {Position | null} */
  afterLoss() {
    return null;
  }

  /** What is loaded next gets a source of its own. */
  startAnew() {
    this.#stuck.startAnew();
    this.hasBegun = false;
    this.isHeld = true;
  }

  /**
   * Something was appended.
   * @param {LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @returns {boolean} whether it plays
   */
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
   * Whether the browser does not show what is buffered, and needs another source now.
   * @param {LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {number} now in seconds
   */
  isStuck(buffer, video, now) {
    return this.#stuck.look(buffer, video, now);
  }

  /** Playback stalled: more is to be buffered from now on. */
  stood() {
    this.#steppedBack = Math.min(this.#steppedBack + STEP_BACK_S, FURTHEST_BACK_S);
    this.isHeld = true;
  }

  /**
   * While paused it loads no more than it may need.
   * @param {LiveBuffer} buffer
   * @param {HTMLVideoElement} video
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} whether what is buffered is out of date by now
   */
  async whileEnough(buffer, video, signal) {
    if (!this.hasBegun || !video.paused || buffer.ahead < ENOUGH_S || this.#stuck.isStuck(buffer, video)) return false;
    await happens(video, "play", signal);
    return true;
  }
}

/** As far behind as the viewer went back. It never plays faster or jumps ahead, and has a single rendition. */
export class PastPace {
  hasBegun = false;
  isHeld = true;
  isLive = false;
  /** How far the viewer can go back, in seconds; null while unknown. @type {number | null} */
  reach = null;
  /** Where in the first chunk playback starts, in seconds. */
  #offset = 0;
  /** When the end of the playlist was captured, and when it was read. */
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
    // Its position is gone from the server: the oldest segment is closest to it.
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

  /** It buffers far ahead, so this could not be noticed in time. */
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
   * How far behind live the picture is, in seconds; null if unknown.
   * @param {number | null} date when the end of the buffer was captured
   * @param {number} ahead seconds that are buffered before that
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
