// @ts-check

import { encodingOf, sizesOf } from "./sending.js";

/**
 * Decides which simulcast layers a sender encodes: those that the server wants and the browser makes. If larger ones
 * are not sent although the network could carry them, others pause for a while.
 *
 * Chromium estimates the network at no more than one and a half times what it sends, and adds a layer only if the
 * estimate has room for all smaller ones, too. With a picture that moves little, the estimate may never get there. So
 * the layers between pause for the largest if the estimate has room for that; and the smallest pauses for the next one,
 * which is then sent regardless of the estimate, and makes it grow.
 */

/** The largest layer counts as missing after this many checks, one a second, without it. */
const MISSING_LOOKS = 5;
/** Once others pause, it must be sent within this many checks, and gets this many to grow. */
const TRIAL_LOOKS = 4;
const GROWTH_LOOKS = 20;
/** Checks between two trials; doubled after each one in vain, up to the longest. */
const PAUSE_LOOKS = 30;
const LONGEST_PAUSE_LOOKS = 480;
/** The share of its highest bitrate that a browser requires to start a layer. */
const LEAST_SHARE = 0.3;
/**
 * An estimate that changes by no more than this share between two checks is stable; one limited by the network is not.
 */
const STILL_SHARE = 0.05;
/** The factor by which the estimate must rise within this many checks while the smallest layer pauses. */
const RISE = 1.2;
const RISE_LOOKS = 6;

/** @typedef {"between" | "smallest"} Resting the layers that pause for a larger one */

export class SentLayers {
  /** RIDs that the server wants; null until it has told. @type {string[] | null} */
  #wanted = null;
  /** The layers that pause now. @type {Resting | null} */
  #resting = null;
  /** Whether the largest layer was sent since then. */
  #hasCome = false;
  /** Total of pictures of each layer at the last check, smallest first. @type {number[]} */
  #frames = [];
  /** The estimates at the last check, and when the pause began, in bit/s. */
  #estimate = { last: 0, first: 0 };
  #missing = 0;
  /** Checks in a row with a stable estimate and only the smallest layer. */
  #still = 0;
  #looks = 0;
  /** For each kind of trial, the checks until the next one, and the pause after it. */
  #trials = { between: { wait: 0, pause: PAUSE_LOOKS }, smallest: { wait: 0, pause: PAUSE_LOOKS } };
  #isApplying = false;
  /** Whether the parameters must be set again. */
  #isStale = false;
  /** The number of layers that the parameters were set for; 0 before that. */
  #sizes = 0;
  /** Bitrate of the largest layer, in bit/s; null for the initial one. @type {number | null} */
  #maxBitrate = null;

  /** @param {RTCRtpSender} sender */
  constructor(sender) {
    this.sender = sender;
  }

  /** Encodes only these layers. @param {string[]} rids */
  want(rids) {
    this.#wanted = rids;
    this.#resting = null;
    return this.#apply();
  }

