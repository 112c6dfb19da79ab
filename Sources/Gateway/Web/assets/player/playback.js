// @ts-check

/** Playback of one stream or of its recordings, and why there is none. Has no user interface. */

import { Recordings } from "../recordings.js";
import { reloadAfterErrors } from "../reloading.js";
import { SignallingError } from "../session.js";

/**
 * @typedef {"idle" | "connecting" | "waiting" | "backstage" | "live" | "away" | "gated" | "reconnecting" | "ended"
 *   | "refused" | "failed"} PlayerState
 *
 * @typedef {"no-address" | "unsupported" | "token-needed" | "token-refused" | "link-revoked" | "banned" | "removed"
 *   | "not-permitted" | "failed"} Reason
 *
 * @typedef {{ reason: Reason, message: string }} Problem `message` is from the server, in English
 *
 * @typedef {import("../recordings.js").Recording} Recording
 */

/** States of `Viewing` that have another name here. @type {Record<string, PlayerState>} */
const STATES = { paused: "away", removed: "refused", expired: "refused" };
/** @type {Record<NonNullable<import("../sync.js").StreamSync["refusal"]>, Reason>} */
const REFUSALS = { removed: "removed", banned: "banned", expired: "token-refused", revoked: "link-revoked" };

/** Fires `change`, and `picture` when the video shows a new picture. */
export class Playback extends EventTarget {
  /** The recording that plays, if any. @type {Recording | null} */
  recording = null;

  #isWanted = false;
  #isClosed = false;

