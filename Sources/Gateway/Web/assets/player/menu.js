// @ts-check

/** The choice of picture quality: a menu of radio items, as in the ARIA Authoring Practices Guide. */

import { h, setText } from "../dom.js";
import { icon } from "./icons.js";

/**
 * @typedef {import("../picture-choice.js").ChoiceName} Quality
 * @type {{ name: Quality, label: keyof import("./strings.js").Strings, hint: keyof import("./strings.js").Strings }[]}
 */
const ITEMS = [
  { name: "auto", label: "qualityAuto", hint: "qualityAutoHint" },
  { name: "high", label: "qualityHigh", hint: "qualityHighHint" },
  { name: "low", label: "qualityLow", hint: "qualityLowHint" },
  { name: "sound", label: "qualitySound", hint: "qualitySoundHint" },
];

export class QualityMenu {
  #items = ITEMS.map((item) => {
    const label = h("span");
    const hint = h("small");
    const element = h("button.item", {
      type: "button", role: "menuitemradio", tabIndex: -1, "data-value": item.name, part: "menu-item",
      onclick: () => {
        this.choose(item.name);
        this.close(true);
      },
    }, icon("chosen"), h("span.words", {}, label, hint));
    return { ...item, element, label, hint, labelKey: item.label, hintKey: item.hint };
  });
  #title = h("p.menu-title", { "aria-hidden": "true" });
  panel = h("div.menu", { role: "menu", hidden: true, part: "menu" },
    this.#title, ...this.#items.map(({ element }) => element));
  button = h("button.button", {
    type: "button", part: "button quality-button", "aria-haspopup": "menu", "aria-expanded": "false",
    onclick: () => this.isOpen ? this.close(true) : this.#open(),
  }, icon("quality"));

  /** @param {(name: Quality) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.panel.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.panel.addEventListener("focusout", (/** @type {FocusEvent} */ { relatedTarget }) => {
      if (relatedTarget && !this.panel.contains(relatedTarget) && relatedTarget !== this.button) this.close(false);
    });
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  /**
   * @param {Quality} chosen
   * @param {import("./strings.js").Strings} strings
   * @param {number} height of the picture; 0 for none
   */
  update(chosen, strings, height) {
    this.button.setAttribute("aria-label", strings.quality);
    this.button.title = strings.quality;
    this.panel.setAttribute("aria-label", strings.quality);
    setText(this.#title, strings.quality);
    for (const { name, element, label, hint, labelKey, hintKey } of this.#items) {
      const isChosen = name === chosen;
      setText(label, isChosen && name === "auto" && height ? `${strings[labelKey]} · ${height}p` : strings[labelKey]);
      setText(hint, strings[hintKey]);
      element.setAttribute("aria-checked", String(isChosen));
    }
  }

  /** @param {boolean} isFocused whether the button gets the focus back */
  close(isFocused) {
    if (!this.isOpen) return;
    this.panel.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (isFocused) this.button.focus();
  }

  #open() {
    this.panel.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.#items.find(({ element }) => element.getAttribute("aria-checked") === "true")?.element.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const elements = this.#items.map(({ element }) => element);
    const at = elements.indexOf(/** @type {any} */ (event.target));
    const last = elements.length - 1;
    /** @type {Record<string, number>} */
    const ways = { ArrowDown: at === last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last };
    if (event.key in ways) elements[ways[event.key]].focus();
    else if (event.key === "Escape") this.close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
