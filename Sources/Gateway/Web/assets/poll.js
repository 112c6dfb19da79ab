// @ts-check

/** A poll over the picture, with its results, and the form in which the host opens one. */

import { announce, callName, follow, h, setText } from "./dom.js";
import { askAndSave } from "./saving.js";
import { SignallingError } from "./session.js";

/**
 * @typedef {object} Poll
 * @property {number} number
 * @property {string} question
 * @property {{ text: string, votes?: number, right?: boolean }[]} options `right` in a quiz, once we may know
 * @property {boolean} multiple
 * @property {"live" | "closed"} results
 * @property {number} voters
 * @property {boolean} quiz whether it has a right answer
 * @property {number} [rightVoters] of a quiz, once we may know
 * @property {{ participant: string, name: string | null, at: string }[]} [winners] the first who were right, once we may know
 * @property {string} openedAt ISO 8601
 * @property {string | null} closesAt ISO 8601
 * @property {string | null} closedAt ISO 8601
 */

/** @param {import("./talk.js").Part} part */
export function makePoll({ audience, identify, say, shows }) {
  const kind = h("p.kind", { hidden: true }, "Quiz");
  const question = h("h3", { dir: "auto" });
  const options = h("div.options");
  // The count is not in it, which would be read aloud with every answer.
  const judgement = h("b.judgement", { role: "status" });
  const words = h("span");
  const status = h("p.small", { tabIndex: -1 }, judgement, words);
  const list = h("ol");
  const winners = h("div.winners", { hidden: true }, h("p", {}, "First to answer correctly"), list);
  const send = h("button.button.small", { type: "button", hidden: true, onclick: () => vote([...chosen]) }, "Send");
  const end = h("button.button.small", {
    type: "button", hidden: true,
    onclick: () => attempt(() => audience.api.closePoll(audience.poll?.number ?? 0)),
  }, "End the poll");
  const dismiss = h("button.button.small", { type: "button", hidden: true, onclick: () => audience.dismissPoll() }, "Close");
  const root = h("section.poll", { "aria-label": "Poll", hidden: true }, kind, question, options, status, winners, h("p.actions", {}, send, end, dismiss));

  /** The marked options, if several answers are allowed. @type {Set<number>} */
  const chosen = new Set();
  let shown = 0;
  /** The open one that was last told of; 0 if that is over. Others may come and go while none is to be seen. */
  let told = 0;
  /** The winners that are shown, as JSON. */
  let listed = "";
  let isSending = false;

  /** @param {number} index */
  const press = (index) => {
    if (!audience.poll?.multiple) return vote([index]);
    if (!chosen.delete(index)) chosen.add(index);
    update();
  };

  /** @param {number[]} indices */
  async function vote(indices) {
    if (isSending || indices.length === 0) return;
    isSending = true;
    await attempt(async () => {
      if (await identify(false)) await audience.answer(indices);
    });
    isSending = false;
  }

  /** @param {() => Promise<unknown>} action */
  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      say(error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
    }
  }

  function update() {
    const { poll, vote: own } = audience;
    root.hidden = poll === null || !audience.isOpen || !shows("poll");
    if (!poll) return;
    if (!root.hidden) tell(poll);
    const focused = /** @type {any} */ (root.contains(document.activeElement) ? document.activeElement : null);
    if (shown !== poll.number) {
      shown = poll.number;
      chosen.clear();
      options.replaceChildren(...poll.options.map(({ text }, index) => h("button.option", {
        type: "button", onclick: () => press(index),
      }, h("i"), h("span", { dir: "auto" }, text), h("em", { role: "img", hidden: true }), h("b"))));
    }
    kind.hidden = !poll.quiz;
    setText(question, poll.question);
    const isOver = poll.closedAt !== null;
    const isAnswered = own !== null || isOver;
    // People who see the right answers do not answer.
    const mayAnswer = !isAnswered && !(poll.quiz && audience.isModerator);
    [...options.children].forEach((button, index) => {
      const { votes, right } = poll.options[index];
      const share = votes === undefined ? 0 : votes / Math.max(poll.voters, 1);
      const isSeen = votes !== undefined && (isAnswered || audience.isModerator);
      button.disabled = !mayAnswer;
      button.setAttribute("aria-pressed", String(own?.includes(index) ?? chosen.has(index)));
      button.querySelector("i").style.width = isSeen ? `${Math.round(share * 100)}%` : "0";
      setText(button.querySelector("b"), isSeen ? `${Math.round(share * 100)}%` : "");
      mark(button, right ? "right" : right === false && own?.includes(index) ? "wrong" : "");
    });
    const people = poll.voters === 1 ? "1 answer" : `${poll.voters} answers`;
    const later = isAnswered && !isOver && poll.results === "closed" ? " · results at the end" : "";
    const right = poll.rightVoters === undefined ? "" : `, ${poll.rightVoters} right`;
    setText(judgement, isOver ? verdict(poll, own) : "");
    setText(words, `${people}${right}${isOver ? " · over" : later}`);
    listWinners(poll);
    send.hidden = !mayAnswer || !poll.multiple;
    send.disabled = chosen.size === 0;
    end.hidden = isOver || !audience.isModerator;
    setText(end, poll.quiz ? "End the quiz" : "End the poll");
    dismiss.hidden = !isOver;
    // Otherwise the focus is lost with a button that is disabled or hidden, and keyboard users start over at the top.
    if (focused?.disabled || focused?.hidden) status.focus({ preventScroll: true });
  }

  /** That there is a poll, and its end, for who cannot see it come. @param {Poll} poll */
  function tell({ number, quiz, question: text, closedAt }) {
    const isOpen = closedAt === null;
    if (isOpen && told !== number) announce(`${quiz ? "Quiz" : "Poll"}: ${text}`);
    else if (!isOpen && told === number) announce(quiz ? "The quiz is over." : "The poll is over.");
    told = isOpen ? number : 0;
  }

  /** @param {HTMLElement} button @param {"right" | "wrong" | ""} look */
  function mark(button, look) {
    const sign = /** @type {HTMLElement} */ (button.querySelector("em"));
    button.dataset.look = look;
    sign.hidden = look === "";
    sign.ariaLabel = look === "right" ? "the right answer" : look;
    setText(sign, look === "right" ? "✓" : "✗");
  }

  /** @param {Poll} poll */
  function listWinners({ winners: first = [], openedAt }) {
    const text = JSON.stringify(first);
    winners.hidden = first.length === 0;
    if (listed === text) return;
    listed = text;
    list.replaceChildren(...first.map(({ participant, name, at }) => h("li", {},
      h("b", { dir: "auto" }, callName(participant, name)),
      h("span", {}, `${(Math.max(0, Date.parse(at) - Date.parse(openedAt)) / 1000).toFixed(1)} s`))));
  }

  const unfollow = follow(audience, update);
  return {
    root,
    stop() {
      unfollow();
      root.remove();
    },
  };
}

