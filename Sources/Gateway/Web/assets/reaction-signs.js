// @ts-check

/** How pages show reactions. */

import { icon } from "./dom.js";

/** Emoji of reactions; the heart is an icon. @type {Record<string, string>} */
const SIGNS = { laugh: "😂", wow: "😮", clap: "👏", fire: "🔥", sad: "😢", party: "🎉", yes: "👍", star: "⭐" };

/** Reactions with a sign of their own. */
export const KINDS = ["heart", ...Object.keys(SIGNS)];

/** @param {string} kind chosen by the host @returns {string | SVGElement} */
export function signOf(kind) {
  return Object.hasOwn(SIGNS, kind) ? SIGNS[kind] : icon("heart", "heart");
}

/** The name of a reaction, for screen readers. @param {string} kind */
export function nameOf(kind) {
  return kind === "heart" ? "Hearts" : kind.charAt(0).toUpperCase() + kind.slice(1);
}
