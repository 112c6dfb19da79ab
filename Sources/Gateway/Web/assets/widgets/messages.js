// @ts-check

import { h } from "../dom.js";

/** How long messages are shown, in milliseconds. */
const STAY_MS = 6000;

/** Shows messages of the page for a moment; screen readers read them aloud. */
export const messages = {
  name: "messages",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    // Only the new message is read, not those that are still shown.
    const root = h("div.messages", { role: "status", "aria-live": "polite", "aria-atomic": "false" });
    layer.append(root);
    let isMounted = true;
    /** The uppermost open dialog covers the page, and screen readers read nothing behind it. */
    const goWhereSeen = () => {
      if (!isMounted) return;
      const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? layer;
      if (place === root.parentElement) return;
      place.append(root);
      // There may be another dialog below this one.
      if (place !== layer) place.addEventListener("close", goWhereSeen, { once: true });
    };
    /** @param {Event} event */
    const show = (event) => {
      goWhereSeen();
      const line = h("p.message", {}, /** @type {CustomEvent} */ (event).detail);
      root.append(line);
      while (root.children.length > 3) root.firstElementChild?.remove();
      setTimeout(() => line.remove(), STAY_MS);
    };
    room.addEventListener("say", show);
    return () => {
      isMounted = false;
      room.removeEventListener("say", show);
      root.remove();
    };
  },
};
