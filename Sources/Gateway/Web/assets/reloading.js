// @ts-check

/** Lets a `<video>` that plays a file outlast a lost network, and the token in the address of the file. */

/** First and longest pause before the file is loaded again, in milliseconds. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 16_000;
/** Most attempts in a row; after this many seconds of progress, they are counted anew. */
const MOST_TRIES = 10;
const PROGRESS_S = 5;
/** Errors that may be temporary: `MEDIA_ERR_NETWORK`, and `MEDIA_ERR_SRC_NOT_SUPPORTED`, which includes refusals (401). */
const TEMPORARY = [2, 4];

/**
 * Loads the file again, from where it stopped, after errors that may be temporary: after growing pauses, and at once when
 * the network is back, or when someone presses play after the last attempt.
 * @param {HTMLVideoElement} video
 * @param {() => string | undefined} file identifies what it plays; empty while that is not a file
 * @param {() => Promise<string | null>} locate finds the current address of the file; null if it is gone
 * @param {AbortSignal} signal ends it
 */
export function reloadAfterErrors(video, file, locate, signal) {
  /** The file that the attempts are about, their number, and where it had stopped before the last one. */
  let [tried, tries, lostAt] = ["", 0, 0];
  /** @type {number | undefined} */
  let timer;
  const reload = async () => {
    const [before, time, isPlaying] = [file(), video.currentTime, !video.paused];
    const address = await locate();
    if (address === null || signal.aborted || file() !== before || !video.error) return;
    video.src = address;
    video.currentTime = time;
    // Some browsers forget a time that is set before they know the file.
    const { src } = video;
    const goThere = () => {
      if (video.src === src && Math.abs(video.currentTime - time) > 1) video.currentTime = time;
    };
    video.addEventListener("loadedmetadata", goThere, { once: true, signal });
    if (isPlaying) video.play().catch(() => {});
  };
  const retry = () => {
    if (!video.error || !file()) return;
    clearTimeout(timer);
    tries = 0;
    reload();
  };
  video.addEventListener("error", () => {
    clearTimeout(timer);
    const name = file();
    if (!name || !TEMPORARY.includes(video.error?.code ?? 0)) return;
    if (name !== tried) [tried, tries] = [name, 0];
    if (tries >= MOST_TRIES) return;
    timer = setTimeout(reload, Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS));
    tries += 1;
    lostAt = video.currentTime;
  }, { signal });
  video.addEventListener("timeupdate", () => {
    if (Math.abs(video.currentTime - lostAt) > PROGRESS_S) tries = 0;
  }, { signal });
  video.addEventListener("play", () => tries >= MOST_TRIES && retry(), { signal });
  addEventListener("online", retry, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}
