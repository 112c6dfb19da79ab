// @ts-check

/**
 * Shows the audience on a page: comments, the pinned one, a field to write in, and rising reactions. What others wrote
 * is only ever inserted as text.
 */

import { makeAudienceAction } from "./audience-action.js";
import { calm } from "./barrage.js";
import { makeCard } from "./card.js";
import { ask } from "./dialog.js";
import { callName, follow, h, icon, isolate, reconcile, setText } from "./dom.js";
import { silence } from "./moderation.js";
import { makePoll, openPoll } from "./poll.js";
import { makeBadges } from "./ranks.js";
import { nameOf, signOf } from "./reaction-signs.js";
import { SignallingError } from "./session.js";

/** Most comments in the list, unless someone scrolls back. */
const MOST_LINES = 60;
/** Older comments are loaded at this distance from the first one, in pixels. */
const NEAR_TOP = 80;
/** The list follows new comments at this distance from its end, in pixels. */
const NEAR_END = 40;
/** Most reactions that rise at the same time; others are only counted. */
const MOST_RISING = 24;
/** Most taps of others that are shown for one message. */
const MOST_AT_ONCE = 8;
/** How long the count of skipped comments stays, in milliseconds. */
const MORE_MS = 4000;
/** The longest comment the server accepts, in characters. */
const LONGEST = 300;

/** Keys that scroll the list while it has the focus. */
const SCROLLING = ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "];

/** The placeholder for viewers who cannot comment. */
const FOR_MEMBERS = "Only members can comment";

/**
 * @typedef {object} Part what these views need from their page
 * @property {import("./audience.js").Audience} audience
 * @property {(needsName: boolean) => Promise<boolean>} identify makes sure that the server knows who we are; false if
 *   it cannot
 * @property {(text: string) => void} say
 * @property {(widget: import("./audience.js").Widget) => boolean} shows whether this page shows a widget; the studio
 *   shows all
 * @property {(id: string, name: string) => Promise<unknown>} [keepOut] bans someone, if the host confirms it
 */

/**
 * Comments and the field to write in.
 * @param {Part} part
 * @param {{ isDesk?: boolean }} [options] whether it stays visible when all of this is hidden, as it has other contents
 */
