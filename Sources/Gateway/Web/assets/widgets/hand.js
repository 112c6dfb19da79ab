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
    // Not `disabled`: that would take the focus away.
    let isAsking = false;
    const button = h("button.button.hand#hand", {
      type: "button", "aria-pressed": "false", onclick: async () => {
        if (isAsking) return;
        const { you } = room;
        if (!you?.handRaised && room.viewing.isDelayed) return room.say(DELAYED_HAND);
        isAsking = true;
        if (you?.handRaised) await room.attempt(() => room.api.lowerHand(you.id));
        else if (await room.naming.isKnown(() => askName({
          title: "Raise your hand", text: "The host sees your name, and may invite you to the stage.", yes: "Raise hand",
        }))) await room.raiseHand();
        isAsking = false;
      },
    }, icon("hand"), h("span.lines", {}, words, place));
    layer.append(button);
    const unfollow = follow(room, () => {
      const isRaised = room.you?.handRaised ?? false;
      // Where the server says nothing of speakers there is nobody to see a hand.
      button.hidden = !room.isOpen || room.sync.refusal !== null || Object.keys(room.sync.known?.speakers ?? {}).length === 0;
      button.setAttribute("aria-pressed", String(isRaised));
      setText(words, isRaised ? "Lower hand" : "Raise hand");
      place.hidden = !isRaised;
      setText(place, isRaised ? wordsForPlace(room.you?.handPlace) : "");
      const isOutOfReach = room.viewing.isDelayed && !isRaised;
      button.setAttribute("aria-disabled", String(isOutOfReach));
      button.title = isOutOfReach ? DELAYED_HAND : "";
    });
    return () => {
      unfollow();
      button.remove();
    };
  },
};
