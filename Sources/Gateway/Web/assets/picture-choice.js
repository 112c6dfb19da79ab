// @ts-check

/** A viewer's picture quality: how they choose it, how it is remembered, and what they are told about a weak link. */

import { h, icon } from "./dom.js";
import { tabStorage } from "./storage.js";

/**
 * @typedef {{ maxHeight: number | null, pin: "high" | "low" | null, audioOnly: boolean }} Preferences
 *
 * @typedef {object} Layer
 * @property {number | null} height in pixels
 * @property {number} bitrate in bit/s
 *
 * @typedef {object} Quality what the server sends, and why not more
 * @property {number | null} estimate what the connection takes, in bit/s
 * @property {"delay" | "loss" | "application" | "publisher" | "pinned" | null} cause
 * @property {Preferences} preferences
 * @property {{ mid: string, wanted: Layer | null, served: Layer | null, paused: boolean, preview: boolean }[]} pictures
 *   `preview`: not in view yet
 *
 * @typedef {"auto" | "high" | "low" | "sound"} ChoiceName
 */

/** The choice lasts as long as the tab: another day, the connection is a different one. */
const CHOICE = "rostrum:picture";

/** @type {{ name: ChoiceName, label: string, hint: string, preferences: Preferences }[]} */
const CHOICES = [
  {
    name: "auto", label: "Auto", hint: "Best for your connection",
    preferences: { maxHeight: null, pin: null, audioOnly: false },
  },
  {
    name: "high", label: "High", hint: "Best picture, but it may pause",
    preferences: { maxHeight: null, pin: "high", audioOnly: false },
  },
  {
    name: "low", label: "Low", hint: "Smaller picture, uses less data",
    preferences: { maxHeight: null, pin: "low", audioOnly: false },
  },
  {
    name: "sound", label: "Sound only", hint: "No picture",
    preferences: { maxHeight: null, pin: null, audioOnly: true },
  },
];

/** Fires `change`. */
export class PictureChoice extends EventTarget {
  #choice = CHOICES[0];

  /** @param {import("./storage.js").Memory | null} [memory] where it is kept; null for nowhere */
  constructor(memory = tabStorage) {
    super();
    this.memory = memory;
    const kept = memory?.getItem(CHOICE);
    this.#choice = CHOICES.find(({ name }) => name === kept) ?? CHOICES[0];
  }

  get name() {
    return this.#choice.name;
  }

  /** What a session is told (a merge patch). */
  get preferences() {
    return this.#choice.preferences;
  }

  /** @param {ChoiceName} name */
  choose(name) {
    const choice = CHOICES.find((each) => each.name === name);
    if (!choice || choice === this.#choice) return;
    this.#choice = choice;
    this.memory?.setItem(CHOICE, name);
    this.dispatchEvent(new Event("change"));
  }
}

/**
 * The choice as radio buttons.
 * @param {PictureChoice} choice
 * @returns {HTMLFieldSetElement}
 */
export function pictureRadios(choice) {
  const rows = CHOICES.map(({ name, label, hint }) => {
    const radio = h("input", {
      type: "radio", name: "picture", value: name, checked: name === choice.name, onchange: () => choice.choose(name),
    });
    return h("label", {}, radio, h("span", {}, label, h("small.muted", {}, hint)));
  });
  return h("fieldset.picture-choice", {}, h("legend", {}, "Picture"), ...rows);
}

/**
 * What a weak connection costs: the high picture that was chosen, any picture, or a larger one.
 * @typedef {"high" | "picture" | "size"} Weakness
 */

/** @type {Record<Weakness, string>} */
const WORDS = {
  high: "Your connection is too slow for High. Choose Auto.",
  picture: "Your connection is slow. Playing sound only for now.",
  size: "Your connection is slow. Showing a smaller picture.",
};

/**
 * What is lost because the connection is too slow; null while all is well.
 * @param {Quality | null} quality
 * @returns {Weakness | null}
 */
export function weaknessOf(quality) {
  if (!quality || quality.cause !== "delay" && quality.cause !== "loss") return null;
  const pictures = quality.pictures.filter(({ preview }) => !preview);
  if (pictures.some(({ paused }) => paused)) return quality.preferences.pin === "high" ? "high" : "picture";
  const isSmaller = pictures.some(({ wanted, served }) => served !== null && (wanted?.height ?? 0) > (served.height ?? 0));
  return isSmaller ? "size" : null;
}

/** @param {Weakness | null} weakness */
export function wordsForWeakness(weakness) {
  return weakness && WORDS[weakness];
}

/** A sign that the connection is weak; the explanation is its accessible name. */
export function weakLinkSign() {
  const words = h("span.visually-hidden");
  const root = h("span.chip.weak-link#weak-link", { hidden: true, role: "status" }, icon("weak"), words);
  return Object.assign(root, {
    /** @param {string | null} text */
    say(text) {
      root.hidden = text === null;
      root.title = text ?? "";
      if (words.textContent !== (text ?? "")) words.textContent = text ?? "";
    },
  });
}
