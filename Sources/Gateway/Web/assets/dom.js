// @ts-check

/** Helpers that the pages share. */

/**
 * The element with this id, which is known to exist.
 * @param {string} id
 * @returns {any}
 */
export function $(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}

/**
 * Sets a text only if it changed, so that live regions are not read again.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The stream in the address of this page: the last part of `/watch/{stream}`. */
export function streamFromAddress() {
  return decodeURIComponent(location.pathname.split("/")[2] ?? "");
}

/** How long a button says “Copied”, in milliseconds. */
const COPIED_MS = 2000;
/** Screen readers read changes of a region only once they know it, and have it to read for a while; in milliseconds. */
const KNOWN_MS = 100;
const READ_MS = 3000;

/**
 * Has screen readers read what is only seen, such as the changed words of a button, which they pass over.
 * @param {string} words
 */
export function announce(words) {
  const region = h("p", { role: "status" });
  Object.assign(region.style, {
    position: "fixed", width: "1px", height: "1px", margin: "0", overflow: "hidden", clipPath: "inset(50%)",
  });
  // Nothing behind an open dialog is read.
  ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(region);
  setTimeout(() => (region.textContent = words), KNOWN_MS);
  setTimeout(() => region.remove(), READ_MS);
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} text
 */
export async function copyFrom(button, text) {
  const label = button.querySelector("span") ?? button;
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    // At a second press, the label may be "Copied".
    if (label.textContent === "Copied") return;
    const before = label.textContent ?? "";
    label.textContent = "Copied";
    setTimeout(() => (label.textContent = before), COPIED_MS);
  } catch {
    // Without the clipboard, as on insecure pages, show the text to be copied by hand.
    prompt("Copy this", text);
  }
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

/**
 * Makes an element: `h("button.button.round#mute", { type: "button", onclick: toggle }, icon("microphone"))`.
 * @param {string} description tag, then `.class` and `#id` in any order
 * @param {Record<string, any>} [properties] `on…` are listeners; `aria-…`, `data-…`, `role` and `for` are attributes
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function h(description, properties = {}, ...children) {
  const [, tag, rest] = /** @type {RegExpMatchArray} */ (description.match(/^([a-z0-9]+)(.*)$/));
  const element = /** @type {any} */ (document.createElement(tag));
  for (const [, mark, name] of rest.matchAll(/([.#])([^.#]+)/g)) {
    if (mark === "#") element.id = name;
    else element.classList.add(name);
  }
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (/^(aria-|data-|role$|for$)/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Relative to this module. */
const ICONS = new URL("./icons.svg", import.meta.url).href;

/**
 * @param {string} name of a symbol in icons.svg
 * @param {string} [className]
 */
export function icon(name, className = "") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  if (className) svg.setAttribute("class", className);
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${ICONS}#${name}`);
  svg.append(use);
  return svg;
}

/**
 * Calls `update` now and whenever the target changes.
 * @param {EventTarget} target
 * @param {() => void} update
 * @returns {() => void} ends it
 */
export function follow(target, update) {
  target.addEventListener("change", update);
  update();
  return () => target.removeEventListener("change", update);
}

/**
 * Makes the children of a list match the entries, in their order. Children whose keys stay are kept, with their focus
 * and playing videos.
 * @template Value
 * @param {HTMLElement} list
 * @param {[string, Value][]} entries
 * @param {(key: string) => HTMLElement & { update: (value: Value) => void }} make
 */
export function reconcile(list, entries, make) {
  const old = new Map([...list.children].map((child) => [/** @type {HTMLElement} */ (child).dataset.key, child]));
  let before = list.firstElementChild;
  for (const [key, value] of entries) {
    let child = /** @type {any} */ (old.get(key));
    if (child) old.delete(key);
    else {
      child = make(key);
      child.dataset.key = key;
    }
    if (child === before) before = child.nextElementSibling;
    else list.insertBefore(child, before);
    child.update(value);
  }
  for (const child of old.values()) child.remove();
}

/**
 * The name to show for a person. People without a name may have a generated identity.
 * @param {string} id
 * @param {string | null | undefined} name
 */
export function callName(id, name) {
  return name || (id.startsWith("guest-") ? "Guest" : id);
}

/** The initials of a name, for people without a picture. @param {string} name */
export function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  return [words[0], words.length > 1 ? words[words.length - 1] : ""].map((word) => firstLetter(word ?? ""))
    .join("").toUpperCase();
}

/** The first grapheme cluster, which may be several characters, such as a flag. @param {string} word */
function firstLetter(word) {
  const [letter] = new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(word);
  return letter?.segment ?? "";
}

/**
 * Isolates a name within a sentence, so that its writing direction does not affect the words around it.
 * @param {string} name
 */
export function isolate(name) {
  // First strong isolate and pop directional isolate (UAX #9).
  return `\u2068${name}\u2069`;
}
