// @ts-check

import { h } from "../dom.js";

/** Messages stay this long, in milliseconds. */
const STAY_MS = 6000;

/** Shows for a moment what the page has to say; screen readers read it aloud. */
export const messages = {
  name: "messages",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    // Only the new line is read, not those that are still there.
    const root = h("div.messages", { role: "status", "aria-live": "polite", "aria-atomic": "false" });
    layer.append(root);
    /** @param {Event} event */
    const show = (event) => {
      const line = h("p.message", {}, /** @type {CustomEvent} */ (event).detail);
      root.append(line);
      while (root.children.length > 3) root.firstElementChild?.remove();
      setTimeout(() => line.remove(), STAY_MS);
    };
    room.addEventListener("say", show);
    return () => {
      room.removeEventListener("say", show);
      root.remove();
    };
  },
};
