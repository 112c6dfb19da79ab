// @ts-check

/**
 * A worker that ticks: its timers are not throttled when the page is hidden.
 *
 * It is sent the time between two ticks, in milliseconds. The page answers each tick with `null`, and the next one
 * waits for that: otherwise ticks would pile up while the page is busy, and keep it busy for ever.
 */

/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;
let isAnswered = true;

addEventListener("message", ({ data: milliseconds }) => {
  if (milliseconds === null) {
    isAnswered = true;
    return;
  }
  clearInterval(timer);
  timer = setInterval(() => {
    if (!isAnswered) return;
    isAnswered = false;
    postMessage(null);
  }, milliseconds);
});
