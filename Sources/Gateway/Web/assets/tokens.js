// @ts-check

/**
 * Finds the token that a page uses: from its address (`#token=…`, which never leaves the browser, or
 * `?access_token=…`), otherwise from a server that gives them out: a development server to anyone on the same machine,
 * a public server to viewers. It is replaced by the tokens that the server gives in exchange when the role changes. An
 * invitation, which many people may share, is only good for getting a token of one's own.
 */

import { ownName } from "./person.js";
import { aboutServer } from "./server.js";
import { SignallingError } from "./session.js";
import { tabStorage } from "./storage.js";

/**
 * @typedef {"host" | "speaker" | "viewer"} Role
 *
 * @typedef {object} Claims of a token; only the server can verify them
 * @property {string} sub
 * @property {string} [name]
 * @property {string} role
 * @property {string} [stream] a stream's name, or `*`
 * @property {string} [use] `invitation`: only to be exchanged
 */

/** A stored token counts as expired this long before it does, in milliseconds. */
const MARGIN_MS = 60_000;
/** How often an invitation is presented to a server that is receiving too many. */
const MOST_TRIES = 20;
/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * Runs an action with a token, and once more with a fresh one if the server refuses the first (401): tokens do not
 * survive a restart of a development server.
 *
 * Viewers try without a token first, because most servers let anyone watch.
 * @template T
 * @param {string} stream
 * @param {Role} role
 * @param {(token: string | null) => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function withToken(stream, role, action) {
  const token = await usualToken(stream, role);
  try {
    return await action(token);
  } catch (error) {
    if (!(error instanceof SignallingError && error.status === 401)) throw error;
    const fresh = await replaceToken(stream, role, token);
    if (!fresh) throw error;
    return action(fresh);
  }
}

/**
 * The token to try first; viewers have none unless they came with one, because most servers let anyone watch.
 * @param {string} stream
 * @param {Role} role
 */
export async function usualToken(stream, role) {
  return role === "viewer" && !isInvited() ? knownToken(stream, role) : ensureToken(stream, role);
}

/**
 * A token other than one that the server refused: the link's, or a new one; null if there is none.
 * @param {string} stream
 * @param {Role} role
 * @param {string | null} refused
 */
export async function replaceToken(stream, role, refused) {
  const known = knownToken(stream, role);
  // It was renewed meanwhile, and the refused one is older.
  if (known && known !== refused) return known;
  tabStorage.removeItem(key(stream, role));
  const fresh = await ensureToken(stream, role);
  return fresh === refused ? null : fresh;
}

/**
 * The token that can be used without asking the server; null if there is none.
 * @param {string} stream
 * @param {Role} role
 * @returns {string | null}
 */
export function knownToken(stream, role) {
  const given = givenToken();
  const kept = JSON.parse(tabStorage.getItem(key(stream, role)) ?? "null");
  // What was given in exchange for another link's token is not for this one.
  if (kept && kept.given === given && Date.parse(kept.expiresAt) - MARGIN_MS > Date.now()) return kept.token;
  return isInvited() ? null : given;
}

/**
 * The claims of the token that would be used, or of the invitation that it would come from.
 * @param {string} stream
 * @param {Role} role
 */
export function knownClaims(stream, role) {
  return claimsOf(knownToken(stream, role) ?? givenToken());
}

/** The last invitation that was refused, and why it is no longer valid. */
let death = /** @type {{ given: string | null, why: "expired" | "revoked" } | null} */ (null);

/**
 * Why this page's invitation is no longer valid: it has expired, or the host has revoked it; null while it is valid.
 */
export function deathOfLink() {
  // Another link may have been opened since: browsers keep a page whose address differs only behind the #.
  return death && death.given === givenToken() ? death.why : null;
}

/** Whether this page was opened with an invitation. */
function isInvited() {
  return claimsOf(givenToken())?.use === "invitation";
}

/**
 * When the token that would be used expires, in milliseconds since 1970; Infinity without one, and if it is not a JWT.
 * @param {string} stream
 * @param {Role} role
 */
export function expiryOf(stream, role) {
  const exp = /** @type {any} */ (claimsOf(knownToken(stream, role)))?.exp;
  return typeof exp === "number" ? exp * 1000 : Infinity;
}

/** Requests in progress, so that one page does not become two people. @type {Map<string, Promise<string | null>>} */
const asked = new Map();

/**
 * A token for someone who had none so far; null if the server gives none.
 * @param {string} stream
 * @param {Role} role
 * @returns {Promise<string | null>}
 */
export async function ensureToken(stream, role) {
  const known = knownToken(stream, role);
  if (known) return known;
  const id = `${key(stream, role)} ${givenToken() ?? ""}`;
  const request = asked.get(id) ?? fetchToken(stream, role).finally(() => asked.delete(id));
  asked.set(id, request);
  return request;
}

/**
 * Gets a token with another name, for a guest of a development server; others renew theirs at the stream.
 * @param {string} stream
 * @param {Role} role
 * @returns {Promise<boolean>} whether there is one
 */
export async function renameGuest(stream, role) {
  if (givenToken() || !(await aboutServer()).development) return false;
  return await fetchToken(stream, role) !== null;
}

/**
 * Stores a token that the server gave in exchange.
 * @param {string} stream
 * @param {Role} role
 * @param {{ token: string, expiresAt: string }} fresh
 */
export function keepToken(stream, role, { token, expiresAt }) {
  tabStorage.setItem(key(stream, role), JSON.stringify({ token, expiresAt, given: givenToken() }));
}

/**
 * The claims of a token; null if it is not a JWT.
 * @param {string | null} token
 * @returns {Claims | null}
 */
export function claimsOf(token) {
  try {
    const part = (token ?? "").split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

/** @returns {string | null} */
function givenToken() {
  return new URLSearchParams(location.hash.slice(1)).get("token")
    ?? new URLSearchParams(location.search).get("access_token");
}

/**
 * @param {string} stream
 * @param {Role} role
 * @returns {Promise<string | null>} null if this server gives none; requests are then made without
 */
async function fetchToken(stream, role) {
  const given = givenToken();
  // The feed contains all streams, but an invitation is to a single one.
  const one = stream === "*" ? claimsOf(given)?.stream ?? "*" : stream;
  const ownPath = `/v1/streams/${encodeURIComponent(one)}/tokens`;
  const name = ownName() || undefined;
  if (isInvited()) {
    const response = await exchange(ownPath, { name }, given);
    const why = await deathBy(response);
    death = why && { given, why };
    return take(stream, role, response, given);
  }
  const { development, viewers } = await aboutServer();
  if (development) {
    const wanted = { sub: identity(), name: name ?? (role === "viewer" ? "Guest" : "Host"), role, stream, ttl: 3600 };
    const token = await take(stream, role, await post("/v1/tokens", wanted), given);
    if (token) return token;
  }
  if (role !== "viewer" || viewers !== "public" || one === "*") return null;
  return take(stream, role, await post(ownPath, { name }), given);
}

/**
 * Presents the invitation, and waits while too many others behind the same address present theirs.
 * @param {string} address
 * @param {object} body
 * @param {string | null} invitation
 */
export async function exchange(address, body, invitation) {
  for (let tries = 1; ; tries++) {
    const response = await post(address, body, invitation);
    if (response.status !== 429 || tries === MOST_TRIES) return response;
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000 * (1 + Math.random())));
  }
}

/** @param {Response} response to an invitation @returns {Promise<"expired" | "revoked" | null>} */
async function deathBy(response) {
  if (response.status !== 401 && response.status !== 403) return null;
  const { rule } = await response.clone().json().catch(() => ({}));
  return rule === "link-revoked" ? "revoked" : "expired";
}

/**
 * @param {string} address
 * @param {object} body
 * @param {string | null} [token]
 */
export function post(address, body, token = null) {
  return fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
}

/**
 * @param {string} stream
 * @param {Role} role
 * @param {Response} response
 * @param {string | null} given the link's token when it was asked
 * @returns {Promise<string | null>} null where the server gives no token
 * @throws {SignallingError} when it may give one later
 */
async function take(stream, role, response, given) {
  // Not null, which callers take for "none": they would go on without a token, and be refused for good.
  if (response.status === 429 || response.status >= 500) throw await SignallingError.from(response);
  if (response.status !== 201) return null;
  const fresh = await response.json();
  // What an earlier link's token was exchanged for is not for the one that was opened meanwhile.
  if (given === givenToken()) keepToken(stream, role, fresh);
  return fresh.token;
}

/**
 * @param {string} stream
 * @param {Role} role
 */
function key(stream, role) {
  return `rostrum:token:${stream}:${role}`;
}

/** A random identity that stays the same in this tab. */
function identity() {
  let name = tabStorage.getItem("rostrum:identity");
  if (!name) {
    name = `guest-${[...crypto.getRandomValues(new Uint8Array(6))].map((b) => b.toString(36)).join("")}`;
    tabStorage.setItem("rostrum:identity", name);
  }
  return name;
}
