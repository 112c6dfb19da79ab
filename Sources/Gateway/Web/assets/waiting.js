// @ts-check

/** What people with a raised hand are told about their place in line. */

/** @param {number | null | undefined} place among the raised hands; null if the host holds it back */
export function wordsForPlace(place) {
  if (!place) return "You’re on hold";
  return place === 1 ? "You’re next" : `You’re number ${place}`;
}
