// @ts-check

/** Comments that cross the picture, from one side to the other; they take no press and no swipe. */

import { callName, h } from "./dom.js";

/** Above each other. */
const LANES = 4;
/** For one width of the page, in milliseconds: all go at the same pace, so that none catches up with another. */
const WIDTH_MS = 6500;
/** Between two in a lane, in CSS pixels. */
const GAP = 32;

/** Whether somebody would rather see nothing move. */
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {import("./talk.js").Part} part */
export function makeBarrage({ audience, shows }) {
  const root = h("div.barrage", { "aria-hidden": "true" });
  /** When each lane takes another one. */
  const free = new Array(LANES).fill(0);

  const take = (/** @type {Event} */ event) => {
    /** @type {import("./audience.js").StreamComment} */
    const comment = /** @type {CustomEvent} */ (event).detail;
    if (!shows("barrage") || calm.matches || document.visibilityState !== "visible") return;
    // Animations do not run while it is not rendered, as in picture-only mode: all of them would start together later.
    if (root.clientWidth === 0) return;
    const now = performance.now();
    const lane = free.findIndex((time) => time <= now);
    // Who writes so much at once is read in the list.
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
  /** One that was taken away is not read to its end. */
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