  /**
   * @param {HTMLVideoElement} video
   * @param {import("./watched.js").WatchedStream} stream
   * @param {import("./transport.js").Transport} transport
   */
  constructor(video, stream, transport) {
    super();
    this.video = video;
    this.stream = stream;
    this.reception = transport.open(stream);
    this.recordings = new Recordings(stream);
    this.#events = new AbortController();
    const { signal } = this.#events;
    stream.addEventListener("change", () => this.#streamChanged(), { signal });
    this.recordings.addEventListener("change", () => this.#changed(), { signal });
    this.reception.addEventListener("change", () => this.#received(), { signal });
    this.reception.addEventListener("picture", () => this.dispatchEvent(new Event("picture")), { signal });
    video.addEventListener("ended", () => this.#next(), { signal });
    // Only the timeline of a recording shows the time.
    video.addEventListener("timeupdate", () => this.recording && this.#changed(), { signal });
    reloadAfterErrors(video, () => this.recording?.id, () => this.#locate(), signal);
    for (const event of ["play", "pause", "durationchange", "loadeddata", "playing", "resize"]) {
      video.addEventListener(event, () => this.#changed(), { signal });
    }
  }

  /** Aborted by `close`. @type {AbortController} */
  #events;

  /** Ends the session, and stops following the stream. */
  close() {
    this.#isClosed = true;
    this.#events.abort();
    this.recordings.close();
    this.reception.detach();
    this.stream.close();
    this.#empty();
  }

  // What there is to see.

  /** @returns {PlayerState} */
  get state() {
    const { reception, stream } = this;
    if (this.problem) return ["failed", "unsupported"].includes(this.problem.reason) ? "failed" : "refused";
    const told = stream.info?.state;
    if (reception.video) return STATES[reception.state] ?? reception.state;
    return told === "ended" || told === "backstage" ? told : "idle";
  }

  /** Why nothing plays and nothing will start automatically; otherwise null. @returns {Problem | null} */
  get problem() {
    const { reception, stream } = this;
    const { refusal } = stream.sync;
    const error = reception.state === "failed" || reception.state === "expired" ? reception.connection.error : null;
    const said = error ?? stream.problem;
    if (refusal) return { reason: REFUSALS[refusal], message: said?.message ?? "" };
    return said && { reason: this.#reasonOf(said), message: said.message };
  }

  /** Why there is no picture although there should be; it keeps trying. */
  get trouble() {
    return this.reception.video ? this.reception.trouble : null;
  }

  /** Whether the video shows the stream or the recording. */
  get isShown() {
    if (this.video.videoWidth === 0 || this.video.readyState < 2) return false;
    return this.recording !== null || !this.isSoundAlone && ["live", "away"].includes(this.state);
  }

  /** Whether the viewer chose sound alone. */
  get isSoundAlone() {
    return this.reception.choice.name === "sound";
  }

  /** Whether nothing is playing and nothing will start automatically. */
  get isPaused() {
    if (this.recording || this.reception.rewind.isOn) return this.video.paused;
    return !this.#isWanted || this.reception.isBlocked;
  }

  /** The gate that the viewer has not passed; null if there is none. */
  get gate() {
    return this.recording ? null : this.reception.gate;
  }

  // What the viewer does.

  /**
   * Presents another token: what it opens arrives on the existing connection.
   * @param {string} token
   * @returns {boolean} false if the stream must be opened again with it
   */
  take(token) {
    if (!this.gate || !this.stream.access.take(token)) return false;
    this.stream.sync.reconnect();
    this.reception.showToken();
    return true;
  }

  /** @param {boolean} [isAsked] whether the viewer or the page asks for it now */
  play(isAsked = true) {
    if (this.recording || this.reception.rewind.isOn) return void this.video.play().catch(() => {});
    if (isAsked && this.#isWanted && this.problem) return this.reception.retry();
    this.#isWanted = true;
    this.stream.follow();
    if (this.reception.video) this.reception.play();
    else this.reception.attach(this.video);
    this.#changed();
  }

  /** Ends the session, so that nothing is sent meanwhile. The next one starts at the live position. */
  pause() {
    if (this.recording || this.reception.rewind.isOn) return this.video.pause();
    this.#isWanted = false;
    this.#leave();
    this.stream.rest();
    this.#changed();
  }

  toggle() {
    if (this.isPaused) this.play();
    else this.pause();
  }

  retry() {
    this.reception.retry();
  }

  /** Plays a recording, and those that follow it. @param {Recording} recording */
  playRecording(recording) {
    this.#leave();
    this.recording = recording;
    this.video.src = this.recordings.address(recording);
    this.video.play().catch(() => {});
    this.#changed();
  }

  /** The address of the recording that plays; null if it is gone. */
  async #locate() {
    const { recording, recordings } = this;
    // This request also replaces an expired token.
    await recordings.ask();
    return recording && recordings.list.some(({ id }) => id === recording.id) ? recordings.address(recording) : null;
  }

  /** Goes on or back in a recording or a stream. @param {number} seconds relative to the current position */
  skip(seconds) {
    const { reception: { rewind }, video } = this;
    if (!this.recording) return void (this.#isWanted && rewind.reach > 0 && rewind.go((rewind.behind ?? 0) - seconds));
    if (!Number.isFinite(video.duration)) return;
    video.currentTime = Math.min(Math.max(0, video.currentTime + seconds), video.duration);
  }

  /** @param {number} seconds since the start of the recording, or of what viewers can rewind */
  seek(seconds) {
    const { reception: { rewind }, video } = this;
    if (this.recording) video.currentTime = seconds;
    else rewind.go(Math.ceil(rewind.reach) - seconds);
  }

  // What happens.

  #next() {
    if (!this.recording) return;
    const next = this.recordings.after(this.recording.id);
    if (next) return this.playRecording(next);
    this.#empty();
    this.#changed();
  }

  #leave() {
    this.reception.detach();
    this.#empty();
  }

  #empty() {
    this.recording = null;
    this.video.srcObject = null;
    if (!this.video.hasAttribute("src")) return;
    this.video.removeAttribute("src");
    this.video.load();
  }

  #streamChanged() {
    if (this.#isClosed) return;
    this.recordings.update();
    // The stream is live again.
    if (this.recording && this.stream.info?.state !== "ended") this.#empty();
    if (this.#isWanted && !this.recording && !this.reception.video) this.reception.attach(this.video);
    this.#changed();
  }

  #received() {
    const { reception, video } = this;
    // Browsers may require a tap for sound: rather play muted than not at all.
    if (reception.isBlocked && !video.muted && reception.video) {
      video.muted = true;
      reception.play();
    }
    this.#changed();
  }

  /** @param {Error} error @returns {Reason} */
  #reasonOf(error) {
    // Without WebRTC, HLS is the only way, which this server does not offer.
    if (error instanceof ReferenceError && !("RTCPeerConnection" in globalThis)) return "unsupported";
    if (!(error instanceof SignallingError)) return "failed";
    if (error.rule === "banned" || error.rule === "link-revoked") return error.rule;
    if (error.status === 401) return this.stream.hasToken ? "token-refused" : "token-needed";
    return error.status === 403 ? "not-permitted" : "failed";
  }

  #changed() {
    if (!this.#isClosed) this.dispatchEvent(new Event("change"));
  }
}
