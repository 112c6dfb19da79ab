// @ts-check

/** What a player looks like and listens to: the layers over its video, keys, pointers, and the windows it can fill. */

import { h, setText } from "../dom.js";
import { secondsLeft, showUnlock } from "../gate.js";
import { Backdrop } from "./backdrop.js";
import { Bar } from "./bar.js";
import { listen } from "./gestures.js";
import { Middle } from "./middle.js";
import { fill } from "./strings.js";
import { style } from "./style.js";

/**
 * @typedef {import("./playback.js").Playback} Playback
 * @typedef {import("./playback.js").PlayerState} PlayerState
 */

/** The states in which what was seen last is out of date. @type {PlayerState[]} */
const DIM = ["waiting", "backstage", "away", "gated", "reconnecting", "ended", "refused", "failed"];

export class Face {
  video = h("video", { playsInline: true, part: "video", disableRemotePlayback: true });

  #backdrop = new Backdrop();
  #shade = h("div.shade", { "aria-hidden": "true" });
  #stream = h("span.stream", { dir: "auto" });
  #host = h("span.host", { dir: "auto" });
  #head = h("div.head", { part: "title" }, this.#stream, this.#host);
  #freeWords = h("span", { role: "timer" });
  #freeLink = h("a", { target: "_blank", rel: "noopener" });
  #free = h("div.free", { part: "free", hidden: true }, this.#freeWords, this.#freeLink);
  #middle;
  #bar;
  #root;
  /** @type {Playback | null} */
  #playback = null;
  /** The viewer has said what they want to hear. */
  #hasChosenSound = false;
  /** @type {number | undefined} */
  #clock;
  /** @type {() => void} */
  #show = () => {};
  /** Shows the controls for a while. @type {() => void} */
  #wake;

