// @ts-check

import { follow, formatDuration, h, icon, setText } from "../dom.js";

/** @typedef {import("../room.js").Room} Room */

/** What a host is told when a recording ends unexpectedly, by reason. @type {Record<string, string>} */
const FAILURES = {
  "disk-full": "Recording stopped: the server’s disk is full. What was recorded so far is saved.",
  storage: "Recording stopped: the server can’t write to its disk. What was recorded so far is saved.",
  failed: "Recording stopped: something went wrong on the server. What was recorded so far is saved.",
};

/** The button with which the host records the programme. */
export const recorder = {
  name: "recorder",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const words = h("span");
    const time = h("span.muted", { "aria-hidden": "true" });
    // Not `disabled`: that would take the focus away.
    let isAsking = false;
    const button = h("button.button.record#record", {
      type: "button", "aria-pressed": "false", onclick: async () => {
        if (isAsking) return;
        isAsking = true;
        button.setAttribute("aria-busy", "true");
        if (!room.isRecording) await room.attempt(() => room.api.startRecording());
        else if (await room.attempt(() => room.api.stopRecording())) room.say("Recording saved.");
        isAsking = false;
        button.removeAttribute("aria-busy");
      },
    }, icon("record"), words, time);
    const root = h("div.recorder", { hidden: true }, button);
    layer.append(root);
    /** When the recording started, as seen by this page. @type {number | null} */
    let since = null;
    const showTime = () => setText(time, since === null ? "" : formatDuration(performance.now() - since));
    const unfollow = follow(room, () => {
      const isOn = room.isRecording;
      if (!isOn) since = null;
      else since ??= performance.now();
      root.hidden = !room.isHost || room.info?.state !== "live";
      button.setAttribute("aria-pressed", String(isOn));
      setText(words, isOn ? "Stop recording" : "Record");
      showTime();
    });
    room.addEventListener("second", showTime);
    return () => {
      unfollow();
      room.removeEventListener("second", showTime);
      root.remove();
    };
  },
};

/** Says why the latest recording ended, unless the host ended it. @param {Room} room */
async function tellFailure(room) {
  const all = (await room.api.recordings().catch(() => null))?.recordings ?? [];
  const latest = all.filter(({ kind }) => kind !== "clip").at(-1);
  const words = FAILURES[latest?.endReason ?? ""];
  if (words) room.say(words);
}

/**
 * Tells everyone on stage when a recording starts and ends, and the host why, if it ended unexpectedly. Meanwhile there
 * is a mark next to the title.
 */
export const recordingNews = {
  name: "recording-news",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room */
  mount(room) {
    /** @type {boolean | null} null until known */
    let wasOn = null;
    return follow(room, () => {
      if (!room.info || room.info.state === "ended") return;
      const isOn = room.isRecording;
      if (isOn && !wasOn && !room.isHost) room.say("This stream is being recorded.");
      if (!isOn && wasOn && !room.isHost) room.say("This stream is no longer being recorded.");
      if (!isOn && wasOn && room.isHost) tellFailure(room);
      wasOn = isOn;
    });
  },
};
