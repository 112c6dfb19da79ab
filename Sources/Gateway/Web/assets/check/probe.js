// @ts-check

/** Tries one way for media to the server, with a feed session without a stream: it connects, but carries nothing. */

import { parseIceServers, SignallingError } from "../session.js";

/** Longest time for a connection, or an answer of the server, in milliseconds. */
const CONNECT_MS = 8000;
/** Longest time until the round trip is known, in milliseconds. */
const ROUND_TRIP_MS = 1500;

/**
 * @typedef {object} Way
 * @property {(candidate: string) => boolean} takes which of the server's candidates to keep in its answer
 * @property {RTCIceServer} [relay] the TURN server to use
 *
 * @typedef {object} Result
 * @property {boolean} isThrough
 * @property {number} milliseconds from the answer to the connection
 * @property {number | null} roundTrip in milliseconds; null if the browser does not tell
 * @property {string[]} offered addresses of the server, from the tried candidates
 * @property {RTCIceServer[]} relays the TURN servers of the server
 */

/**
 * @param {string | null} token
 * @param {Way} way
 * @returns {Promise<Result>}
 * @throws {SignallingError} when the server refuses the session
 */
export async function probe(token, { takes, relay }) {
  const peer = new RTCPeerConnection({
    bundlePolicy: "max-bundle", ...(relay && { iceServers: [relay], iceTransportPolicy: "relay" }),
  });
  const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
  /** @type {string | null} */
  let resource = null;
  try {
    peer.createDataChannel("control", { negotiated: true, id: 0 });
    for (const kind of ["audio", "video", "audio", "video"]) peer.addTransceiver(kind, { direction: "recvonly" });
    await peer.setLocalDescription(await peer.createOffer());
    const response = await fetch("/v1/feed/sessions", {
      method: "POST", headers: { "Content-Type": "application/sdp", ...headers }, body: peer.localDescription?.sdp,
      signal: AbortSignal.timeout(CONNECT_MS),
    });
    if (response.status !== 201) throw await SignallingError.from(response);
    resource = new URL(response.headers.get("Location") ?? "", response.url).href;
    const { sdp, offered } = leaveOnly(takes, await response.text());
    const relays = parseIceServers(response.headers.get("Link"));
    const begun = performance.now();
    const isThrough = offered.length > 0 && await connects(peer, sdp);
    const milliseconds = performance.now() - begun;
    return { isThrough, milliseconds, roundTrip: isThrough ? await roundTripOf(peer) : null, offered, relays };
  } finally {
    peer.close();
    if (resource) fetch(resource, { method: "DELETE", headers, keepalive: true }).catch(() => {});
  }
}

/**
 * @param {(candidate: string) => boolean} takes
 * @param {string} answer
 */
function leaveOnly(takes, answer) {
  /** @type {Set<string>} */
  const offered = new Set();
  const lines = answer.split(/\r?\n/).filter((line) => {
    if (!line.startsWith("a=candidate:")) return line !== "";
    if (!takes(line)) return false;
    // RFC 8839 §5.1: foundation, component, transport, priority, address, port.
    const [, , transport, , address, port] = line.split(" ");
    offered.add(`${address.includes(":") ? `[${address}]` : address}:${port} (${transport.toUpperCase()})`);
    return true;
  });
  return { sdp: lines.map((line) => `${line}\r\n`).join(""), offered: [...offered] };
}

/** @param {RTCPeerConnection} peer @param {string} sdp */
async function connects(peer, sdp) {
  const isOver = new Promise((resolve) => {
    const look = () => {
      if (peer.connectionState === "connected") resolve(true);
      else if (peer.connectionState === "failed" || peer.connectionState === "closed") resolve(false);
    };
    peer.addEventListener("connectionstatechange", look);
    setTimeout(() => resolve(false), CONNECT_MS);
  });
  await peer.setRemoteDescription({ type: "answer", sdp });
  return /** @type {boolean} */ (await isOver);
}

/** @param {RTCPeerConnection} peer */
async function roundTripOf(peer) {
  const until = performance.now() + ROUND_TRIP_MS;
  while (performance.now() < until) {
    for (const entry of (await peer.getStats()).values()) {
      if (entry.type !== "candidate-pair" || entry.state !== "succeeded") continue;
      if (entry.currentRoundTripTime !== undefined) return entry.currentRoundTripTime * 1000;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}
