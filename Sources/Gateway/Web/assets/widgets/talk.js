// @ts-check

import { makeTalkSettings } from "../audience-settings.js";
import { makeBarrage } from "../barrage.js";
import { makeShowing } from "../card.js";
import { h } from "../dom.js";
import { makeDuelBar, makeDuelDesk } from "../duel.js";
import { makeCatalogue } from "../gift-catalogue.js";
import { makeGifts } from "../gifts.js";
import { makeModeration } from "../moderation.js";
import { makeAsking, makeComments, makeReactions } from "../talk.js";
import { remove } from "./manage.js";

/**
 * What a page shows of the audience; the studio shows everything, whatever viewers see.
 * @param {import("../room.js").Room} room
 * @returns {import("../talk.js").Part}
 */
export function partOf(room) {
  return {
    audience: room.audience, identify: (needsName) => room.identify(needsName), say: (text) => room.say(text),
    shows: (widget) => room.view === "studio" || room.audience.shows(widget),
    keepOut: (id, name) => remove(room, id, name, true),
  };
}

/** Comments and gifts over the picture, and reactions beside them. */
export const talk = {
  name: "talk",
  layer: /** @type {const} */ ("movable"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const [comments, reactions] = [makeComments(partOf(room)), makeReactions(partOf(room))];
    const gifts = makeGifts(partOf(room));
    const [duel, barrage] = [makeDuelBar(partOf(room)), makeBarrage(partOf(room))];
    layer.append(barrage.root, duel.root, gifts.root, comments.root, reactions.root);
    return () => {
      barrage.stop();
      duel.stop();
      gifts.stop();
      comments.stop();
      reactions.stop();
    };
  },
};

/** The same on the desk of the studio. */
export const talkDesk = {
  name: "talk-desk",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const [comments, reactions] = [makeComments(partOf(room), { isDesk: true }), makeReactions(partOf(room))];
    const actions = [makeAsking, makeShowing, makeCatalogue, makeTalkSettings, makeModeration].map((make) => make(partOf(room)));
    const gifts = makeGifts(partOf(room), { totals: true });
    const [duel, duelDesk] = [makeDuelBar(partOf(room)), makeDuelDesk(partOf(room))];
    const heading = document.createElement("h2");
    heading.textContent = "Audience";
    comments.root.prepend(heading, h("p.audience-actions", {}, ...actions.map(({ root }) => root), duelDesk.button),
      duel.root, duelDesk.root, gifts.root);
    comments.root.classList.add("card");
    comments.root.append(reactions.root);
    layer.append(comments.root);
    return () => {
      duel.stop();
      duelDesk.stop();
      for (const action of actions) action.stop();
      gifts.stop();
      comments.stop();
      reactions.stop();
    };
  },
};
