// @ts-check

/** What this server can do, and whom it lets watch. */

/**
 * @typedef {object} About
 * @property {boolean} transcoder whether it composes pictures, records and makes previews
 * @property {"public" | "token"} viewers who may watch: anybody, or who has a token
 * @property {boolean} recordings whether there is room for them
 * @property {boolean} clips whether clips are made of live streams
 * @property {boolean} restreams whether it sends live programmes on by RTMP
 * @property {boolean} rtmp whether it takes encoders by RTMP
 * @property {boolean} srt whether it takes encoders by SRT
 * @property {boolean} hls whether it can be watched by HLS
 * @property {number} dvrSeconds how far hosts may let viewers by HLS go back
 * @property {boolean} development whether it makes tokens for whoever asks on its own machine
 */

/** Of a server that does not say. @type {About} */
const USUAL = {
  transcoder: true, viewers: "public", recordings: true, clips: false, restreams: false, rtmp: false, srt: false, hls: false, dvrSeconds: 0,
  development: true,
};

/** Of a server that has not said anything. @type {About} */
const UNHEARD = { ...USUAL };

/** Longest time the answer may take, in milliseconds. */
const ANSWER_MS = 5000;
/** First and longest pause before a server that did not answer is asked again, in milliseconds. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 32_000;

/** By the server's origin. @type {Map<string, Promise<About>>} */
const answers = new Map();

/**
 * Asks once; a server that does not answer is taken for a usual one, and asked again the next time.
 * @param {string} [origin] of the server; by default the page's
 */
export function aboutServer(origin = location.origin) {
  const known = answers.get(origin);
  if (known) return known;
  const answer = ask(origin);
  answers.set(origin, answer);
  return answer;
}

/**
 * Waits until the server has answered: for what would otherwise be wrong as long as the page is open.
 * @param {string} [origin] of the server; by default the page's
 */
export async function toldByServer(origin = location.origin) {
  let about = await aboutServer(origin);
  for (let pause = FIRST_PAUSE_MS; about === UNHEARD; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    about = await aboutServer(origin);
  }
  return about;
}

/** @param {string} origin @returns {Promise<About>} */
async function ask(origin) {
  try {
    const response = await fetch(`${origin}/v1/server`, { signal: AbortSignal.timeout(ANSWER_MS) });
    return response.ok ? { ...USUAL, ...await response.json() } : USUAL;
  } catch {
    answers.delete(origin);
    return UNHEARD;
  }
}
