// @ts-check

import { follow, h, icon, setText } from "../dom.js";
import { letterOf } from "../keys.js";
import { makeMovable } from "../movable.js";
import { formatBitrate, formatMilliseconds, formatPicture } from "../stats.js";
import { readTimeCode, timeCodeAge } from "../timecode.js";

/** A longer delay, in milliseconds, means that the other clock differs from ours. */
const OLDEST_MS = 5000;

/** Statistics of playback, in a movable window opened by a button or the key n. */
export const numbers = {
  name: "numbers",
  layer: /** @type {const} */ ("movable"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { viewing } = room;
    const fields = /** @type {Record<string, HTMLElement>} */ ({});
    for (const id of ["bitrate", "round-trip", "picture", "codec", "buffer", "lost", "latency"]) {
      fields[id] = h(`dd#${id}`, {}, "–");
    }
    const latency = h("div.wide#latency-row", { hidden: true }, h("dt", {}, "Glass to glass"), fields.latency);
    const list = h("dl.numbers", {},
      row("Bitrate", fields.bitrate), row("Round trip", fields["round-trip"]), row("Picture", fields.picture),
      row("Codec", fields.codec), row("Buffer", fields.buffer), row("Packets lost", fields.lost), latency);
    const handle = h("button.handle", {
      type: "button", "aria-label": "Move the stats with the arrow keys", title: "Move",
    }, icon("move"));
    const panel = h("section.movable#numbers", { hidden: true, "aria-label": "Stats" }, handle, list);
    const toggle = h("button.button.round#show-numbers", {
      type: "button", "aria-expanded": "false", "aria-controls": "numbers", "aria-label": "Stats",
      title: "Stats (n)", onclick: () => show(panel.hidden),
    }, icon("numbers"));
    layer.append(panel, toggle);
    const unmove = makeMovable(panel, handle);

    /** @param {boolean} isShown */
    const show = (isShown) => {
      panel.hidden = !isShown;
      toggle.setAttribute("aria-expanded", String(isShown));
    };
    /** @param {KeyboardEvent} event */
    const key = (event) => {
      if (letterOf(event) === "n") show(panel.hidden);
    };
    addEventListener("keydown", key);
    const unfollow = follow(viewing, () => {
      const read = viewing.numbers;
      toggle.hidden = !["live", "paused", "reconnecting"].includes(viewing.state);
      if (panel.hidden || !read) return;
      setText(fields.bitrate, formatBitrate(read.bitrate));
      setText(fields["round-trip"], formatMilliseconds(read.roundTrip));
      setText(fields.picture, formatPicture(read));
      setText(fields.codec, read.codec ?? "–");
      setText(fields.buffer, formatMilliseconds(read.buffer));
      setText(fields.lost, String(viewing.lost));
      const code = viewing.video && readTimeCode(viewing.video);
      const age = code === null ? Infinity : timeCodeAge(code);
      latency.hidden = age > OLDEST_MS;
      setText(fields.latency, formatMilliseconds(age));
    });
    return () => {
      unfollow();
      unmove();
      removeEventListener("keydown", key);
      panel.remove();
      toggle.remove();
    };
  },
};

/** @param {string} label @param {HTMLElement} value */
function row(label, value) {
  return h("div", {}, h("dt", {}, label), value);
}
