// @ts-check

/** Small helpers the page scripts share. */

/**
 * The element with this id; pages and scripts are written together, so it exists.
 * @param {string} id
 * @returns {any}
 */
export function $(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}

/**
 * Writes only what changed, so that live regions do not repeat themselves.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The stream this page's address names: the last part of `/watch/{stream}`. */
export function streamFromAddress() {
  return decodeURIComponent(location.pathname.split("/")[2] ?? "");
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} text
 */
export async function copyFrom(button, text) {
  const label = button.querySelector("span") ?? button;
  const before = label.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = "Copied";
  } catch {
    // Insecure pages have no clipboard: show the link, to be copied by hand.
    prompt("Copy this link", text);
  }
  setTimeout(() => (label.textContent = before), 2000);
}

/** @param {number} milliseconds */
export function formatDuration(milliseconds) {
  const total = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [Math.floor(total / 60) % 60, total % 60].map((part) => String(part).padStart(2, "0"));
  const hours = Math.floor(total / 3600);
  return (hours ? [String(hours), ...parts] : parts).join(":");
}

/** @param {number} count */
export function formatViewers(count) {
  return count === 1 ? "1 viewer" : `${count} viewers`;
}
