// @ts-check

import { follow, h, icon, setText } from "../dom.js";
import { DELAYED_HAND } from "../fallback.js";
import { askName } from "../person.js";
import { wordsForPlace } from "../waiting.js";

/** Raises and lowers one's own hand. */
export const hand = {
  name: "hand",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const words = h("span");
    const place = h("small", { role: "status", hidden: true });
    /** The request in progress. @type {Promise<void> | null} */
    let asking = null;
    const isRaised = () => room.you?.handRaised ?? false;
    const lower = async () => {
      const { you } = room;
      if (you) await room.attempt(() => room.api.lowerHand(you.id));
    };
    const raise = async () => {
      if (await room.naming.isKnown(() => askName({
        title: "Raise your hand", text: "The host sees your name and may invite you on stage.", yes: "Raise hand",
      }))) await room.raiseHand();
    };
    // Not `disabled`: that would take the focus away.
    const button = h("button.button.hand#hand", {
      type: "button", "aria-pressed": "false", onclick: async () => {
        const lowers = isRaised();
        if (!lowers && room.viewing.isDelayed) return room.say(DELAYED_HAND);
        if (asking) {
          // Sync may report the hand before the request is answered.
          if (!lowers) return;
          await asking;
          if (asking || !isRaised()) return;
        }
        asking = (lowers ? lower() : raise()).finally(() => { asking = null; });
        await asking;
      },
    }, icon("hand"), h("span.lines", {}, words, place));
    layer.append(button);
    const unfollow = follow(room, () => {
      const isUp = isRaised();
      // Without speakers there is no one to see a hand.
      button.hidden = !room.isOpen || room.sync.refusal !== null || Object.keys(room.sync.known?.speakers ?? {}).length === 0;
      button.setAttribute("aria-pressed", String(isUp));
      setText(words, isUp ? "Lower hand" : "Raise hand");
      place.hidden = !isUp;
      setText(place, isUp ? wordsForPlace(room.you?.handPlace) : "");
      const isOutOfReach = room.viewing.isDelayed && !isUp;
      button.setAttribute("aria-disabled", String(isOutOfReach));
      button.title = isOutOfReach ? DELAYED_HAND : "";
    });
    return () => {
      unfollow();
      button.remove();
    };
  },
};
