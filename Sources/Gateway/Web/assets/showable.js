// @ts-check

/**
 * Chromium holds back a document's load event, and that of the page around it, until each video has its first picture: for
 * ever where none comes.
 */

/**
 * Whether a video would hold back its document's load event if it had this media now.
 * @param {MediaStream} media
 */
export function holdsLoading(media) {
  return document.readyState !== "complete" && media.getVideoTracks().every(({ muted }) => muted);
}

/**
 * Calls back once a video may have this media: at once, when a picture comes, or when the document has loaded; more than
 * once, maybe.
 * @param {MediaStream} media
 * @param {() => void} show
 */
export function onceShowable(media, show) {
  if (!holdsLoading(media)) return show();
  for (const track of media.getVideoTracks()) track.addEventListener("unmute", show, { once: true });
  addEventListener("load", show, { once: true });
}
