// @ts-check

import { follow, formatDuration, h, icon, setText } from "../dom.js";
import { editStream, openBackstage } from "./stream-settings.js";

/** Before the stream: open the backstage, see who is waiting and how long until the start. Later: its settings. */
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
    const root = h("div.card.schedule#schedule", { hidden: true }, countdown, words, h("p.actions", {}, open, edit));
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
      root.hidden = !mayMake && !(room.isHost && room.isOpen);
      open.hidden = !mayMake;
      edit.hidden = mayMake;
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
