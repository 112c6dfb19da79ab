// @ts-check

import { h } from "../dom.js";

/** The stream's programme, as large as it can be. */
export const programme = {
  name: "programme",
  layer: /** @type {const} */ ("player"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const video = h("video#video", { autoplay: true, muted: true, playsInline: true, "aria-label": "Live video" });
    layer.append(video);
    const changed = () => room.changed();
    video.addEventListener("volumechange", changed);
    room.viewing.attach(video);
    return () => {
      room.viewing.detach();
      video.srcObject = null;
      video.remove();
    };
  },
};
