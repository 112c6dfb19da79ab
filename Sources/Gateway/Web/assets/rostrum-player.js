// @ts-check

/**
 * A player element for any page, on any site:
 *
 *     <script type="module" src="https://host/assets/v1/rostrum-player.js"></script>
 *     <rostrum-player src="https://host/watch/demo" autoplay controls></rostrum-player>
 *
 * | attribute | what it does |
 * | --- | --- |
 * | `src` | the stream: the URL of its page or of its WHEP endpoint; links with `#token=…` work too |
 * | `token` | a token or an invitation, if the stream requires one; a new one reconnects, or opens the current gate |
 * | `autoplay` | starts automatically, muted if the browser requires a tap for sound |
 * | `muted` | starts muted |
 * | `controls` | shows the controls and enables keyboard shortcuts: space or k, m, f, arrows |
 * | `poster` | an image to show before playback instead of the stream's preview |
 *
 * Each is also a property. `volume`, `quality` and `strings` are properties only; `state`, `paused`, `stream`, `delay`,
 * `behind`, `reach`, `problem`, `gate` and `recordings` are read-only. It fires `statechange`, `error` and `volumechange`.
 */

import { secondsLeft } from "./gate.js";
import { Face } from "./player/face.js";
import { Playback } from "./player/playback.js";
import { STRINGS } from "./player/strings.js";
import { TRANSPORTS } from "./player/transport.js";
import { placeOf, WatchedStream } from "./player/watched.js";

/**
 * @typedef {import("./player/playback.js").PlayerState} PlayerState
 * @typedef {import("./player/playback.js").Problem} Problem
 * @typedef {import("./player/menu.js").Quality} Quality
 */

/** Properties that may be set before this element is defined. */
const PROPERTIES = ["src", "token", "poster", "autoplay", "muted", "controls", "volume", "quality", "strings"];

export class RostrumPlayer extends HTMLElement {
  static observedAttributes = ["src", "token", "poster", "controls", "autoplay", "muted"];

  /** @type {Playback | null} */
  #playback = null;
  /** Why there is no playback. @type {Problem | null} */
  #problem = null;
  /** @type {PlayerState} */
  #state = "idle";
  #strings = STRINGS;
  #face;
  #isQueued = false;
  /** It was in a page. */
  #hasBegun = false;
  /** A new stream, or another token, is to be opened. */
  #isOutdated = true;
  /** @type {Quality} */
  #quality = "auto";

