// @ts-check

import { follow, formatDuration, h, icon, setText } from "../dom.js";
import { endForAll } from "./desk.js";
import { editStream, openBackstage } from "./stream-settings.js";

/** Before the stream: open and close the backstage, see who is waiting and how long until the start. Later: its settings. */
export const schedule = {
  name: "schedule",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const countdown = h("p.countdown", { role: "timer" });
    const words = h("p.muted", { role: "status" });
    const open = h("button.button#open-backstage", { type: "button", onclick: () => openBackstage(room) },
      icon("clock"), h("span", {}, "Open the backstage…"));
    const edit = h("button.button#edit-stream", { type: "button", onclick: () => editStream(room) },
      icon("settings"), h("span", {}, "Stream settings…"));
    const close = h("button.button.danger#close-backstage", { type: "button", onclick: () => endForAll(room) },
      icon("stop"), h("span", {}, "Close the backstage…"));
    const root = h("div.card.schedule#schedule", { hidden: true }, countdown, words, h("p.actions", {}, open, edit, close));
    layer.append(root);

    const showCountdown = () => {
      const startsAt = room.info?.state === "backstage" && room.info.startsAt;
      countdown.hidden = !startsAt;
      if (!startsAt) return;
      const left = Date.parse(startsAt) - Date.now();
      setText(countdown, left > 0 ? `Starts in ${formatDuration(left + 999)}` : "Time to start");
    };
    const unfollow = follow(room, () => {
      const { info, onAir } = room;
      const isBackstage = info?.state === "backstage";
      const mayMake = room.isHost && !onAir.isOn && (!info || info.state === "waiting");
      const wasUsed = root.contains(document.activeElement);
      root.hidden = !mayMake && !(room.isHost && room.isOpen);
      open.hidden = !mayMake;
      edit.hidden = mayMake;
      close.hidden = !isBackstage;
      // What had the focus is gone.
      if (wasUsed && root.hidden) document.querySelector("main")?.focus({ preventScroll: true });
      words.hidden = !mayMake && !isBackstage;
      setText(words, isBackstage ? waiting(room) : "Meet your speakers first, then go live when you’re ready.");
      showCountdown();
    });
    room.addEventListener("second", showCountdown);
    return () => {
      unfollow();
      room.removeEventListener("second", showCountdown);
      root.remove();
    };
  },
};

/** @param {import("../room.js").Room} room */
function waiting(room) {
  const count = room.sync.known?.counts.waiting ?? 0;
  const doors = room.info?.doorsOpen ? "The doors are open. Viewers can join." : "Only you and your speakers are here.";
  return count === 0 ? doors : `${doors} ${count === 1 ? "1 person is waiting." : `${count} people are waiting.`}`;
}
