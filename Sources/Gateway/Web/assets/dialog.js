// @ts-check

/** Modal dialogs with a question. The focus moves in, stays in, and comes back; Escape means no. */

import { h } from "./dom.js";

/**
 * @typedef {object} Choice
 * @property {string} value that `ask` resolves with if it is chosen
 * @property {string} label
 * @property {"primary" | "danger" | ""} [look]
 *
 * @typedef {object} Question
 * @property {string} name identifies the element, for styles and tests
 * @property {string} title
 * @property {string} [text]
 * @property {Node[]} [body] further content
 * @property {Choice[]} choices the first one gets the focus, unless there is a body, and is chosen by Enter in a text
 *   field
 * @property {boolean} [isUrgent] whether screen readers announce it at once
 * @property {boolean} [isReady] whether the first choice gets the focus although there is a body
 * @property {AbortSignal} [signal] withdraws the question
 */

/**
 * @param {Question} question
 * @returns {Promise<string | null>} null if it was closed without a choice, or is being asked already
 */
export function ask(question) {
  const { name, title, text, body = [], choices, isUrgent = false, isReady = body.length === 0, signal } = question;
  if (signal?.aborted) return Promise.resolve(null);
  // What was pressed twice, before the server had told what to ask.
  if (document.querySelector(`dialog[open][data-name="${name}"]`)) return Promise.resolve(null);
  const id = `dialog-${name}`;
  const dialog = h("dialog.dialog", {
    "data-name": name, role: isUrgent ? "alertdialog" : "dialog", "aria-labelledby": `${id}-title`,
    "aria-describedby": text ? `${id}-text` : "",
  }, h(`h2#${id}-title`, { dir: "auto" }, title));
  if (text) dialog.append(h(`p#${id}-text`, {}, text));
  dialog.append(...body);
  return new Promise((resolve) => {
    /** @type {string | null} */
    let answer = null;
    const buttons = choices.map(({ value, label, look = "" }) => h("button.button", {
      type: "button", "data-value": value, className: `button ${look}`,
      onclick: () => {
        answer = value;
        dialog.close();
      },
    }, label));
    dialog.append(h("p.actions", {}, ...buttons));
    const withdraw = () => dialog.close();
    signal?.addEventListener("abort", withdraw);
    const before = document.activeElement;
    dialog.addEventListener("close", () => {
      signal?.removeEventListener("abort", withdraw);
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(answer);
    });
    closeBeside(dialog);
    dialog.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const isText = event.target instanceof HTMLInputElement && event.target.type === "text";
      if (event.key !== "Enter" || !isText || event.isComposing) return;
      event.preventDefault();
      buttons[0]?.click();
    });
    document.body.append(dialog);
    dialog.showModal();
    if (isReady) buttons[0]?.focus();
  });
}

/**
 * Lets a press beside a dialog close it. A press on its own empty space, or the end of a selection that began in a
 * field, has the dialog as its target, too, and does not.
 * @param {HTMLDialogElement} dialog
 */
export function closeBeside(dialog) {
  let beganBeside = false;
  const isBeside = (/** @type {MouseEvent} */ event) => {
    const box = dialog.getBoundingClientRect();
    return event.target === dialog && (event.clientX < box.left || event.clientX > box.right
      || event.clientY < box.top || event.clientY > box.bottom);
  };
  dialog.addEventListener("pointerdown", (event) => (beganBeside = isBeside(event)));
  dialog.addEventListener("click", (event) => {
    if (beganBeside && isBeside(event)) dialog.close();
  });
}

/**
 * A question with yes and no.
 * @param {Omit<Question, "choices"> & { yes: string, look?: "primary" | "danger", no?: string }} question
 */
export async function confirm({ yes, look = "danger", no = "Cancel", ...question }) {
  const answer = await ask({
    ...question, choices: [{ value: "no", label: no }, { value: "yes", label: yes, look }],
  });
  return answer === "yes";
}
