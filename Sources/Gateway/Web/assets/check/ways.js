// @ts-check

/** The ways from a browser to this server, and what to do if one is blocked. */

import { SignallingError } from "../session.js";
import { knownToken, withToken } from "../tokens.js";
import { probe } from "./probe.js";

/** Longest time for an answer, in milliseconds. */
const ANSWER_MS = 8000;
/** If the clock is further off, tokens and certificates may be refused, in milliseconds. */
const CLOCK_MS = 60_000;

/**
 * @typedef {"trying" | "ok" | "warn" | "fail" | "none"} Verdict `none`: the server does not offer this way, which may
 *   be intended
 *
 * @typedef {object} Finding
 * @property {string} name
 * @property {Verdict} verdict
 * @property {string} text
 * @property {string} [remedy] what can be done about it on the server or in this browser
 *
 * @typedef {(finding: Finding) => void} Tell called for each attempt, and again with its result
 */

const PAGE = "This page";
const CLOCK = "Clock";
const NEWS = "Live updates (WebSocket)";
const UDP = "Media over UDP";
const TCP = "Media over TCP";
const LATE = "Delayed video (HLS)";

/** Tries all of them. @param {Tell} tell @returns {Promise<Finding>} the conclusion */
export async function tryAll(tell) {
  tell(page());
  const server = await about(tell);
  if (!server) return { name: "", verdict: "fail", text: "The server isn’t responding.", remedy: "Check that it’s running and that this is its address." };
  if (!globalThis.RTCPeerConnection) {
    for (const name of [UDP, TCP]) tell({ name, verdict: "fail", text: "This browser doesn’t support WebRTC, or it’s turned off." });
    await newsArrive(tell);
    tell(late(server));
    return comesTo([], server);
  }
  const direct = (/** @type {string} */ name, /** @type {RegExp} */ transport) =>
    media(tell, name, { takes: (candidate) => transport.test(candidate) });
  const [udp, tcp] = await Promise.all([
    direct(UDP, /^\S+ \S+ udp /i), direct(TCP, /^\S+ \S+ tcp /i),
  ]);
  const relays = (udp.relays ?? []).filter(({ urls }) => /^turns?:/.test(String(urls)));
  const relayed = await Promise.all(relays.map((relay) =>
    media(tell, nameOf(String(relay.urls)), { takes: (candidate) => /^\S+ \S+ udp /i.test(candidate), relay })));
  if (!udp.refusal) await newsArrive(tell);
  tell(late(server));
  return udp.refusal ?? comesTo([udp, tcp, ...relayed], server);
}

/** @returns {Finding} */
function page() {
  return isSecureContext
    ? { name: PAGE, verdict: "ok", text: location.protocol === "https:" ? "Loaded over HTTPS." : "Loaded from this machine." }
    : {
      name: PAGE, verdict: "warn", text: "Loaded over HTTP, without encryption. Browsers allow camera and microphone only on secure pages.",
      remedy: "Give the server a certificate (tls-certificate, tls-key), or put a TLS proxy in front of it.",
    };
}

