// @ts-check

import { confirm } from "../dialog.js";
import { callName, follow, formatDuration, h, icon, reconcile, setText } from "../dom.js";
import { RecordedComments } from "../recorded-comments.js";
import { Recordings, formatSize, isClip } from "../recordings.js";
import { reloadAfterErrors } from "../reloading.js";

/** @typedef {import("../room.js").Room} Room @typedef {import("../recordings.js").Recording} Recording */

/** Most comments shown at once. */
const SHOWN = 4;

/** After the end of the stream, plays its recordings, one part after the other. */
export const playback = {
  name: "playback",
  layer: /** @type {const} */ ("player"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const recordings = new Recordings(room);
    const comments = new RecordedComments(room.api);
    const words = h("p.muted", {}, "The stream has ended. Here’s what was recorded.");
    const video = h("video#playback", {
      controls: true, playsInline: true, preload: "metadata", "aria-label": "Recording",
    });
    const spoken = h("ul.spoken", { "aria-label": "Comments at this time", hidden: true });
    const list = h("ul.parts", { "aria-label": "Recordings" });
    const root = h("section.playback", { hidden: true, "aria-label": "Recording" }, words, video, spoken, list);
    layer.append(root);
    /** The id of the recording in the player. */
    let current = "";
    /** Whether the viewer has chosen or played it. */
    let isWatched = false;
    const end = new AbortController();
    reloadAfterErrors(video, () => current, async () => {
      const id = current;
      // This request also replaces an expired token.
      await recordings.ask();
      const recording = recordings.list.find((each) => each.id === id);
      return recording ? recordings.address(recording) : null;
    }, end.signal);
    /** @param {Recording | undefined} recording @param {boolean} [isWanted] whether a person chose it */
    const choose = (recording, isWanted = false) => {
      current = recording?.id ?? "";
      comments.choose(current);
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
      // A single recording needs no choice.
      list.classList.toggle("single", entries.length < 2);
      reconcile(list, entries, (id) => part(() => {
        isWatched = true;
        choose(recordings.list.find((each) => each.id === id), true);
      }));
      const parts = recordings.list.filter((each) => !isClip(each)).length;
      for (const [index, item] of [...list.children].entries()) item.mark(index, parts, current);
    };
    video.addEventListener("play", () => (isWatched = true));
    // Also after seeking, and while paused.
    const speak = () => {
      spoken.hidden = !comments.list.length;
      const shown = comments.at(video.currentTime, SHOWN);
      reconcile(spoken, shown.map((each) => [String(each.number), each]), spokenRow);
    };
    for (const moment of ["timeupdate", "seeking", "seeked", "loadedmetadata"]) video.addEventListener(moment, speak);
    comments.addEventListener("change", speak);
    video.addEventListener("ended", () => {
      const next = recordings.after(current);
      if (next) choose(next, true);
    });
    recordings.addEventListener("change", () => {
      const isThere = recordings.list.some(({ id }) => id === current);
      if (!isThere) isWatched = false;
      // The first recording may be complete last.
      if (isWatched || isThere && current === recordings.list[0].id) show();
      else choose(recordings.list[0]);
    });
    const unfollow = follow(room, () => recordings.update());
    return () => {
      unfollow();
      end.abort();
      recordings.close();
      comments.choose("");
      document.body.classList.remove("playback");
      video.removeAttribute("src");
      root.remove();
    };
  },
};

function spokenRow() {
  const name = h("b", { dir: "auto" });
  const text = h("span", { dir: "auto" });
  const root = h("li", {}, name, text);
  root.update = (/** @type {import("../recorded-comments.js").RecordedComment} */ comment) => {
    setText(name, callName(comment.author, comment.name));
    setText(text, comment.text);
  };
  return root;
}

/** @param {() => void} choose */
function part(choose) {
  const words = h("span");
  const about = h("span.muted");
  const button = h("button.button.small", { type: "button", onclick: choose }, words, about);
  const root = h("li", {}, button);
  /** The name of a clip. @type {string | null} */
  let name = null;
  root.update = (/** @type {Recording} */ recording) => {
    name = isClip(recording) ? recording.title || "Clip" : null;
    setText(about, `${formatDuration(recording.duration * 1000)} · ${formatSize(recording.size)}`);
  };
  root.mark = (/** @type {number} */ index, /** @type {number} */ parts, /** @type {string} */ current) => {
    setText(words, name ?? (parts > 1 ? `Part ${index + 1}` : "Recording"));
    const isCurrent = root.dataset.key === current;
    if (isCurrent) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  };
  return root;
}

/** After the end, lists the recordings for the host to watch, download or delete. */
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
    setText(name, isClip(recording) ? recording.title || "Clip" : room.title);
    setText(details, `${day} · ${words}`);
    const locate = () => (save.href = recordings.address(recording));
    locate();
    // The token in the address may have been replaced since, and have expired.
    save.onclick = locate;
    save.setAttribute("aria-label", `Download ${words}`);
    remove.setAttribute("aria-label", `Delete ${words}`);
    remove.onclick = async () => {
      const isSure = await confirm({
        name: "delete-recording", title: isClip(recording) ? "Delete this clip?" : "Delete this recording?", text: "No one can watch it anymore.", yes: "Delete",
      });
      if (isSure && await room.attempt(() => room.api.removeRecording(recording.id))) recordings.ask();
    };
  };
  return root;
}
