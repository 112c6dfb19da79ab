// @ts-check

import { ask } from "../dialog.js";
import { follow, h, icon, setText } from "../dom.js";
import { levelMeter } from "../level.js";
import { nameField } from "../person.js";
import { deviceFields } from "./devices.js";
import { sourceSegments } from "./sources.js";

/** @typedef {import("../room.js").Room} Room */

/** Before going on the air: the title of the stream, the person's name, and the level of the microphone. */
export const lobby = {
  name: "lobby",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const title = h("input#stream-title", {
      name: "title", dir: "auto", maxLength: 200, value: room.wishes.title ?? "",
      oninput: () => (room.wishes.title = title.value.trim() || null),
    });
    const name = nameField(room.naming.name);
    name.addEventListener("input", () => room.naming.choose(name.value));
    const level = levelMeter(room.own);
    const titleRow = h("label", {}, "Title", title);
    const nameRow = h("label", {}, "Your name", name);
    const root = h("div.card.lobby#lobby", { hidden: true }, h("div.fields", {}, titleRow, nameRow, level.element));
    layer.append(root);
    const unfollow = follow(room, () => {
      root.hidden = room.onAir.isOn || room.isOver || ["removed", "expired"].includes(room.state);
      titleRow.hidden = !room.isHost || room.isOpen;
      // The host of an existing stream already has a name.
      nameRow.hidden = room.isHost && room.isOpen;
      title.placeholder = room.naming.usualTitle;
    });
    return () => {
      unfollow();
      level.stop();
      root.remove();
    };
  },
};

/**
 * The same for an invited viewer: no one is on stage before they have seen themselves.
 * @param {Room} room
 * @param {AbortSignal} signal withdraws the question
 * @returns {Promise<boolean>} whether they want to be on stage now
 */
export async function preview(room, signal) {
  const { own } = room;
  const video = h("video#own-preview", { autoplay: true, muted: true, playsInline: true, "aria-label": "Your picture" });
  const words = h("p");
  const face = h("div.placeholder", {}, icon("camera"), words);
  const trouble = h("p.trouble", { role: "alert" });
  let isRetrying = false;
  const retry = h("button.button#lobby-retry", {
    type: "button", hidden: true, onclick: async () => {
      if (isRetrying) return;
      isRetrying = true;
      await own.open();
      isRetrying = false;
      show();
    },
  }, "Try again");
  const name = nameField(room.naming.name);
  const level = levelMeter(own);
  const sources = sourceSegments(own, ["camera", "sound", "test"]);
  const devices = deviceFields(own);
  const show = () => {
    const media = own.source?.media ?? null;
    if (video.srcObject !== media) video.srcObject = media;
    video.classList.toggle("mirrored", own.source?.kind === "camera");
    face.hidden = media !== null && own.hasPicture;
    setText(words, own.isOpening ? "Starting…" : own.source ? "Sound only" : "No picture");
    setText(trouble, own.problem ? `${own.problem.title}. ${own.problem.text}` : own.source?.notice ?? "");
    // It stays while it is at work, and keeps the focus.
    retry.hidden = !own.problem?.canRetry && !isRetrying;
    retry.setAttribute("aria-disabled", String(isRetrying));
  };
  const unfollow = follow(own, show);
  if (!own.source) own.open();
  const answer = await ask({
    name: "lobby",
    title: "Ready to go on stage?",
    body: [
      h("div.mirror", {}, video, face), trouble, retry, level.element, sources.element,
      h("div.fields", {}, h("label", {}, "Your name", name), ...devices.fields),
    ],
    choices: [{ value: "enter", label: "Go on stage", look: "primary" }, { value: "no", label: "Not now" }],
    isReady: true,
    signal,
  });
  unfollow();
  for (const part of [level, sources, devices]) part.stop();
  video.srcObject = null;
  const isWanted = answer === "enter" && !signal.aborted;
  if (isWanted) room.naming.choose(name.value);
  return isWanted;
}
