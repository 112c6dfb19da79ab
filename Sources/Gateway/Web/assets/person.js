// @ts-check

/** What the person in front of this browser wants to be called. */

import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { lastingStorage } from "./storage.js";

const KEY = "rostrum:name";
/** As long as the server takes, in characters. */
export const NAME_LENGTH = 60;

/** The name that was given last, in this browser; empty when none was. */
export function ownName() {
  return lastingStorage.getItem(KEY) ?? "";
}

/** @param {string} name */
export function keepName(name) {
  const given = name.trim();
  if (given) lastingStorage.setItem(KEY, given);
  else lastingStorage.removeItem(KEY);
}

/**
 * A field for one's name.
 * @param {string} [value]
 * @returns {HTMLInputElement}
 */
export function nameField(value = ownName()) {
  return h("input#your-name", {
    name: "name", dir: "auto", maxLength: NAME_LENGTH, autocomplete: "nickname", value, placeholder: "The name others see",
  });
}

/**
 * Asks for a name before others see this person, and remembers it.
 * @param {{ title: string, text: string, yes: string }} words
 * @returns {Promise<string | null>} null if they cancel
 */
export async function askName({ title, text, yes }) {
  const field = nameField();
  const answer = await ask({
    name: "name", title, text, body: [h("div.fields", {}, h("label", {}, "Your name", field))],
    choices: [{ value: "yes", label: yes, look: "primary" }, { value: "no", label: "Cancel" }],
  });
  if (answer !== "yes") return null;
  keepName(field.value);
  return ownName();
}
