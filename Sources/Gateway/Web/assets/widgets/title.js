// @ts-check

import { follow, formatDuration, formatViewers, h, icon, setText } from "../dom.js";
import { DELAYED_HINT, wordsForDelay } from "../fallback.js";
import { openPeople } from "../ranks.js";
import { partOf } from "./talk.js";

/** @typedef {import("../room.js").Room} Room */

const BADGES = /** @type {Record<string, string>} */ ({
  live: "Live", "off air": "Off air", backstage: "Backstage", starting: "Starting", reconnecting: "Reconnecting", paused: "Paused",
});

/** The title of the stream, its host, its state, how long it has been live, and the number of viewers. */
export const title = {
  name: "title",
  layer: /** @type {const} */ ("lite"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const name = h("h1.stream-name#name", { dir: "auto" });
    const by = h("p.by", { dir: "auto", hidden: true });
    const badge = h("span.badge#badge", { hidden: true });
    const delayed = h("span.chip#delayed", { hidden: true, title: DELAYED_HINT });
    const time = h("span.chip#time", { hidden: true, title: "Time live" });
    const count = h("span.chip");
    const viewers = h("button.chip-button#viewers", {
      type: "button", hidden: true, title: "Who’s here", onclick: () => openPeople(partOf(room), "here"),
    }, count);
    const recording = h("span.chip.recording#recording", { hidden: true, title: "This stream is being recorded" },
      "Rec", h("span.visually-hidden", {}, "ording"));
    const root = h("div.title-bar", {},
      wayOut(room),
      h("div.who", {}, name, by), badge, delayed, recording, time, viewers);
    layer.append(root);

    const showTime = () => {
      const { info, onAir, view } = room;
      const startedAt = info?.state === "live" && info.startedAt ? Date.parse(info.startedAt) : null;
      const since = view === "studio" && onAir.isOn && info?.state !== "backstage" ? startedAt ?? onAir.since : startedAt;
      time.hidden = since === null || room.state === "ended" || ["removed", "expired"].includes(room.state);
      if (since !== null) setText(time, formatDuration(Date.now() - since));
    };
    const unfollow = follow(room, () => {
      const { state, info } = room;
      setText(name, room.title);
      // Without a title, the host's name is shown in its place.
      by.hidden = room.view === "studio" || !info?.title || !info.hostName;
      setText(by, info?.hostName ?? "");
      const shown = room.view === "studio" && room.isOffAir && !room.isOut ? "off air" : state;
      badge.hidden = !(shown in BADGES) || room.view === "audience" && state === "reconnecting";
      const isBack = room.view === "audience" && room.viewing.rewind.behind !== null;
      badge.classList.toggle("quiet", shown !== "live" || isBack);
      setText(badge, BADGES[shown] ?? "");
      delayed.hidden = room.view === "studio" || !room.viewing.isDelayed;
      setText(delayed, wordsForDelay(room.viewing.delay));
      recording.hidden = !room.isRecording;
      viewers.hidden = !info || state !== "live" && state !== "paused";
      setText(count, formatViewers(room.sync.known?.counts.viewers ?? info?.viewers ?? 0));
      showTime();
      const mark = state === "live" ? "● " : "";
      document.title = `${mark}${room.title} – Rostrum`;
    });
    room.addEventListener("second", showTime);
    return () => {
      unfollow();
      room.removeEventListener("second", showTime);
      root.remove();
    };
  },
};

/** The link to all live streams, or back to the story in the feed. @param {Room} room */
function wayOut({ stream, query }) {
  if (query.get("from") !== "feed") {
    return h("a.brand", { href: "/", "aria-label": "Rostrum, all live streams" }, icon("brand"), h("span", {}, "Rostrum"));
  }
  const token = query.get("access_token");
  const back = new URLSearchParams({ stream, ...(token && { access_token: token }) });
  return h("a.button.small.back#back", { href: `/?${back}${location.hash}` }, icon("back"), "Back");
}
