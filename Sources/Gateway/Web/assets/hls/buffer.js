// @ts-check

/**
 * The source of a `<video>` for a stream that arrives in pieces: one source buffer whose timeline starts at 0 and has
 * no gaps, whatever the timestamps of the pieces are.
 */

import { beginningOf, timescalesOf } from "./boxes.js";

/** How much played media is kept, and how much there has to be before the rest is removed, in seconds. */
const KEPT_S = 8;
const SPENT_S = 20;
/** Longest time a browser may take to open a source or to append a piece, in milliseconds. */
const PATIENCE_MS = 30_000;

/** The browser's MediaSource; iPhones have only the managed one. @type {typeof MediaSource | undefined} */
export const Source = /** @type {any} */ (globalThis).ManagedMediaSource ?? globalThis.MediaSource;

export class LiveBuffer {
  /** @type {MediaSource} */
  #source = new (/** @type {typeof MediaSource} */ (Source))();
  /** @type {SourceBuffer | null} */
  #buffer = null;
  #address = "";
  #codecs = "";
  /** Timescales of the tracks of the last initialization segment. @type {Map<number, number>} */
  #scales = new Map();
  /**
   * Where the next piece begins, in seconds, whatever its timestamps say; null if they continue.
   * @type {number | null}
   */
  #joint = 0;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.video = video;
  }

  /** @throws if the browser does not open the source */
  async open() {
    const { video } = this;
    this.#address = URL.createObjectURL(this.#source);
    // Otherwise a managed source does not open.
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
      // Something else may be attached to it already.
      if (!video.srcObject) video.load();
    }
    video.playbackRate = 1;
    URL.revokeObjectURL(this.#address);
  }

  /** The end of the buffered media, in seconds. */
  get end() {
    const buffered = this.#buffer && this.#source.readyState === "open" ? this.#buffer.buffered : null;
    return buffered?.length ? buffered.end(buffered.length - 1) : 0;
  }

  /** How much is buffered beyond the current position, in seconds. */
  get ahead() {
    return Math.max(0, this.end - this.video.currentTime);
  }

  /**
   * The timestamps of the next piece do not continue those before.
   * @param {number} [overlap] how many seconds at the end it replaces
   */
  join(overlap = 0) {
    this.#joint = Math.max(0, this.end - overlap);
  }

  /** Whether the source buffer can change to these codecs: the number of tracks is fixed. @param {string} codecs */
  takes(codecs) {
    return this.#codecs === "" || this.#codecs.split(",").length === codecs.split(",").length;
  }

  /**
   * Appends an initialization segment.
   * @param {ArrayBuffer} bytes
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

  /** Appends a part or a segment. @param {ArrayBuffer} bytes */
  async append(bytes) {
    const buffer = this.#buffer;
    if (!buffer) return;
    await this.#trim();
    if (this.#joint !== null) buffer.timestampOffset = this.#joint - beginningOf(bytes, this.#scales);
    this.#joint = null;
    await this.#append(bytes);
  }

  /** Marks the end of the stream. */
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