/** The server's description of itself; null without an answer. @param {Tell} tell */
async function about(tell) {
  tell({ name: CLOCK, verdict: "trying", text: "" });
  try {
    const asked = Date.now();
    const response = await fetch("/v1/server", { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" });
    const told = Date.parse(response.headers.get("Date") ?? "");
    const off = Number.isNaN(told) ? 0 : told - (asked + Date.now()) / 2;
    if (Math.abs(off) > CLOCK_MS) {
      tell({
        name: CLOCK, verdict: "warn", text: `The clocks of the server and this machine differ by ${Math.round(Math.abs(off) / 1000)} s.`,
        remedy: "Links and certificates may expire too early or too late. Set both clocks from the network.",
      });
    } else {
      tell({ name: CLOCK, verdict: "ok", text: "The clocks of the server and this machine agree." });
    }
    return /** @type {{ hls?: boolean }} */ (await response.json());
  } catch {
    tell({ name: CLOCK, verdict: "fail", text: "The server isn’t responding." });
    return null;
  }
}

/** Uses the same token as the ways for media, if they needed one. @param {Tell} tell */
async function newsArrive(tell) {
  tell({ name: NEWS, verdict: "trying", text: "" });
  const address = new URL("/v1/feed/sync", location.origin.replace(/^http/, "ws"));
  const token = knownToken("*", "viewer");
  // In the first message, because addresses end up in logs.
  if (token) address.searchParams.set("authenticate", "message");
  const isOpen = await hears(address, token).catch(() => false);
  tell(isOpen ? { name: NEWS, verdict: "ok", text: "Updates arrive." } : {
    name: NEWS, verdict: "warn", text: "No updates arrived. Where viewers can watch, pages check for changes from time to time instead.",
    remedy: "Allow WebSockets in any proxy in front of the server or on this network.",
  });
}

/**
 * Whether anything comes over a WebSocket.
 * @param {URL} address
 * @param {string | null} token
 * @returns {Promise<boolean>}
 * @throws {DOMException} if the browser does not let this page open it
 */
async function hears(address, token) {
  const socket = new WebSocket(address);
  socket.addEventListener("open", () => token && socket.send(JSON.stringify({ type: "token", token })));
  const isOpen = await new Promise((resolve) => {
    socket.addEventListener("message", () => resolve(true));
    socket.addEventListener("close", () => resolve(false));
    setTimeout(() => resolve(false), ANSWER_MS);
  });
  socket.close();
  return isOpen;
}

/**
 * @param {Tell} tell
 * @param {string} name
 * @param {import("./probe.js").Way} way
 * @returns {Promise<{ name: string, isThrough: boolean, refusal?: Finding, relays?: RTCIceServer[] }>}
 */
async function media(tell, name, way) {
  tell({ name, verdict: "trying", text: "" });
  try {
    const result = await withToken("*", "viewer", (token) => probe(token, way));
    tell(findingOf(name, result, way.relay));
    return { name, isThrough: result.isThrough, relays: result.relays };
  } catch (error) {
    const refusal = refusalOf(/** @type {Error} */ (error));
    tell({ name, verdict: "fail", text: refusal.text });
    return { name, isThrough: false, refusal };
  }
}

/** @param {Error} error @returns {Finding} */
function refusalOf(error) {
  const needsLink = error instanceof SignallingError && (error.status === 401 || error.status === 403);
  if (needsLink) {
    return {
      name: "", verdict: "warn", text: "You need a link to watch on this server, so media connections couldn’t be tested.",
      remedy: "Open this page with the part of your link after the #: /check#token=…",
    };
  }
  return { name: "", verdict: "fail", text: `The server didn’t accept a session: ${error.message}` };
}

/** @param {string} name @param {import("./probe.js").Result} result @param {RTCIceServer} [relay] @returns {Finding} */
function findingOf(name, { isThrough, milliseconds, roundTrip, offered }, relay) {
  if (isThrough) {
    const trip = roundTrip === null ? "" : `, round trip ${Math.max(1, Math.round(roundTrip))} ms`;
    return { name, verdict: "ok", text: `Connected in ${Math.round(milliseconds)} ms${trip}.` };
  }
  if (relay) {
    return {
      name, verdict: "fail", text: "It doesn’t get through.",
      remedy: `Open the port of ${relay.urls} in the server’s firewall, and forward it if the server is behind NAT.`,
    };
  }
  if (!offered.length) return { name, verdict: "none", text: "The server doesn’t offer it." };
  const text = `It doesn’t get through. The server’s addresses: ${offered.join(", ")}.`;
  if (offered.every(isPrivate) && !isPrivate(location.hostname)) {
    return { name, verdict: "fail", text, remedy: "None of them can be reached from outside. Set public-address to the server’s public address." };
  }
  return { name, verdict: "fail", text, remedy: "Open these ports in the server’s firewall, and forward them if the server is behind NAT." };
}

/** Whether an address is only valid in its own network (RFC 1918, 4193, 6598, and loopback). @param {string} address */
function isPrivate(address) {
  return /^(localhost\b|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|\[?(::1|f[cd]|fe80))/i.test(address);
}

/** @param {string} url of a TURN server (RFC 7065) */
function nameOf(url) {
  const isTLS = url.startsWith("turns:");
  return `Media through TURN over ${isTLS ? "TLS" : /transport=tcp/.test(url) ? "TCP" : "UDP"} (${url.replace(/\?.*/, "")})`;
}

/** @param {{ hls?: boolean }} server @returns {Finding} */
function late({ hls }) {
  return hls
    ? { name: LATE, verdict: "ok", text: "Available to viewers whose network blocks live video." }
    : { name: LATE, verdict: "none", text: "The server doesn’t offer it." };
}

/**
 * @param {{ name: string, isThrough: boolean }[]} tried best way first
 * @param {{ hls?: boolean }} server
 * @returns {Finding}
 */
function comesTo(tried, { hls }) {
  const best = tried.find(({ isThrough }) => isThrough);
  if (best?.name === UDP) return { name: "", verdict: "ok", text: "Live video gets through over the best connection." };
  if (best?.name === TCP) {
    return { name: "", verdict: "warn", text: "Live video gets through over TCP. It may freeze when a packet gets lost.", remedy: "UDP would be better." };
  }
  if (best) return { name: "", verdict: "ok", text: "Live video gets through, but only through a TURN relay.", remedy: "Direct connections are blocked." };
  if (hls) return { name: "", verdict: "warn", text: "Live video doesn’t get through. You can watch streams with a few seconds’ delay, but you can’t go on stage from here." };
  return { name: "", verdict: "fail", text: "Live video doesn’t get through." };
}
