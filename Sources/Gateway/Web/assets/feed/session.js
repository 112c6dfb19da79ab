// @ts-check

/**
 * The peer connection of the feed: two slots, each with sound and picture, that the server fills with changing streams,
 * and a data channel to ask for them. There is one offer at the start, and no renegotiation.
 */

import { MediaSession, SignallingError, offerDescriptors } from "../session.js";

/** Time after which no more frames of a released slot's stream leave its buffers, in milliseconds. */
const DRAIN_MS = 60;
/** A server that has not named any request's number by this time does not number them, in milliseconds. */
const UNNUMBERED_MS = 4000;
/** Most messages that are kept until someone listens; servers send few before they are asked. */
const MOST_EARLY = 64;

/**
 * @typedef {object} Requests numbers of the requests in a session, which the server names in its answers
 * @property {number} said the number of the last request; 0 before the first
 * @property {number} answered the last request after which the slots are known; Infinity if the server has no numbers
 *
 * @typedef {object} Slot
 * @property {0 | 1} index
 * @property {MediaStream} media sound and picture; the same during the whole session
 * @property {string | null} stream that it carries; null while it is empty
 * @property {"full" | "preview" | null} quality `full`: the focus, with sound
 * @property {number} since frames received before this time are of another stream; as of `performance.now()`
 * @property {{ stream: string, timestamp: number } | null} begun the RTP timestamp of a stream's first picture, once
 *   known
 * @property {Requests} requests of the session; the same for both slots
 */

/** Fires `slots` when they changed, `notice` (detail: the message), and the events of a `MediaSession`. */
export class FeedSession extends MediaSession {
  /** @type {[Slot, Slot]} */
  slots;
  /** Whether the server has reported the slots; before that, only the first one is known, from its answer. */
  isTold = false;
  /** @type {Requests} */
  requests = { said: 0, answered: 0 };

  /** Whether the server names the numbers of requests. */
  #isNumbered = false;
  /** When each slot was last released. */
  #emptySince = [-Infinity, -Infinity];
  /**
   * Messages that arrived before someone listened: on a busy machine, the page processes the answer to its offer after
   * the connection is open. Null once someone listens.
   * @type {string[] | null}
   */
  #early = [];
  /** Whether the channel has reported the slots: from then on it reports each of their changes, in order. */
  #isFollowed = false;

