// @ts-check

/** The controls below the picture, with the timeline of a recording, or of a stream that viewers can rewind. */

import { formatDuration, h, setText } from "../dom.js";
import { draw, icon } from "./icons.js";
import { QualityMenu } from "./menu.js";
import { fill } from "./strings.js";

/** With less than this to rewind, the timeline is hidden, in seconds. */
const LEAST_REACH_S = 10;
/** Below this volume, the icon has a single wave. */
const QUIET = 0.5;
/** @type {Record<import("../picture-choice.js").Weakness, keyof import("./strings.js").Strings>} */
const WEAK = { high: "weakHigh", picture: "weakPicture", size: "weakSize" };

/**
 * @typedef {object} Actions
 * @property {() => void} toggle plays or pauses
 * @property {() => void} toggleSound
 * @property {(volume: number) => void} setVolume
 * @property {() => void} toggleFull
 * @property {() => void} togglePip
 * @property {(name: import("./menu.js").Quality) => void} choose
 * @property {(seconds: number) => void} seek goes to a position of the timeline
 * @property {() => void} goLive
 */

export class Bar {
  #play = button("play", "play-button");
  #sound = button("sound", "mute-button");
  #volume = h("input.volume", { type: "range", min: 0, max: 1, step: 0.05, part: "volume" });
  #live = h("span.live", { part: "live" });
  #toLive = h("button.to-live", { type: "button", part: "to-live-button" });
  #delayWords = h("span.long");
  #delayShort = h("span.short", { "aria-hidden": "true" });
  #delay = h("span.delay", { part: "delay" }, this.#delayWords, this.#delayShort);
  #viewerCount = h("span");
  #viewers = h("span.viewers", { part: "viewers" }, icon("people"), this.#viewerCount);
  #time = h("span.time", { part: "time" });
  #weak = h("span.weak", { role: "status", part: "weak" }, icon("weak"), h("span.unseen"));
  #pip = button("pip", "pip-button");
  #full = button("full", "full-screen-button");
  #position = h("input.position", { type: "range", min: 0, max: 0, step: 0.1, part: "position" });
  #row;
  #isDragged = false;

