// @ts-check

import { follow, h, setText } from "../dom.js";
import { formatBitrate, formatMilliseconds, formatPicture } from "../stats.js";

/** Statistics of what is sent. */
export const studioNumbers = {
  name: "studio-numbers",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const bitrate = h("dd#bitrate", {}, "–");
    const roundTrip = h("dd#round-trip", {}, "–");
    const picture = h("dd#picture", {}, "–");
    const codec = h("dd#codec", {}, "–");
    const root = h("dl.numbers#numbers", { hidden: true },
      h("div", {}, h("dt", {}, "Bitrate"), bitrate), h("div", {}, h("dt", {}, "Round trip"), roundTrip),
      h("div", {}, h("dt", {}, "Picture"), picture), h("div", {}, h("dt", {}, "Codec"), codec));
    layer.append(root);
    const unfollow = follow(room.onAir, () => {
      const { isOn, numbers } = room.onAir;
      root.hidden = !isOn;
      if (!numbers) return;
      setText(bitrate, formatBitrate(numbers.bitrate));
      setText(roundTrip, formatMilliseconds(numbers.roundTrip));
      setText(picture, formatPicture(numbers));
      setText(codec, numbers.codec ?? "–");
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};
