// @ts-check

/**
 * Lets viewers rewind a live stream, over HLS, if its host lets the server keep it. The player is not loaded before a
 * viewer goes back.
 */

import { playsHLS } from "./fallback.js";

/** Going back less than this stays live, in seconds: HLS segments are about as long. */
const LEAST_S = 5;

/**
 * @typedef {object} Live the live playback that it replaces
 * @property {HTMLVideoElement | null} video
 * @property {import("./viewing.js").Watched} watched
 * @property {import("./gate.js").Gate | null} gate
 * @property {() => void} leave ends it
 * @property {() => void} goLive starts it again, if the stream is live
 */

/** Fires `change`, and `ready` when the video has something to play, which only the page may start. */
export class Rewind extends EventTarget {
  /** @type {import("./hls-player.js").HLSPlayer | null} */
  #player = null;
  /** Whether the player is being loaded. */
  #isLoading = false;
  /** Counts up when what is being loaded is no longer wanted. */
  #turn = 0;
  /** Ends the listeners on the video. */
  #listening = new AbortController();
  /** How far the viewer last wanted to go back, in seconds. */
  #wanted = 0;

  /** @param {Live} live */
  constructor(live) {
    super();
    this.live = live;
  }

  /** Whether the video is ours. */
  get isOn() {
    return this.#player !== null || this.#isLoading;
  }

  get isPlaying() {
    return this.#player?.state === "playing";
  }

  /** Bytes of media received so far. */
  get bytes() {
    return this.#player?.bytes ?? 0;
  }

  /** How many seconds behind live the viewer is; null while live. */
  get behind() {
    return this.isOn ? this.#player?.past?.behind ?? this.#wanted : null;
  }

  /** How many seconds back the viewer can go; 0 if going back is not possible. */
  get reach() {
    const { gate, watched: { sync: { stream } } } = this.live;
    if (gate?.state === "shut" || stream?.state !== "live" && !this.isOn || stream.hls === "off" || !stream.dvrSeconds) return 0;
    if (!stream.startedAt || !playsHLS()) return 0;
    // Not kept yet, or the server has no room for it.
    if (!stream.isKept && !this.isOn) return 0;
    const told = this.#player?.past?.reach;
    return told ?? Math.max(0, Math.min(stream.dvrSeconds, (Date.now() - Date.parse(stream.startedAt)) / 1000));
  }

  /** Goes back that far, or as far as possible. @param {number} behind in seconds */
  async go(behind) {
    const { reach, live: { video, watched } } = this;
    if (!video || reach === 0) return;
    if (behind < LEAST_S) return this.leave();
    this.close();
    this.#wanted = Math.min(behind, reach);
    this.#isLoading = true;
    const turn = this.#turn;
    this.live.leave();
    try {
      const { HLSPlayer } = await import("./hls-player.js");
      if (turn !== this.#turn) return;
      const player = this.#player = new HLSPlayer({
        base: watched.hls, withToken: (action) => watched.withToken(action), behind: this.#wanted,
      });
      this.#listening = new AbortController();
      player.addEventListener("change", () => {
        if (player.state === "failed") this.leave();
        else this.#changed();
      });
      player.addEventListener("ready", () => this.dispatchEvent(new Event("ready")));
      video.addEventListener("ended", () => this.leave(), { signal: this.#listening.signal });
      player.attach(video);
    } catch {
      // The module could not be loaded: the server is out of reach.
      if (turn === this.#turn) this.leave();
    } finally {
      if (turn === this.#turn) this.#isLoading = false;
      this.#changed();
    }
  }

  /** Returns to live. */
  leave() {
    if (!this.isOn) return;
    this.close();
    this.live.goLive();
    this.#changed();
  }

  /** Stops playing. */
  close() {
    this.#turn += 1;
    this.#isLoading = false;
    this.#listening.abort();
    const player = this.#player;
    this.#player = null;
    player?.detach();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
