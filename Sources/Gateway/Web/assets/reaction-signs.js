// @ts-check

/** Reactions, as these pages show them. */

import { icon } from "./dom.js";

/** A heart is drawn. @type {Record<string, string>} */
const SIGNS = { laugh: "😂", wow: "😮", clap: "👏", fire: "🔥", sad: "😢", party: "🎉", yes: "👍", star: "⭐" };

/** Those that have a sign of their own. */
export const KINDS = ["heart", ...Object.keys(SIGNS)];

/** @param {string} kind a name that the host chose @returns {string | SVGElement} */
export function signOf(kind) {
  return Object.hasOwn(SIGNS, kind) ? SIGNS[kind] : icon("heart", "heart");
}

/** For those who listen. @param {string} kind */
export function nameOf(kind) {
  return kind === "heart" ? "Hearts" : kind.charAt(0).toUpperCase() + kind.slice(1);
}
