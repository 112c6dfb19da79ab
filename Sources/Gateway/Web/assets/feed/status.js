// @ts-check

/** What is said when there is no story to see, and what comes after the last one. */

import { $, h, icon, setText } from "../dom.js";
import { SignallingError } from "../session.js";
import { studio } from "./menu.js";
import { MissingCard } from "./missing.js";
import { uninvitedForm, wordsForUninvited } from "./uninvited.js";

/** @typedef {import("../story-feed.js").StoryFeed} StoryFeed */

/**
 * The brand's words for every state of the feed.
 * @type {Record<string, [string, string]>}
 */
const WORDS = {
  idle: ["Paused", ""],
  connecting: ["Looking who is live…", ""],
  reconnecting: ["Reconnecting…", "The connection was interrupted. You need not do anything."],
  empty: ["Nobody is live right now.", "Be the first. Whoever goes live appears here by itself."],
  missing: ["", ""],
  replaced: ["You are watching somewhere else.", "The feed plays in one place at a time."],
  failed: ["This feed cannot be shown.", ""],
};

const goLive = () => h("a.button.primary.large", { href: studio }, icon("live"), "Go live");

/** A story without a picture for so long is said to have none, in seconds. */
const PATIENCE_S = 5;

/** What is said while a picture stands still; it is not taken away, and no other connection would do better. */
const CONDITIONS = { fine: "", weak: "Weak network. It goes on by itself.", silent: "Nothing arrives. It goes on by itself." };

/** @param {StoryFeed} feed */
export function makeStatus(feed) {
  let shown = "";
  const missing = new MissingCard(feed, { title: $("state"), hint: $("hint"), actions: $("actions") });
  /** Which story has been without a picture for how many seconds. */
  let blank = { id: "", seconds: 0 };
  /** @type {import("./health.js").Condition} */
  let condition = "fine";
  const update = () => {
    const { state, current } = feed;
    // A story is shown as soon as it is known, long before its video comes.
    const isShown = current && (state === "connecting" || state === "idle");
    document.body.dataset.state = isShown ? "playing" : state === "playing" && !current ? "connecting" : state;
    // With a picture there is only a word at its edge.
    const isBlank = current !== null && current.id === blank.id && blank.seconds >= PATIENCE_S && !feed.isAtEnd;
    const isGated = feed.gateOf(current?.id)?.state === "shut";
    const pill = isGated && state !== "reconnecting" ? "" : state === "reconnecting" ? "Reconnecting…" : CONDITIONS[condition] || (isBlank ? "No picture yet" : "");
    setText($("pill"), current === null || feed.isAtEnd && state !== "reconnecting" ? "" : pill);
    $("status").hidden = Boolean(current) && state !== "replaced" && state !== "failed";
    missing.show(feed.missing);
    if (shown === state) return;
    shown = state;
    if (state === "missing") return;
    const isUninvited = state === "failed" && feed.error instanceof SignallingError && feed.error.status === 401;
    const [title, hint] = isUninvited ? wordsForUninvited() : WORDS[state] ?? WORDS.connecting;
    setText($("state"), title);
    setText($("hint"), state === "failed" && !isUninvited ? feed.error?.message ?? "" : hint);
    $("actions").replaceChildren(...(
      isUninvited ? uninvitedForm() : state === "empty" ? [goLive()]
        : state === "replaced" ? [h("button.button.primary.large", { type: "button", onclick: () => feed.play() }, "Watch here")]
          : state === "failed" ? [h("button.button.large", { type: "button", onclick: () => location.reload() }, "Try again")]
            : []));
  };
  feed.addEventListener("change", update);
  update();
  return {
    /**
     * Once a second.
     * @param {boolean} isSeen whether there is a picture of the current story
     * @param {import("./health.js").Condition} now how it goes on
     */
    tick(isSeen, now) {
      condition = now;
      const id = isSeen || feed.state !== "playing" ? "" : feed.current?.id ?? "";
      blank = { id, seconds: id !== "" && id === blank.id ? blank.seconds + 1 : 0 };
      update();
    },
  };
}

/**
 * The card behind the last story.
 * @param {StoryFeed} feed
 * @param {HTMLElement} card
 */
export function fillEnd(feed, card) {
  const title = h("h2");
  const hint = h("p");
  const again = h("button.button.large", {
    type: "button", onclick: () => feed.stories.length && feed.go(feed.stories[0].id),
  }, icon("again"), "From the beginning");
  card.replaceChildren(icon("brand", "mark"), title, hint, h("p.actions", {}, again, goLive()));
  return () => {
    const isMore = feed.beside("forward") !== null;
    setText(title, isMore ? "Somebody has just gone live." : "That was everybody.");
    setText(hint, isMore ? "Swipe on to see." : "Whoever goes live next appears here by itself.");
  };
}