  /**
   * @param {import("../rostrum-player.js").RostrumPlayer} player
   * @param {ShadowRoot} shadow
   */
  constructor(player, shadow) {
    this.player = player;
    this.#middle = new Middle({
      play: () => player.play(),
      turnSoundOn: () => this.#turnSound(true),
      retry: () => this.#playback?.retry(),
      playRecording: ({ id }) => player.playRecording(id),
    });
    this.#bar = new Bar({
      toggle: () => this.#toggle(),
      toggleSound: () => this.#turnSound(this.#isSilent),
      setVolume: (volume) => this.#setVolume(volume),
      toggleFull: () => this.#toggleFull(),
      togglePip: () => this.#togglePip(),
      choose: (name) => (player.quality = name),
      seek: (seconds) => this.#playback?.seek(seconds),
      goLive: () => this.#playback?.reception.rewind.leave(),
    });
    this.#root = h("div.player", { part: "player", role: "region" },
      this.#backdrop.ambient, this.video, this.#backdrop.element, this.#shade, this.#head, this.#free, this.#middle.element,
      this.#bar.element, this.#bar.menu.panel);
    shadow.adoptedStyleSheets = [style()];
    shadow.append(this.#root);
    this.#wake = listen(this.#root, {
      mayListen: () => player.controls && this.#playback !== null,
      mayFade: () => this.#playback?.isShown === true && !this.#playback.isPaused && !this.#bar.menu.isOpen,
      toggle: () => this.#toggle(),
      toggleSound: () => this.#turnSound(this.#isSilent),
      toggleFull: () => this.#toggleFull(),
      louder: (by) => this.#setVolume((this.#isSilent ? 0 : this.video.volume) + by),
      skip: (seconds) => this.#playback?.skip(seconds),
      leave: () => this.#bar.menu.close(false),
    });
    player.addEventListener("fullscreenchange", () => this.#show());
    for (const event of ["enterpictureinpicture", "leavepictureinpicture"]) {
      this.video.addEventListener(event, () => this.#show());
    }
  }

  connected() {
    clearInterval(this.#clock);
    this.#wake();
    // For the countdown, and how far back one can go; of other changes it is told.
    this.#clock = setInterval(() => {
      const playback = this.#playback;
      if (playback?.state === "backstage" || playback?.gate || playback?.reception.rewind.reach) this.#show();
    }, 1000);
  }

  disconnected() {
    clearInterval(this.#clock);
  }

  /** Nothing of the last stream stays. */
  clear() {
    this.#playback = null;
    this.#backdrop.clear();
    this.#bar.menu.close(false);
  }

  /** Keeps what is seen, for when nothing newer is. */
  keepPicture() {
    if (this.#playback?.isShown && !this.#playback.recording) this.#backdrop.keep(this.video);
  }

  /**
   * @param {Playback | null} playback
   * @param {PlayerState} state
   * @param {import("./playback.js").Problem | null} problem
   * @param {import("./strings.js").Strings} strings
   */
  update(playback, state, problem, strings) {
    this.#playback = playback;
    this.#show = () => this.#draw(state, problem, strings);
    this.#show();
  }

  /**
   * @param {PlayerState} state
   * @param {import("./playback.js").Problem | null} problem
   * @param {import("./strings.js").Strings} strings
   */
  #draw(state, problem, strings) {
    const { video } = this;
    const { controls, poster } = this.player;
    const focused = /** @type {ShadowRoot} */ (this.#root.getRootNode()).activeElement;
    const playback = this.#playback;
    const stream = playback?.stream ?? null;
    const info = stream?.info ?? null;
    const isRecording = playback?.recording != null;
    if (poster) this.#backdrop.show(poster, null);
    else if (stream) this.#backdrop.show(stream.previewAddress, stream.preview?.blurHash);
    const isShown = playback?.isShown === true;
    const root = this.#root;
    root.dataset.state = state;
    root.dataset.picture = isShown ? "video" : this.#backdrop.isEmpty ? "none" : "still";
    const isSoundAlone = playback?.isSoundAlone === true && state === "live";
    root.toggleAttribute("data-dim", !isRecording && (DIM.includes(state) || isSoundAlone));
    root.classList.toggle("no-controls", !controls);
    root.setAttribute("aria-label", info?.title || strings.player);
    if (controls) root.tabIndex = 0;
    else root.removeAttribute("tabindex");
    setText(this.#stream, info?.title ?? "");
    setText(this.#host, info?.hostName ?? "");
    this.#head.hidden = !controls || !info?.title && !info?.hostName || problem !== null;
    this.#bar.element.hidden = !controls || !playback || problem !== null || state === "ended" && !isRecording;
    const gate = state === "live" ? playback?.gate ?? null : null;
    this.#free.hidden = gate?.state !== "free";
    if (gate) {
      setText(this.#freeWords, fill(strings.freeLeft, { seconds: secondsLeft(gate) }));
      setText(this.#freeLink, strings.unlock);
      showUnlock(this.#freeLink, gate);
    }
    const isHeard = !isRecording && ["live", "away"].includes(state);
    this.#middle.update({
      playback, state, problem, strings, offersSound: controls && isHeard && video.muted && !this.#hasChosenSound,
    });
    if (playback) {
      this.#bar.update(playback, strings, {
        isFull: this.#isFull, isPip: this.#isPip,
        mayPip: isShown && document.pictureInPictureEnabled === true && "requestPictureInPicture" in video,
      });
    }
    // A button that goes away takes the focus along, and without it the keys do nothing.
    if (controls && focused?.closest("[hidden]")) root.focus({ preventScroll: true });
  }

  // What the viewer does.

  get #isSilent() {
    return this.video.muted || this.video.volume === 0;
  }

  get #isFull() {
    return document.fullscreenElement === this.player;
  }

  get #isPip() {
    return /** @type {ShadowRoot} */ (this.#root.getRootNode()).pictureInPictureElement === this.video;
  }

  #toggle() {
    if (this.player.paused) this.player.play();
    else this.player.pause();
  }

  /** @param {boolean} isOn */
  #turnSound(isOn) {
    this.#hasChosenSound = true;
    const { video } = this;
    video.muted = !isOn;
    if (isOn && video.volume === 0) video.volume = 1;
    this.#show();
  }

  /** @param {number} volume */
  #setVolume(volume) {
    this.#hasChosenSound = true;
    this.video.volume = Math.min(1, Math.max(0, Math.round(volume * 100) / 100));
    this.video.muted = this.video.volume === 0;
  }

  async #toggleFull() {
    try {
      if (this.#isFull) await document.exitFullscreen();
      else if (this.player.requestFullscreen) await this.player.requestFullscreen();
      // iPhones show only a video itself on the full screen.
      else /** @type {any} */ (this.video).webkitEnterFullscreen?.();
    } catch {
      // The page may not; a frame needs `allow="fullscreen"`.
    }
  }

  async #togglePip() {
    try {
      if (this.#isPip) await document.exitPictureInPicture();
      else await this.video.requestPictureInPicture();
    } catch {
      // There is no picture yet, or the page may not.
    }
  }
}
