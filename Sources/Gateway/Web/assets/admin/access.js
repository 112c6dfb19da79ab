// @ts-check

/**
 * Asks the server as an admin: with the token of the address (`#token=…`, which is taken out of it at once), the one
 * that this tab kept, or one that a development server makes for its own machine.
 */

import { aboutServer } from "../server.js";
import { tabStorage } from "../storage.js";

const KEY = "rostrum:token:admin";
/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;

/** What the server refused. */
export class Refusal extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Takes the token out of the address, so that it is in no bookmark and no picture of the screen. */
export function takeTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  keep(token);
  history.replaceState(null, "", location.pathname + location.search);
}

/** @param {string} token */
export function keep(token) {
  tabStorage.setItem(KEY, token.trim());
}

/** @typedef {{ method?: string, body?: object, type?: string, patience?: number }} Options `patience` in milliseconds */

/**
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>} the answer's JSON; null where it has none
 */
export async function ask(path, options = {}) {
  const response = await answer(path, options);
  return response.status === 204 ? null : response.json().catch(() => null);
}

/** Has the browser save what a path answers. @param {string} path @param {string} name @param {Options} options */
export async function save(path, name, options) {
  const address = URL.createObjectURL(await (await answer(path, options)).blob());
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), ANSWER_MS);
}

/** @param {string} path @param {Options} options */
async function answer(path, options) {
  let token = tabStorage.getItem(KEY) ?? await make();
  let response = await send(path, options, token);
  if (response.status === 401) {
    // A token expires, and does not survive a restart of a development server.
    tabStorage.removeItem(KEY);
    token = await make();
    if (token) response = await send(path, options, token);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => null);
  throw new Refusal(response.status, problem?.detail ?? `The server returned status ${response.status}.`);
}

/** @param {string} path @param {Options} options @param {string | null} token */
function send(path, { method = "GET", body, type = "application/json", patience = ANSWER_MS }, token) {
  return fetch(path, {
    method, signal: AbortSignal.timeout(patience),
    headers: { ...(token && { Authorization: `Bearer ${token}` }), ...(body && { "Content-Type": type }) },
    body: body && JSON.stringify(body),
  });
}

/** A development server's token; null of others. @returns {Promise<string | null>} */
async function make() {
  if (!(await aboutServer()).development) return null;
  const wanted = { sub: "operator", name: "Operator", role: "admin", ttl: 3600 };
  const response = await send("/v1/tokens", { method: "POST", body: wanted }, null);
  if (response.status !== 201) return null;
  const { token } = await response.json();
  keep(token);
  return token;
}
