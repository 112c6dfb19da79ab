// @ts-check

/**
 * Keeps live video playing. Browsers pause a video on their own, for a call, for unplugged headphones or for a hiccup
 * of their media framework, and then wait for someone to press play, although there is nothing to press.
 */

/**
 * Resumes a live video that its browser has paused, unless it is hidden, its viewer has to tap first, or the system's
 * own controls are shown, which pause it, too. Call it now and then, about once a second.
 * @param {{ video: HTMLVideoElement | null, isBlocked: boolean, rewind: { isOn: boolean }, play: () => Promise<void> }} viewing
 */
export function playOn(viewing) {
  const { video } = viewing;
  if (!video?.paused || video.ended || video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return;
  if (viewing.isBlocked || viewing.rewind.isOn || document.hidden) return;
  const isWithSystem = /** @type {{ webkitDisplayingFullscreen?: boolean }} */ (video).webkitDisplayingFullscreen === true;
  if (!isWithSystem) viewing.play();
}
