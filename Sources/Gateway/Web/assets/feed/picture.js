// @ts-check

/** Tells each connection the viewer's choice of picture quality, and shows a sign while it is too slow for that. */

import { weaknessOf, wordsForWeakness } from "../picture-choice.js";

/**
 * @param {import("../story-feed.js").StoryFeed} feed
 * @param {import("./cube.js").Cube} cube
 * @param {{ say: (text: string | null) => void }} sign
 * @param {import("../picture-choice.js").PictureChoice} choice
 */
export function followPicture(feed, cube, sign, choice) {
  /** @type {import("./session.js").FeedSession | null} */
  let session = null;
  const tell = () => session?.prefer(choice.preferences).catch(() => {});

  /** @param {Event} event */
  const noticed = (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    if (detail.type === "quality") sign.say(wordsForWeakness(weaknessOf(detail)));
  };
  const look = () => {
    const current = /** @type {import("./session.js").FeedSession | null} */ (feed.connection.session);
    if (current === session || current === null) return;
    session?.removeEventListener("notice", noticed);
    session = current;
    session.addEventListener("notice", noticed);
    sign.say(null);
    if (choice.name !== "auto" && choice.name !== "sound") tell();
  };
  feed.addEventListener("slots", look);
  // The first `slots` may be fired before the connection has its session.
  feed.connection.addEventListener("statechange", look);
  // Browsers play no sound before the first picture: viewers who chose sound alone get that one.
  cube.addEventListener("frame", () => choice.name === "sound" && tell());
  choice.addEventListener("change", tell);
}
