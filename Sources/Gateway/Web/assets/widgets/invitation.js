// @ts-check

import { ask } from "../dialog.js";
import { follow, isolate } from "../dom.js";
import { SignallingError } from "../session.js";
import { preview } from "./lobby.js";

/** When the host invites a viewer, asks whether they want to come on stage; goes away with the invitation. */
export const invitation = {
  name: "invitation",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room */
  mount(room) {
    /** @type {AbortController | null} */
    let question = null;
    const unfollow = follow(room, () => {
      const isInvited = room.you?.invited === true && !room.isOnStage;
      if (isInvited && !question) {
        question = new AbortController();
        put(room, question.signal);
      } else if (!isInvited) {
        question?.abort();
        question = null;
      }
    });
    return () => {
      unfollow();
      question?.abort();
    };
  },
};

/**
 * Asks until the person has declined, is on stage, or the invitation goes away: the stage may be full when they accept,
 * and an answer may get lost.
 * @param {import("../room.js").Room} room @param {AbortSignal} signal
 */
async function put(room, signal) {
  while (!signal.aborted) {
    const host = room.info?.hostName || "The host";
    const answer = await ask({
      name: "invitation",
      title: "Join the stage?",
      text: `${isolate(host)} invites you to speak. ${audienceOf(room)} You can mute yourself and leave at any time.`,
      choices: [
        { value: "accept", label: "Join the stage", look: "primary" },
        { value: "sound", label: "Join with sound only" },
        { value: "decline", label: "Not now" },
      ],
      isUrgent: true,
      signal,
    });
    // The microphone only: the browser asks for no camera.
    if (answer === "sound") await room.own.choose({ kind: "sound" });
    const isComing = (answer === "accept" || answer === "sound") && !signal.aborted && await preview(room, signal);
    const { you } = room;
    if (!isComing || !you) {
      // Whoever accepted in another tab is on stage from there, and a phone gives its camera to one page at a time.
      if (!room.isOnStage || !room.onAir.isOn) room.own.stop();
      if (signal.aborted || !you || await decline(room, you.id)) return;
      // The host still waits for an answer, and nothing else on the page could give it.
      continue;
    }
    if (await room.accept(you.id)) return;
  }
}

/**
 * Declines the invitation.
 * @param {import("../room.js").Room} room @param {string} me
 * @returns {Promise<boolean>} whether the server has decided on it; it may have ended before sync tells of that
 */
async function decline(room, me) {
  let isDecided = true;
  await room.attempt(() => room.api.endInvitation(me).catch((error) => {
    isDecided = error instanceof SignallingError && error.status < 500 && error.status !== 429;
    throw error;
  }));
  return isDecided;
}

/** Who gets to see and hear a guest. @param {import("../room.js").Room} room */
function audienceOf(room) {
  switch (room.info?.programme) {
    case "composed": return "Everyone will see and hear you.";
    case "active-speaker": return "Everyone will see and hear you while you speak.";
    default: return "The others on stage will see and hear you. Viewers see and hear only the host.";
  }
}
