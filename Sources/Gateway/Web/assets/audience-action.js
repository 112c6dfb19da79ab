// @ts-check

import { follow, h } from "./dom.js";

/**
 * A button for what a host may do with the audience, there while the stream is open.
 * @param {import("./talk.js").Part} part
 * @param {string} id
 * @param {string} label
 * @param {(part: import("./talk.js").Part) => unknown} act
 * @param {() => boolean} [isOffered] whether it can be done now
 */
export function makeAudienceAction(part, id, label, act, isOffered = () => true) {
  const { audience } = part;
  const root = h(`button.button.small#${id}`, { type: "button", onclick: () => act(part) }, label);
  const unfollow = follow(audience, () => {
    root.hidden = !audience.isOpen || !audience.isModerator || !isOffered();
  });
  return {
    root,
    stop() {
      unfollow();
      root.remove();
    },
  };
}
