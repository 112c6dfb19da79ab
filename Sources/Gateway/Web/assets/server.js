// @ts-check

/** The features of a server, and who can watch there. */

/**
 * @typedef {object} About
 * @property {boolean} transcoder whether it can compose pictures, record and make previews
 * @property {"public" | "token"} viewers whether everyone can watch, or people with a token
 * @property {boolean} recordings whether it has storage for them
 * @property {boolean} clips whether it makes clips of live streams
 * @property {boolean} restreams whether it can send programmes to other servers by RTMP
 * @property {boolean} rtmp whether it accepts encoders by RTMP
 * @property {boolean} srt whether it accepts encoders by SRT
 * @property {boolean} hls whether it offers HLS
 * @property {number} dvrSeconds how far hosts can let viewers rewind over HLS
 * @property {boolean} development whether it gives tokens to anyone on the same machine
 */

/** Assumed of a server that answers without details. @type {About} */
const USUAL = {
  transcoder: true, viewers: "public", recordings: true, clips: false, restreams: false, rtmp: false, srt: false, hls: false, dvrSeconds: 0,
  development: true,
};

/** Assumed of a server that has not answered. @type {About} */
const UNHEARD = { ...USUAL };

/** Longest time the answer may take, in milliseconds. */
const ANSWER_MS = 5000;
/** First and longest pause before a server that did not answer is asked again, in milliseconds. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 32_000;

/** By the server's origin. @type {Map<string, Promise<About>>} */
const answers = new Map();

/**
 * Asks once. If the server does not answer, the usual features are assumed, and the next call asks again.
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
 * Waits until the server has answered, for callers that ask only once.
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
