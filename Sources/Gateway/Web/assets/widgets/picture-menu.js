// @ts-check

import { follow, h, icon } from "../dom.js";
import { letterSwitch } from "../keys.js";
import { pictureRadios, weakLinkSign, wordsForWeakness } from "../picture-choice.js";
import { makeClipper } from "./clipper.js";

/** Lets a viewer choose the picture quality, shows when the connection is too slow for it, and makes clips. */
export const pictureMenu = {
  name: "picture-menu",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { viewing } = room;
    const alone = h("button.button.small#picture-only", {
      type: "button",
      onclick: () => {
        show(false);
        room.showPictureOnly(true);
      },
    }, "Show picture only");
    const radios = pictureRadios(viewing.choice);
    const clips = makeClipper(room);
    const panel = h("div.picture-panel#picture-panel", { hidden: true },
      radios, letterSwitch("m sound, f full screen, p picture only, n stats"), clips.root, alone);
    const button = h("button.button.round#picture", {
      type: "button", "aria-expanded": "false", "aria-controls": "picture-panel", "aria-label": "Picture quality",
      title: "Picture quality", onclick: () => show(panel.hidden),
    }, icon("settings"));
    const sign = weakLinkSign();
    layer.append(panel, button, sign);

    /** @param {boolean} isShown */
    const show = (isShown) => {
      panel.hidden = !isShown;
      button.setAttribute("aria-expanded", String(isShown));
      if (isShown) panel.querySelector("input:checked")?.focus();
    };
    /** @param {Event} event */
    const leave = (event) => {
      const target = /** @type {Node} */ (event.target);
      if (!panel.hidden && !panel.contains(target) && !button.contains(target)) show(false);
    };
    /** @param {KeyboardEvent} event */
    const key = (event) => {
      if (event.key !== "Escape" || panel.hidden) return;
      show(false);
      button.focus();
    };
    addEventListener("pointerdown", leave);
    addEventListener("keydown", key);
    const unfollow = follow(viewing, () => {
      const { state } = viewing;
      button.hidden = !["live", "paused", "reconnecting"].includes(state);
      if (button.hidden) show(false);
      sign.say(state === "live" ? wordsForWeakness(viewing.weakness) : null);
    });
    return () => {
      unfollow();
      clips.stop();
      removeEventListener("pointerdown", leave);
      removeEventListener("keydown", key);
      for (const part of [panel, button, sign]) part.remove();
    };
  },
};
