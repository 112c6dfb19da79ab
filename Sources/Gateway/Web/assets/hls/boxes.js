// @ts-check

/**
 * Reads from fragmented MP4 when a piece begins.
 *
 * Source: ISO/IEC 14496-12 §4.2 (boxes), §8.4.2 (mdhd), §8.3.2 (tkhd), §8.8.7 (tfhd), §8.8.12 (tfdt).
 */

/** Boxes that contain the ones that are read here. */
const CONTAINERS = new Set(["moov", "trak", "mdia", "moof", "traf"]);
/** The most boxes that are read; the server writes far fewer. */
const MOST_BOXES = 4096;

/** The bytes are not fragmented MP4. */
export class BoxError extends Error {
  name = "BoxError";
}

/**
 * The timescales (ticks per second) of an initialization segment's tracks, by track number.
 * @param {ArrayBuffer} bytes
 * @returns {Map<number, number>}
 * @throws {BoxError}
 */
export function timescalesOf(bytes) {
  const scales = new Map();
  let track = 0;
  read(bytes, (type, view) => {
    // In version 1, times have eight bytes instead of four.
    const longer = type === "tkhd" || type === "mdhd" ? 8 * Number(uint8(view, 0) === 1) : 0;
    if (type === "tkhd") track = uint32(view, 12 + longer);
    if (type === "mdhd" && uint32(view, 12 + longer) > 0) scales.set(track, uint32(view, 12 + longer));
  });
  if (!scales.size) throw new BoxError("it has no track");
  return scales;
}

/**
 * The time from which on all of its tracks have media, in seconds: sound may begin slightly before the picture.
 * @param {ArrayBuffer} bytes of fragments
 * @param {Map<number, number>} scales
 * @returns {number}
 * @throws {BoxError}
 */
export function beginningOf(bytes, scales) {
  /** By track number. @type {Map<number, number>} */
  const beginnings = new Map();
  let track = 0;
  read(bytes, (type, view) => {
    if (type === "tfhd") track = uint32(view, 4);
    if (type !== "tfdt") return;
    const scale = scales.get(track);
    const time = uint8(view, 0) === 1 ? uint32(view, 4) * 2 ** 32 + uint32(view, 8) : uint32(view, 4);
    // Only the first fragment of each track counts.
    if (scale && !beginnings.has(track)) beginnings.set(track, time / scale);
  });
  if (!beginnings.size) throw new BoxError("no fragment says when it begins");
  return Math.max(...beginnings.values());
}

/**
 * @param {ArrayBuffer} bytes
 * @param {(type: string, content: DataView) => void} take called for each box, including nested ones
 */
function read(bytes, take) {
  let count = 0;
  /** @param {number} from @param {number} to */
  const walk = (from, to) => {
    for (let at = from; at < to;) {
      count += 1;
      const head = new DataView(bytes, at, Math.min(8, to - at));
      const size = uint32(head, 0);
      if (count > MOST_BOXES || size < 8 || size > to - at) throw new BoxError("a box has an invalid size");
      const type = String.fromCharCode(uint8(head, 4), uint8(head, 5), uint8(head, 6), uint8(head, 7));
      if (CONTAINERS.has(type)) walk(at + 8, at + size);
      else take(type, new DataView(bytes, at + 8, size - 8));
      at += size;
    }
  };
  walk(0, bytes.byteLength);
}

/** @param {DataView} view @param {number} at */
function uint8(view, at) {
  if (at + 1 > view.byteLength) throw new BoxError("a box is too short");
  return view.getUint8(at);
}

/** @param {DataView} view @param {number} at */
function uint32(view, at) {
  if (at + 4 > view.byteLength) throw new BoxError("a box is too short");
  return view.getUint32(at);
}
