// @ts-check

import { follow, formatDuration, h, setText } from "../dom.js";
import { SignallingError } from "../session.js";

/** @type {Record<import("../viewing.js").ViewingState, [string, string]>} */
const WORDS = {
  connecting: ["Connecting…", ""],
  waiting: ["Waiting for the stream", "It starts here by itself as soon as the host goes live."],
  backstage: ["Starting soon", "The host is getting ready. It starts here by itself."],
  live: ["Live", ""],
  paused: ["Paused", "The host is away for a moment. It goes on here by itself."],
  reconnecting: ["Reconnecting…", "The connection was lost. Hold on, this mends itself."],
  ended: ["The stream has ended", "Thanks for watching. Should the host come back, it goes on here."],
  removed: ["You were removed from this stream", "The host decided so. Other streams are open to you."],
  expired: ["This link is no longer valid", "Ask whoever gave it to you for a new one."],
  failed: ["This stream cannot be played", ""],
};

/** Says in the middle of the picture what is going on, while there is nothing to see. */
export const status = {
  name: "status",
  layer: /** @type {const} */ ("lite"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const words = h("p.state#state");
    const hint = h("p.hint.muted#hint");
    const waiting = h("p.waiting#waiting", { hidden: true });
    // Not within the live region: nobody wants every second read aloud.
    const countdown = h("p.countdown#countdown", { role: "timer", hidden: true });
    const retry = h("button.button#retry", { type: "button", hidden: true, onclick: () => room.viewing.retry() });
    const home = h("a.button#home", { href: "/", hidden: true }, "See who else is live");
    const root = h("div.middle", {}, countdown,
      h("div.status", { role: "status", "aria-live": "polite" },
        h("div.spinner", { "aria-hidden": "true" }), words, hint, waiting),
      h("p.actions", {}, retry, home));
    layer.append(root);

    const showCountdown = () => {
      const startsAt = room.info?.startsAt;
      const left = startsAt ? Date.parse(startsAt) - Date.now() : 0;
      countdown.hidden = room.state !== "backstage" || left <= 0;
      if (!countdown.hidden) setText(countdown, formatDuration(left + 999));
    };
    const unfollow = follow(room, () => {
      const state = room.viewing.state;
      setText(words, WORDS[state][0]);
      setText(hint, state === "failed" ? explain(room.viewing.connection.error) : WORDS[state][1]);
      const count = room.sync.known?.counts.waiting ?? 0;
      waiting.hidden = state !== "backstage" || count === 0;
      setText(waiting, count === 1 ? "1 person is waiting" : `${count} people are waiting`);
      retry.hidden = state !== "failed" && state !== "reconnecting";
      setText(retry, state === "failed" ? "Try again" : "Try now");
      home.hidden = state !== "ended" && !["failed", "removed", "expired"].includes(state);
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

/** @param {Error | null} error */
function explain(error) {
  if (error instanceof SignallingError && error.rule === "banned") return "The host removed you from it.";
  if (error instanceof SignallingError && (error.status === 401 || error.status === 403)) {
    return "You need an invitation to watch this stream. Open it with the link you were given.";
  }
  return error?.message ?? "";
}
