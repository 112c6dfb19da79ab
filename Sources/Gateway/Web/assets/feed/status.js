// @ts-check

/** What the feed shows when there is no story to see, and after the last one. */

import { $, h, icon, setText } from "../dom.js";
import { SignallingError } from "../session.js";
import { studio } from "./menu.js";
import { MissingCard } from "./missing.js";
import { uninvitedForm, wordsForUninvited } from "./uninvited.js";

/** @typedef {import("../story-feed.js").StoryFeed} StoryFeed */

/**
 * Title and hint for each state of the feed.
 * @type {Record<string, [string, string]>}
 */
const WORDS = {
  idle: ["Paused", ""],
  connecting: ["Finding live streams…", ""],
  reconnecting: ["Reconnecting…", "The connection was lost. You don’t need to do anything."],
  empty: ["No one is live right now.", "Be the first. New streams appear here automatically."],
  missing: ["", ""],
  replaced: ["You’re watching somewhere else.", "The feed plays in one place at a time."],
  failed: ["The feed can’t be loaded.", ""],
};

const goLive = () => h("a.button.primary.large", { href: studio }, icon("live"), "Go live");

/** A story without a picture for this long is reported as having none, in seconds. */
const PATIENCE_S = 5;

/** Shown beside a frozen picture, when a new connection would not help. */
const CONDITIONS = { fine: "", weak: "Weak connection. Trying to resume…", silent: "No signal. Trying to resume…" };

/** @param {StoryFeed} feed */
export function makeStatus(feed) {
  let shown = "";
  const missing = new MissingCard(feed, { title: $("state"), hint: $("hint"), actions: $("actions") });
  /** The story without a picture, and for how many seconds. */
  let blank = { id: "", seconds: 0 };
  /** @type {import("./health.js").Condition} */
  let condition = "fine";
  const update = () => {
    const { state, current } = feed;
    // A story is shown as soon as it is known, long before its video arrives.
    const isShown = current && (state === "connecting" || state === "idle");
    document.body.dataset.state = isShown ? "playing" : state === "playing" && !current ? "connecting" : state;
    // While there is a picture, only a pill at its edge reports problems.
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
     * Updates once a second.
     * @param {boolean} isSeen whether there is a picture of the current story
     * @param {import("./health.js").Condition} now its condition
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
 * The card after the last story.
 * @param {StoryFeed} feed
 * @param {HTMLElement} card
 */
export function fillEnd(feed, card) {
  const title = h("h2");
  const hint = h("p");
  const again = h("button.button.large", {
    type: "button", onclick: () => feed.stories.length && feed.go(feed.stories[0].id),
  }, icon("again"), "Start over");
  card.replaceChildren(icon("brand", "mark"), title, hint, h("p.actions", {}, again, goLive()));
  return () => {
    const isMore = feed.beside("forward") !== null;
    setText(title, isMore ? "Someone just went live." : "That’s everyone for now.");
    setText(hint, isMore ? "Swipe to watch." : "New streams appear here automatically.");
  };
}
