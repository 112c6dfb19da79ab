// @ts-check

import { follow, formatDuration, formatViewers, h, setText } from "../dom.js";

/** After the end, for people who were on stage: the duration, and the number of viewers. */
export const summary = {
  name: "summary",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const title = h("h2", { dir: "auto" });
    const words = h("p.muted");
    const root = h("section.card.summary#summary", { "aria-label": "Summary", hidden: true }, title, words);
    layer.append(root);
    const unfollow = follow(room, () => {
      const { info } = room;
      const startedAt = info?.startedAt ? Date.parse(info.startedAt) : NaN;
      const endedAt = info?.endedAt ? Date.parse(info.endedAt) : NaN;
      const isKnown = info?.state === "ended" && endedAt >= startedAt;
      root.hidden = !isKnown || room.isOut;
      if (!isKnown) return;
      setText(title, room.title);
      const day = new Date(startedAt).toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" });
      const most = room.mostViewers === null ? "" : `, up to ${formatViewers(room.mostViewers)} at once`;
      setText(words, `${day}. Live for ${formatDuration(endedAt - startedAt)}${most}.`);
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};
