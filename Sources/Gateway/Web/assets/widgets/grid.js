// @ts-check

import { callName, follow, h, icon, initials, isolate, reconcile, setText } from "../dom.js";
import { manage } from "./manage.js";

/** @typedef {import("../room.js").Room} Room @typedef {import("../sync.js").Member} Member */

/** Suffix of an identity for the screen that this person shares. */
const SCREEN = "\u0000screen";

/** The host of the other stream in a duel, of whom only the name is known. @type {Member} */
const GUEST = {
  name: null, role: "host", since: "", present: true, audioMuted: false, videoMuted: false, paused: false, weakUplink: false,
};

/**
 * Everyone on stage, oneself first: picture or initials, name, and what is muted. Shared screens have their own tiles.
 */
export const grid = {
  name: "grid",
  layer: /** @type {const} */ ("player"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const list = h("ul.grid", { "aria-label": "On stage" });
    layer.append(list);
    const fit = () => {
      const { tile, large } = fitTiles(list.clientWidth, list.clientHeight, list.children.length, list.classList.contains("has-pin"));
      list.style.setProperty("--tile", `${tile}px`);
      list.style.setProperty("--large", `${large}px`);
    };
    const observer = new ResizeObserver(fit);
    observer.observe(list);
    const me = "\u0000me";
    const unfollow = follow(room, () => {
      const mine = room.isOnStage ? room.you?.id : undefined;
      const others = Object.entries(room.sync.known?.speakers ?? {})
        .filter(([id]) => id !== mine && room.info?.state !== "ended")
        .sort(([, a], [, b]) => Number(b.role === "host") - Number(a.role === "host") || a.since.localeCompare(b.since));
      const screens = others.filter(([id]) => room.stage?.pictureOf(id, true))
        .map(([id, member]) => /** @type {[string, Member]} */ ([id + SCREEN, member]));
      const guests = (room.stage?.guests(room.stream) ?? []).map(({ participant = "", name }) =>
        /** @type {[string, Member]} */ ([participant, { ...GUEST, name: name ?? null }]));
      /** @type {[string, Member | null][]} */
      const entries = [[me, null], ...screens, ...guests, ...others];
      const pinned = entries.find(([key, member]) => member && key === room.pinned);
      // The large tile comes first, also in the tab order.
      if (pinned) entries.unshift(...entries.splice(entries.indexOf(pinned), 1));
      list.dataset.count = String(Math.min(entries.length, 10));
      list.classList.toggle("has-pin", pinned !== undefined);
      room.stage?.pin(pinned ? pinned[0].split("\u0000")[0] : null);
      const focused = /** @type {HTMLElement | null} */ (document.activeElement);
      reconcile(list, entries, (key) => key === me ? ownTile(room) : tile(room, key));
      fit();
      // Elements that are moved lose the focus.
      if (focused !== document.activeElement && list.contains(focused)) focused?.focus({ preventScroll: true });
    });
    return () => {
      unfollow();
      observer.disconnect();
      list.remove();
    };
  },
};

/** Gap between tiles, in pixels; the same as in the style sheet. */
const GAP = 12;
/** Aspect ratio of a tile. */
const SHAPE = 16 / 9;

/**
 * How wide tiles can be so that all of them fit into a space, in pixels.
 * @param {number} width
 * @param {number} height
 * @param {number} count of all tiles
 * @param {boolean} hasLarge whether one is above the others, which then get a quarter of the height
 */
export function fitTiles(width, height, count, hasLarge = false) {
  if (hasLarge && count > 1) {
    const strip = Math.round(height / 4);
    const { tile } = fitTiles(width, strip, count - 1);
    return { tile, large: Math.floor(Math.min(width, (height - strip - GAP) * SHAPE)) };
  }
  let tile = 0;
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const wide = (width - GAP * (columns - 1)) / columns;
    const high = (height - GAP * (rows - 1)) / rows;
    tile = Math.max(tile, Math.floor(Math.min(wide, high * SHAPE)));
  }
  return { tile, large: tile };
}

/** @param {Room} room @param {string} key an identity, or that of a shared screen */
function tile(room, key) {
  const id = key.split("\u0000")[0];
  const isScreen = key !== id;
  const video = h("video", { autoplay: true, muted: true, playsInline: true, hidden: true });
  const face = h("span.face", { "aria-hidden": "true" });
  const name = h("span.who", { dir: "auto" });
  const audio = icon("microphone-off", "mark");
  const weak = icon("weak", "mark weak-uplink");
  const raised = h("span.chip", {}, "Host");
  const state = h("span.visually-hidden");
  const more = h("button.button.round.more", { type: "button", onclick: () => manage(room, id) }, icon("more"));
  const pin = h("button.button.round.pin", {
    type: "button", "aria-pressed": "false", onclick: () => room.pin(key),
  }, icon("pin"));
  const root = h("li.tile", isScreen ? { "data-screen-of": id } : { "data-participant": id }, face, video,
    h("p.plate", {}, audio, weak, name, raised, state), pin, more);
  root.classList.toggle("screen", isScreen);
  root.update = (/** @type {Member} */ member) => {
    const who = callName(id, member.name);
    const shown = isScreen ? `${isolate(who)}’s screen` : who;
    const media = member.videoMuted && !isScreen ? null : room.stage?.pictureOf(id, isScreen) ?? null;
    if (video.srcObject !== media) {
      video.srcObject = media;
      if (media) video.play().catch(() => {});
    }
    video.hidden = media === null;
    const isPinned = room.pinned === key;
    root.classList.toggle("pinned", isPinned);
    pin.setAttribute("aria-pressed", String(isPinned));
    // The label must not change with the state, which screen readers read as well.
    pin.setAttribute("aria-label", `Pin ${shown}`);
    pin.title = isPinned ? "Unpin" : "Pin";
    if (media) room.stage?.show(id, root.clientHeight * devicePixelRatio, isScreen);
    video.setAttribute("aria-label", shown);
    setText(face, initials(who));
    setText(name, shown);
    raised.hidden = member.role !== "host" || isScreen;
    audio.toggleAttribute("hidden", !member.audioMuted || isScreen);
    const isWeak = member.weakUplink && member.present;
    weak.toggleAttribute("hidden", !isWeak || isScreen);
    root.classList.toggle("away", !member.present || member.paused);
    root.dataset.audioMuted = String(member.audioMuted);
    root.dataset.videoMuted = String(member.videoMuted);
    const words = isScreen ? [] : [
      member.audioMuted ? "microphone off" : "", member.videoMuted ? "camera off" : "",
      member.paused ? "paused" : "", member.present ? "" : "reconnecting", isWeak ? "weak connection" : "",
    ].filter(Boolean);
    setText(state, words.length ? `, ${words.join(", ")}` : "");
    more.hidden = !room.isHost || member.role === "host" || isScreen;
    more.setAttribute("aria-label", `More options for ${shown}`);
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
    const isDark = media !== null && !own.hasPicture;
    placeholder.hidden = media !== null && !isDark;
    setText(words, isDark ? own.muted.video ? "Your picture is off" : "Others hear you and see your name"
      : own.isOpening ? "Starting…" : room.onAir.isOn ? "No picture" : "Your picture appears here");
    show.hidden = own.isOpening || isDark || own.problem !== null || room.state === "ended";
    setText(name, room.isOnStage ? "You" : "");
    audio.toggleAttribute("hidden", !own.muted.audio);
    plate.hidden = !room.isOnStage && !own.muted.audio;
  };
  return root;
}
