// @ts-check

/**
 * The one peer connection of a visit: two slots of sound and picture that the server fills with one stream or another,
 * and a channel on which they are asked for. One offer at the beginning is all that is ever negotiated.
 */

import { MediaSession, SignallingError, offerDescriptors } from "../session.js";

/** What comes before a released slot's last frame is surely out of its buffers, in milliseconds. */
const DRAIN_MS = 60;
/** A server that has named the number of no request for so long knows of none, in milliseconds. */
const UNNUMBERED_MS = 4000;
/** Messages that are kept until somebody listens; a server says few before it is asked. */
const MOST_EARLY = 64;

/**
 * @typedef {object} Requests numbers of what was asked of the server in one session, which it names in its answers
 * @property {number} said the last one's; 0 before there is one
 * @property {number} answered up to which request it is known what the slots are; Infinity where the server names none
 *
 * @typedef {object} Slot
 * @property {0 | 1} index
 * @property {MediaStream} media sound and picture; the same for the whole session, whatever it carries
 * @property {string | null} stream what it carries; null while it is empty
 * @property {"full" | "preview" | null} quality full: the focus, with sound
 * @property {number} since frames that were received before are another stream's; by `performance.now()`
 * @property {{ stream: string, timestamp: number } | null} begun where in RTP's time a stream's picture begins, once known
 * @property {Requests} requests of the session; the same for both slots
 */

/** Fires `slots` when they changed, `notice` (detail: the message), besides what a `MediaSession` fires. */
export class FeedSession extends MediaSession {
  /** @type {[Slot, Slot]} */
  slots;
  /** Whether the server has told what is in the slots; before that only its answer's word on the first is known. */
  isTold = false;
  /** @type {Requests} */
  requests = { said: 0, answered: 0 };

  /** The server names the numbers of requests. */
  #isNumbered = false;
  /** When a slot was last released. */
  #emptySince = [-Infinity, -Infinity];
  /**
   * What came on the channel before anybody listened: on a busy machine the page learns of the answer to its offer after
   * the connection stands. Null once somebody does.
   * @type {string[] | null}
   */
  #early = [];
  /** The channel has told of the slots: from then on it tells every change of them, in order. */
  #isFollowed = false;

  /**
   * @param {RTCPeerConnection} peer
   * @param {import("../session.js").SessionOptions} options
   * @param {string | null} stream what was asked for to begin with
   */
  constructor(peer, options, stream) {
    super(peer, options);
    this.asked = stream;
    this.addEventListener("answer", (event) => this.#begin(/** @type {CustomEvent<Headers>} */ (event).detail));
    // Known to both sides in advance, so that it is open as soon as the connection is.
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
    // In the order of the offer: the first audio and the first video are slot 0.
    for (const { receiver } of peer.getTransceivers()) {
      const kind = /** @type {"audio" | "video"} */ (receiver.track.kind);
      this.slots[kinds[kind]++].media.addTrack(receiver.track);
    }
  }

  /** Tells what the server said until now, and from now on at once. */
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
   * The first picture may come before the server's first word about the slots on the channel, and be of another story
   * than was asked for. An older server does not say, and is thought to begin with what was.
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
   * What has arrived of a slot so far.
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

  /** What the server has in focus. */
  get focus() {
    return this.slots.find(({ quality }) => quality === "full")?.stream ?? null;
  }

  /** Whether the server's last word on the slots is newer than all that was asked for. */
  get isAnswered() {
    return this.requests.answered >= this.requests.said;
  }

  /**
   * Says what the viewer does: on the channel, or over HTTP until that is open. What cannot be said yet is made up for
   * when the server first tells of its slots.
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

  /** An older server answers as well, but does not say what: its word is all there is to know. */
  #doWithoutNumbers() {
    if (this.#isNumbered) return;
    this.requests.answered = Infinity;
    if (this.isTold) this.dispatchEvent(new Event("slots"));
  }

  /** @param {number | undefined} request up to which the slots are known now */
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
      // An answer that took longer than the channel to open says less than was heard there: the next story may be missing.
      // Nor does one that was overtaken by the next request's.
      const isOld = this.#isFollowed || this.#isNumbered && answer.request < this.requests.answered;
      if (!isOld) this.receive({ type: "slots", ...answer });
      return;
    }
    // Without its number: answers to requests before it may be still to come.
    const { rule } = await SignallingError.from(response);
    this.receive({ type: "refused", message: type, reason: rule, .../** @type {any} */ (body) });
  }

  /**
   * Learns from one message of the server.
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
    // Nothing has changed, which some have waited to know.
    if (isAnswer && this.isTold) this.dispatchEvent(new Event("slots"));
  }

  /**
   * @param {{ kind: string, slot: 0 | 1, stream?: string, quality?: "full" | "preview" }[]} lines
   * @param {number} [request] after which they are so
   */
  #refill(lines, request) {
    const now = performance.now();
    this.#answered(request);
    for (const { kind, slot: index, stream = null, quality = null } of lines) {
      const slot = this.slots[index];
      if (kind !== "video" || !slot) continue;
      if (slot.stream !== stream) {
        if (stream === null) this.#emptySince[index] = now;
        // What a slot carried until it was released may still be on its way to the screen, and what it carries now may
        // have come ahead of this message.
        else if (slot.stream !== null) slot.since = now;
        else slot.since = Math.min(now, this.#emptySince[index] + DRAIN_MS);
      }
      // It may have come ahead, too.
      if (slot.begun?.stream !== stream) slot.begun = null;
      slot.stream = stream;
      slot.quality = quality;
    }
    this.isTold = true;
    this.dispatchEvent(new Event("slots"));
  }
}

/**
 * Offers two slots and a channel, and returns once the server has answered.
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
    // The shortest buffer the network's jitter allows; browsers without the attribute ignore it.
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
  }
  const session = new FeedSession(peer, { endpoint: endpoint.href, token }, stream);
  await session.open(signal);
  return session;
}
