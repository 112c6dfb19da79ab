// @ts-check

/** Comments that cross the picture from one side to the other; they take no clicks and no swipes. */

import { callName, h } from "./dom.js";

/** The number of lanes, one above the other. */
const LANES = 4;
/** Time to cross one page width, in milliseconds: all have the same speed, so that none overtakes another. */
const WIDTH_MS = 6500;
/** Gap between two comments in a lane, in CSS pixels. */
const GAP = 32;

/** Whether the viewer prefers reduced motion. */
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {import("./talk.js").Part} part */
export function makeBarrage({ audience, shows }) {
  const root = h("div.barrage", { "aria-hidden": "true" });
  /** When each lane has room for another comment. */
  const free = new Array(LANES).fill(0);

  const take = (/** @type {Event} */ event) => {
    /** @type {import("./audience.js").StreamComment} */
    const comment = /** @type {CustomEvent} */ (event).detail;
    if (!shows("barrage") || calm.matches || document.visibilityState !== "visible") return;
    // Animations do not run while it is not rendered, as in picture-only mode: all of them would start together later.
    if (root.clientWidth === 0) return;
    const now = performance.now();
    const lane = free.findIndex((time) => time <= now);
    // All lanes are full; it is in the list anyway.
    if (lane < 0) return;
    const line = h("p", { "data-number": String(comment.number), dir: "auto" },
      h("b", {}, callName(comment.author, comment.name)), " ", comment.text);
    line.style.setProperty("--lane", String(lane));
    root.append(line);
    const pace = root.clientWidth / WIDTH_MS || 1;
    line.style.setProperty("--time", `${Math.round((root.clientWidth + line.offsetWidth) / pace)}ms`);
    line.style.setProperty("--way", `${root.clientWidth}px`);
    free[lane] = now + (line.offsetWidth + GAP) / pace;
    line.addEventListener("animationend", () => line.remove());
  };
  /** Removes deleted comments at once. */
  const sweep = () => {
    const numbers = new Set(audience.comments.map(({ number }) => String(number)));
    for (const line of [...root.children]) {
      if (!shows("barrage") || !numbers.has(/** @type {HTMLElement} */ (line).dataset.number ?? "")) line.remove();
    }
  };
  audience.addEventListener("comment", take);
  audience.addEventListener("change", sweep);
  return {
    root,
    stop() {
      audience.removeEventListener("comment", take);
      audience.removeEventListener("change", sweep);
      root.remove();
    },
  };
}
