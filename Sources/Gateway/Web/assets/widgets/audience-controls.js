// @ts-check

import { follow, h, icon, setText } from "../dom.js";
import { letterOf } from "../keys.js";
import { shareLink } from "../sharing.js";

/** Controls fade this long after the last movement, in milliseconds. */
const FADE_MS = 3000;

/** Sound, sharing and full screen, with the keys m and f. They fade with the rest while there is no input. */
export const audienceControls = {
  name: "audience-controls",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { viewing } = room;
    const unmuteText = h("span");
    const unmute = h("button.button.sound#unmute", {
      type: "button", hidden: true, onclick: () => {
        if (viewing.video) viewing.video.muted = true;
        viewing.toggleSound();
      },
    }, icon("sound-off"), unmuteText);
    const mute = h("button.button.round#mute", {
      type: "button", "aria-pressed": "true", "aria-label": "Muted", title: "Sound on or off (m)",
      onclick: () => viewing.toggleSound(),
    }, icon("sound", "off"), icon("sound-off", "on"));
    const share = h("button.button.round#copy", {
      type: "button", "aria-label": "Share", title: "Share",
      // Without the token, which is for one person.
      onclick: () => shareLink({ title: room.title, url: location.href.split(/[?#]/)[0] }, (text) => room.say(text)),
    }, icon("share"));
    const full = h("button.button.round#full", {
      type: "button", "aria-label": "Full screen", title: "Full screen (f)",
      onclick: () => toggleFullScreen(viewing.video),
    }, icon("full"));
    const root = h("div.controls-row", {}, mute, h("span.space"), share, full);
    layer.append(unmute, root);

    const unfollow = follow(room, () => {
      const isMuted = viewing.video?.muted ?? true;
      unmute.hidden = viewing.state !== "live" || !(isMuted || viewing.isBlocked);
      setText(unmuteText, viewing.isBlocked ? "Tap to play" : "Tap for sound");
      mute.setAttribute("aria-pressed", String(isMuted));
    });
    const unlisten = listen({ m: () => viewing.toggleSound(), f: () => toggleFullScreen(viewing.video) });
    return () => {
      unlisten();
      unfollow();
      unmute.remove();
      root.remove();
    };
  },
};

/** @param {HTMLVideoElement | null} video */
async function toggleFullScreen(video) {
  try {
    if (document.fullscreenElement) await document.exitFullscreen();
    else if (document.documentElement.requestFullscreen) await document.documentElement.requestFullscreen();
    // On iPhones only a video can fill the screen.
    else /** @type {any} */ (video)?.webkitEnterFullscreen?.();
  } catch {
    // The browser does not allow it, or there is no picture yet.
  }
}

/**
 * Keys, and fading.
 * @param {Record<string, () => void>} actions
 */
function listen(actions) {
  /** @type {number | undefined} */
  let fading;
  const wake = () => {
    document.body.classList.remove("still");
    clearTimeout(fading);
    fading = setTimeout(() => document.body.classList.add("still"), FADE_MS);
  };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    wake();
    const letter = letterOf(event);
    if (letter !== null && Object.hasOwn(actions, letter)) actions[letter]();
  };
  addEventListener("keydown", key);
  for (const event of ["pointermove", "pointerdown"]) addEventListener(event, wake);
  wake();
  return () => {
    clearTimeout(fading);
    document.body.classList.remove("still");
    removeEventListener("keydown", key);
    for (const event of ["pointermove", "pointerdown"]) removeEventListener(event, wake);
  };
}
