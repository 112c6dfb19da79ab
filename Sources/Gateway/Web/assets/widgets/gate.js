// @ts-check

import { FreePill } from "../gate.js";
import { follow } from "../dom.js";

/** The rest of the free preview of a stream that requires a tier; the status says what follows. */
export const gate = {
  name: "gate",
  layer: /** @type {const} */ ("lite"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const pill = new FreePill();
    pill.element.id = "free";
    layer.append(pill.element);
    const show = () => pill.update(room.viewing.state === "live" ? room.viewing.gate : null);
    const unfollow = follow(room, show);
    room.addEventListener("second", show);
    return () => {
      unfollow();
      room.removeEventListener("second", show);
      pill.element.remove();
    };
  },
};
