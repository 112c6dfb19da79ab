// @ts-check

import { copyFrom, follow, h, icon } from "../dom.js";

/** The link for viewers. */
export const share = {
  name: "share",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const address = new URL(`/watch/${encodeURIComponent(room.stream)}`, location.href).href;
    const link = h("input#link", { readOnly: true, value: address, onfocus: () => link.select() });
    const copy = h("button.button#copy", { type: "button", onclick: () => copyFrom(copy, address) },
      icon("link"), h("span", {}, "Copy"));
    const root = h("div.card.share#share", { hidden: true },
      h("label", { for: "link" }, "Anyone with this link can watch"), h("div.row", {}, link, copy));
    layer.append(root);
    const unfollow = follow(room, () => {
      root.hidden = !room.onAir.isOn && !(room.isOpen && room.isOnStage);
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};
