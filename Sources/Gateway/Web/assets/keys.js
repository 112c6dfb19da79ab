// @ts-check

/**
 * Letters as keys of a page, such as m for sound. They can be turned off: who dictates, or whose hands tremble, presses
 * them without meaning to (WCAG 2.2, 2.1.4).
 */

import { h } from "./dom.js";
import { lastingStorage } from "./storage.js";

const KEY = "rostrum:letters";

/** Whether letters do something by themselves in this browser. */
export function areLettersKeys() {
  return lastingStorage.getItem(KEY) !== "off";
}

/**
 * The letter that was pressed to do something.
 * @param {KeyboardEvent} event
 * @returns {string | null} null while someone writes, for the browser's own keys, and where letters are turned off
 */
export function letterOf({ key, target, ctrlKey, metaKey, altKey }) {
  const isElsewhere = target instanceof Element && target.closest("input, select, textarea, dialog") !== null;
  return isElsewhere || ctrlKey || metaKey || altKey || key.length > 1 || !areLettersKeys() ? null : key;
}

/** @param {string} letters that do something on this page, in words */
export function letterSwitch(letters) {
  const box = h("input", {
    type: "checkbox", name: "letters", checked: areLettersKeys(),
    onchange: () => lastingStorage.setItem(KEY, box.checked ? "on" : "off"),
  });
  return h("label.letter-switch", {}, box, h("span", {}, "Keyboard shortcuts", h("small.muted", {}, letters)));
}
