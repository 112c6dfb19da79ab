// @ts-check

/** Shares the link of a stream, where it works for anyone who gets it, or tells why there is none. */

import { aboutServer } from "./server.js";

/**
 * Opens the sheet of a phone, or copies the link.
 * @param {{ title: string, url: string }} link
 * @param {(text: string) => void} say
 */
export async function shareLink({ title, url }, say) {
  if ((await aboutServer()).viewers === "token") {
    // Only its host can make links that let others watch.
    return say("To watch here, others need an invitation. Ask the host for a link.");
  }
  const canShare = matchMedia("(pointer: coarse)").matches && typeof navigator.share === "function";
  try {
    if (canShare) return await navigator.share({ title, url });
    await navigator.clipboard.writeText(url);
    say("Link copied");
  } catch (error) {
    // Closed by the viewer, or pressed again while it was open.
    if (["AbortError", "InvalidStateError"].includes(/** @type {Error} */ (error).name)) return;
    prompt("Copy this link", url);
  }
}
