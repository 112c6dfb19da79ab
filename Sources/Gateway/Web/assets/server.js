// @ts-check

/** What this server can do, and whom it lets watch. */

/**
 * @typedef {object} About
 * @property {boolean} transcoder whether it composes pictures, records and makes previews
 * @property {"public" | "token"} viewers who may watch: anybody, or who has a token
 * @property {boolean} recordings whether there is room for them
 * @property {boolean} rtmp whether it takes encoders by RTMP
 * @property {boolean} srt whether it takes encoders by SRT
 * @property {boolean} development whether it makes tokens for whoever asks on its own machine
 */

/** Of a server that does not say. @type {About} */
const USUAL = { transcoder: true, viewers: "public", recordings: true, rtmp: false, srt: false, development: true };

/** Longest time the answer may take, in milliseconds. */
const ANSWER_MS = 5000;

/** @type {Promise<About> | null} */
let answer = null;

/** Asks once; a server that does not answer is taken for a usual one, and asked again the next time. */
export function aboutServer() {
  answer ??= ask();
  return answer;
}

/** @returns {Promise<About>} */
async function ask() {
  try {
    const response = await fetch("/v1/server", { signal: AbortSignal.timeout(ANSWER_MS) });
    return response.ok ? { ...USUAL, ...await response.json() } : USUAL;
  } catch {
    answer = null;
    return USUAL;
  }
}
