// @ts-check

/** What a player does with one stream: plays it, or what was recorded of it, and knows why it does not. Draws nothing. */

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
 * @typedef {{ reason: Reason, message: string }} Problem `message` is the server's, in English
 *
 * @typedef {import("../recordings.js").Recording} Recording
 */

/** What `Viewing` calls its states, where that is another word. @type {Record<string, PlayerState>} */
const STATES = { paused: "away", removed: "refused", expired: "refused" };
/** @type {Record<NonNullable<import("../sync.js").StreamSync["refusal"]>, Reason>} */
const REFUSALS = { removed: "removed", banned: "banned", expired: "token-refused", revoked: "link-revoked" };

/** Fires `change`, and `picture` when the video shows another one. */
export class Playback extends EventTarget {
  /** What plays in place of the stream. @type {Recording | null} */
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
    // Of a live stream nobody is told the time.
    video.addEventListener("timeupdate", () => this.recording && this.#changed(), { signal });
    reloadAfterErrors(video, () => this.recording?.id, () => this.#locate(), signal);
    for (const event of ["play", "pause", "durationchange", "loadeddata", "playing", "resize"]) {
      video.addEventListener(event, () => this.#changed(), { signal });
    }
  }

  /** Ends what `close` ends. @type {AbortController} */
  #events;

  /** Ends its session, and follows the stream no more. */
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

  /** Why nothing plays, and nothing will by itself; null while that is not so. @returns {Problem | null} */
  get problem() {
    const { reception, stream } = this;
    const { refusal } = stream.sync;
    const error = reception.state === "failed" || reception.state === "expired" ? reception.connection.error : null;
    const said = error ?? stream.problem;
    if (refusal) return { reason: REFUSALS[refusal], message: said?.message ?? "" };
    return said && { reason: this.#reasonOf(said), message: said.message };
  }

  /** Why nothing is seen although it should be, and is tried again. */
  get trouble() {
    return this.reception.video ? this.reception.trouble : null;
  }

  /** Whether the video shows what it is there for. */
  get isShown() {
    if (this.video.videoWidth === 0 || this.video.readyState < 2) return false;
    return this.recording !== null || !this.isSoundAlone && ["live", "away"].includes(this.state);
  }

  /** Nobody wants a picture. */
  get isSoundAlone() {
    return this.reception.choice.name === "sound";
  }

  /** Nothing is played, nor will be by itself. */
  get isPaused() {
    if (this.recording || this.reception.rewind.isOn) return this.video.paused;
    return !this.#isWanted || this.reception.isBlocked;
  }

  /** What stands between the viewer and the stream; null where nothing does. */
  get gate() {
    return this.recording ? null : this.reception.gate;
  }

  // What the viewer does.

  /**
   * Another token came. What it opens comes on the connection that there is.
   * @param {string} token
   * @returns {boolean} false where a stream is to be opened with it anew
   */
  take(token) {
    if (!this.gate || !this.stream.access.take(token)) return false;
    this.stream.sync.reconnect();
    this.reception.showToken();
    return true;
  }

  /** @param {boolean} [isAsked] whether somebody asks for it now */
  play(isAsked = true) {
    if (this.recording || this.reception.rewind.isOn) return void this.video.play().catch(() => {});
    if (isAsked && this.#isWanted && this.problem) return this.reception.retry();
    this.#isWanted = true;
    this.stream.follow();
    if (this.reception.video) this.reception.play();
    else this.reception.attach(this.video);
    this.#changed();
  }

  /** Nothing comes meanwhile that nobody looks at: the session ends, and the next one begins where the stream is then. */
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

  /** Plays one recording, and those that follow it. @param {Recording} recording */
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

  /** In a recording, or in what is live and was. @param {number} seconds from where it is */
  skip(seconds) {
    const { reception: { rewind }, video } = this;
    if (!this.recording) return void (this.#isWanted && rewind.reach > 0 && rewind.go((rewind.behind ?? 0) - seconds));
    if (!Number.isFinite(video.duration)) return;
    video.currentTime = Math.min(Math.max(0, video.currentTime + seconds), video.duration);
  }

  /** @param {number} seconds of a recording, or from the first moment on that can be gone back to */
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
    // The host is back.
    if (this.recording && this.stream.info?.state !== "ended") this.#empty();
    if (this.#isWanted && !this.recording && !this.reception.video) this.reception.attach(this.video);
    this.#changed();
  }

  #received() {
    const { reception, video } = this;
    // Without a tap, browsers play only what is silent; better that than nothing.
    if (reception.isBlocked && !video.muted && reception.video) {
      video.muted = true;
      reception.play();
    }
    this.#changed();
  }

  /** @param {Error} error @returns {Reason} */
  #reasonOf(error) {
    // Without it there is HLS alone, which this server does not make.
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
