// @ts-check

/**
 * Chromium delays the load event of a document, and of the page around it, until each video has its first picture: for
 * ever if there is none.
 */

/**
 * Whether a video with this media would delay the document's load event now.
 * @param {MediaStream} media
 */
export function holdsLoading(media) {
  return document.readyState !== "complete" && media.getVideoTracks().every(({ muted }) => muted);
}

/**
 * Calls back when a video can get this media: at once, when a picture arrives, or when the document has loaded; perhaps
 * more than once.
 * @param {MediaStream} media
 * @param {() => void} show
 */
export function onceShowable(media, show) {
  if (!holdsLoading(media)) return show();
  for (const track of media.getVideoTracks()) track.addEventListener("unmute", show, { once: true });
  addEventListener("load", show, { once: true });
}
