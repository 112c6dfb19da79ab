// @ts-check

/** A worker that ticks: its timers go on at full speed when the page is hidden. */

/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;

addEventListener("message", ({ data: milliseconds }) => {
  clearInterval(timer);
  timer = setInterval(() => postMessage(null), milliseconds);
});
