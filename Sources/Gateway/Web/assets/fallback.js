// @ts-check

/**
 * A fallback for viewers whom WebRTC cannot reach: HLS, if the server offers it, until WebRTC connects. The player is
 * not loaded before it is needed.
 */

import { aboutServer, toldByServer } from "./server.js";

/** If WebRTC does not connect within this time, the fallback starts, in milliseconds. */
const PATIENCE_MS = 5000;
/** WebRTC takes over again once it has played for this long, in milliseconds. */
const STEADY_MS = 2000;
/** A relapse this soon doubles the wait before the next return, up to a limit, in milliseconds. */
const RELAPSE_MS = 60_000;
const LONGEST_STEADY_MS = 64_000;
/** If the server did not say whether it offers HLS, ask again after this time, in milliseconds. */
const ASK_AGAIN_MS = 5000;

/** What viewers are told about the fallback, and why things that need WebRTC are not available. */
export const DELAYED_HINT = "Your network is blocking live video, so you’re watching with a short delay. "
  + "We’ll keep trying to connect you live.";
export const DELAYED_HAND = "Going on stage needs a direct connection, which your network is blocking.";

/** The format of this server's HLS. */
const TYPE = 'video/mp4; codecs="avc1.42E01F,mp4a.40.2"';

/**
 * @typedef {object} Facts
 * @property {boolean} isWanted there is something to play that we are allowed to play
 * @property {boolean} isPossible this browser has WebRTC
 * @property {boolean} isConnected by WebRTC
 * @property {boolean} isSeen what arrives over WebRTC could be shown now
 * @property {boolean} isPlaying the fallback is playing
 */

/** Decides when to use the fallback and when to return. Has no clock of its own. */
export class FallbackRule {
  isOn = false;

  /** @type {number | null} */
  #unconnectedSince = null;
  /** @type {number | null} */
  #steadySince = null;
  #returnedAt = -Infinity;
  #needed = STEADY_MS;

  /**
   * To be called regularly, and when one of the facts has changed.
   * @param {Facts} facts
   * @param {number} now in milliseconds
   * @returns {boolean} whether to use the fallback
   */
  take({ isWanted, isPossible, isConnected, isSeen, isPlaying }, now) {
    if (!isWanted) {
      this.forget();
    } else if (!this.isOn) {
      this.#unconnectedSince = isConnected ? null : this.#unconnectedSince ?? now;
      if (this.#unconnectedSince !== null && (!isPossible || now - this.#unconnectedSince >= PATIENCE_MS)) this.#leave(now);
    } else if (!isConnected || isPlaying && !isSeen) {
      this.#steadySince = null;
    } else {
      this.#steadySince ??= now;
      if (!isPlaying || now - this.#steadySince >= this.#needed) this.#return(isPlaying ? now : this.#returnedAt);
    }
    return this.isOn;
  }

  /** Starts over. */
  forget() {
    this.isOn = false;
    this.#unconnectedSince = null;
  }

  /** @param {number} now */
  #leave(now) {
    this.isOn = true;
    this.#steadySince = null;
    const isRelapse = now - this.#returnedAt < RELAPSE_MS;
    this.#needed = isRelapse ? Math.min(this.#needed * 2, LONGEST_STEADY_MS) : STEADY_MS;
  }

  /** @param {number} at */
  #return(at) {
    this.isOn = false;
    this.#unconnectedSince = null;
    this.#returnedAt = at;
  }
}

/**
 * Fires `change`; `ready` when the video has something to play, which only the page may start; and `leave` before it is
 * removed from the video.
 */
export class Fallback extends EventTarget {
  #rule = new FallbackRule();
  /** @type {import("./hls-player.js").HLSPlayer | null} */
  #player = null;
  /** The address of the stream's HLS. */
  #base = "";
  /** @type {HTMLVideoElement | null} */
  #video = null;
  /** Whether the server is being asked, or the player is being loaded. */
  #isAsking = false;
  #askedAt = -Infinity;
  /** Whether the server has said that it offers no HLS. */
  #isRefused = false;
  #isAskingEarly = false;
  /** Counts up when what is being loaded is no longer wanted. */
  #turn = 0;

  /** Whether the stream's settings allow HLS. */
  isAllowed = true;

