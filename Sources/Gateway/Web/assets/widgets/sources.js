// @ts-check

import { follow, h, icon } from "../dom.js";

const SOURCES = /** @type {const} */ ([
  ["camera", "camera", "Camera"], ["screen", "screen", "Screen"], ["test", "test", "Test picture"],
]);

/** What one sends: camera, a shared screen, or the test picture; changes while live. */
export const sources = {
  name: "sources",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { own } = room;
    const radios = SOURCES.map(([kind]) => h("input", {
      type: "radio", name: "source", value: kind, onchange: () => own.choose({ kind }),
    }));
    const root = h("fieldset.segments#sources", {}, h("legend", {}, "Source"), ...SOURCES.map(
      ([, symbol, label], index) => h("label", {}, radios[index], h("span", {}, icon(symbol), label))));
    layer.append(root);
    const unfollow = follow(own, () => {
      for (const radio of radios) radio.checked = radio.value === own.kind;
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};
