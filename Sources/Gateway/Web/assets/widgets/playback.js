// @ts-check

import { confirm } from "../dialog.js";
import { follow, formatDuration, h, icon, reconcile, setText } from "../dom.js";
import { Recordings, formatSize } from "../recordings.js";

/** @typedef {import("../room.js").Room} Room @typedef {import("../recordings.js").Recording} Recording */

/** After the end: plays what was recorded, one part after the other. */
export const playback = {
  name: "playback",
  layer: /** @type {const} */ ("player"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const recordings = new Recordings(room);
    const words = h("p.muted", {}, "The stream has ended. This is what was recorded.");
    const video = h("video#playback", {
      controls: true, playsInline: true, preload: "metadata", "aria-label": "Recording",
    });
    const list = h("ul.parts", { "aria-label": "Recordings" });
    const root = h("section.playback", { hidden: true, "aria-label": "Recording" }, words, video, list);
    layer.append(root);
    /** What is in the player. */
    let current = "";
    /** @param {Recording | undefined} recording @param {boolean} [isWanted] whether somebody waits for it */
    const choose = (recording, isWanted = false) => {
      current = recording?.id ?? "";
      if (recording) video.src = recordings.address(recording);
      else {
        video.pause();
        video.removeAttribute("src");
      }
      if (recording && isWanted) video.play().catch(() => {});
      show();
    };
    const show = () => {
      const entries = recordings.list.map((each) => /** @type {[string, Recording]} */ ([each.id, each]));
      root.hidden = !entries.length;
      document.body.classList.toggle("playback", entries.length > 0);
      // One needs no choice.
      list.classList.toggle("single", entries.length < 2);
      reconcile(list, entries, (id) => part(() => choose(recordings.list.find((each) => each.id === id), true)));
      for (const [index, item] of [...list.children].entries()) item.mark(index, entries.length, current);
    };
    video.addEventListener("ended", () => {
      const next = recordings.list.findIndex(({ id }) => id === current) + 1;
      if (next < recordings.list.length) choose(recordings.list[next], true);
    });
    recordings.addEventListener("change", () => {
      const isThere = recordings.list.some(({ id }) => id === current);
      if (isThere) show();
      else choose(recordings.list[0]);
    });
    const unfollow = follow(room, () => recordings.update());
    return () => {
      unfollow();
      recordings.close();
      document.body.classList.remove("playback");
      video.removeAttribute("src");
      root.remove();
    };
  },
};

/** @param {() => void} choose */
function part(choose) {
  const words = h("span");
  const about = h("span.muted");
  const button = h("button.button.small", { type: "button", onclick: choose }, words, about);
  const root = h("li", {}, button);
  let name = "";
  root.update = (/** @type {Recording} */ { duration, size }) => {
    name = formatDuration(duration * 1000);
    setText(about, `${name} · ${formatSize(size)}`);
  };
  root.mark = (/** @type {number} */ index, /** @type {number} */ count, /** @type {string} */ current) => {
    setText(words, count > 1 ? `Part ${index + 1}` : "");
    const isCurrent = root.dataset.key === current;
    if (isCurrent) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  };
  return root;
}

/** After the end, for the host: what was recorded, to be watched, taken home or thrown away. */
export const kept = {
  name: "kept-recordings",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const recordings = new Recordings(room);
    const list = h("ul", { "aria-label": "Recordings" });
    const watch = h("a.button#watch-recordings", { href: `/watch/${encodeURIComponent(room.stream)}` },
      icon("live"), h("span", {}, "Watch"));
    const root = h("section.card.kept#recordings", { "aria-label": "Recordings", hidden: true },
      h("h2", {}, "Recordings"), list, h("p.actions", {}, watch));
    layer.append(root);
    const show = () => {
      root.hidden = !recordings.list.length || !room.isHost;
      reconcile(list, recordings.list.map((each) => [each.id, each]), () => keptRow(room, recordings));
    };
    recordings.addEventListener("change", show);
    const unfollow = follow(room, () => {
      recordings.update();
      show();
    });
    return () => {
      unfollow();
      recordings.close();
      root.remove();
    };
  },
};

/** @param {Room} room @param {Recordings} recordings */
function keptRow(room, recordings) {
  const name = h("span.name", { dir: "auto" });
  const details = h("span.muted");
  const about = h("span.who", {}, name, details);
  const save = h("a.button.small", { download: "" }, "Download");
  const remove = h("button.button.small", { type: "button" }, "Delete");
  const root = h("li", {}, about, save, remove);
  root.update = (/** @type {Recording} */ recording) => {
    const words = `${formatDuration(recording.duration * 1000)} · ${formatSize(recording.size)}`;
    const day = new Date(recording.startedAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    setText(name, room.title);
    setText(details, `${day} · ${words}`);
    save.href = recordings.address(recording);
    save.setAttribute("aria-label", `Download ${words}`);
    remove.setAttribute("aria-label", `Delete ${words}`);
    remove.onclick = async () => {
      const isSure = await confirm({
        name: "delete-recording", title: "Delete this recording?", text: "Nobody can watch it any more.", yes: "Delete it",
      });
      if (isSure && await room.attempt(() => room.api.removeRecording(recording.id))) recordings.ask();
    };
  };
  return root;
}
