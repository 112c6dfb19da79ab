// @ts-check

/**
 * A worker that ticks: its timers go on at full speed when the page is hidden.
 *
 * A number that it is told is the time between two ticks, in milliseconds. Each tick is answered with `null`, and until
 * then none follows: those that a busy page does not come to would pile up, and keep it busy for ever.
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
