// @ts-check

import { confirm } from "../dialog.js";
import { follow, h, icon, setText } from "../dom.js";

/** @typedef {import("../room.js").Room} Room */

/** @type {Record<import("../room.js").StudioState, string>} */
const WORDS = {
  idle: "",
  ready: "",
  starting: "Connecting…",
  backstage: "You’re backstage.",
  live: "You’re live.",
  reconnecting: "The connection was lost. Reconnecting…",
  ended: "The stream has ended.",
  removed: "The host removed you from this stream.",
  expired: "This link is no longer valid. Ask the person who sent it for a new one.",
};

const REVOKED = "The host revoked your link. Ask for a new one.";

/**
 * Why connecting takes so long.
 * @type {Record<NonNullable<import("../on-air.js").OnAir["trouble"]>, string>}
 */
const TROUBLE = {
  server: "Can’t reach the server. Check your connection. Trying again…",
  busy: "The server is busy. Trying again…",
  blocked: "Live video isn’t getting through. Your network seems to be blocking video calls (UDP). "
    + "Trying again…",
};

/** Go live, mute, leave, end. */
export const desk = {
  name: "desk",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { own } = room;
    const notice = h("p.notice.muted#notice");
    const goWords = h("span");
    const go = h("button.button.primary.large#go", { type: "button", onclick: () => room.goLive() },
      icon("live"), goWords);
    const mute = toggle("mute", "microphone", "Mute microphone", () => own.setMuted("audio", !own.muted.audio));
    const dark = toggle("dark", "camera", "Turn picture off", () => own.setMuted("video", !own.muted.video));
    const shareWords = h("span.visually-hidden", { role: "status" });
    const share = toggle("share-screen", "screen", "Share screen next to your picture", () => room.onAir.toggleScreen());
    const stopWords = h("span");
    const stop = h("button.button.danger.large#stop", { type: "button", onclick: () => leave(room) },
      icon("stop"), stopWords);
    const next = h("a.button.large#next", { href: "/", hidden: true }, "All live streams");
    const state = h("p.visually-hidden#state", { role: "status", "aria-live": "polite" });
    const controls = h("div.controls", {}, notice, go, mute, dark, share, stop, next);
    layer.append(controls, state, shareWords);

    const unfollow = follow(room, () => {
      const now = /** @type {import("../room.js").StudioState} */ (room.state);
      if (!(now in WORDS)) return;
      const trouble = now === "starting" ? room.onAir.trouble : null;
      const words = trouble ? TROUBLE[trouble]
        : now === "expired" && room.isLinkRevoked ? REVOKED : WORDS[now];
      const isOut = now === "removed" || now === "expired";
      const isNews = now === "reconnecting" || now === "starting" || now === "ended" || isOut;
      const hint = isNews ? "" : room.isOffAir ? offAirWords(room) : own.source?.notice ?? "";
      setText(notice, isNews ? words : hint);
      // The only live region of the two, because screen readers would read the same words twice.
      setText(state, [words, hint].filter(Boolean).join(" "));
      const { isOn } = room.onAir;
      share.hidden = !room.onAir.canShareScreen;
      share.setAttribute("aria-pressed", String(room.onAir.screen !== null));
      setText(shareWords, room.onAir.screen ? "Your screen is shared." : "");
      go.hidden = room.isOver || isOn && now !== "backstage" || isOut || now === "backstage" && isOn && !room.isHost;
      // Not disabled, which would lose the focus; a second press does nothing.
      go.setAttribute("aria-disabled", String(room.isGoingLive));
      setText(goWords, goLabel(room));
      // An admin ends what others present, too.
      const mayStop = isOn || room.isOpen && (room.isOnStage || room.you?.isModerator);
      stop.hidden = isOut || now === "ended" || !mayStop;
      setText(stopWords, room.isHost ? "End" : "Leave");
      next.hidden = !isOut && now !== "ended";
      mute.hidden = !own.source?.media.getAudioTracks().length;
      mute.setAttribute("aria-pressed", String(own.muted.audio));
      dark.hidden = !own.source?.media.getVideoTracks().length;
      dark.setAttribute("aria-pressed", String(own.muted.video));
    });
    return () => {
      unfollow();
      for (const element of [controls, state, shareWords]) element.remove();
    };
  },
};

/** @param {Room} room */
function goLabel(room) {
  if (room.isGoingLive && room.own.isOpening) return "Starting…";
  if (!room.isHost) return "Join the stage";
  if (room.info?.state === "live" && room.isOnStage) return "Back on air";
  return "Go live";
}

/** What others see while we send nothing. @param {Room} room */
function offAirWords(room) {
  if (!room.isHost) return "You’re off air. No one sees or hears you.";
  return room.isProgrammeSilent || room.info?.programme === "host"
    ? "You’re off air. Viewers see a paused picture." : "You’re off air. Viewers see the others on stage.";
}

/** @param {Room} room */
function leave(room) {
  return room.isHost ? endForAll(room) : room.stepDown();
}

/** Ends the stream, live or not, once the host has confirmed it. @param {Room} room */
export async function endForAll(room) {
  const [title, yes] = room.info?.state === "backstage" ? ["Close the backstage?", "Close it"] : ["End the stream?", "End it"];
  if (await confirm({ name: "end", title, text: "It ends for everyone.", yes, no: "Cancel" })) await room.end();
}

/** @param {string} id @param {string} symbol @param {string} label @param {() => void} act */
function toggle(id, symbol, label, act) {
  return h(`button.button.round#${id}`, {
    type: "button", "aria-pressed": "false", "aria-label": label, title: label, hidden: true, onclick: act,
  }, icon(symbol, "off"), icon(`${symbol}-off`, "on"));
}