/**
 * The verdict on a viewer's answer at the end of a quiz.
 * @param {Poll} poll
 * @param {number[] | null} own
 */
function verdict({ quiz, options }, own) {
  if (!quiz || !own) return "";
  return options.every(({ right }, index) => right === own.includes(index)) ? "You got it right." : "Not this time.";
}

/** The number of answers that the form starts with. */
const SHOWN_ANSWERS = 4;

/** The fields for the answers. */
function makeOptionFields() {
  const isMultiple = h("input", { type: "checkbox", name: "multiple" });
  const isHidden = h("input", { type: "checkbox", name: "hidden", onchange: () => (isChosen = true) });
  /** Whether the host has chosen when to show the results. */
  let isChosen = false;
  const lines = [1, 2, 3, 4, 5, 6].map((number) => {
    const field = h("input", { type: "text", name: `option-${number}`, dir: "auto", maxLength: 60, oninput: () => grow() });
    const right = h("input", { type: "checkbox", name: `right-${number}`, "aria-label": `Answer ${number} is right` });
    right.addEventListener("change", () => update(right));
    const root = h("div.answer", { hidden: number > SHOWN_ANSWERS },
      h("label", {}, `Answer ${number}${number > 2 ? " (optional)" : ""}`, field),
      h("label.check", {}, right, h("span", {}, "Right")));
    return { root, field, right };
  });

  /** Shows another field once all are used. */
  function grow() {
    const used = lines.findLastIndex(({ field }) => field.value.trim() !== "") + 1;
    for (const { root } of lines.slice(0, used + 1)) root.hidden = false;
  }

  /** @param {HTMLInputElement} [latest] the mark to keep if there can be only one */
  function update(latest) {
    const marked = lines.map(({ right }) => right).filter(({ checked }) => checked);
    const kept = latest?.checked ? latest : marked[0];
    if (!isMultiple.checked) for (const right of marked) right.checked = right === kept;
    // Otherwise viewers could copy the answers of others.
    if (!isChosen) isHidden.checked = marked.length > 0;
  }
  isMultiple.addEventListener("change", () => update());

  return {
    roots: [
      ...lines.map(({ root }) => root),
      h("p.small.muted", {}, "For a quiz, mark the right answers. Viewers see them at the end."),
    ],
    checks: [
      h("label.check", {}, isMultiple, h("span", {}, "Allow several answers")),
      h("label.check", {}, isHidden, h("span", {}, "Show results at the end")),
    ],
    read() {
      const used = lines.filter(({ field, right }) => field.value.trim() || right.checked);
      const right = used.flatMap((line, index) => line.right.checked ? [index] : []);
      return {
        options: used.map(({ field }) => field.value), multiple: isMultiple.checked,
        results: /** @type {"live" | "closed"} */ (isHidden.checked ? "closed" : "live"),
        ...right.length > 0 && { right },
      };
    },
  };
}

/**
 * The form with which a host opens a poll.
 * @param {import("./talk.js").Part} part
 */
export async function openPoll({ audience }) {
  const question = h("input", { type: "text", name: "question", dir: "auto", maxLength: 140 });
  const options = makeOptionFields();
  const seconds = h("select", { name: "seconds" }, new Option("Until I end it", ""),
    ...[30, 60, 120, 300].map((count) => new Option(`${count} seconds`, String(count))));
  await askAndSave({
    name: "poll", title: "Ask the audience",
    body: [h("div.fields", {},
      h("label", {}, "Question", question),
      ...options.roots, h("label", {}, "Duration", seconds), ...options.checks)],
    choices: [{ value: "open", label: "Ask", look: "primary" }, { value: "no", label: "Cancel" }],
  }, async () => {
    await audience.api.openPoll({
      question: question.value, ...options.read(), ...seconds.value && { seconds: Number(seconds.value) },
    });
  });
}
