// @ts-check

import { follow, h, icon } from "../dom.js";

/** @type {[import("../capture.js").SourceKind, string, string][]} */
const SOURCES = [
  ["camera", "camera", "Camera"], ["sound", "microphone", "Sound only"], ["screen", "screen", "Screen"],
  ["test", "test", "Test picture"],
];

/**
 * The choice between kinds of sources.
 * @param {import("../own-media.js").OwnMedia} own
 * @param {import("../capture.js").SourceKind[]} [kinds]
 */
export function sourceSegments(own, kinds = SOURCES.map(([kind]) => kind)) {
  const offered = SOURCES.filter(([kind]) => kinds.includes(kind));
  const radios = offered.map(([kind]) => h("input", {
    type: "radio", name: "source", value: kind, onchange: () => own.choose({ kind }),
  }));
  const element = h("fieldset.segments#sources", { "data-count": String(offered.length) }, h("legend", {}, "Source"),
    ...offered.map(([, symbol, label], index) => h("label", {}, radios[index], h("span", {}, icon(symbol), label))));
  const stop = follow(own, () => {
    for (const radio of radios) radio.checked = radio.value === own.kind;
  });
  return { element, stop };
}

/** The choice of what to send: camera, sound alone, a shared screen, or the test picture; also while live. */
export const sources = {
  name: "sources",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { element, stop } = sourceSegments(room.own);
    layer.append(element);
    return () => {
      stop();
      element.remove();
    };
  },
};