export function makeComments(part, { isDesk = false } = {}) {
  const { audience, identify, say, shows, keepOut } = part;
  const [poll, card] = [makePoll(part), makeCard(part)];
  // Safari lets nobody scroll with keys what has no focus.
  const list = h("ul.comments", { role: "log", "aria-label": "Comments", tabIndex: 0 });
  const pinned = h("p.pinned-comment", { hidden: true, dir: "auto" });
  const more = h("p.more-comments", { hidden: true, role: "status" });
  const field = h("input", {
    name: "comment", dir: "auto", maxLength: LONGEST, autocomplete: "off", enterKeyHint: "send", "aria-label": "Comment",
  });
  const button = h("button.button.round", { type: "submit", "aria-label": "Send", title: "Send" }, icon("send"));
  const notice = h("p.comment-problem", { role: "status", hidden: true });
  const form = h("form.composer", {}, field, button);
  const root = h("section.talk", { "aria-label": "Comments" }, poll.root, card.root, pinned, list, more, notice, form);

  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const text = field.value;
    if (!text.trim() || form.ariaBusy === "true") return;
    // The text was typed before the host restricted comments.
    if (audience.isForMembers) return showProblem(`${FOR_MEMBERS}.`);
    form.ariaBusy = "true";
    showProblem("");
    try {
      if (await identify(true)) {
        await audience.write(text);
        // On a slow network, the next comment may already be in the field.
        if (field.value === text) field.value = "";
        list.scrollTop = list.scrollHeight;
      }
    } catch (error) {
      showProblem(error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
    } finally {
      form.ariaBusy = "false";
    }
  });
  field.addEventListener("input", () => showProblem(""));
  // Keyboard shortcuts of the page, such as m, are letters here.
  form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => event.stopPropagation());

  // They turn the stories of the feed elsewhere.
  list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.target === list && SCROLLING.includes(event.key)) event.stopPropagation();
  });

  const isAtEnd = () => list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END;
  /** Fades the upper edge if there is more above it. */
  const fade = () => {
    const [box, first] = [list, list.firstElementChild].map((each) => each?.getBoundingClientRect().top ?? 0);
    list.classList.toggle("is-cut", first < box);
  };
  list.addEventListener("scroll", fade, { passive: true });
  /** Whether the viewer is reading earlier comments. */
  let isReadingBack = false;
  list.addEventListener("scroll", () => {
    if (isAtEnd()) {
      if (!isReadingBack) return;
      isReadingBack = false;
      audience.dropOlder();
    } else if (list.scrollTop < NEAR_TOP) {
      const isShown = isReadingBack;
      isReadingBack = true;
      if (isShown || audience.comments.length <= MOST_LINES) return void audience.loadOlder();
    } else return;
    audience.dispatchEvent(new Event("change"));
  });

  /** @param {string} text */
  function showProblem(text) {
    notice.hidden = !text;
    setText(notice, text);
  }

  /** @param {string} _key */
  const makeLine = (_key) => {
    const name = h("b", { dir: "auto" });
    const badges = makeBadges(() => shows("ranks"));
    const text = h("span", { dir: "auto" });
    const act = h("button.act", { type: "button", "aria-label": "Comment options", title: "More" }, icon("more"));
    const line = h("li", {}, h("p", {}, ...badges.medals, name, badges.word, " ", text), act);
    /** @param {import("./audience.js").StreamComment} comment */
    line.update = (comment) => {
      setText(name, callName(comment.author, comment.name));
      badges.update(audience, { id: comment.author, role: comment.role, isModerator: comment.moderator });
      setText(text, comment.text);
      act.hidden = !audience.isOwn(comment) && !(audience.mayModerate && (audience.isModerator || comment.role !== "host"));
      act.onclick = () => actOn(comment);
    };
    return line;
  };

  /** @param {import("./audience.js").StreamComment} comment */
  async function actOn(comment) {
    const name = isolate(callName(comment.author, comment.name));
    const isTheirs = audience.mayModerate && !audience.isOwn(comment) && comment.role !== "host";
    const isPinned = audience.pinned?.number === comment.number;
    const { api } = audience;
    const answer = await ask({
      name: "comment", title: name, text: comment.text,
      choices: [
        { value: "delete", label: "Delete", look: "danger" },
        ...audience.mayModerate ? [{ value: "pin", label: isPinned ? "Unpin" : "Pin" }] : [],
        ...isTheirs ? [{ value: "silence", label: "Silence…" }] : [],
        ...isTheirs && audience.isModerator && keepOut
          ? [{ value: "ban", label: "Remove and keep out…", look: /** @type {const} */ ("danger") }] : [],
        { value: "no", label: "Cancel" },
      ],
    });
    await attempt(async () => {
      if (answer === "delete") await api.deleteComment(comment.number);
      else if (answer === "pin") await (isPinned ? api.unpinComment() : api.pinComment(comment.number));
      else if (answer === "silence") await silence(part, comment.author, name);
      else if (answer === "ban") await keepOut?.(comment.author, callName(comment.author, comment.name));
    });
  }

  /** @param {() => Promise<unknown>} action */
  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      say(error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
    }
  }

  /** @type {number | undefined} */
  let moreTimer;
  const showMore = (/** @type {Event} */ event) => {
    if (list.hidden) return;
    setText(more, `…and ${/** @type {CustomEvent} */ (event).detail} more`);
    more.hidden = false;
    clearTimeout(moreTimer);
    moreTimer = setTimeout(() => (more.hidden = true), MORE_MS);
  };
  audience.addEventListener("more", showMore);

  const unfollow = follow(audience, () => {
    const { settings } = audience;
    // With reduced motion, the list stands in for comments across the picture.
    const isListed = settings?.comments === true && (shows("comments") || shows("barrage") && calm.matches);
    list.hidden = !isListed;
    form.hidden = !settings?.comments || !shows("composer");
    root.hidden = !audience.isOpen || !isDesk && list.hidden && form.hidden && poll.root.hidden && card.root.hidden;
    // Not disabled: keyboard users would never reach it.
    field.readOnly = audience.isForMembers;
    field.setAttribute("aria-disabled", String(audience.isForMembers));
    field.placeholder = audience.isForMembers ? FOR_MEMBERS
      : settings?.slowMode ? `One comment every ${settings.slowMode} s…` : "Say something…";
    // Viewers who read earlier comments keep their place.
    const [wasAtEnd, top] = [isAtEnd(), list.firstElementChild];
    const place = (/** @type {Element | null} */ line) => line instanceof HTMLElement ? line.offsetTop - list.scrollTop : 0;
    const before = place(top);
    const { comments, older } = audience;
    const shown = isReadingBack ? [...older, ...comments] : comments.slice(-MOST_LINES);
    reconcile(list, shown.map((comment) => [String(comment.number), comment]), makeLine);
    if (wasAtEnd) list.scrollTop = list.scrollHeight;
    else if (top?.isConnected) list.scrollTop += place(top) - before;
    fade();
    pinned.hidden = audience.pinned === null || !isListed;
    if (audience.pinned) {
      pinned.replaceChildren(icon("pin"), h("b", { dir: "auto" }, callName(audience.pinned.author, audience.pinned.name)),
        " ", h("span", { dir: "auto" }, audience.pinned.text));
    }
  });
  // Sync says who we are, which decides what we may do with a comment.
  const unfollowSync = follow(audience.sync, () => audience.dispatchEvent(new Event("change")));
  return {
    root,
    stop() {
      clearTimeout(moreTimer);
      audience.removeEventListener("more", showMore);
      unfollow();
      unfollowSync();
      poll.stop();
      card.stop();
      root.remove();
    },
  };
}

