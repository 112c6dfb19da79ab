// @ts-check

/** Forms that keep what was typed until it is saved. */

import { ask } from "./dialog.js";
import { h, setText } from "./dom.js";
import { SignallingError } from "./session.js";

/**
 * Asks a question and saves the answer. If that fails, it asks again: the fields keep what was typed, and the reason
 * stands below them.
 * @param {import("./dialog.js").Question & { body: Node[] }} question whose answer "no" means that nothing is to be saved
 * @param {(answer: string) => Promise<string | null | void>} save returns what is wrong with the fields, if anything is
 * @returns {Promise<boolean>} whether it was saved
 */
export async function askAndSave(question, save) {
  const problem = h("p.comment-problem", { role: "alert", hidden: true });
  for (;;) {
    const answer = await ask({ ...question, body: [...question.body, problem] });
    if (answer === null || answer === "no") return false;
    const reason = await save(answer).catch((error) =>
      error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
    if (!reason) return true;
    setText(problem, reason);
    problem.hidden = false;
  }
}
