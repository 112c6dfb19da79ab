// @ts-check

/**
 * Takes part in a stage: sends our own tracks, and receives the others in slots that the server fills with those who
 * speak. There is one offer at the start, and no renegotiation; the contents of slots are reported on a data channel.
 */

import { addTrack } from "./sending.js";
import { SentLayers } from "./sent-layers.js";
import { MediaSession, offerDescriptors } from "./session.js";

/** Voices received at once: people cannot tell more apart. */
const VOICES = 3;
/** Pictures of others received at once. */
const PICTURES = 8;
/** Highest bitrate of a shared screen, in bit/s. */
const SCREEN_BITRATE = 2_500_000;
/** Heights to request, in pixels; a slot gets the first one that fills its tile. */
const HEIGHTS = [180, 360, 540, 720, 1080];

/**
 * @typedef {object} Slot
 * @property {string} mid
 * @property {"audio" | "video"} kind
 * @property {string} [stream] of the participant; absent while it is empty
 * @property {string} [participant] absent while it is empty
 * @property {string} [name]
 * @property {boolean} [screen] whether it is a shared screen, not a camera
 * @property {string[]} [participants] everyone in it if it carries a composition, which has no `participant`
 */

/** Fires `slots` when someone enters or leaves a slot, in addition to the events of `MediaSession`. */
export class StageSession extends MediaSession {
  /** Voices to play, one stream per slot; it does not matter who speaks in which. @type {MediaStream[]} */
  voices = [];

  /** Sends a shared screen in addition to the picture; sends nothing until there is one. @type {RTCRtpSender | null} */
  screenSender = null;

  /** @type {Map<string, Slot>} */
  #slots = new Map();
  /** The pinned participant, and their slot. @type {{ participant: string, mid: string } | null} */
  #pin = null;
  /** Media of the slots, by mid. @type {Map<string, MediaStream>} */
  #pictures = new Map();
  /** Requested heights, by mid. @type {Map<string, number>} */
  #heights = new Map();
  /** @type {Map<RTCRtpSender, SentLayers>} */
  #layers = new Map();

  /**
   * @param {RTCPeerConnection} peer
   * @param {import("./session.js").SessionOptions} options
   */
  constructor(peer, options) {
    super(peer, options);
    // Negotiated in advance, so that it opens with the connection.
    this.control = peer.createDataChannel("control", { negotiated: true, id: 0 });
    this.control.addEventListener("message", ({ data }) => this.receive(JSON.parse(data)));
  }

  /** @param {AbortSignal} [signal] */
  async open(signal) {
    await super.open(signal);
    for (const { mid, receiver, currentDirection } of this.peer.getTransceivers()) {
      if (currentDirection !== "recvonly" || mid === null) continue;
      const media = new MediaStream([receiver.track]);
      if (receiver.track.kind === "audio") this.voices.push(media);
      else this.#pictures.set(mid, media);
    }
    this.dispatchEvent(new Event("slots"));
  }

  /** Reports that the network limits what is sent. The server forgets this unless it is repeated. */
  sayUplinkIsWeak() {
    if (this.control.readyState === "open") this.control.send(JSON.stringify({ type: "uplink", limitedBy: "bandwidth" }));
  }

  /**
   * Handles one message from the control channel.
   * @param {any} message
   */
  receive(message) {
    switch (message.type) {
      case "slots":
        for (const slot of message.slots) this.#slots.set(slot.mid, slot);
        return this.dispatchEvent(new Event("slots"));
      case "wanted":
        return this.#rest(message.mid, message.rids);
    }
  }