/** The button with which a host asks the audience something. @param {Part} part */
export function makeAsking(part) {
  const isOffered = () => part.audience.poll?.closedAt !== null;
  return makeAudienceAction(part, "ask-audience", "Poll…", openPoll, isOffered);
}

const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** Reaction buttons with their counts, and the reactions that rise from them. @param {Part} part */
export function makeReactions({ audience, identify, shows }) {
  const buttons = h("div.reaction-buttons");
  const sky = h("div.rising", { "aria-hidden": "true" });
  const root = h("div.reactions", {}, sky, buttons);

  /** @param {string} kind @param {number} count */
  const rise = (kind, count) => {
    if (calm.matches || document.visibilityState !== "visible") return;
    for (let index = 0; index < Math.min(count, MOST_AT_ONCE) && sky.childElementCount < MOST_RISING; index++) {
      const sign = h("i", {}, signOf(kind));
      sign.style.setProperty("--drift", `${Math.round(Math.random() * 70 - 45)}px`);
      sign.style.setProperty("--turn", `${Math.round(Math.random() * 50 - 25)}deg`);
      sign.style.setProperty("--size", `${(1.3 + Math.random() * 0.9).toFixed(2)}rem`);
      sign.style.animationDelay = `${index * 60}ms`;
      sign.addEventListener("animationend", () => sign.remove());
      sky.append(sign);
    }
  };
  const others = (/** @type {Event} */ event) => {
    const { kind, count } = /** @type {CustomEvent} */ (event).detail;
    rise(kind, count);
  };
  audience.addEventListener("taps", others);

  /** Whether we are getting an identity: each attempt reconnects, and taps come fast. */
  let isAsking = false;

  /** @param {string} kind */
  const makeButton = (kind) => {
    const count = h("span");
    const button = h("button.button.round.reaction", { type: "button", "data-kind": kind }, signOf(kind), count);
    button.addEventListener("click", async () => {
      audience.tap(kind);
      rise(kind, 1);
      if (audience.sync.you || isAsking) return;
      isAsking = true;
      isAsking = await identify(false).catch(() => false);
    });
    /** @param {number} total */
    button.update = (total) => {
      setText(count, total ? compact.format(total) : "");
      button.setAttribute("aria-label", `${nameOf(kind)}: ${total}`);
      button.dataset.total = String(total);
    };
    return button;
  };
  const unfollow = follow(audience, () => {
    if (audience.sync.you) isAsking = false;
    const kinds = audience.settings?.reactions ?? [];
    root.hidden = !audience.isOpen || kinds.length === 0 || !shows("reactions");
    reconcile(buttons, kinds.map((kind) => [kind, audience.reactions[kind]?.total ?? 0]), makeButton);
  });
  return {
    root,
    stop() {
      audience.removeEventListener("taps", others);
      unfollow();
      root.remove();
    },
  };
}
