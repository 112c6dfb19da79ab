// @ts-check

/**
 * Parses HLS playlists, and decides what a player loads next. Has no network and no clock.
 *
 * Source: RFC 8216bis §4.4 (tags), §6.3.7 (parts), §6.2.5.2 (what a reload waits for).
 */

/** Longest playlist that is accepted, in characters. */
const LONGEST = 1 << 20;
/** A player that is this much further behind than it should be jumps to the end, in seconds. */
const FAR_BEHIND = 6;
/** Longest segment or part that is accepted, in seconds. */
const LONGEST_DURATION = 60;

/** The text is not a playlist, or not one that can be played. */
export class PlaylistError extends Error {
  name = "PlaylistError";
}

/**
 * @typedef {object} Variant one rendition of a stream
 * @property {string} uri
 * @property {string} codecs as a media type names them
 * @property {number} bitrate average, or else peak, in bit/s
 * @property {number | null} height of its picture, in pixels; null if it has none, or does not say
 *
 * @typedef {object} Part
 * @property {string} uri
 * @property {number} duration in seconds
 * @property {boolean} isIndependent whether it begins with a key frame
 *
 * @typedef {object} Segment
 * @property {number} number its media sequence number
 * @property {string | null} map the initialization segment to append before it
 * @property {boolean} isDiscontinuous whether its timestamps do not continue those before
 * @property {Part[]} parts only the latest segments have them
 * @property {string | null} uri null while it is incomplete
 * @property {number} duration in seconds, of what exists so far
 * @property {number | null} date wall-clock time at which its first picture was captured, in milliseconds
 *
 * @typedef {object} Playlist
 * @property {Segment[]} segments oldest first
 * @property {number} first the number of the oldest, or of the next if there is none
 * @property {number} holdBack how far from the end to play, in seconds
 * @property {boolean} canBlock whether the server delays its answer until what was requested exists
 * @property {string | null} hint the next part
 * @property {boolean} hasEnded
 *
 * @typedef {{ number: number, part: number }} Position of the next thing to load
 *
 * @typedef {object} Chunk something to load, and to append
 * @property {string} uri
 * @property {string | null} map
 * @property {number} duration in seconds
 * @property {boolean} isDiscontinuous
 * @property {number | null} date wall-clock time at which it was captured, in milliseconds
 * @property {Position} next what follows it
 */

/**
 * Whether a playlist is of the recording of a stream that has ended.
 * @param {string} text
 */
export function isRecorded(text) {
  return /^#EXT-X-PLAYLIST-TYPE:VOD\r?$/m.test(text);
}

/**
 * The renditions of a multivariant playlist, best first.
 * @param {string} text
 * @returns {Variant[]} at least one
 * @throws {PlaylistError}
 */
export function parseVariants(text) {
  /** @type {Variant[]} */
  const variants = [];
  /** @type {Omit<Variant, "uri"> | null} */
  let next = null;
  for (const line of linesOf(text)) {
    if (line.startsWith("#EXT-X-STREAM-INF:")) {
      const { CODECS: codecs, RESOLUTION, BANDWIDTH, "AVERAGE-BANDWIDTH": average } = attributesOf(line);
      const [, height] = RESOLUTION?.match(/^\d{1,5}x(\d{1,5})$/) ?? [];
      const bitrate = numberOf(average ?? BANDWIDTH ?? "");
      next = codecs ? { codecs, bitrate, height: height ? Number(height) : null } : null;
    } else if (!line.startsWith("#") && next) {
      variants.push({ uri: line, ...next });
      next = null;
    }
  }
  if (!variants.length) throw new PlaylistError("it has no rendition");
  return variants.sort((one, other) => other.bitrate - one.bitrate);
}

/**
 * Parses a media playlist without delta updates.
 * @param {string} text
 * @returns {Playlist}
 * @throws {PlaylistError}
 */
