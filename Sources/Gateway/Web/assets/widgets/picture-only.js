// @ts-check

import { follow, h, icon } from "../dom.js";
import { letterOf } from "../keys.js";

/** Shortest vertical swipe, in CSS pixels; it must also be at least twice as long as its horizontal part. */
const FAR = 60;

/** Elements that handle touches themselves, such as buttons and lists. */
const CONTROLS = "a, button, form, input, select, dialog, .picture-panel, .comments, .parts, .movable";

/** Shows nothing but the picture: by a swipe up, the key p, or the button; a swipe down brings the rest back. */
export const pictureOnly = {
  name: "picture-only",
  layer: /** @type {const} */ ("lite"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const back = h("button.button.round#show-all", {
      type: "button", hidden: true, "aria-label": "Show everything", title: "Show everything (p)",
      onclick: () => room.showPictureOnly(false),
    }, icon("more"));
    layer.append(back);

    /** @type {{ id: number, x: number, y: number } | null} */
    let finger = null;
    /** @param {PointerEvent} event */
    const down = (event) => {
      const isOnControl = event.target instanceof Element && event.target.closest(CONTROLS) !== null;
      finger = event.isPrimary && event.pointerType !== "mouse" && !isOnControl
        ? { id: event.pointerId, x: event.clientX, y: event.clientY } : null;
    };
    /** @param {PointerEvent} event */
    const up = (event) => {
      if (finger?.id !== event.pointerId) return;
      const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
      finger = null;
      if (Math.abs(dy) >= FAR && Math.abs(dy) > 2 * Math.abs(dx)) room.showPictureOnly(dy < 0);
    };
    const lose = () => (finger = null);
    /** @param {KeyboardEvent} event */
    const key = (event) => {
      if (letterOf(event) === "p") room.showPictureOnly(!room.isPictureOnly);
    };
    addEventListener("pointerdown", down);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", lose);
    addEventListener("keydown", key);
    const unfollow = follow(room, () => {
      document.body.classList.toggle("picture-only", room.isPictureOnly);
      back.hidden = !room.isPictureOnly;
      const { activeElement } = document;
      // What had the focus is hidden with the rest, and the next key would begin at the top of the page.
      const isLost = activeElement !== null && !activeElement.checkVisibility();
      if (room.isPictureOnly && isLost) back.focus({ preventScroll: true });
    });
    return () => {
      unfollow();
      document.body.classList.remove("picture-only");
      removeEventListener("pointerdown", down);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", lose);
      removeEventListener("keydown", key);
      back.remove();
    };
  },
};