  /**
   * @param {import("./hls-player.js").HLSOptions["withToken"]} withToken
   * @param {import("./picture-choice.js").PictureChoice} choice of picture quality
   */
  constructor(withToken, choice) {
    super();
    this.withToken = withToken;
    this.choice = choice;
    choice.addEventListener("change", () => this.#player?.prefer(choice.name));
  }

  /** Whether the video is ours. */
  get isOn() {
    return this.#player !== null;
  }

  /** Whether this browser has no WebRTC but plays HLS, which the server may offer. */
  get isOnlyWay() {
    return !hasWebRTC() && this.isAllowed && !this.#isRefused && playsHLS();
  }

  /** Why nothing plays; null if something does, or the reason is not known yet. */
  get error() {
    return this.#player?.error ?? null;
  }

  /** Whether it may still start: nothing has gone wrong so far. */
  get isStarting() {
    return this.#isAsking || this.#player?.state === "starting" && this.#player.error === null;
  }

  get isPlaying() {
    return this.#player?.state === "playing";
  }

  /** What a slow connection costs; null for nothing. @returns {import("./picture-choice.js").Weakness | null} */
  get weakness() {
    return this.#player?.weakness ?? null;
  }

  /** The delay of the picture in seconds; null if it is unknown or nothing plays. */
  get delay() {
    return this.#player?.delay ?? null;
  }

  /** Bytes of media received so far. */
  get bytes() {
    return this.#player?.bytes ?? 0;
  }

  /**
   * To be called once a second, and when one of the facts has changed.
   * @param {Omit<Facts, "isPossible" | "isPlaying">} facts
   * @param {string} base the address of the stream's HLS
   * @param {HTMLVideoElement} video to play it in
   * @param {() => void} [begins] called when it takes over the video
   */
  look(facts, base, video, begins) {
    const isPossible = hasWebRTC();
    const isWanted = facts.isWanted && this.isAllowed;
    const isOn = this.#rule.take({ ...facts, isWanted, isPossible, isPlaying: this.isPlaying }, performance.now());
    if (!isPossible) this.#askEarly(base);
    if (!isOn) return this.close();
    const isSame = this.#base === base && this.#video === video;
    if (isSame && (this.#player || this.#isAsking)) return;
    this.close();
    begins?.();
    this.#base = base;
    this.#video = video;
    this.#open(base, video);
  }

  /**
   * Asks whether the server offers HLS; also before there is anything to play, because pages show that.
   * @param {string} base
   */
  async #askEarly(base) {
    if (this.#isAskingEarly) return;
    this.#isAskingEarly = true;
    // No answer does not mean that there is none.
    const { hls } = await toldByServer(new URL(base, location.href).origin);
    this.#isAskingEarly = false;
    if (hls === !this.#isRefused) return;
    this.#isRefused = !hls;
    this.#changed();
  }

  /** Starts from scratch for the next viewer: no one is watching anymore. */
  rest() {
    this.#rule.forget();
    this.close();
  }

  /** The viewer tries again: what has failed for good begins anew with the next look. */
  retry() {
    this.#askedAt = -Infinity;
    if (this.#player?.state === "failed") this.close();
  }

  /** Stops playing. */
  close() {
    this.#turn += 1;
    this.#isAsking = false;
    const player = this.#player;
    if (!player) return;
    this.dispatchEvent(new Event("leave"));
    this.#player = null;
    player.detach();
    this.#changed();
  }

  /** @param {string} base @param {HTMLVideoElement} video */
  async #open(base, video) {
    const now = performance.now();
    if (!playsHLS() || now - this.#askedAt < ASK_AGAIN_MS) return;
    const turn = this.#turn;
    this.#isAsking = true;
    try {
      const { hls } = await aboutServer(new URL(base, location.href).origin);
      if (turn !== this.#turn) return;
      if (!hls) return void (this.#askedAt = now);
      const { HLSPlayer } = await import("./hls-player.js");
      if (turn !== this.#turn) return;
      const player = this.#player = new HLSPlayer({ base, withToken: this.withToken, choice: this.choice.name });
      player.addEventListener("change", () => this.#changed());
      player.addEventListener("ready", () => this.dispatchEvent(new Event("ready")));
      player.attach(video);
    } catch {
      // The module could not be loaded: the server is out of reach.
      this.#askedAt = now;
    } finally {
      if (turn === this.#turn) this.#isAsking = false;
      this.#changed();
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

function hasWebRTC() {
  return "RTCPeerConnection" in globalThis;
}

/** @param {number | null} seconds null if the delay is unknown */
export function wordsForDelay(seconds) {
  return seconds === null ? "Delayed" : `Delayed by about ${Math.max(1, Math.round(seconds))} s`;
}

/** Whether this browser can play this server's HLS. */
export function playsHLS() {
  const Source = /** @type {any} */ (globalThis).ManagedMediaSource ?? globalThis.MediaSource;
  if (Source) return Source.isTypeSupported(TYPE);
  return document.createElement("video").canPlayType("application/vnd.apple.mpegurl") !== "";
}