  /**
   * Checks once a second whether all wanted layers are sent.
   * @param {RTCStatsReport} report
   * @param {number | null} [maxBitrate] of the largest, in bit/s
   */
  look(report, maxBitrate = this.#maxBitrate) {
    // There is another camera, a shared window was resized, or another quality was chosen.
    if (this.#sizes !== sizesOf(this.sender.track) || this.#maxBitrate !== maxBitrate) {
      this.#maxBitrate = maxBitrate;
      this.#apply();
    }
    const entries = [...report.values()];
    const available = entries.find((entry) => entry.type === "candidate-pair" && entry.nominated)?.availableOutgoingBitrate;
    const layers = this.#layers();
    if (available === undefined || layers.length < 2) return;
    const sent = layers.map(({ rid }) =>
      entries.find((entry) => entry.type === "outbound-rtp" && entry.kind === "video" && entry.rid === rid));
    const frames = sent.map((entry) => entry?.framesSent ?? 0);
    const isSent = frames.map((count, index) => count > (this.#frames[index] ?? 0));
    const stands = Math.abs(available - this.#estimate.last) <= STILL_SHARE * available;
    this.#frames = frames;
    this.#estimate.last = available;
    if (this.#resting) return this.#judge(available, isSent[layers.length - 1]);
    for (const trial of Object.values(this.#trials)) trial.wait = Math.max(trial.wait - 1, 0);
    // If the camera is off, nothing is sent at all.
    const isMissing = isSent[0] && !isSent[layers.length - 1];
    this.#missing = isMissing ? this.#missing + 1 : 0;
    this.#still = isMissing && stands && !isSent.slice(1).includes(true) ? this.#still + 1 : 0;
    if (this.#missing < MISSING_LOOKS || sent[0]?.qualityLimitationReason === "cpu") return;
    if (layers.length > 2 && available >= roomFor(layers[0], layers[layers.length - 1])) this.#begin("between");
    else if (this.#still >= MISSING_LOOKS) this.#begin("smallest");
  }

  /** @param {Resting} resting */
  #begin(resting) {
    if (this.#trials[resting].wait > 0) return;
    this.#resting = resting;
    this.#hasCome = false;
    this.#looks = 0;
    this.#estimate.first = this.#estimate.last;
    this.#apply();
  }

  /**
   * Ends the pause if it has helped, or has been long enough.
   * @param {number} available
   * @param {boolean} isLargestSent
   */
  #judge(available, isLargestSent) {
    this.#looks += 1;
    if (this.#resting === "smallest") {
      const [smallest, next] = this.#layers();
      if (available >= (smallest.maxBitrate ?? 0) + (next.maxBitrate ?? 0)) return this.#end(true);
      const rises = available >= RISE * this.#estimate.first;
      if (this.#looks >= (rises ? GROWTH_LOOKS : RISE_LOOKS)) this.#end(rises);
      return;
    }
    this.#hasCome ||= isLargestSent;
    if (this.#looks >= (this.#hasCome ? GROWTH_LOOKS : TRIAL_LOOKS)) this.#end(this.#hasCome);
  }

  /** @param {boolean} hasHelped */
  #end(hasHelped) {
    if (!this.#resting) return;
    const trial = this.#trials[this.#resting];
    trial.pause = hasHelped ? PAUSE_LOOKS : Math.min(trial.pause * 2, LONGEST_PAUSE_LOOKS);
    trial.wait = trial.pause;
    this.#missing = 0;
    this.#still = 0;
    this.#resting = null;
    this.#apply();
  }

  /** The layers to encode, smallest first. In place of a layer that is not made, it is the largest one. */
  #layers() {
    const { encodings } = this.sender.getParameters();
    // Without simulcast, the only encoding has no RID, and is always sent.
    const isWanted = (/** @type {RTCRtpEncodingParameters} */ { rid }) =>
      rid === undefined || (this.#wanted?.includes(rid) ?? true);
    const largest = Math.min(sizesOf(this.sender.track), encodings.length) - 1;
    return encodings.filter((encoding, index) =>
      index < largest ? isWanted(encoding) : index === largest && encodings.slice(largest).some(isWanted));
  }

  async #apply() {
    this.#isStale = true;
    if (this.#isApplying) return;
    this.#isApplying = true;
    // One call at a time: parameters that were read before the last call are refused (WebRTC 1.0 §5.2, setParameters).
    while (this.#isStale) {
      this.#isStale = false;
      await this.#set();
    }
    this.#isApplying = false;
  }

  async #set() {
    const sizes = this.#sizes = sizesOf(this.sender.track);
    const layers = this.#layers().map(({ rid }) => rid);
    if (layers.length === 0) return;
    const active = this.#resting === "between" ? [layers[0], layers[layers.length - 1]]
      : this.#resting === "smallest" ? layers.slice(1, 2) : layers;
    const parameters = this.sender.getParameters();
    const made = Math.min(sizes, parameters.encodings.length);
    const maxBitrate = this.#maxBitrate ?? Math.max(...parameters.encodings.map((encoding) => encoding.maxBitrate ?? 0));
    let isOther = false;
    parameters.encodings.forEach((encoding, index) => {
      const wanted = { ...encodingOf(index, made, maxBitrate), active: active.includes(encoding.rid) };
      isOther ||= encoding.active !== wanted.active || encoding.maxBitrate !== wanted.maxBitrate
        || encoding.scaleResolutionDownBy !== wanted.scaleResolutionDownBy;
      Object.assign(encoding, wanted);
    });
    // Setting the same parameters again may cause a key frame.
    if (!isOther) return;
    // If the browser refuses, it sends all layers, which only wastes its bandwidth.
    await this.sender.setParameters(parameters).catch(() => {});
  }
}

/**
 * The estimate that a browser requires to send both layers, in bit/s.
 * @param {RTCRtpEncodingParameters} smaller @param {RTCRtpEncodingParameters} larger
 */
function roomFor(smaller, larger) {
  return (smaller.maxBitrate ?? Infinity) + LEAST_SHARE * (larger.maxBitrate ?? Infinity);
}