  /**
   * Encodes only the layers that someone receives.
   * @param {string} mid
   * @param {string[]} rids of those layers
   */
  #rest(mid, rids) {
    const sender = this.peer.getTransceivers().find((transceiver) => transceiver.mid === mid)?.sender;
    if (sender) this.#layersOf(sender).want(rids);
  }

  /**
   * Checks the layers that are sent, once a second.
   * @param {RTCStatsReport} report of the peer connection
   * @param {number} [maxBitrate] of the largest, in bit/s, if it was changed
   */
  lookAtLayers(report, maxBitrate) {
    for (const sender of this.peer.getSenders()) {
      if (sender.track?.kind === "video" && sender !== this.screenSender) this.#layersOf(sender).look(report, maxBitrate);
    }
  }

  /** @param {RTCRtpSender} sender */
  #layersOf(sender) {
    const known = this.#layers.get(sender) ?? new SentLayers(sender);
    this.#layers.set(sender, known);
    return known;
  }

  /** A participant's picture or shared screen; null while it is not received. @param {string} participant */
  pictureOf(participant, isScreen = false) {
    const mid = this.#midOf(participant, isScreen);
    return mid === undefined ? null : this.#pictures.get(mid) ?? null;
  }

  /**
   * Hosts of other streams who are on this stage for a duel.
   * @param {string} stream this one
   */
  guests(stream) {
    const slots = [...this.#slots.values()].filter((slot) => slot.participant && slot.stream && slot.stream !== stream);
    return [...new Map(slots.map((slot) => [/** @type {string} */ (slot.participant), slot])).values()];
  }

  /** Sends a shared screen; null stops it. @param {MediaStreamTrack | null} track */
  async showScreen(track) {
    await this.screenSender?.replaceTrack(track).catch(() => {});
  }

  /** Keeps a participant visible no matter who speaks; null unpins. @param {string | null} participant */
  pin(participant) {
    if (this.control.readyState !== "open" || (this.#pin?.participant ?? null) === participant) return;
    const before = this.#pin;
    this.#pin = null;
    if (before) this.control.send(JSON.stringify({ type: "pin", mid: before.mid }));
    if (participant === null) return;
    const pictures = [...this.#slots.values()].filter((slot) => slot.kind === "video");
    const mid = this.#midOf(participant, true) ?? this.#midOf(participant, false) ?? pictures[pictures.length - 1]?.mid;
    if (mid === undefined) return;
    this.#pin = { participant, mid };
    this.#heights.delete(mid);
    this.control.send(JSON.stringify({ type: "pin", mid, participant }));
  }

  /**
   * Requests no larger picture than can be seen.
   * @param {string} participant
   * @param {number} height of the tile, in device pixels
   */
  show(participant, height, isScreen = false) {
    const mid = this.#midOf(participant, isScreen);
    const maxHeight = HEIGHTS.find((each) => each >= height) ?? HEIGHTS[HEIGHTS.length - 1];
    if (mid === undefined || this.control.readyState !== "open" || this.#heights.get(mid) === maxHeight) return;
    this.#heights.set(mid, maxHeight);
    this.control.send(JSON.stringify({ type: "slot", mid, maxHeight }));
  }

  /** @param {string} participant @param {boolean} isScreen */
  #midOf(participant, isScreen) {
    return [...this.#slots.values()].find((slot) => slot.kind === "video" && slot.participant === participant
      && Boolean(slot.screen) === isScreen)?.mid;
  }
}

/**
 * Offers your tracks and asks for slots; resolves once the server has answered.
 * @param {import("./sending.js").SendingOptions & import("./session.js").SessionOptions & { signal?: AbortSignal }} options
 * @returns {Promise<StageSession>}
 */
export async function joinStage(options) {
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  const session = new StageSession(peer, options);
  try {
    for (const kind of /** @type {const} */ (["audio", "video"])) {
      const track = options.media.getTracks().find((each) => each.kind === kind);
      // There is no renegotiation: someone without a camera may have one later.
      addTrack(peer, track ?? kind, options);
    }
    // Sends nothing until a screen is shared. For the server, the second picture is a screen.
    session.screenSender = peer.addTransceiver("video", {
      direction: "sendonly", sendEncodings: [{ maxBitrate: SCREEN_BITRATE }],
    }).sender;
    for (let index = 0; index < VOICES; index++) peer.addTransceiver("audio", { direction: "recvonly" });
    for (let index = 0; index < PICTURES; index++) {
      offerDescriptors(peer.addTransceiver("video", { direction: "recvonly" }));
    }
  } catch (error) {
    session.close();
    throw error;
  }
  await session.open(options.signal);
  return session;
}
