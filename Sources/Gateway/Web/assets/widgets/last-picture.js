// @ts-check

import { h } from "../dom.js";

/** A small copy of the last picture, shown dimmed and blurred while there is no newer one. */
export const lastPicture = {
  name: "last-picture",
  layer: /** @type {const} */ ("background"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const canvas = h("canvas#last");
    layer.append(canvas);
    const keep = () => {
      const { video } = room.viewing;
      if (!video?.videoWidth) return;
      canvas.width = 320;
      canvas.height = Math.round(320 * video.videoHeight / video.videoWidth);
      canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
    };
    room.viewing.addEventListener("picture", keep);
    return () => {
      room.viewing.removeEventListener("picture", keep);
      canvas.remove();
    };
  },
};
