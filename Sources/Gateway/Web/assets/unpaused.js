// @ts-check

/**
 * Keeps live video playing. Browsers pause a video for a phone call, unplugged headphones or an error of their media
 * framework, and then wait for someone to press play, although these pages have no such button.
 */

/**
 * Resumes a live video that the browser has paused, unless it is hidden, the browser requires a tap, or the system's
 * own controls are shown, which can pause it. To be called about once a second.
 * @param {{ video: HTMLVideoElement | null, isBlocked: boolean, rewind: { isOn: boolean }, play: () => Promise<void> }} viewing
 */
export function playOn(viewing) {
  const { video } = viewing;
  if (!video?.paused || video.ended || video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return;
  if (viewing.isBlocked || viewing.rewind.isOn || document.hidden) return;
  const isWithSystem = /** @type {{ webkitDisplayingFullscreen?: boolean }} */ (video).webkitDisplayingFullscreen === true;
  if (!isWithSystem) viewing.play();
}
