// @ts-check

/** How a player asks for what it plays, and how it waits. */

import { SignallingError } from "../session.js";

/** Longest time an answer may take, in milliseconds: the server lets wait up to six seconds. */
const ANSWER_MS = 12_000;

/**
 * @param {string} address
 * @param {AbortSignal} signal
 * @throws {SignallingError} when there is no such thing
 */
export async function ask(address, signal) {
  const response = await fetch(address, { signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), signal]) });
  if (!response.ok) throw await SignallingError.from(response);
  return response;
}

/**
 * @param {Response} answer
 * @param {(count: number) => void} came is told how many bytes there are; what it throws ends it
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
