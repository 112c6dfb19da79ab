// @ts-check

/**
 * The picture while there is no video: first the preview of the stream, later the last picture. The blurred preview
 * also fills the area around a video of another shape than the player.
 */

import { h } from "../dom.js";
import { decodeBlurHash, isBlurHash } from "../feed/blurhash.js";

/** Sizes of the blurred preview and of the last picture, in pixels. */
const BLUR_WIDTH = 32;
const BLUR_HEIGHT = 18;
const STILL_WIDTH = 640;

export class Backdrop {
  /** The blurred preview, below the video. */
  ambient = h("canvas.ambient", { "aria-hidden": "true", hidden: true, width: BLUR_WIDTH, height: BLUR_HEIGHT });
  /** The last picture. */
  #still = h("canvas.still", { part: "still", "aria-hidden": "true", hidden: true });
  #image = h("img.preview", { part: "preview", alt: "", hidden: true, referrerPolicy: "no-referrer", decoding: "async" });
  element = h("div.backdrop", {}, this.#still, this.#image);

  #hash = "";
  #address = "";
  /** Whether the video has shown a picture, which is newer than any preview. */
  #hasSeen = false;

  constructor() {
    this.#image.addEventListener("load", () => (this.#image.hidden = this.#hasSeen));
    // The preview may be gone; the blurred one is enough.
    this.#image.addEventListener("error", () => (this.#image.hidden = true));
  }

  get isEmpty() {
    return this.ambient.hidden && this.#still.hidden && this.#image.hidden;
  }

  /**
   * @param {string | null} address of the preview or of the poster
   * @param {unknown} hash of the preview
   */
  show(address, hash) {
    if (isBlurHash(hash) && hash !== this.#hash) this.#blur(hash);
    if (this.#hasSeen) return;
    if (!address || address === this.#address) return;
    this.#address = address;
    this.#image.src = address;
  }

  /** Keeps the current picture. @param {HTMLVideoElement} video */
  keep(video) {
    if (!video.videoWidth || video.readyState < 2) return;
    this.#hasSeen = true;
    this.#image.hidden = true;
    const canvas = this.#still;
    canvas.width = STILL_WIDTH;
    canvas.height = Math.round(STILL_WIDTH * video.videoHeight / video.videoWidth);
    canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
    canvas.hidden = false;
  }

  /** Forgets everything about the stream. */
  clear() {
    this.#hasSeen = false;
    this.#hash = this.#address = "";
    this.ambient.hidden = this.#still.hidden = this.#image.hidden = true;
    this.#image.removeAttribute("src");
  }

  /** @param {string} hash */
  #blur(hash) {
    this.#hash = hash;
    const pixels = decodeBlurHash(hash, BLUR_WIDTH, BLUR_HEIGHT);
    this.ambient.getContext("2d")?.putImageData(new ImageData(pixels, BLUR_WIDTH, BLUR_HEIGHT), 0, 0);
    this.ambient.hidden = false;
  }
}