  /** @param {Actions} actions */
  constructor(actions) {
    this.menu = new QualityMenu(actions.choose);
    this.#row = h("div.row", {},
      this.#play, h("span.sound", {}, this.#sound, this.#volume), this.#live, this.#toLive, this.#delay, this.#viewers, this.#time, h("span.space"),
      this.#weak, this.menu.button, this.#pip, this.#full);
    this.element = h("div.bar", { part: "bar" }, this.#position, this.#row);
    this.#play.addEventListener("click", actions.toggle);
    this.#sound.addEventListener("click", actions.toggleSound);
    this.#volume.addEventListener("input", () => actions.setVolume(Number(this.#volume.value)));
    this.#pip.addEventListener("click", actions.togglePip);
    this.#full.addEventListener("click", actions.toggleFull);
    this.#toLive.addEventListener("click", actions.goLive);
    this.#position.addEventListener("input", () => (this.#isDragged = true));
    // Dragged back to where it was, it has not changed. Later, because otherwise the change is still to come.
    const release = () => setTimeout(() => (this.#isDragged = false));
    for (const end of ["pointerup", "pointercancel", "blur"]) this.#position.addEventListener(end, release);
    this.#position.addEventListener("change", () => {
      this.#isDragged = false;
      actions.seek(Number(this.#position.value));
    });
  }

  /**
   * @param {import("./playback.js").Playback} playback
   * @param {import("./strings.js").Strings} strings
   * @param {{ isFull: boolean, isPip: boolean, mayPip: boolean }} windows
   */
  update(playback, strings, { isFull, isPip, mayPip }) {
    const { recording, reception, state, stream, video } = playback;
    name(this.#play, playback.isPaused ? strings.play : strings.pause, playback.isPaused ? "play" : "pause", "k");
    this.#updateSound(video, strings);
    const isLive = !recording && (state === "live" || state === "away" || stream.info?.state === "live");
    const isBack = isLive && reception.rewind.behind !== null;
    this.#live.hidden = !isLive || isBack;
    setText(this.#live, strings.live);
    this.#toLive.hidden = !isBack;
    setText(this.#toLive, strings.goLive);
    this.#updateDelay(isLive && reception.isDelayed, reception.delay, strings);
    const count = stream.sync.known?.counts.viewers ?? 0;
    this.#viewers.hidden = !isLive || count === 0;
    setText(this.#viewerCount, String(count));
    this.#viewers.title = count === 1 ? strings.oneViewer : fill(strings.viewers, { count });
    this.#updateTime(playback, strings);
    const weakness = state === "live" ? reception.weakness : null;
    this.#weak.hidden = weakness === null;
    this.#weak.title = weakness ? strings[WEAK[weakness]] : "";
    setText(this.#weak.lastElementChild, this.#weak.title);
    this.menu.button.hidden = recording !== null || isBack || !["live", "away", "reconnecting", "connecting"].includes(state);
    if (this.menu.button.hidden) this.menu.close(false);
    this.menu.update(reception.choice.name, strings, reception.choice.name === "sound" ? 0 : video.videoHeight);
    name(this.#pip, strings.pictureInPicture, "pip");
    this.#pip.hidden = !mayPip;
    this.#pip.setAttribute("aria-pressed", String(isPip));
    name(this.#full, isFull ? strings.leaveFullScreen : strings.fullScreen, isFull ? "small" : "full", "f");
  }

  /** @param {boolean} isDelayed @param {number | null} delay in seconds @param {import("./strings.js").Strings} strings */
  #updateDelay(isDelayed, delay, strings) {
    this.#delay.hidden = !isDelayed;
    this.#delay.title = strings.delayedHint;
    const seconds = Math.max(1, Math.round(delay ?? 1));
    setText(this.#delayWords, delay === null ? strings.delayed : fill(strings.delayedBy, { seconds }));
    setText(this.#delayShort, delay === null ? strings.delayed : fill(strings.delayedShort, { seconds }));
  }

  /** @param {HTMLVideoElement} video @param {import("./strings.js").Strings} strings */
  #updateSound({ muted, volume }, strings) {
    const isSilent = muted || volume === 0;
    name(this.#sound, isSilent ? strings.unmute : strings.mute, isSilent ? "muted" : volume < QUIET ? "quiet" : "sound", "m");
    const shown = muted ? 0 : volume;
    if (Number(this.#volume.value) !== shown) this.#volume.value = shown;
    slide(this.#volume, strings.volume, shown, fill(strings.volumeValue, { percent: Math.round(shown * 100) }));
  }

  /** @param {import("./playback.js").Playback} playback @param {import("./strings.js").Strings} strings */
  #updateTime({ recording, reception: { rewind }, state, video }, strings) {
    const isBack = recording === null && rewind.behind !== null;
    const mayGoBack = recording === null && state === "live" && rewind.reach >= LEAST_REACH_S;
    this.#time.hidden = recording === null && !isBack;
    this.#position.hidden = recording === null && !mayGoBack;
    if (!recording) return this.#updatePast(rewind, strings);
    const duration = Number.isFinite(video.duration) ? video.duration : recording.duration;
    if (Number(this.#position.max) !== duration) this.#position.max = duration;
    if (!this.#isDragged) this.#position.value = video.currentTime;
    const words = {
      position: formatDuration(Number(this.#position.value) * 1000), duration: formatDuration(duration * 1000),
    };
    setText(this.#time, `${words.position} / ${words.duration}`);
    slide(this.#position, strings.position, Number(this.#position.value) / (duration || 1), fill(strings.positionValue, words));
  }

  /**
   * The timeline of a live stream ends at the live edge.
   * @param {import("../rewind.js").Rewind} rewind
   * @param {import("./strings.js").Strings} strings
   */
  #updatePast({ behind, reach }, strings) {
    const length = Math.max(1, Math.ceil(reach));
    this.#position.max = length;
    if (!this.#isDragged) this.#position.value = length - Math.min(behind ?? 0, length);
    const place = Number(this.#position.value);
    const time = `−${formatDuration((length - place) * 1000)}`;
    setText(this.#time, time);
    const isLive = this.#isDragged ? place >= length - 1 : behind === null;
    slide(this.#position, strings.position, place / length, isLive ? strings.live : fill(strings.behind, { time }));
  }
}

/** @param {string} shape @param {string} part */
function button(shape, part) {
  return h("button.button", { type: "button", part: `button ${part}` }, icon(shape));
}

/**
 * Sets a button's label and icon.
 * @param {HTMLButtonElement} element
 * @param {string} label
 * @param {string} shape
 * @param {string} [key] its keyboard shortcut
 */
function name(element, label, shape, key) {
  element.setAttribute("aria-label", label);
  element.title = key ? `${label} (${key})` : label;
  if (key) element.setAttribute("aria-keyshortcuts", key);
  draw(/** @type {SVGSVGElement} */ (element.firstElementChild), shape);
}

/**
 * @param {HTMLInputElement} element
 * @param {string} label
 * @param {number} share the filled part, 0 to 1
 * @param {string} text for screen readers
 */
function slide(element, label, share, text) {
  element.setAttribute("aria-label", label);
  element.setAttribute("aria-valuetext", text);
  element.style.setProperty("--share", `${(share * 100).toFixed(2)}%`);
}
