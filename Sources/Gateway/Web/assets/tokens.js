// @ts-check

/**
 * Finds the token a page acts with: from the address (`#token=…`, which never leaves the browser), else
 * from a development server, which hands them out to anyone on the same machine.
 */

import { SignallingError } from "./session.js";

/** @typedef {"host" | "speaker" | "viewer"} Role */

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
    sessionStorage.removeItem(key(stream, role));
    const fresh = await fetchToken(stream, role);
    if (!fresh || fresh === token) throw error;
    return action(fresh);
  }
}

/**
 * The token to use without asking the server, if there is one.
 * @param {string} stream
 * @param {Role} role
 * @returns {string | null}
 */
export function knownToken(stream, role) {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) return given;
  const kept = JSON.parse(sessionStorage.getItem(key(stream, role)) ?? "null");
  return kept && Date.parse(kept.expiresAt) - MARGIN_MS > Date.now() ? kept.token : null;
}

/**
 * @param {string} stream
 * @param {Role} role
 * @returns {Promise<string | null>} null when this server hands out none; then the request goes without
 */
async function fetchToken(stream, role) {
  const name = role === "viewer" ? "Viewer" : "Host";
  const response = await fetch("/v1/tokens", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sub: identity(), name, role, stream, ttl: 3600 }),
  });
  if (response.status !== 201) return null;
  const fresh = await response.json();
  sessionStorage.setItem(key(stream, role), JSON.stringify(fresh));
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
