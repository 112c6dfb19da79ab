// @ts-check

/**
 * What is live goes on. Browsers pause a video by themselves: for a call, for headphones that were pulled out, for
 * what their media framework stumbled over; and then wait for somebody who presses play, where there is nothing to press.
 */

/**
 * Plays a live video on that its browser has paused, unless nobody sees it, its viewer has to tap first, or has the
 * system's own controls before them, which pause it, too. To be called now and then, about once a second.
 * @param {{ video: HTMLVideoElement | null, isBlocked: boolean, rewind: { isOn: boolean }, play: () => Promise<void> }} viewing
 */
export function playOn(viewing) {
  const { video } = viewing;
  if (!video?.paused || video.ended || video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return;
  if (viewing.isBlocked || viewing.rewind.isOn || document.hidden) return;
  const isWithSystem = /** @type {{ webkitDisplayingFullscreen?: boolean }} */ (video).webkitDisplayingFullscreen === true;
  if (!isWithSystem) viewing.play();
}
