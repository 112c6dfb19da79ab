// @ts-check

/** A stream's gate, as those see it who lack the tier: how long they may still watch, and what opens it. */

import { h, setText } from "./dom.js";

/**
 * What the server says of a session, with when it was heard.
 * @typedef {object} Gate
 * @property {string | null} stream
 * @property {"free" | "shut"} state
 * @property {string} tier
 * @property {string | null} unlock where the tier is to be had
 * @property {number} endsAt when the free time is over, by `performance.now()`
 */

/**
 * @param {any} told by `GET {session}/gate`, a message, or a refusal
 * @returns {Gate | null} null where nothing stands before the stream
 */
export function readGate(told) {
  if (told?.state !== "free" && told?.state !== "shut" || typeof told.tier !== "string") return null;
  const { stream = null, state, tier, remaining = 0 } = told;
  const unlock = /^https:\/\//.test(told.unlock) ? told.unlock : null;
  return { stream, state, tier, unlock, endsAt: performance.now() + remaining * 1000 };
}

/** In whole seconds. @param {Gate} gate */
export function secondsLeft(gate) {
  return Math.max(0, Math.ceil((gate.endsAt - performance.now()) / 1000));
}

/** @param {Gate} gate @returns {[title: string, hint: string]} */
export function wordsForGate({ tier, unlock }) {
  return [
    `This stream takes the tier “${tier}”`,
    unlock ? "Unlock it, and it plays here by itself." : "With a link that has it, it plays here by itself.",
  ];
}

/** The link to where a tier is to be had. @param {string} [look] its classes */
export function unlockLink(look = ".button.primary") {
  return h(`a${look}`, { target: "_blank", rel: "noopener", hidden: true }, "Unlock");
}

/** @param {HTMLAnchorElement} link @param {Gate | null} gate */
export function showUnlock(link, gate) {
  link.hidden = !gate?.unlock;
  if (gate?.unlock && link.href !== gate.unlock) link.href = gate.unlock;
}

/** What is over the picture while the free seconds run: how many are left, and what opens the rest. */
export class FreePill {
  #words = h("span", { role: "timer" });
  #link = unlockLink("");
  element = h("p.free-pill", { hidden: true }, this.#words, this.#link);

  /** @param {Gate | null} gate */
  update(gate) {
    this.element.hidden = gate?.state !== "free";
    if (gate?.state !== "free") return;
    const left = secondsLeft(gate);
    setText(this.#words, left === 1 ? "Free preview: 1 second" : `Free preview: ${left} seconds`);
    showUnlock(this.#link, gate);
  }
}
