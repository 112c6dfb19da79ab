// @ts-check

/**
 * Decodes BlurHash strings (https://github.com/woltapp/blurhash, Algorithm.md): about thirty characters that describe a
 * blurred picture, so that there is something to see before any request.
 */

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";

/**
 * @param {string} text
 * @param {number} from
 * @param {number} to
 */
function number(text, from, to) {
  let value = 0;
  for (let index = from; index < to; index++) {
    const digit = DIGITS.indexOf(text[index]);
    if (digit < 0) throw new RangeError("not a BlurHash");
    value = value * 83 + digit;
  }
  return value;
}

/** @param {number} byte */
function toLinear(byte) {
  const value = byte / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** @param {number} value */
function toByte(value) {
  const v = Math.max(0, Math.min(1, value));
  return Math.round(v <= 0.0031308 ? v * 12.92 * 255 : (1.055 * v ** (1 / 2.4) - 0.055) * 255);
}

/** @param {number} value */
const signedSquare = (value) => Math.sign(value) * value * value;

/**
 * Whether a value is a BlurHash that can be decoded.
 * @param {unknown} hash
 * @returns {hash is string}
 */
export function isBlurHash(hash) {
  if (typeof hash !== "string" || hash.length < 6) return false;
  if ([...hash].some((letter) => !DIGITS.includes(letter))) return false;
  const size = number(hash, 0, 1);
  return hash.length === 4 + 2 * (size % 9 + 1) * (Math.floor(size / 9) + 1);
}

/**
 * The picture, as RGBA bytes row by row.
 * @param {string} hash
 * @param {number} width a few dozen pixels are enough; the browser smooths what it enlarges
 * @param {number} height
 * @returns {Uint8ClampedArray<ArrayBuffer>}
 * @throws {RangeError} if it is not a BlurHash
 */
export function decodeBlurHash(hash, width, height) {
  if (!isBlurHash(hash)) throw new RangeError("not a BlurHash");
  const size = number(hash, 0, 1);
  const columns = size % 9 + 1;
  const rows = Math.floor(size / 9) + 1;
  const greatest = (number(hash, 1, 2) + 1) / 166;
  const average = number(hash, 2, 6);
  const colours = [[toLinear(average >> 16), toLinear((average >> 8) & 255), toLinear(average & 255)]];
  for (let index = 1; index < columns * rows; index++) {
    const value = number(hash, 4 + index * 2, 6 + index * 2);
    colours.push([Math.floor(value / 361), Math.floor(value / 19) % 19, value % 19]
      .map((part) => signedSquare((part - 9) / 9) * greatest));
  }
  const pixels = new Uint8ClampedArray(width * height * 4);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const sum = [0, 0, 0];
      for (let j = 0; j < rows; j++) {
        for (let i = 0; i < columns; i++) {
          const basis = Math.cos(Math.PI * x * i / width) * Math.cos(Math.PI * y * j / height);
          const colour = colours[j * columns + i];
          for (let c = 0; c < 3; c++) sum[c] += colour[c] * basis;
        }
      }
      const at = (y * width + x) * 4;
      for (let c = 0; c < 3; c++) pixels[at + c] = toByte(sum[c]);
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}
