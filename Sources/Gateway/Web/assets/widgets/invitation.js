// @ts-check

import { ask } from "../dialog.js";
import { follow } from "../dom.js";

/** Asks whether one wants to come on stage when the host invites; the question goes when the invitation does. */
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

/** @param {import("../room.js").Room} room @param {AbortSignal} signal */
async function put(room, signal) {
  const host = room.info?.hostName || "The host";
  const answer = await ask({
    name: "invitation",
    title: "Come on stage?",
    text: `${host} invites you to speak. Everybody will see and hear you; you can mute yourself and leave at any time.`,
    choices: [
      { value: "accept", label: "Join the stage", look: "primary" },
      { value: "decline", label: "Not now" },
    ],
    isUrgent: true,
    signal,
  });
  const { you } = room;
  if (signal.aborted || !you) return;
  if (answer === "accept") await room.accept(you.id);
  else await room.attempt(() => room.api.endInvitation(you.id));
}
