// @ts-check

import { encodingOf, sizesOf } from "./sending.js";

/**
 * Which sizes of a picture a sender encodes: those that the server wants, and that a browser makes of it; and for a while
 * without some of them, where larger ones are not sent although the network takes them.
 *
 * Chromium takes half as much again as it sends for the most that the network takes, and sends a larger size only where
 * that has room for all smaller ones, too. With a picture that moves little the two may never meet. So those between
 * rest for the largest, where the estimate has room for that; and the smallest for the next, which is then sent
 * whatever the estimate, and has it grow.
 */

/** The largest is missed after so many looks, one a second, that it was not sent. */
const MISSING_LOOKS = 5;
/** It has to come within so many looks once the others make room, and may take so many to grow. */
const TRIAL_LOOKS = 4;
const GROWTH_LOOKS = 20;
/** Looks between two trials, doubled each time that nothing came of it. */
const PAUSE_LOOKS = 30;
const LONGEST_PAUSE_LOOKS = 480;
/** Of what a size may take at most, a browser wants this share to begin it. */
const LEAST_SHARE = 0.3;
/** An estimate stands still that differs by no more than this between two looks; one that is held down rises and falls. */
const STILL_SHARE = 0.05;
/** It has to rise by this much while the smallest rests, within so many looks. */
const RISE = 1.2;
const RISE_LOOKS = 6;

/** @typedef {"between" | "smallest"} Resting what rests for something larger */

export class SentLayers {
  /** RIDs; null until the server has said. @type {string[] | null} */
  #wanted = null;
  /** What rests for the time being. @type {Resting | null} */
  #resting = null;
  /** Whether the largest came since. */
  #hasCome = false;
  /** Pictures of each size until the last look, the smallest first. @type {number[]} */
  #frames = [];
  /** The estimate at the last look, and when something began to rest, in bit/s. */
  #estimate = { last: 0, first: 0 };
  #missing = 0;
  /** Looks that the estimate stood still, with nothing sent but the smallest. */
  #still = 0;
  #looks = 0;
  /** Looks until the next trial of each kind, and how many after the next that is in vain. */
  #trials = { between: { wait: 0, pause: PAUSE_LOOKS }, smallest: { wait: 0, pause: PAUSE_LOOKS } };
  #isApplying = false;
  /** Whether something else is to be sent than was set last. */
  #isStale = false;
  /** Of how large a picture the encodings are, as `sizesOf`; 0 until they were set. */
  #sizes = 0;
  /** Of the largest, in bit/s; null for as much as it was told at first. @type {number | null} */
  #maxBitrate = null;

  /** @param {RTCRtpSender} sender */
  constructor(sender) {
    this.sender = sender;
  }

  /** Encodes these and no others. @param {string[]} rids */
  want(rids) {
    this.#wanted = rids;
    this.#resting = null;
    return this.#apply();
  }

  /**
   * Looks, once a second, whether all that is wanted is sent.
   * @param {RTCStatsReport} report
   * @param {number | null} [maxBitrate] of the largest, in bit/s
   */
  look(report, maxBitrate = this.#maxBitrate) {
    // Another camera, a window that was made larger, or another choice.
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
    // A camera that is off sends nothing at all.
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

  /** Whether what rests has rested for long enough. @param {number} available @param {boolean} isLargestSent */
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

  /** What is to be encoded, the smallest first. Who wants a size that is not made wants the largest that is. */
  #layers() {
    const { encodings } = this.sender.getParameters();
    // One alone has no name, and is always sent.
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
    // One after the other: what was read before another one was set is refused (WebRTC 1.0 §5.2, setParameters).
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
    // An encoder that is set anew, though to the same, may begin with a key frame.
    if (!isOther) return;
    // A browser that cannot goes on sending, which costs only itself.
    await this.sender.setParameters(parameters).catch(() => {});
  }
}

/**
 * What a browser wants the network to take before it sends both, in bit/s.
 * @param {RTCRtpEncodingParameters} smaller @param {RTCRtpEncodingParameters} larger
 */
function roomFor(smaller, larger) {
  return (smaller.maxBitrate ?? Infinity) + LEAST_SHARE * (larger.maxBitrate ?? Infinity);
}
