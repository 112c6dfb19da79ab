// @ts-check

/**
 * Finds the token a page acts with: from the address (`#token=…`, which never leaves the browser, or
 * `?access_token=…`), else from a development server, which hands them out to anyone on the same machine. What the
 * server gives in exchange, on the way to the stage and back, takes its place.
 */

import { SignallingError } from "./session.js";

/**
 * @typedef {"host" | "speaker" | "viewer"} Role
 *
 * @typedef {object} Claims what a token says; only the server can tell whether it is true
 * @property {string} sub
 * @property {string} [name]
 * @property {string} role
 * @property {string} [stream] a stream's name, or `*`
 */

/** Renewed this long before it ends, in milliseconds. */
const MARGIN_MS = 60_000;

/**
 * Does something with a token, and once more with a fresh one when the server refuses it (401): an old token
 * does not outlive a restart of a development server.
 *
 * Viewers try without a token first, because most servers let anyone watch.
 * @template T
 * @param {string} stream
 * @param {Role} role
 * @param {(token: string | null) => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function withToken(stream, role, action) {
  const token = knownToken(stream, role) ?? (role === "viewer" ? null : await fetchToken(stream, role));
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
 * Another token than one that the server refused: the link's, or a new one; null if there is none.
 * @param {string} stream
 * @param {Role} role
 * @param {string | null} refused
 */
export async function replaceToken(stream, role, refused) {
  sessionStorage.removeItem(key(stream, role));
  const fresh = givenToken() ?? await fetchToken(stream, role);
  return fresh === refused ? null : fresh;
}

/**
 * The token to use without asking the server, if there is one.
 * @param {string} stream
 * @param {Role} role
 * @returns {string | null}
 */
export function knownToken(stream, role) {
  const given = givenToken();
  const kept = JSON.parse(sessionStorage.getItem(key(stream, role)) ?? "null");
  // What came in exchange for another link's token is not for this one.
  if (kept && kept.given === given && Date.parse(kept.expiresAt) - MARGIN_MS > Date.now()) return kept.token;
  return given;
}

/**
 * When the token that would be used ends, in milliseconds since 1970; infinite for none and for what is no JWT.
 * @param {string} stream
 * @param {Role} role
 */
export function expiryOf(stream, role) {
  const exp = /** @type {any} */ (claimsOf(knownToken(stream, role)))?.exp;
  return typeof exp === "number" ? exp * 1000 : Infinity;
}

/**
 * A token for somebody who so far went without, if the server gives one.
 * @param {string} stream
 * @param {Role} role
 */
export async function ensureToken(stream, role) {
  return knownToken(stream, role) ?? await fetchToken(stream, role);
}

/**
 * Remembers what the server gave in exchange.
 * @param {string} stream
 * @param {Role} role
 * @param {{ token: string, expiresAt: string }} fresh
 */
export function keepToken(stream, role, { token, expiresAt }) {
  sessionStorage.setItem(key(stream, role), JSON.stringify({ token, expiresAt, given: givenToken() }));
}

/**
 * What a token says of its bearer; null for what is no JWT.
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
 * @returns {Promise<string | null>} null when this server hands out none; then the request goes without
 */
async function fetchToken(stream, role) {
  const sub = identity();
  const name = `${role === "viewer" ? "Viewer" : "Host"} ${sub.slice(-3)}`;
  const response = await fetch("/v1/tokens", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sub, name, role, stream, ttl: 3600 }),
  });
  if (response.status !== 201) return null;
  const fresh = await response.json();
  keepToken(stream, role, fresh);
  return fresh.token;
}

/**
 * @param {string} stream
 * @param {Role} role
 */
function key(stream, role) {
  return `rostrum:token:${stream}:${role}`;
}

/** A made-up identity that stays the same in this tab. */
function identity() {
  let name = sessionStorage.getItem("rostrum:identity");
  if (!name) {
    name = `guest-${[...crypto.getRandomValues(new Uint8Array(6))].map((b) => b.toString(36)).join("")}`;
    sessionStorage.setItem("rostrum:identity", name);
  }
  return name;
}
