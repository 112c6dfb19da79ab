// @ts-check

/** What who has raised a hand is told of how long they will wait. */

/** @param {number | null | undefined} place which of the raised hands it is; null where the host holds it */
export function wordsForPlace(place) {
  if (!place) return "You are on hold";
  return place === 1 ? "You are next" : `You are number ${place}`;
}