  /**
   * @param {RTCPeerConnection} peer
   * @param {import("../session.js").SessionOptions} options
   * @param {string | null} stream that we asked to start with
   */
  constructor(peer, options, stream) {
    super(peer, options);
    this.asked = stream;
    this.addEventListener("answer", (event) => this.#begin(/** @type {CustomEvent<Headers>} */ (event).detail));
    // Negotiated in advance, so that it opens with the connection.
    this.control = peer.createDataChannel("control", { negotiated: true, id: 0 });
    this.control.addEventListener("message", ({ data }) => {
      if (!this.#early) this.#hear(data);
      else if (this.#early.length < MOST_EARLY) this.#early.push(data);
    });
    this.slots = /** @type {[Slot, Slot]} */ ([0, 1].map((index) => ({
      index, media: new MediaStream(), stream: index === 0 ? stream : null,
      quality: index === 0 && stream ? "full" : null, since: 0, begun: null, requests: this.requests,
    })));
    const kinds = { audio: 0, video: 0 };
    // In the order of the offer: the first audio and the first video are those of slot 0.
    for (const { receiver } of peer.getTransceivers()) {
      const kind = /** @type {"audio" | "video"} */ (receiver.track.kind);
      this.slots[kinds[kind]++].media.addTrack(receiver.track);
    }
  }

  /** Passes on all messages so far, and later ones at once. */
  listen() {
    const early = this.#early ?? [];
    this.#early = null;
    for (const data of early) this.#hear(data);
  }

  /** @param {string} data */
  #hear(data) {
    const message = JSON.parse(data);
    if (message.type === "slots") this.#isFollowed = true;
    this.receive(message);
  }

  /**
   * The slot that carries a stream.
   * @param {string | null} stream
   */
  slotOf(stream) {
    return stream === null ? null : this.slots.find((slot) => slot.stream === stream) ?? null;
  }

  /**
   * Takes the first stream from the server's answer: its picture may arrive before the first message on the channel,
   * and be of another story than the one that was asked for. An older server does not name it.
   * @param {Headers} headers of its answer
   */
  #begin(headers) {
    const stream = headers.get("Rostrum-Stream");
    if (stream === null) return;
    const [slot] = this.slots;
    slot.stream = stream;
    slot.quality = "full";
  }

  /**
   * Totals of what a slot has received.
   * @param {Slot} slot
   * @returns {Promise<import("./health.js").Arrivals>}
   */
  async arrivalsOf(slot) {
    const tracks = slot.media.getTracks();
    const receivers = this.peer.getReceivers().filter(({ track }) => tracks.includes(track));
    const reports = await Promise.all(receivers.map((receiver) => receiver.getStats()));
    const arrivals = { frames: 0, packets: 0, lost: 0 };
    for (const entry of reports.flatMap((report) => [...report.values()])) {
      if (entry.type !== "inbound-rtp") continue;
      arrivals.frames += entry.framesDecoded ?? 0;
      arrivals.packets += entry.packetsReceived ?? 0;
      arrivals.lost += entry.packetsLost ?? 0;
    }
    return arrivals;
  }

  /** The stream that the server has in focus. */
  get focus() {
    return this.slots.find(({ quality }) => quality === "full")?.stream ?? null;
  }

  /** Whether the server has reported the slots since our last request. */
  get isAnswered() {
    return this.requests.answered >= this.requests.said;
  }

  /**
   * Tells the server what the viewer does: on the channel, or over HTTP until that is open. What cannot be sent yet is
   * sent when the server first reports the slots.
   * @param {{ type: "peek" | "focus" | "release", [member: string]: unknown }} message
   */
  say(message) {
    const isOpen = this.control.readyState === "open";
    if (!isOpen && (!this.resource || this.state === "lost" || this.state === "closed")) return;
    const request = ++this.requests.said;
    if (request === 1) setTimeout(() => this.#doWithoutNumbers(), UNNUMBERED_MS);
    if (isOpen) return this.control.send(JSON.stringify({ ...message, request }));
    const { type, ...body } = message;
    this.#post(type, body, request).catch(() => {});
  }

  /** Trusts every report of an older server, which does not say which request it answers. */
  #doWithoutNumbers() {
    if (this.#isNumbered) return;
    this.requests.answered = Infinity;
    if (this.isTold) this.dispatchEvent(new Event("slots"));
  }

  /** @param {number | undefined} request that the slots now take into account */
  #answered(request) {
    if (request === undefined) return;
    this.#isNumbered = true;
    this.requests.answered = request;
  }

  /**
   * @param {string} type
   * @param {object} body
   * @param {number} request
   */
  async #post(type, body, request) {
    const response = await fetch(`${this.resource}/${type}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        ...(this.options.token ? { Authorization: `Bearer ${this.options.token}` } : {}),
      },
      body: JSON.stringify({ ...body, request }),
    });
    if (response.ok) {
      const answer = await response.json();
      // Ignore an answer that is older than the reports on the channel, which it may contradict, or than that of a
      // later request.
      const isOld = this.#isFollowed || this.#isNumbered && answer.request < this.requests.answered;
      if (!isOld) this.receive({ type: "slots", ...answer });
      return;
    }
    // Without its number: answers to earlier requests may still arrive.
    const { rule } = await SignallingError.from(response);
    this.receive({ type: "refused", message: type, reason: rule, .../** @type {any} */ (body) });
  }

  /**
   * Takes in a message of the server.
   * @param {any} message
   */
  receive(message) {
    if (message.type === "slots") return this.#refill(message.slots, message.request);
    if (message.type === "begun" && this.slots[message.slot]) {
      this.slots[message.slot].begun = message;
      return;
    }
    const isAnswer = message.type === "refused" && message.request !== undefined;
    if (isAnswer) this.#answered(message.request);
    this.dispatchEvent(new CustomEvent("notice", { detail: message }));
    // The slots are unchanged, but now known to be.
    if (isAnswer && this.isTold) this.dispatchEvent(new Event("slots"));
  }

  /**
   * @param {{ kind: string, slot: 0 | 1, stream?: string, quality?: "full" | "preview" }[]} lines
   * @param {number} [request] that they take into account
   */
  #refill(lines, request) {
    const now = performance.now();
    this.#answered(request);
    for (const { kind, slot: index, stream = null, quality = null } of lines) {
      const slot = this.slots[index];
      if (kind !== "video" || !slot) continue;
      if (slot.stream !== stream) {
        if (stream === null) this.#emptySince[index] = now;
        // Frames of the previous stream may still be on their way to the screen, and those of the new one may have
        // arrived before this message.
        else if (slot.stream !== null) slot.since = now;
        else slot.since = Math.min(now, this.#emptySince[index] + DRAIN_MS);
      }
      // That message may have arrived before this one, too.
      if (slot.begun?.stream !== stream) slot.begun = null;
      slot.stream = stream;
      slot.quality = quality;
    }
    this.isTold = true;
    this.dispatchEvent(new Event("slots"));
  }
}

/**
 * Opens a session with two slots and a channel; resolves once the server has answered.
 * @param {{ origin: string, stream: string | null, preload: "eager" | "on-swipe", token: string | null,
 *   signal?: AbortSignal }} options
 * @returns {Promise<FeedSession>}
 */
export async function openFeedSession({ origin, stream, preload, token, signal }) {
  const endpoint = new URL("/v1/feed/sessions", origin);
  if (stream !== null) endpoint.searchParams.set("stream", stream);
  endpoint.searchParams.set("preload", preload);
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  for (const kind of ["audio", "video", "audio", "video"]) {
    const transceiver = peer.addTransceiver(kind, { direction: "recvonly" });
    if (kind === "video") offerDescriptors(transceiver);
    const { receiver } = transceiver;
    // The shortest buffer that the jitter of the network allows.
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
  }
  const session = new FeedSession(peer, { endpoint: endpoint.href, token }, stream);
  await session.open(signal);
  return session;
}
