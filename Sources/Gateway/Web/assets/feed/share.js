// @ts-check

/** Sharing a story: a link that opens the feed with it. */

import { shareLink } from "../sharing.js";
import { titleOf } from "./side.js";

/**
 * @param {import("./list.js").Story} story
 * @param {(text: string) => void} say
 */
export function share(story, say) {
  const url = new URL(`/?stream=${encodeURIComponent(story.id)}`, location.href).href;
  return shareLink({ title: titleOf(story), url }, say);
}
