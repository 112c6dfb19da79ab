// @ts-check

/** A stream's gate as viewers without the tier see it: how long they can still watch, and how to get in. */

import { h, setText } from "./dom.js";

/**
 * What the server says about a session, and when it said it.
 * @typedef {object} Gate
 * @property {string | null} stream
 * @property {"free" | "shut"} state
 * @property {string} tier
 * @property {string | null} unlock where viewers can get the tier
 * @property {number} endsAt when the free preview ends, by `performance.now()`
 */

/**
 * @param {any} told by `GET {session}/gate`, a message, or a refusal
 * @returns {Gate | null} null if the stream is open
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
    `This stream requires the “${tier}” tier`,
    unlock ? "Once you unlock it, it plays here automatically." : "To watch, open a link that includes this tier.",
  ];
}

/** The link to where viewers can get the tier. @param {string} [look] its classes */
export function unlockLink(look = ".button.primary") {
  return h(`a${look}`, { target: "_blank", rel: "noopener", hidden: true }, "Unlock");
}

/** @param {HTMLAnchorElement} link @param {Gate | null} gate */
export function showUnlock(link, gate) {
  link.hidden = !gate?.unlock;
  if (gate?.unlock && link.href !== gate.unlock) link.href = gate.unlock;
}

/** The pill over the picture during the free preview: the seconds left, and a link to unlock the rest. */
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