  constructor() {
    super();
    this.#face = new Face(this, this.attachShadow({ mode: "open", delegatesFocus: true }));
    this.#face.video.addEventListener("volumechange", () => {
      this.dispatchEvent(new Event("volumechange"));
      this.#changed();
    });
  }

  connectedCallback() {
    for (const name of PROPERTIES) this.#upgrade(name);
    this.#hasBegun = true;
    this.#face.connected();
    addEventListener("pagehide", this.#left);
    addEventListener("pageshow", this.#cameBack);
    this.#queue();
  }

  disconnectedCallback() {
    removeEventListener("pagehide", this.#left);
    removeEventListener("pageshow", this.#cameBack);
    // If it is only moved, it is back in a moment.
    this.#queue();
  }

  /** @param {string} name @param {string | null} before @param {string | null} after */
  attributeChangedCallback(name, before, after) {
    if (before === after) return;
    const isTaken = name === "token" && !this.#isOutdated && after !== null && this.#playback?.take(after);
    if (name === "src" || name === "token" && !isTaken) this.#isOutdated = true;
    if (name === "muted" && !this.#hasBegun) this.#face.video.muted = after !== null;
    this.#queue();
  }

  // What an app may set.

  get src() { return this.#text("src"); }
  set src(value) { this.#setText("src", value); }

  /** What it was given; what is made of an invitation is not told. */
  get token() { return this.getAttribute("token"); }
  set token(value) { this.#setText("token", value); }

  get poster() { return this.#text("poster"); }
  set poster(value) { this.#setText("poster", value); }

  get autoplay() { return this.hasAttribute("autoplay"); }
  set autoplay(value) { this.toggleAttribute("autoplay", Boolean(value)); }

  get controls() { return this.hasAttribute("controls"); }
  set controls(value) { this.toggleAttribute("controls", Boolean(value)); }

  /** The current state; the attribute sets the initial one. */
  get muted() { return this.#face.video.muted; }
  set muted(value) { this.#face.video.muted = Boolean(value); }

  /** From 0 to 1. */
  get volume() { return this.#face.video.volume; }
  set volume(value) { this.#face.video.volume = value; }

  /** @returns {Quality} what is wanted of the picture */
  get quality() { return this.#quality; }
  set quality(value) {
    if (!["auto", "high", "low", "sound"].includes(value)) {
      throw new RangeError(`quality must be auto, high, low or sound, not ${value}`);
    }
    this.#quality = value;
    this.#playback?.reception.choice.choose(value);
    this.#changed();
  }

  /** The player's texts. Those you set replace the English ones. @returns {import("./player/strings.js").Strings} */
  get strings() { return this.#strings; }
  set strings(value) {
    this.#strings = { ...STRINGS, ...value };
    this.#changed();
  }

  // What there is to know.

  get state() { return this.#state; }

  /** Whether nothing is playing and nothing will start automatically. */
  get paused() { return this.#playback?.isPaused ?? true; }

  /** Why nothing plays and nothing will start automatically; otherwise null. */
  get problem() { return this.#playback ? this.#playback.problem : this.#problem; }

  /** The delay in seconds when playing over HLS; null over WebRTC, or while the delay is unknown. */
  get delay() { return this.#playback?.reception.delay ?? null; }

  /** How many seconds behind live the viewer is after going back; null while live. */
  get behind() { return this.#playback?.reception.rewind.behind ?? null; }

  /** How many seconds back `goBack` can go; 0 if going back is not possible. */
  get reach() { return this.#playback?.reception.rewind.reach ?? 0; }

  /** The tier the viewer needs and where to get it; null if none is needed. */
  get gate() {
    const gate = this.#playback?.gate;
    return gate ? { state: gate.state, tier: gate.tier, unlock: gate.unlock, remaining: secondsLeft(gate) } : null;
  }

  /** What the server says about the stream; null until it has answered. */
  get stream() { return this.#playback?.stream.info ?? null; }

  /** The recordings of a stream that has ended, with addresses to play them from. */
  get recordings() {
    const { recordings } = this.#playback ?? {};
    if (!recordings) return [];
    return recordings.list.map((each) => {
      const { id, kind = "recording", title = null, duration, size, startedAt } = each;
      return { id, kind, title, duration, size, startedAt, url: recordings.address(each) };
    });
  }

  // What an app may do.

  /** Starts or resumes playback. Works before the stream is live, too. */
  play() {
    this.#open();
    if (this.#playback) this.#playback.play();
    else this.#isAsked = true;
  }

  /** Ends the session. Playing again resumes at the live position. */
  pause() {
    this.#isAsked = false;
    this.#playback?.pause();
  }

  /** Goes back that many seconds, as far as the host lets the server keep the stream. @param {number} seconds */
  goBack(seconds) {
    if (!Number.isFinite(seconds)) throw new TypeError(`goBack takes a number of seconds, not ${seconds}`);
    this.#playback?.reception.rewind.go(seconds);
  }

  /** Returns to live. */
  goLive() {
    this.#playback?.reception.rewind.leave();
  }

  /** Plays one of the `recordings`. @param {string} id */
  playRecording(id) {
    const recording = this.#playback?.recordings.list.find((each) => each.id === id);
    if (recording) this.#playback?.playRecording(recording);
  }

  // What happens.

  #queue() {
    if (this.#isQueued) return;
    this.#isQueued = true;
    queueMicrotask(() => {
      this.#isQueued = false;
      if (!this.isConnected) return this.#close();
      this.#open();
      this.#begin();
      this.#changed();
    });
  }

  /** The current stream has not been played or paused yet. */
  #isFresh = false;
  /** It was asked to play before there was a stream. */
  #isAsked = false;

  #begin() {
    if (!this.#playback || !this.#isFresh) return;
    if (this.#playback.isPaused && (this.autoplay || this.#isAsked)) this.#playback.play(false);
    this.#isFresh = this.#isAsked = false;
  }

  /** The page is left: the session ends at once, and if the browser brings the page back, it goes on. */
  #left = () => {
    this.#isAsked = !this.paused;
    this.#close();
  };

  #cameBack = (/** @type {PageTransitionEvent} */ { persisted }) => persisted && this.#queue();

  #open() {
    if (!this.#isOutdated && this.#playback || !this.isConnected) return;
    // Playback continues with the new stream, or under another identity.
    if (this.#playback) this.#isAsked = !this.#playback.isPaused;
    this.#close();
    this.#isOutdated = false;
    this.#problem = null;
    const { src } = this;
    const place = placeOf(src);
    const transport = TRANSPORTS.find(({ isSupported }) => isSupported);
    if (!place || !transport) {
      if (this.hasAttribute("src")) this.#problem = { reason: transport ? "no-address" : "unsupported", message: "" };
      return this.#changed();
    }
    const stream = new WatchedStream(place, this.token || place.token);
    const playback = this.#playback = new Playback(this.#face.video, stream, transport);
    playback.reception.choice.choose(this.#quality);
    playback.addEventListener("change", () => this.#changed());
    playback.addEventListener("picture", () => this.#face.keepPicture());
    this.#isFresh = true;
  }

  #close() {
    this.#playback?.close();
    this.#playback = null;
    this.#isOutdated = true;
    this.#face.clear();
    if (!this.isConnected) this.#face.disconnected();
    this.#changed();
  }

  #changed() {
    const playback = this.#playback;
    const previous = this.#state;
    this.#state = playback?.state ?? (this.#problem ? "failed" : "idle");
    if (playback) this.#quality = playback.reception.choice.name;
    this.#face.update(playback, this.#state, this.problem, this.#strings);
    if (this.#state === previous) return;
    this.dispatchEvent(new CustomEvent("statechange", { detail: { state: this.#state, previous } }));
    if (this.#state === "refused" || this.#state === "failed") {
      this.dispatchEvent(new CustomEvent("error", { detail: this.problem }));
    }
  }

  /** What was set before this element was defined is a property that hides ours. @param {string} name */
  #upgrade(name) {
    if (!Object.hasOwn(this, name)) return;
    const self = /** @type {any} */ (this);
    const value = self[name];
    delete self[name];
    self[name] = value;
  }

  /** @param {string} name */
  #text(name) {
    return this.getAttribute(name) ?? "";
  }

  /** @param {string} name @param {string | null | undefined} value */
  #setText(name, value) {
    if (value === null || value === undefined) this.removeAttribute(name);
    else this.setAttribute(name, value);
  }
}

if (!customElements.get("rostrum-player")) customElements.define("rostrum-player", RostrumPlayer);
