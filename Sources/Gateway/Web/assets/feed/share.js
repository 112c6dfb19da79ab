// @ts-check

/** Sharing a story: a link that works for anyone who gets it, or why there is none. */

import { aboutServer } from "../server.js";
import { titleOf } from "./side.js";

/**
 * @param {import("./list.js").Story} story
 * @param {(text: string) => void} say
 */
export async function share(story, say) {
  if ((await aboutServer()).viewers === "token") {
    // Only its host can make links that let others watch.
    return say("To watch here, others need an invitation. Ask the host for a link.");
  }
  const url = new URL(`/?stream=${encodeURIComponent(story.id)}`, location.href).href;
  const canShare = matchMedia("(pointer: coarse)").matches && typeof navigator.share === "function";
  try {
    if (canShare) return await navigator.share({ title: titleOf(story), url });
    await navigator.clipboard.writeText(url);
    say("Link copied");
  } catch (error) {
    // Closed by the viewer, or pressed again while it was open.
    if (["AbortError", "InvalidStateError"].includes(/** @type {Error} */ (error).name)) return;
    prompt("Copy this link", url);
  }
}
