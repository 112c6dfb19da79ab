// @ts-check

/** Reduces the statistics of a peer connection to a few numbers that people understand. */

/**
 * @typedef {object} Numbers
 * @property {number} bitrate media sent or received since the last call, in bit/s
 * @property {number | null} roundTrip in milliseconds
 * @property {number | null} width
 * @property {number | null} height
 * @property {number | null} framesPerSecond
 * @property {number} lost packets lost since the last call
 * @property {number | null} buffer how long frames wait before they are shown, in milliseconds
 * @property {string | null} codec such as `VP8`
 * @property {number} frames decoded or encoded so far, of the largest layer
 * @property {number} bytes of media so far
 * @property {number} videoPackets so far, of video alone
 * @property {number} lossShare share of packets lost since the last call, 0 to 1
 * @property {string | null} limitation why the browser sends less than it could: `bandwidth` or `cpu`
 */

/** Remembers the last sample of one peer connection, for rates. */
export class StatsReader {
  /** The last report. @type {RTCStatsReport | null} */
  report = null;

  #bytes = 0;
  #lost = 0;
  #packets = 0;
  #time = 0;
  #delay = 0;
  #emitted = 0;

  /**
   * @param {RTCPeerConnection} peer
   * @param {"inbound-rtp" | "outbound-rtp"} direction
   */
  constructor(peer, direction) {
    this.peer = peer;
    this.direction = direction;
  }

  /** @returns {Promise<Numbers>} */
  async read() {
    const report = this.report = await this.peer.getStats();
    const entries = [...report.values()];
    const streams = entries.filter((e) => e.type === this.direction);
    const remotes = entries.filter((e) => e.type === "remote-inbound-rtp");
    const video = streams.filter((e) => e.kind === "video")
      .reduce((best, e) => ((e.frameHeight ?? 0) >= (best?.frameHeight ?? 0) ? e : best), null);
    const pair = entries.find((e) => e.type === "candidate-pair" && e.nominated && e.state === "succeeded");

    const bytes = sum(streams, (e) => e.bytesReceived ?? e.bytesSent);
    const lost = sum(streams, (e) => e.packetsLost) + sum(remotes, (e) => e.packetsLost);
    const packets = sum(streams, (e) => e.packetsReceived ?? e.packetsSent);
    const newlyLost = Math.max(0, lost - this.#lost);
    const now = performance.now();
    const seconds = (now - this.#time) / 1000;
    const delay = video?.jitterBufferDelay ?? 0;
    const emitted = video?.jitterBufferEmittedCount ?? 0;
    const roundTrip = pair?.currentRoundTripTime ?? remotes.find((e) => e.roundTripTime !== undefined)?.roundTripTime;
    const numbers = {
      bitrate: this.#time ? Math.max(0, (bytes - this.#bytes) * 8 / seconds) : 0,
      roundTrip: roundTrip === undefined ? null : roundTrip * 1000,
      width: video?.frameWidth ?? null,
      height: video?.frameHeight ?? null,
      framesPerSecond: video?.framesPerSecond ?? null,
      lost: newlyLost,
      buffer: emitted > this.#emitted ? (delay - this.#delay) / (emitted - this.#emitted) * 1000 : null,
      codec: video ? report.get(video.codecId)?.mimeType?.split("/")[1] ?? null : null,
      frames: video?.framesDecoded ?? video?.framesEncoded ?? 0,
      bytes,
      videoPackets: sum(streams.filter((e) => e.kind === "video"), (e) => e.packetsReceived ?? e.packetsSent),
      lossShare: newlyLost / Math.max(1, newlyLost + packets - this.#packets),
      // Of any layer: the largest one may not be sent at all, and then has no reason.
      limitation: ["bandwidth", "cpu"].find((reason) => streams.some((e) => e.qualityLimitationReason === reason)) ?? null,
    };
    this.#bytes = bytes;
    this.#packets = packets;
    this.#lost = lost;
    this.#time = now;
    this.#delay = delay;
    this.#emitted = emitted;
    return numbers;
  }
}

/** The same for HLS, as far as a `<video>` tells. */
export class DelayedReader {
  /** Frames shown so far of the current source. */
  frames = 0;

  #bytes = 0;
  #time = 0;

  /**
   * @param {HTMLVideoElement} video
   * @param {number} bytes received so far
   * @returns {Numbers}
   */
  read(video, bytes) {
    const now = performance.now();
    const seconds = (now - this.#time) / 1000;
    const { buffered, currentTime } = video;
    const frames = video.getVideoPlaybackQuality?.().totalVideoFrames ?? 0;
    const isFirst = this.#time === 0 || bytes < this.#bytes;
    const numbers = {
      bitrate: isFirst ? 0 : (bytes - this.#bytes) * 8 / seconds,
      roundTrip: null,
      width: video.videoWidth || null,
      height: video.videoHeight || null,
      framesPerSecond: isFirst ? null : Math.max(0, frames - this.frames) / seconds,
      lost: 0,
      buffer: buffered.length ? (buffered.end(buffered.length - 1) - currentTime) * 1000 : null,
      codec: "H264, by HLS",
      frames, bytes, videoPackets: 0, lossShare: 0, limitation: null,
    };
    this.#bytes = bytes;
    this.frames = frames;
    this.#time = now;
    return numbers;
  }
}

/**
 * @param {any[]} entries
 * @param {(entry: any) => number | undefined} value
 */
function sum(entries, value) {
  return entries.reduce((total, entry) => total + (value(entry) ?? 0), 0);
}

/** @param {number} bitsPerSecond */
export function formatBitrate(bitsPerSecond) {
  return bitsPerSecond >= 1e6
    ? `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`
    : `${Math.round(bitsPerSecond / 1e3)} kbit/s`;
}

/** @param {number | null} milliseconds */
export function formatMilliseconds(milliseconds) {
  return milliseconds === null ? "–" : `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
}

/** @param {Numbers} numbers */
export function formatPicture({ width, height, framesPerSecond }) {
  if (!width || !height) return "–";
  return `${width}×${height}${framesPerSecond ? `, ${Math.round(framesPerSecond)} fps` : ""}`;
}
