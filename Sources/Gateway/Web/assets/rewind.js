// @ts-check

/**
 * Back to what was live a while ago, by HLS, where a stream's host lets its server keep that. Nothing of it is loaded
 * before somebody goes back.
 */

import { playsHLS } from "./fallback.js";

/** Who goes back less than this stays with what is live, in seconds: segments of HLS are as long. */
const LEAST_S = 5;

/**
 * @typedef {object} Live what it takes the place of
 * @property {HTMLVideoElement | null} video
 * @property {import("./viewing.js").Watched} watched
 * @property {import("./gate.js").Gate | null} gate
 * @property {() => void} leave ends what is live
 * @property {() => void} goLive begins it again, if there is any
 */

/** Fires `change`, and `ready` when the video has something to play, which nobody but the page may begin. */
export class Rewind extends EventTarget {
  /** @type {import("./hls-player.js").HLSPlayer | null} */
  #player = null;
  /** While the player is being loaded. */
  #isLoading = false;
  /** Changes when what was asked for is not wanted any more. */
  #turn = 0;
  /** Of the video. */
  #listening = new AbortController();
  /** How far the viewer wanted to go back last, in seconds. */
  #wanted = 0;

  /** @param {Live} live */
  constructor(live) {
    super();
    this.live = live;
  }

  /** The video is ours. */
  get isOn() {
    return this.#player !== null || this.#isLoading;
  }

  get isPlaying() {
    return this.#player?.state === "playing";
  }

  /** Bytes of media so far. */
  get bytes() {
    return this.#player?.bytes ?? 0;
  }

  /** How far behind what is live is shown, in seconds; null while that is what is shown. */
  get behind() {
    return this.isOn ? this.#player?.past?.behind ?? this.#wanted : null;
  }

  /** How far back the viewer can go, in seconds; 0 for not at all. */
  get reach() {
    const { gate, watched: { sync: { stream } } } = this.live;
    if (gate?.state === "shut" || stream?.state !== "live" && !this.isOn || stream.hls === "off" || !stream.dvrSeconds) return 0;
    if (!stream.startedAt || !playsHLS()) return 0;
    // Not kept yet, or the server has no room for it.
    if (!stream.isKept && !this.isOn) return 0;
    const told = this.#player?.past?.reach;
    return told ?? Math.max(0, Math.min(stream.dvrSeconds, (Date.now() - Date.parse(stream.startedAt)) / 1000));
  }

  /** Shows what was live so long ago, as far as it is there. @param {number} behind in seconds */
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
      // The module did not come: the server is not there.
      if (turn === this.#turn) this.leave();
    } finally {
      if (turn === this.#turn) this.#isLoading = false;
      this.#changed();
    }
  }

  /** Back to what is live. */
  leave() {
    if (!this.isOn) return;
    this.close();
    this.live.goLive();
    this.#changed();
  }

  /** Plays nothing any more. */
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
