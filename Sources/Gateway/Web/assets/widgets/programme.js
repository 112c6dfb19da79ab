// @ts-check

import { follow, h, initials, setText } from "../dom.js";

/** The programme of the stream, as large as possible; without a picture, the name of its host. */
export const programme = {
  name: "programme",
  layer: /** @type {const} */ ("player"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const video = h("video#video", { autoplay: true, muted: true, playsInline: true, "aria-label": "Live video" });
    layer.append(video);
    const changed = () => room.changed();
    video.addEventListener("volumechange", changed);
    const face = h("span.face", { "aria-hidden": "true" });
    const who = h("p", { dir: "auto" });
    const card = h("div.sound-only#sound-only", { hidden: true }, face, who);
    layer.append(card);
    const unfollow = follow(room, () => {
      card.hidden = room.viewing.state !== "live" || video.videoWidth > 0;
      const name = room.info?.hostName || room.title;
      setText(face, initials(name));
      setText(who, name);
    });
    video.addEventListener("resize", changed);
    room.viewing.attach(video);
    return () => {
      unfollow();
      card.remove();
      room.viewing.detach();
      video.srcObject = null;
      video.remove();
    };
  },
};
