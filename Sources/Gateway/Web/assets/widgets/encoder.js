// @ts-check

import { copyFrom, follow, h, icon } from "../dom.js";
import { aboutServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */

/** What OBS and others by RTMP are told: the server's address, and a key of whoever looks. */
export const encoder = {
  name: "encoder",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    /** @param {string} id @param {string} words @param {string} type */
    const field = (id, words, type) => {
      const input = h(`input#${id}`, { type, readOnly: true, autocomplete: "off", onfocus: () => input.select() });
      const copy = h(`button.button#copy-${id}`, { type: "button", onclick: () => copyFrom(copy, input.value) },
        icon("link"), h("span", {}, "Copy"));
      return { input, element: h("div.field", {}, h("label", { for: id }, words), h("div.row", {}, input, copy)) };
    };
    const server = field("encoder-server", "Server", "text");
    // Others may see this screen.
    const key = field("encoder-key", "Stream key, which is a password", "password");
    const root = h("details.card.share.settings#encoder", { hidden: true }, h("summary", {}, "Encoder (OBS and others)"),
      h("div.fields", {}, server.element, key.element,
        h("p.muted", {}, "H.264 without B-frames (x264: tune zerolatency), a key frame every 2 seconds, and AAC.")));
    layer.append(root);

    let isOn = false;
    let isAsking = false;
    const show = () => { root.hidden = !isOn || !room.isHost || room.isOver || room.isOut; };
    /** A key is made when somebody looks, and again when they look again: the one before may have been revoked. */
    const ask = async () => {
      if (!root.open || isAsking) return;
      isAsking = true;
      const answer = await room.attempt(() => room.api.showIngest());
      isAsking = false;
      server.input.value = answer?.rtmp?.server ?? "";
      key.input.value = answer?.rtmp?.key ?? "";
    };
    root.addEventListener("toggle", ask);
    aboutServer().then(({ rtmp }) => {
      isOn = rtmp;
      show();
    });
    const unfollow = follow(room, show);
    return () => {
      unfollow();
      root.remove();
    };
  },
};
