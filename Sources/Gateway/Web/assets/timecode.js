// @ts-check

/**
 * A time code that survives video codecs: a row of black and white squares at the lower edge. Windows on the same
 * machine share a clock, so that reading the code from a played picture gives its delay from capture to display.
 */

/** Bits of the code: milliseconds modulo 2^20 (about 17 minutes), and a 4-bit checksum. */
const VALUE_BITS = 20;
const CHECK_BITS = 4;
const BITS = VALUE_BITS + CHECK_BITS;
/** Height of the row, as a share of the picture. */
const HEIGHT = 1 / 16;

/** The clock that all windows of this machine share, in milliseconds modulo the range of the code. */
export function timeCodeNow() {
  return Math.floor(performance.timeOrigin + performance.now()) % 2 ** VALUE_BITS;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} value as of `timeCodeNow`
 */
export function drawTimeCode(context, value) {
  const { width, height } = context.canvas;
  const bits = value * 2 ** CHECK_BITS + check(value);
  const cell = width / BITS;
  const top = Math.round(height * (1 - HEIGHT));
  context.fillStyle = "#000";
  context.fillRect(0, top, width, height - top);
  context.fillStyle = "#fff";
  for (let i = 0; i < BITS; i++) {
    if (Math.floor(bits / 2 ** (BITS - 1 - i)) % 2) {
      context.fillRect(Math.round(i * cell), top, Math.round((i + 1) * cell) - Math.round(i * cell), height - top);
    }
  }
}

/** One sample a cell, one row. @type {OffscreenCanvasRenderingContext2D | null} */
let sampler = null;

/**
 * @param {HTMLVideoElement} video
 * @returns {number | null} null if the picture has no readable code
 */
export function readTimeCode(video) {
  const { videoWidth: width, videoHeight: height } = video;
  if (!width) return null;
  const columns = BITS * 4;
  sampler ??= new OffscreenCanvas(columns, 4).getContext("2d", { willReadFrequently: true });
  if (!sampler) return null;
  const top = height * (1 - HEIGHT);
  sampler.drawImage(video, 0, top, width, height - top, 0, 0, columns, 4);
  const { data } = sampler.getImageData(0, 0, columns, 4);
  let bits = 0;
  for (let i = 0; i < BITS; i++) {
    // The middle of the cell, away from edges that codecs blur.
    const at = (columns * 2 + i * 4 + 2) * 4;
    const light = (data[at] + data[at - 4]) / 2;
    if (light > 80 && light < 170) return null;
    bits = bits * 2 + (light > 127 ? 1 : 0);
  }
  const value = Math.floor(bits / 2 ** CHECK_BITS);
  return bits % 2 ** CHECK_BITS === check(value) ? value : null;
}

/**
 * Age of a code in milliseconds, also across a wrap-around.
 * @param {number} value
 * @param {number} now
 */
export function timeCodeAge(value, now = timeCodeNow()) {
  return (now - value + 2 ** VALUE_BITS) % 2 ** VALUE_BITS;
}

/** @param {number} value */
function check(value) {
  let sum = 5;
  for (let rest = value; rest > 0; rest = Math.floor(rest / 16)) sum = (sum * 3 + rest) % 16;
  return sum;
}
