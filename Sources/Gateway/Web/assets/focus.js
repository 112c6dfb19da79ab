// @ts-check

/** Keeps the focus of whoever has no mouse on the page, when what they pressed hides itself or goes away. */

/** What may be focused without asking: a field would take the page's keys, and open the keyboard of a phone. */
const CONTROLS = "button:not(:disabled), a[href], summary";

/**
 * Moves the focus to the nearest control when the focused element becomes hidden or is removed, unless the page has
 * moved it itself. Whoever uses a pointer sees where to go on, and keeps the controls from fading with a focus in them.
 * @param {HTMLElement} root
 * @returns {() => void} ends it
 */
export function keepFocus(root) {
  /** The last focused element, and where it was. @type {Element | null} */
  let focused = null;
  let isPointed = false;
  const end = new AbortController();
  const listen = { capture: true, signal: end.signal };
  root.addEventListener("focusin", ({ target }) => (focused = /** @type {Element} */ (target)), listen);
  addEventListener("pointerdown", () => (isPointed = true), listen);
  addEventListener("keydown", () => {
    isPointed = false;
    // What was left by pointer before is no business of this key.
    focused = document.activeElement;
  }, listen);
  // Keys and assistive technology press without a pointer.
  addEventListener("click", ({ detail, isTrusted }) => {
    if (detail === 0 && isTrusted) isPointed = false;
  }, listen);
  // These are told before the browser draws, and thereby before it takes the focus from what is hidden.
  const observer = new MutationObserver((changes) => {
    const { activeElement } = document;
    const gone = activeElement && activeElement !== document.body ? activeElement : focused;
    if (!gone) return;
    // Styles hide controls by the page's state.
    const isRestyled = changes.some(({ attributeName }) => attributeName === "data-state");
    const isHidden = gone.closest("[hidden]") !== null || isRestyled && !gone.checkVisibility({ visibilityProperty: true });
    if (gone.isConnected && !isHidden) return;
    focused = null;
    if (isPointed) return /** @type {HTMLElement} */ (gone).blur();
    const change = changes.find(({ removedNodes }) => [...removedNodes].some((node) => node.contains(gone)));
    // The next space of whoever is typing would press a button.
    if (gone.matches("input[type=text], input:not([type]), textarea")) return focusMain();
    if (gone.isConnected) return go(gone.parentElement, (element) => isAfter(gone, element));
    const { target, nextSibling } = change ?? {};
    if (!(target instanceof Element) || target === document.body) return focusMain();
    const isNext = (/** @type {Element} */ element) =>
      Boolean(nextSibling && (nextSibling.contains(element) || isAfter(nextSibling, element)));
    go(target, (element) => target.contains(element) ? isNext(element) : isAfter(target, element));
  });
  observer.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "data-state"] });
  return () => {
    observer.disconnect();
    end.abort();
  };
}

/** @param {Node} one @param {Node} other */
function isAfter(one, other) {
  return Boolean(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}

/**
 * Focuses the first control after a place, otherwise the last before it, in the smallest part of the page that has any.
 * @param {Element | null} from
 * @param {(element: Element) => boolean} isNext
 */
function go(from, isNext) {
  for (let part = from; part && part !== document.body; part = part.parentElement) {
    const controls = [...part.querySelectorAll(CONTROLS)].filter(mayHaveFocus);
    const control = controls.find(isNext) ?? controls.at(-1);
    if (control) return /** @type {HTMLElement} */ (control).focus({ preventScroll: true });
    if (part.localName === "dialog") return;
  }
  focusMain();
}

/** Nobody presses again by mistake what cannot be undone. @param {Element} element */
function mayHaveFocus(element) {
  return !element.classList.contains("danger") && !element.closest("[inert], [aria-hidden=true]")
    && element.checkVisibility({ visibilityProperty: true });
}

function focusMain() {
  document.querySelector("main")?.focus({ preventScroll: true });
}