export function parsePlaylist(text) {
  /** @type {Playlist} */
  const playlist = { segments: [], first: 0, holdBack: 0, canBlock: false, hint: null, hasEnded: false };
  let target = 0;
  let map = /** @type {string | null} */ (null);
  let duration = /** @type {number | null} */ (null);
  let isDiscontinuous = false;
  let date = /** @type {number | null} */ (null);
  /** @type {Part[]} */
  let parts = [];

  /** @param {string | null} uri */
  const endSegment = (uri) => {
    const whole = duration ?? parts.reduce((sum, part) => sum + part.duration, 0);
    playlist.segments.push({
      number: playlist.first + playlist.segments.length, map, isDiscontinuous, parts, uri, duration: whole, date,
    });
    date = null;
    parts = [];
    duration = null;
    isDiscontinuous = false;
  };

  for (const line of linesOf(text)) {
    if (!line.startsWith("#")) {
      if (duration === null) throw new PlaylistError("a segment has no duration");
      endSegment(line);
      continue;
    }
    const [tag, value] = split(line);
    switch (tag) {
      case "#EXT-X-TARGETDURATION": target = durationOf(value); break;
      case "#EXT-X-MEDIA-SEQUENCE": playlist.first = numberOf(value); break;
      case "#EXT-X-SERVER-CONTROL": {
        const control = attributesOf(line);
        playlist.canBlock = control["CAN-BLOCK-RELOAD"] === "YES";
        const holdBack = control["PART-HOLD-BACK"] ?? control["HOLD-BACK"];
        if (holdBack !== undefined) playlist.holdBack = durationOf(holdBack);
        break;
      }
      case "#EXT-X-MAP": map = uriOf(line); break;
      case "#EXT-X-PROGRAM-DATE-TIME": date = dateOf(value); break;
      case "#EXT-X-DISCONTINUITY": isDiscontinuous = true; break;
      case "#EXTINF": duration = durationOf(value); break;
      case "#EXT-X-PART": {
        const { DURATION = "", INDEPENDENT } = attributesOf(line);
        parts.push({ uri: uriOf(line), duration: durationOf(DURATION), isIndependent: INDEPENDENT === "YES" });
        break;
      }
      case "#EXT-X-PRELOAD-HINT":
        if (attributesOf(line).TYPE === "PART") playlist.hint = uriOf(line);
        break;
      case "#EXT-X-SKIP": throw new PlaylistError("it is a delta update that was not requested");
      case "#EXT-X-ENDLIST": playlist.hasEnded = true;
    }
  }
  if (target === 0) throw new PlaylistError("it has no target duration");
  if (parts.length) endSegment(null);
  playlist.holdBack ||= 3 * target;
  return playlist;
}

/**
 * The position after everything in a playlist.
 * @param {Playlist} playlist
 * @returns {Position}
 */
export function endOf({ segments, first }) {
  const last = segments.at(-1);
  if (!last) return { number: first, part: 0 };
  return last.uri === null ? { number: last.number, part: last.parts.length } : { number: last.number + 1, part: 0 };
}

/**
 * What to load, in order: from the player's position, or from a key frame near the end if that position is far behind
 * or gone.
 * @param {Playlist} playlist
 * @param {Position | null} position null for a player that starts
 * @returns {{ chunks: Chunk[], isJump: boolean }} a jump: the chunks do not continue what was loaded before
 */
export function chunksFrom(playlist, position) {
  const all = playlist.segments.flatMap((segment) => chunksOf(segment));
  const end = endOf(playlist);
  if (position && position.number === end.number && position.part === end.part) return { chunks: [], isJump: false };
  const at = position
    ? all.findIndex(({ place }) => place.number === position.number && place.part === position.part) : -1;
  const left = all.slice(at).reduce((sum, { duration }) => sum + duration, 0);
  if (at >= 0 && left <= playlist.holdBack + FAR_BEHIND) return { chunks: all.slice(at), isJump: false };
  let start = -1;
  let behind = 0;
  for (let index = all.length - 1; index >= 0; index -= 1) {
    behind += all[index].duration;
    if (!all[index].isIndependent) continue;
    start = index;
    if (behind >= playlist.holdBack) break;
  }
  return { chunks: start < 0 ? [] : all.slice(start), isJump: true };
}

/**
 * What to load for a viewer who went back: from the player's position, or from the segment that contains that time.
 * @param {Playlist} playlist
 * @param {number} behind seconds before the end; the start, if that is more than there is
 * @param {Position | null} position null for a player that starts
 * @returns {{ chunks: Chunk[], offset: number }} the offset of that time in the first chunk, in seconds
 */
export function chunksFromBehind({ segments }, behind, position) {
  const all = segments.flatMap((segment) => chunksOf(segment));
  let at = position ? all.findIndex(({ place }) => place.number === position.number && place.part >= position.part) : -1;
  if (at >= 0) return { chunks: all.slice(at), offset: 0 };
  let left = 0;
  for (at = all.length - 1; at > 0; at -= 1) {
    left += all[at].duration;
    if (all[at].isIndependent && left >= behind) break;
  }
  if (at === 0 && all.length) left += all[0].duration;
  return { chunks: all.slice(Math.max(at, 0)), offset: Math.max(0, left - behind) };
}

