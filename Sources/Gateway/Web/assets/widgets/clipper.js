// @ts-check

import { follow, formatDuration, h, icon, setText } from "../dom.js";
import { formatSize } from "../recordings.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room @typedef {import("../recordings.js").Recording} Recording */

/** How often to ask whether a clip is complete, and for how long. */
const PAUSE_MS = 500;
const LIMIT_MS = 300_000;
/** Most clips listed here; after the end of the stream, all are listed. */
const MOST = 5;

/** Makes clips in the studio; for viewers, this is next to the picture quality. */
export const clipper = {
  name: "clipper",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { root, stop } = makeClipper(room);
    layer.append(root);
    return stop;
  },
};

/**
 * The button that clips the last half minute, for those who may, and the clips made with it.
 * @param {Room} room
 */
export function makeClipper(room) {
  const words = h("span", {}, "Clip the last 30 seconds");
  const list = h("ul", { "aria-label": "Clips" });
  let isMounted = true;
  let isOffered = false;
  // Not `disabled`: that would take the focus away.
  let isMaking = false;
  const button = h("button.button.clip#clip", {
    type: "button", onclick: async () => {
      if (isMaking) return;
      isMaking = true;
      button.setAttribute("aria-busy", "true");
      setText(words, "Making a clip…");
      const clip = await room.attempt(async () => {
        // Viewers without a token get one.
        await room.identify(false);
        return make(room, () => isMounted);
      });
      isMaking = false;
      button.removeAttribute("aria-busy");
      setText(words, "Clip the last 30 seconds");
      if (!isMounted || clip === null) return;
      if (!clip) return room.say("The clip couldn’t be made. Try again in a moment.");
      list.prepend(row(room, clip));
      while (list.children.length > MOST) list.lastElementChild?.remove();
      room.say("The clip is ready.");
    },
  }, icon("clip"), words);
  const root = h("div.clipper", { hidden: true }, button, list);
  const update = () => {
    const mayClip = room.you?.mayModerate || room.info?.clips === "everybody";
    root.hidden = !isOffered || !mayClip || room.info?.state !== "live" || room.info.clips === "off";
  };
  toldByServer().then(({ clips }) => {
    isOffered = clips;
    update();
  });
  const unfollow = follow(room, update);
  return {
    root,
    stop() {
      isMounted = false;
      unfollow();
      root.remove();
    },
  };
}

/**
 * @param {Room} room
 * @param {() => boolean} isWanted
 * @returns {Promise<Recording | undefined>} the complete clip; undefined if it failed
 */
async function make(room, isWanted) {
  const { id } = await room.api.makeClip();
  const end = performance.now() + LIMIT_MS;
  while (isWanted() && performance.now() < end) {
    await new Promise((done) => setTimeout(done, PAUSE_MS));
    const clip = await room.api.recording(id).catch((error) => (error?.rule === "unknown-recording" ? null : undefined));
    if (clip === null) return undefined;
    if (clip?.state === "ended") return clip;
  }
  return undefined;
}

/** @param {Room} room @param {Recording} clip */
function row(room, { url, duration, size }) {
  const length = formatDuration(duration * 1000);
  /** @param {Record<string, string>} properties @param {string} words */
  const link = (properties, words) => {
    const label = `${words} the ${length} clip`;
    const element = h("a.button.small", { ...properties, "aria-label": label }, words);
    const locate = () => (element.href = room.addressOf(url ?? ""));
    locate();
    // The token in the address may have been replaced since, and have expired.
    element.onclick = locate;
    return element;
  };
  return h("li", {},
    h("span.who", {}, `${length} · ${formatSize(size)}`),
    link({ target: "_blank", rel: "noopener" }, "Watch"), link({ download: "" }, "Download"));
}
