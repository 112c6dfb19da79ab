// @ts-check

import { h, icon, setText } from "../dom.js";
import { QualityJudge } from "../quality.js";

/** Warns if the connection or device affects the picture of this person, or what others get. */
export const warning = {
  name: "warning",
  layer: /** @type {const} */ ("lite"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const words = h("span");
    const root = h("p.warning#warning", { role: "status", hidden: true }, icon("warning"), words);
    layer.append(root);
    const judge = new QualityJudge();
    /** @type {unknown} */
    let last = null;
    const look = () => {
      const numbers = room.numbers;
      if (!numbers) judge.reset();
      if (numbers === last) return;
      last = numbers;
      const trouble = numbers ? judge.judge(numbers) : null;
      root.hidden = trouble === null;
      setText(words, trouble ?? "");
    };
    room.addEventListener("second", look);
    return () => {
      room.removeEventListener("second", look);
      root.remove();
    };
  },
};
