// @ts-check

import { follow, formatDuration, h, setText } from "../dom.js";
import { showUnlock, unlockLink, wordsForGate } from "../gate.js";
import { SignallingError } from "../session.js";
import { knownToken } from "../tokens.js";

/** @type {Record<import("../viewing.js").ViewingState, [string, string]>} */
const WORDS = {
  connecting: ["Connecting…", ""],
  waiting: ["Waiting for the stream", "It starts here automatically when the host goes live."],
  backstage: ["Starting soon", "The host is getting ready. It starts here automatically."],
  live: ["Live", ""],
  paused: ["Paused", "The host has stepped away. The stream resumes here automatically."],
  gated: ["", ""],
  reconnecting: ["Reconnecting…", "The connection was lost. You don’t need to do anything."],
  ended: ["The stream has ended", "Thanks for watching. If the host comes back, it resumes here."],
  removed: ["You were removed from this stream", "The host removed you. You can still watch other streams."],
  expired: ["This link is no longer valid", "Ask the person who sent it for a new one."],
  failed: ["This stream can’t be played", ""],
};

const REVOKED = "The host revoked your link. Ask for a new one.";

/** After waiting this long for an unknown stream, in milliseconds, this text is shown. */
const PATIENCE_MS = 10_000;
const UNKNOWN = "There’s no stream with this name yet. Check the link. If the stream goes live, it starts here automatically.";

/** @type {Record<import("../viewing.js").Trouble, [string, string]>} */
const TROUBLE = {
  server: ["Can’t reach the server", "Check your connection. The stream resumes here automatically."],
  busy: ["The server is busy", "It isn’t accepting viewers right now. Trying again…"],
  blocked: [
    "Live video isn’t getting through",
    "Your network seems to be blocking video calls (UDP). Try another network.",
  ],
  nothing: ["Nothing is coming through", "You’re connected, but no picture or sound is arriving. Trying again…"],
  weak: [
    "Your connection is too slow",
    "Parts of the picture are getting lost. Try another network.",
  ],
};

/** In the middle of the picture, says what is going on while there is nothing to see. */
export const status = {
  name: "status",
  layer: /** @type {const} */ ("lite"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const words = h("p.state#state");
    const hint = h("p.hint.muted#hint");
    const waiting = h("p.waiting#waiting", { hidden: true });
    // Outside the live region, which would read every second aloud.
    const countdown = h("p.countdown#countdown", { role: "timer", hidden: true });
    const retry = h("button.button#retry", { type: "button", hidden: true, onclick: () => room.viewing.retry() });
    const unlock = unlockLink(".button.primary#unlock");
    // In a new tab: this page keeps trying.
    const check = h("a.button#check", { href: "/check", target: "_blank", hidden: true }, "Check my network");
    const home = h("a.button#home", { href: "/", hidden: true }, "See who else is live");
    const root = h("div.middle", {}, countdown,
      h("div.status", { role: "status", "aria-live": "polite" },
        h("div.spinner", { "aria-hidden": "true" }), words, hint, waiting),
      h("p.actions", {}, unlock, retry, check, home));
    layer.append(root);

    const showCountdown = () => {
      const startsAt = room.info?.startsAt;
      const left = startsAt ? Date.parse(startsAt) - Date.now() : 0;
      countdown.hidden = room.state !== "backstage" || left <= 0;
      if (!countdown.hidden) setText(countdown, formatDuration(left + 999));
    };
    /** Since when we have been waiting for an unknown stream. */
    let waitingSince = 0;
    const show = () => {
      const { state, trouble } = room.viewing;
      const isUnknown = state === "waiting" && !room.info?.startsAt;
      if (!isUnknown) waitingSince = 0;
      else waitingSince ||= performance.now();
      const isLate = isUnknown && performance.now() - waitingSince >= PATIENCE_MS;
      const gate = state === "gated" ? room.viewing.gate : null;
      showUnlock(unlock, gate);
      const [title, text] = trouble ? TROUBLE[trouble] : gate ? wordsForGate(gate) : WORDS[state];
      setText(words, title);
      const isRevoked = state === "expired" && room.isLinkRevoked;
      setText(hint, state === "failed" ? explain(room.viewing.connection.error) : isLate ? UNKNOWN : isRevoked ? REVOKED : text);
      const count = room.sync.known?.counts.waiting ?? 0;
      waiting.hidden = state !== "backstage" || count === 0;
      setText(waiting, count === 1 ? "1 person is waiting" : `${count} people are waiting`);
      retry.hidden = state !== "failed" && state !== "reconnecting" && !trouble;
      setText(retry, state === "failed" ? "Try again" : "Try now");
      check.hidden = trouble !== "blocked";
      const token = knownToken(room.stream, room.tokenRole);
      check.href = token ? `/check#token=${encodeURIComponent(token)}` : "/check";
      home.hidden = !isLate && !trouble && !["ended", "failed", "removed", "expired", "gated"].includes(state);
      showCountdown();
    };
    const unfollow = follow(room, show);
    room.addEventListener("second", show);
    return () => {
      unfollow();
      room.removeEventListener("second", show);
      root.remove();
    };
  },
};

/** @param {Error | null} error */
function explain(error) {
  if (error instanceof SignallingError && error.rule === "banned") return "The host removed you from this stream.";
  if (error instanceof SignallingError && (error.status === 401 || error.status === 403)) {
    return "You need an invitation to watch. Open the link you were sent.";
  }
  return error?.message ?? "";
}
