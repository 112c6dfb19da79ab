// @ts-check

/** Requests, downloads and pauses of the HLS player. */

import { SignallingError } from "../session.js";
import { PlaylistError } from "./playlist.js";

/** Longest time an answer may take, in milliseconds; the server delays answers by up to six seconds. */
const ANSWER_MS = 12_000;

/**
 * @param {string} address
 * @param {AbortSignal} signal
 * @throws {SignallingError} if the server refuses
 */
export async function ask(address, signal) {
  const response = await fetch(address, { signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), signal]) });
  if (!response.ok) throw await SignallingError.from(response);
  return response;
}

/**
 * Requests media, whose address has the token of its playlist in it.
 * @param {string} address
 * @param {AbortSignal} signal
 * @throws {PlaylistError} if that has expired since: the playlist is requested again, with another token
 */
export async function askForMedia(address, signal) {
  return ask(address, signal).catch((error) => {
    throw error instanceof SignallingError && error.status === 401 ? new PlaylistError(error.message) : error;
  });
}

/**
 * @param {Response} answer
 * @param {(count: number) => void} came called with the number of bytes so far; throwing ends the download
 * @returns {Promise<ArrayBuffer>}
 */
export async function read(answer, came) {
  const reader = answer.body?.getReader();
  if (!reader) return answer.arrayBuffer();
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const pieces = [];
  let count = 0;
  try {
    for (let { done, value } = await reader.read(); !done && value; { done, value } = await reader.read()) {
      pieces.push(value);
      count += value.byteLength;
      came(count);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  }
  return new Blob(pieces).arrayBuffer();
}

export function seconds() {
  return performance.now() / 1000;
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
export function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
