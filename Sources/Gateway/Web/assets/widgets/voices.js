// @ts-check

import { h } from "../dom.js";

/** What counts as a gesture to browsers, which play no sound before one: of touches only the end does. */
const GESTURES = ["pointerdown", "pointerup", "keydown", "click"];

/** Plays the voices of the others on stage. */
export const voices = {
  name: "voices",
  layer: /** @type {const} */ ("player"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const root = h("div", { hidden: true });
    layer.append(root);
    /** @type {MediaStream[]} */
    let playing = [];
    const update = () => {
      const wanted = room.stage?.voices ?? [];
      if (wanted.length === playing.length && wanted.every((media, index) => media === playing[index])) return;
      playing = [...wanted];
      root.replaceChildren(...playing.map((media) => h("audio", { autoplay: true, srcObject: media })));
      play();
    };
    const deafen = () => {
      for (const gesture of GESTURES) removeEventListener(gesture, play);
    };
    const play = async () => {
      const audios = [...root.querySelectorAll("audio")];
      const isPlaying = await Promise.all(audios.map((audio) => audio.play().then(() => true, () => false)));
      // After a reload nobody has touched the page yet.
      if (isPlaying.every(Boolean)) deafen();
      else if (root.isConnected) for (const gesture of GESTURES) addEventListener(gesture, play);
    };
    room.addEventListener("change", update);
    update();
    return () => {
      room.removeEventListener("change", update);
      for (const audio of root.querySelectorAll("audio")) audio.srcObject = null;
      root.remove();
      deafen();
    };
  },
};
