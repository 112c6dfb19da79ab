// @ts-check

/** Searches the documentation; the field and its list are a combobox as WAI-ARIA describes it. */

import { h } from "../dom.js";

/** Results that are shown. */
const MOST = 12;

/**
 * @typedef {object} Entry
 * @property {string} title
 * @property {string} kind what stands beside the title, such as a method and a path
 * @property {string} text all else that is searched
 * @property {string} target address within the page
 */

/** How well an entry fits, 0 for not at all. @param {Entry} entry @param {string[]} words in small letters */
function score({ title, kind, text }, words) {
  let sum = 0;
  for (const word of words) {
    const head = title.toLowerCase();
    if (head.startsWith(word)) sum += 8;
    else if (head.includes(word)) sum += 5;
    else if (kind.toLowerCase().includes(word)) sum += 4;
    else if (text.toLowerCase().includes(word)) sum += 1;
    else return 0;
  }
  return sum;
}

/** The best first. @param {Entry[]} entries @param {string} query */
export function find(entries, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return entries.map((entry, index) => ({ entry, index, score: score(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, MOST).map(({ entry }) => entry);
}

export class Finder {
  /** @type {Entry[]} */
  #entries = [];
  /** @type {Entry[]} */
  #found = [];
  #active = -1;

  /**
   * @param {HTMLInputElement} field
   * @param {HTMLElement} list
   * @param {HTMLElement} status is told how many there are
   */
  constructor(field, list, status) {
    this.field = field;
    this.list = list;
    this.status = status;
    field.addEventListener("input", () => this.#search());
    field.addEventListener("focus", () => this.#search());
    field.addEventListener("keydown", (event) => this.#press(event));
    document.addEventListener("pointerdown", ({ target }) => {
      if (!field.parentElement?.contains(/** @type {Node} */ (target))) this.#close();
    });
    document.addEventListener("keydown", (event) => {
      const isWriting = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.key !== "/" || isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.focus();
      field.select();
    });
  }

  /** @param {Entry[]} entries */
  fill(entries) {
    this.#entries = entries;
    if (document.activeElement === this.field) this.#search();
  }

  #search() {
    const query = this.field.value.trim();
    this.#found = find(this.#entries, query);
    this.#active = -1;
    this.list.replaceChildren(...this.#found.map((entry, index) => h("li", { id: `result-${index}`, role: "option", "aria-selected": "false" },
      h("a", { href: entry.target, tabIndex: -1, onclick: () => this.#close() }, h("span.title", {}, entry.title), h("span.kind", {}, entry.kind)))));
    if (query && !this.#found.length) this.list.append(h("li.nothing", {}, "No results."));
    this.list.hidden = !query;
    this.field.setAttribute("aria-expanded", String(Boolean(query)));
    this.field.removeAttribute("aria-activedescendant");
    this.status.textContent = query ? `${this.#found.length} ${this.#found.length === 1 ? "result" : "results"}` : "";
  }

  #close() {
    this.list.hidden = true;
    this.#active = -1;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    // The focus goes on, and the list would stay over what is next.
    if (event.key === "Tab") return this.#close();
    const count = this.list.hidden ? 0 : this.#found.length;
    if (event.key === "Escape") {
      this.field.value = "";
      this.#search();
    } else if (event.key === "ArrowDown" && count) this.#mark((this.#active + 1) % count);
    else if (event.key === "ArrowUp" && count) this.#mark((Math.max(this.#active, 0) - 1 + count) % count);
    else if (event.key === "Enter" && count) {
      location.hash = this.#found[Math.max(this.#active, 0)].target;
      this.#close();
      this.field.blur();
    } else return;
    event.preventDefault();
  }

  /** @param {number} index */
  #mark(index) {
    const options = this.list.children;
    options[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = index;
    options[index].setAttribute("aria-selected", "true");
    options[index].scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", options[index].id);
  }
}
