// @ts-check

/**
 * What a `<video>` plays of a stream that comes in pieces: one source buffer whose times begin at 0 and have no gap,
 * whatever the times of the pieces are.
 */

import { beginningOf, timescalesOf } from "./boxes.js";

/** What was played longer ago is given up, in seconds, and once there is so much of it. */
const KEPT_S = 8;
const SPENT_S = 20;
/** Longest time a browser may take to open a source, or to take a piece in, in milliseconds. */
const PATIENCE_MS = 30_000;

/** What this browser has of media sources; iPhones have the managed one alone. @type {typeof MediaSource | undefined} */
export const Source = /** @type {any} */ (globalThis).ManagedMediaSource ?? globalThis.MediaSource;

export class LiveBuffer {
  /** @type {MediaSource} */
  #source = new (/** @type {typeof MediaSource} */ (Source))();
  /** @type {SourceBuffer | null} */
  #buffer = null;
  #address = "";
  #codecs = "";
  /** Of the tracks of what was begun last. @type {Map<number, number>} */
  #scales = new Map();
  /** The next piece begins there, in seconds, whatever its times say; null where it goes on by its times. @type {number | null} */
  #joint = 0;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.video = video;
  }

  /** @throws when the browser does not take a source */
  async open() {
    const { video } = this;
    this.#address = URL.createObjectURL(this.#source);
    // Without this a managed source does not open.
    video.disableRemotePlayback = true;
    const opened = happens(this.#source, "sourceopen");
    video.srcObject = null;
    video.src = this.#address;
    await opened;
  }

  close() {
    const { video } = this;
    if (video.src === this.#address) {
      video.removeAttribute("src");
      // Somebody else's picture may be in it already.
      if (!video.srcObject) video.load();
    }
    video.playbackRate = 1;
    URL.revokeObjectURL(this.#address);
  }

  /** Where what there is ends, in seconds. */
  get end() {
    const buffered = this.#buffer && this.#source.readyState === "open" ? this.#buffer.buffered : null;
    return buffered?.length ? buffered.end(buffered.length - 1) : 0;
  }

  /** What there is to be played yet, in seconds. */
  get ahead() {
    return Math.max(0, this.end - this.video.currentTime);
  }

  /**
   * What comes next has other times than what was before.
   * @param {number} [overlap] seconds of what was before that it replaces
   */
  join(overlap = 0) {
    this.#joint = Math.max(0, this.end - overlap);
  }

  /** Whether what follows may be of these codecs: tracks cannot come or go. @param {string} codecs */
  takes(codecs) {
    return this.#codecs === "" || this.#codecs.split(",").length === codecs.split(",").length;
  }

  /**
   * Takes in how what follows is to be read.
   * @param {ArrayBuffer} bytes an initialization segment
   * @param {string} codecs
   */
  async begin(bytes, codecs) {
    const type = `video/mp4; codecs="${codecs}"`;
    if (!this.#buffer) this.#buffer = this.#source.addSourceBuffer(type);
    else if (codecs !== this.#codecs) this.#buffer.changeType(type);
    this.#codecs = codecs;
    this.#scales = timescalesOf(bytes);
    this.#joint ??= this.end;
    await this.#append(bytes);
  }

  /** @param {ArrayBuffer} bytes of a part or a segment */
  async append(bytes) {
    const buffer = this.#buffer;
    if (!buffer) return;
    await this.#trim();
    if (this.#joint !== null) buffer.timestampOffset = this.#joint - beginningOf(bytes, this.#scales);
    this.#joint = null;
    await this.#append(bytes);
  }

  /** Nothing more comes. */
  finish() {
    if (this.#source.readyState === "open") this.#source.endOfStream();
  }

  async #trim() {
    const buffer = this.#buffer;
    const now = this.video.currentTime;
    if (!buffer?.buffered.length || now - buffer.buffered.start(0) < SPENT_S) return;
    const done = happens(buffer, "updateend");
    buffer.remove(0, now - KEPT_S);
    await done;
  }

  /** @param {ArrayBuffer} bytes */
  async #append(bytes) {
    const buffer = /** @type {SourceBuffer} */ (this.#buffer);
    if (this.video.error) throw this.video.error;
    const done = happens(buffer, "updateend");
    buffer.appendBuffer(bytes);
    await done;
    if (this.video.error) throw this.video.error;
  }
}

/** @param {EventTarget} target @param {string} event @returns {Promise<void>} */
function happens(target, event) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      target.removeEventListener(event, done);
      reject(new Error(`${event} did not happen`));
    }, PATIENCE_MS);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    target.addEventListener(event, done, { once: true });
  });
}
