// @ts-check

/** Elements for text: paragraphs with inline code, and blocks of code that can be copied. */

import { announce, h } from "../dom.js";

/** How long the button says “Copied”, in milliseconds. */
const COPIED_MS = 2000;

/** A paragraph, in which backticks enclose code. @param {string} text */
export function prose(text) {
  const paragraph = h("p");
  text.split("`").forEach((piece, index) => paragraph.append(index % 2 ? h("code", {}, piece) : piece));
  return paragraph;
}

/**
 * @param {string} code
 * @param {string} title
 * @returns {HTMLElement}
 */
export function codeBlock(code, title) {
  const text = code.trimEnd();
  const button = h("button.copy", { type: "button", onclick: () => copy(button, text), "aria-label": `Copy: ${title}` }, "Copy");
  return h("figure.code", {},
    h("figcaption", {}, title, button),
    h("pre", { tabIndex: 0, role: "region", "aria-label": title }, h("code", {}, text)));
}

/** @param {HTMLButtonElement} button @param {string} text */
async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Insecure pages have no clipboard: select the code, to be copied by hand.
    const code = button.closest("figure")?.querySelector("code");
    if (code) getSelection()?.selectAllChildren(code);
    button.textContent = "Selected";
  }
  announce(button.textContent);
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}

/**
 * Several blocks in one place, as WAI-ARIA tabs.
 * @param {string} label
 * @param {{ title: string, block: HTMLElement }[]} entries
 */
export function tabs(label, entries) {
  const list = h("div.tab-list", { role: "tablist", "aria-label": label });
  const buttons = entries.map(({ title, block }, index) => {
    const id = `tab-${label}-${index}`.replaceAll(" ", "-");
    block.id = `${id}-panel`;
    block.setAttribute("role", "tabpanel");
    block.setAttribute("aria-labelledby", id);
    const button = h("button", { type: "button", id, role: "tab", "aria-controls": block.id, onclick: () => choose(index) }, title);
    list.append(button);
    return button;
  });
  /** @param {number} chosen */
  const choose = (chosen) => entries.forEach(({ block }, index) => {
    block.hidden = index !== chosen;
    buttons[index].setAttribute("aria-selected", String(index === chosen));
    buttons[index].tabIndex = index === chosen ? 0 : -1;
  });
  list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (buttons.indexOf(/** @type {any} */ (document.activeElement)) + step + buttons.length) % buttons.length;
    choose(next);
    buttons[next].focus();
    event.preventDefault();
  });
  choose(0);
  return h("div.tabs", {}, list, ...entries.map(({ block }) => block));
}