/**
 * Where a rendition continues after another one was left: at its own last key frame that is not later than what was
 * loaded, or at its first one.
 * @param {Playlist} playlist
 * @param {{ map: string | null, date: number | null }} left what was appended last, and when its end was captured
 * @returns {Chunk[]} empty while it only has what it took over from other renditions
 */
export function chunksAfter(playlist, { map, date: moment }) {
  const own = playlist.segments.filter((segment) => segment.map !== map).flatMap((segment) => chunksOf(segment));
  const isBefore = (/** @type {number | null} */ date) => moment !== null && date !== null && date <= moment;
  const at = own.findLastIndex(({ isIndependent, date }) => isIndependent && isBefore(date));
  const chunks = own.slice(at >= 0 ? at : Math.max(own.findIndex(({ isIndependent }) => isIndependent), 0));
  const left = chunks.reduce((sum, { duration }) => sum + duration, 0);
  return left <= playlist.holdBack + FAR_BEHIND ? chunks : chunksFrom(playlist, null).chunks;
}

/**
 * What to start a rendition with: chunks of its own near the end.
 * @param {Playlist} playlist
 * @returns {Chunk[]}
 */
export function firstChunks(playlist) {
  const { map } = playlist.segments.at(-1) ?? { map: null };
  return chunksFrom({ ...playlist, segments: playlist.segments.filter((segment) => segment.map === map) }, null).chunks;
}

/**
 * A segment in parts, or as a whole if its parts are no longer listed.
 * @param {Segment} segment
 * @returns {(Chunk & { place: Position, isIndependent: boolean })[]}
 */
function chunksOf({ number, map, isDiscontinuous, parts, uri, duration, date }) {
  const behind = { number: number + 1, part: 0 };
  if (!parts.length) {
    const place = { number, part: 0 };
    return uri === null ? [] : [{ uri, map, duration, isDiscontinuous, isIndependent: true, date, place, next: behind }];
  }
  let before = 0;
  const dates = parts.map((part) => {
    const start = date === null ? null : date + before * 1000;
    before += part.duration;
    return start;
  });
  return parts.map((part, index) => ({
    date: dates[index], uri: part.uri, map, duration: part.duration, isDiscontinuous: isDiscontinuous && index === 0,
    isIndependent: part.isIndependent, place: { number, part: index },
    next: uri !== null && index === parts.length - 1 ? behind : { number, part: index + 1 },
  }));
}

/** @param {string} text */
function linesOf(text) {
  if (text.length > LONGEST) throw new PlaylistError("it is too long");
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "");
  if (lines[0] !== "#EXTM3U") throw new PlaylistError("it does not begin with #EXTM3U");
  return lines.slice(1);
}

/** @param {string} line @returns {[tag: string, value: string]} */
function split(line) {
  const at = line.indexOf(":");
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
}

/** @param {string} line @returns {Record<string, string | undefined>} */
function attributesOf(line) {
  /** @type {Record<string, string | undefined>} */
  const attributes = Object.create(null);
  for (const [, name, quoted, bare] of split(line)[1].matchAll(/([A-Z0-9-]+)=(?:"([^"]*)"|([^,"]*))/g)) {
    attributes[name] = quoted ?? bare;
  }
  return attributes;
}

/** @param {string} line */
function uriOf(line) {
  const { URI } = attributesOf(line);
  if (!URI) throw new PlaylistError("a URI is missing");
  return URI;
}

/** @param {string} text up to a comma */
function durationOf(text) {
  const [, seconds] = text.match(/^(\d{1,4}(?:\.\d{1,9})?)(?:,.*)?$/) ?? [];
  const duration = Number(seconds);
  if (!(duration > 0 && duration <= LONGEST_DURATION)) throw new PlaylistError(`${text} is not a duration`);
  return duration;
}

/** @param {string} text ISO 8601 */
function dateOf(text) {
  const date = text.length <= 40 ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? null : date;
}

/** @param {string} text */
function numberOf(text) {
  if (!/^\d{1,12}$/.test(text)) throw new PlaylistError(`${text} is not a number`);
  return Number(text);
}
