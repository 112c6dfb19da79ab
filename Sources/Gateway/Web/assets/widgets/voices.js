// @ts-check

import { h } from "../dom.js";

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
    // Sound may play once a button was pressed, which after a reload has not happened yet.
    const play = () => {
      for (const audio of root.querySelectorAll("audio")) {
        audio.play().catch(() => addEventListener("pointerdown", play, { once: true }));
      }
    };
    room.addEventListener("change", update);
    update();
    return () => {
      room.removeEventListener("change", update);
      removeEventListener("pointerdown", play);
      for (const audio of root.querySelectorAll("audio")) audio.srcObject = null;
      root.remove();
    };
  },
};
