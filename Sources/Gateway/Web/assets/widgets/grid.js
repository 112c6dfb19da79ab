// @ts-check

import { follow, h, icon, initials, reconcile, setText } from "../dom.js";
import { manage } from "./manage.js";

/** @typedef {import("../room.js").Room} Room @typedef {import("../sync.js").Member} Member */

/** Everybody on stage, oneself first: picture or initials, name, and what is off. */
export const grid = {
  name: "grid",
  layer: /** @type {const} */ ("player"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const list = h("ul.grid", { "aria-label": "On stage" });
    layer.append(list);
    const me = "\u0000me";
    const unfollow = follow(room, () => {
      const mine = room.isOnStage ? room.you?.id : undefined;
      const others = Object.entries(room.sync.known?.speakers ?? {})
        .filter(([id]) => id !== mine && room.info?.state !== "ended")
        .sort(([, a], [, b]) => Number(b.role === "host") - Number(a.role === "host") || a.since.localeCompare(b.since));
      /** @type {[string, Member | null][]} */
      const entries = [[me, null], ...others];
      list.dataset.count = String(Math.min(entries.length, 10));
      reconcile(list, entries, (key) => key === me ? ownTile(room) : tile(room, key));
    });
    return () => {
      unfollow();
      list.remove();
    };
  },
};

/** @param {Room} room @param {string} id */
function tile(room, id) {
  const video = h("video", { autoplay: true, muted: true, playsInline: true, hidden: true });
  const face = h("span.face", { "aria-hidden": "true" });
  const name = h("span.who");
  const audio = icon("microphone-off", "mark");
  const raised = h("span.chip", {}, "Host");
  const state = h("span.visually-hidden");
  const more = h("button.button.round.more", { type: "button", onclick: () => manage(room, id) }, icon("more"));
  const root = h("li.tile", { "data-participant": id }, face, video,
    h("p.plate", {}, audio, name, raised, state), more);
  root.update = (/** @type {Member} */ member) => {
    const shown = member.name || id;
    const media = member.videoMuted ? null : room.stage?.pictureOf(id) ?? null;
    if (video.srcObject !== media) {
      video.srcObject = media;
      if (media) video.play().catch(() => {});
    }
    video.hidden = media === null;
    if (media) room.stage?.show(id, root.clientHeight * devicePixelRatio);
    video.setAttribute("aria-label", shown);
    setText(face, initials(shown));
    setText(name, shown);
    raised.hidden = member.role !== "host";
    audio.toggleAttribute("hidden", !member.audioMuted);
    root.classList.toggle("away", !member.present || member.paused);
    root.dataset.audioMuted = String(member.audioMuted);
    const words = [
      member.audioMuted ? "microphone off" : "", member.videoMuted ? "camera off" : "",
      member.paused ? "paused" : "", member.present ? "" : "reconnecting",
    ].filter(Boolean);
    setText(state, words.length ? `, ${words.join(", ")}` : "");
    more.hidden = !room.isHost || member.role === "host";
    more.setAttribute("aria-label", `More about ${shown}`);
  };
  return root;
}

/** @param {Room} room */
function ownTile(room) {
  const { own } = room;
  const video = h("video#preview", { autoplay: true, muted: true, playsInline: true, "aria-label": "Your picture" });
  const words = h("p#placeholder-text");
  const show = h("button.button#show-preview", { type: "button", onclick: () => own.open() }, "Show preview");
  const placeholder = h("div.placeholder#placeholder", {}, icon("camera"), words, show);
  const audio = icon("microphone-off", "mark");
  const name = h("span.who");
  const plate = h("p.plate", {}, audio, name);
  const root = h("li.tile.own", {}, video, placeholder, plate);
  root.update = () => {
    const media = own.source?.media ?? null;
    if (video.srcObject !== media) video.srcObject = media;
    video.classList.toggle("mirrored", own.source?.kind === "camera");
    const isDark = own.muted.video && media !== null;
    placeholder.hidden = media !== null && !isDark;
    setText(words, isDark ? "Your picture is off"
      : own.isOpening ? "Starting…" : room.onAir.isOn ? "No picture" : "Your picture shows here");
    show.hidden = own.isOpening || isDark || own.problem !== null || room.state === "ended";
    setText(name, room.isOnStage ? "You" : "");
    audio.toggleAttribute("hidden", !own.muted.audio);
    plate.hidden = !room.isOnStage && !own.muted.audio;
  };
  return root;
}
