// @ts-check

/** A poll over the picture: to be answered, then to be watched; and the host's question. */

import { ask } from "./dialog.js";
import { follow, h, setText } from "./dom.js";
import { SignallingError } from "./session.js";

/**
 * @typedef {object} Poll
 * @property {number} number
 * @property {string} question
 * @property {{ text: string, votes?: number }[]} options
 * @property {boolean} multiple
 * @property {"live" | "closed"} results
 * @property {number} voters
 * @property {string | null} closesAt ISO 8601
 * @property {string | null} closedAt ISO 8601
 */

/** @param {import("./talk.js").Part} part */
export function makePoll({ audience, identify, say, shows }) {
  const question = h("h3", { dir: "auto" });
  const options = h("div.options");
  const words = h("p.small", { role: "status" });
  const send = h("button.button.small", { type: "button", hidden: true, onclick: () => vote([...chosen]) }, "Send");
  const end = h("button.button.small", {
    type: "button", hidden: true,
    onclick: () => attempt(() => audience.api.closePoll(audience.poll?.number ?? 0)),
  }, "End the poll");
  const dismiss = h("button.button.small", { type: "button", hidden: true, onclick: () => audience.dismissPoll() }, "Close");
  const root = h("section.poll", { "aria-label": "Poll", hidden: true }, question, options, words, h("p.actions", {}, send, end, dismiss));

  /** Options that are marked, where several may be. @type {Set<number>} */
  const chosen = new Set();
  let shown = 0;
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
      say(error instanceof SignallingError ? error.message : "The server does not answer. Try again in a moment.");
    }
  }

  function update() {
    const { poll, vote: own } = audience;
    root.hidden = poll === null || !audience.isOpen || !shows("poll");
    if (!poll) return;
    if (shown !== poll.number) {
      shown = poll.number;
      chosen.clear();
      options.replaceChildren(...poll.options.map(({ text }, index) => h("button.option", {
        type: "button", onclick: () => press(index),
      }, h("i"), h("span", { dir: "auto" }, text), h("b"))));
    }
    setText(question, poll.question);
    const isOver = poll.closedAt !== null;
    const isAnswered = own !== null || isOver;
    [...options.children].forEach((button, index) => {
      const { votes } = poll.options[index];
      const share = votes === undefined ? 0 : votes / Math.max(poll.voters, 1);
      const isSeen = votes !== undefined && (isAnswered || audience.isModerator);
      button.disabled = isAnswered;
      button.setAttribute("aria-pressed", String(own?.includes(index) ?? chosen.has(index)));
      button.querySelector("i").style.width = isSeen ? `${Math.round(share * 100)}%` : "0";
      setText(button.querySelector("b"), isSeen ? `${Math.round(share * 100)} %` : "");
    });
    const people = poll.voters === 1 ? "1 answer" : `${poll.voters} answers`;
    const later = isAnswered && !isOver && poll.results === "closed" ? " · the result comes at the end" : "";
    setText(words, `${people}${isOver ? " · over" : later}`);
    send.hidden = isAnswered || !poll.multiple;
    send.disabled = chosen.size === 0;
    end.hidden = isOver || !audience.isModerator;
    dismiss.hidden = !isOver;
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
 * Asks a host what to ask the audience.
 * @param {import("./talk.js").Part} part
 */
export async function openPoll({ audience, say }) {
  const question = h("input", { type: "text", name: "question", dir: "auto", maxLength: 140 });
  const options = [1, 2, 3, 4].map((number) => h("input", { type: "text", name: `option-${number}`, dir: "auto", maxLength: 60 }));
  const seconds = h("select", { name: "seconds" }, new Option("Until I end it", ""),
    ...[30, 60, 120, 300].map((count) => new Option(`${count} seconds`, String(count))));
  const isMultiple = h("input", { type: "checkbox", name: "multiple" });
  const isHidden = h("input", { type: "checkbox", name: "hidden" });
  const answer = await ask({
    name: "poll", title: "Ask the audience",
    body: [h("div.fields", {},
      h("label", {}, "Question", question),
      ...options.map((field, index) => h("label", {}, `Answer ${index + 1}${index > 1 ? ", if there is one" : ""}`, field)),
      h("label", {}, "Open", seconds),
      h("label.check", {}, isMultiple, h("span", {}, "Several answers may be chosen")),
      h("label.check", {}, isHidden, h("span", {}, "The result is seen at the end")))],
    choices: [{ value: "open", label: "Ask", look: "primary" }, { value: "no", label: "Cancel" }],
  });
  if (answer !== "open") return;
  try {
    await audience.api.openPoll({
      question: question.value, options: options.map(({ value }) => value).filter((text) => text.trim()),
      multiple: isMultiple.checked, results: isHidden.checked ? "closed" : "live",
      ...seconds.value && { seconds: Number(seconds.value) },
    });
  } catch (error) {
    say(error instanceof SignallingError ? error.message : "The server does not answer. Try again in a moment.");
  }
}
