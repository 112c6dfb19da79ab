// @ts-check

/** Moderation: silencing the author of a comment, and the host's lists of silences and of what moderators did. */

import { makeAudienceAction } from "./audience-action.js";
import { ask } from "./dialog.js";
import { callName, h, isolate, reconcile, setText } from "./dom.js";
import { SignallingError } from "./session.js";

/**
 * @typedef {import("./audience.js").Audience} Audience
 *
 * @typedef {object} Silence
 * @property {string} until ISO 8601
 * @property {boolean} shadow whether they can still write comments that only they see
 *
 * @typedef {object} AuditEntry
 * @property {string} action
 * @property {string} by
 * @property {string | null} name of the person who did it
 * @property {string} at ISO 8601
 * @property {string | null} participant the person it concerns
 * @property {number | null} comment
 * @property {string | null} text the beginning of the comment, or the title of the card
 * @property {string | null} until ISO 8601
 */

/** How long someone is silenced, in seconds. */
const SILENCES = [
  { value: "60", label: "For a minute" }, { value: "600", label: "For ten minutes" }, { value: "86400", label: "For a day" },
];
/** How often the open lists are refreshed, in milliseconds: others moderate, too, and silences end. */
const LOOK_MS = 3000;
/** How long only the author sees their comments, in seconds. */
const SHADOW_SECONDS = 86_400;

/**
 * Asks how long to silence someone, or whether to lift the silence.
 * @param {import("./talk.js").Part} part
 * @param {string} author
 * @param {string} name isolated, for use within a sentence
 */
export async function silence({ audience: { api }, say }, author, name) {
  const { silenced } = await api.interaction();
  const known = silenced && Object.hasOwn(silenced, author) ? silenced[author] : null;
  const answer = await ask({
    name: "silence", title: `Silence ${name}?`, text: known ? `${wordsOf(known)}.` : "They can keep watching but can’t comment.",
    choices: [
      ...known ? [{ value: "lift", label: "Lift silence", look: /** @type {const} */ ("primary") }] : [],
      ...SILENCES, { value: "shadow", label: "For a day, without telling them" }, { value: "no", label: "Cancel" },
    ],
  });
  if (!answer || answer === "no") return;
  if (answer === "lift") {
    await api.unsilence(author);
    say(`${name} can comment again.`);
  } else if (answer === "shadow") {
    await api.silence(author, SHADOW_SECONDS, true);
    say(`Only ${name} sees their comments now.`);
  } else {
    await api.silence(author, Number(answer));
    say(`${name} can’t comment for now.`);
  }
}

/** @param {Silence} silence */
function wordsOf({ until, shadow }) {
  return shadow ? `Only they see their comments until ${when(until)}` : `They can’t comment until ${when(until)}`;
}

/** The time, and the date if it is not today. @param {string} time */
function when(time) {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(undefined, isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

/** The button that opens the lists. @param {import("./talk.js").Part} part */
export function makeModeration(part) {
  return makeAudienceAction(part, "moderation", "Moderation…", openModeration);
}

/** A dialog with the silenced people and the log of moderation. @param {import("./talk.js").Part} part */
async function openModeration({ audience }) {
  const { api } = audience;
  const silenced = h("ul.people-list", { "aria-label": "Silenced" });
  const nobody = h("p.muted.small", {}, "No one is silenced.");
  const log = h("ol.audit", { "aria-label": "Activity", tabIndex: 0 });
  const nothing = h("p.muted.small", {}, "Nothing yet.");
  const words = h("p.muted.small", { role: "status" });
  for (const element of [silenced, nobody, log, nothing]) element.hidden = true;

  /** @type {AuditEntry[]} */
  let entries = [];
  /** Whether `words` says that the lists are out of date. */
  let isTroubled = false;
  /** @param {string} id */
  const nameOf = (id) => {
    const { comments, sync: { known } } = audience;
    const named = [comments.findLast(({ author }) => author === id), entries.findLast(({ by }) => by === id),
      new Map(Object.entries({ ...known?.viewers, ...known?.speakers })).get(id)];
    return callName(id, named.find((person) => person?.name)?.name);
  };

  /** @param {string} id */
  const makeRow = (id) => {
    const name = h("b", { dir: "auto" });
    const until = h("small.muted");
    const lift = h("button.button.small", { type: "button", onclick: () => liftSilence(id) }, "Lift");
    const row = h("li", {}, h("span.who", {}, name, until), lift);
    /** @param {Silence} silence */
    row.update = (silence) => {
      setText(name, nameOf(id));
      setText(until, wordsOf(silence));
      lift.setAttribute("aria-label", `Lift the silence for ${nameOf(id)}`);
    };
    return row;
  };

  /** @param {string} key of the entry */
  const makeEntry = (key) => {
    const what = h("span");
    const line = h("li", {}, what, h("time.muted.small", { dateTime: key.split(" ")[0] }, when(key.split(" ")[0])));
    /** @param {AuditEntry} entry */
    line.update = (entry) => setText(what, sentenceOf(entry, nameOf));
    return line;
  };

  async function look() {
    try {
      const [settings, audit] = await Promise.all([api.interaction(), api.audit()]);
      entries = audit.entries;
      const people = Object.entries(settings.silenced ?? {}).sort(([, one], [, other]) => one.until.localeCompare(other.until));
      reconcile(silenced, people, makeRow);
      // Entries of the same millisecond are in their order, too.
      reconcile(log, /** @type {[string, AuditEntry][]} */ (
        entries.map((entry, index) => [`${entry.at} ${index}`, entry])).reverse(), makeEntry);
      silenced.hidden = people.length === 0;
      log.hidden = entries.length === 0;
      nobody.hidden = !silenced.hidden;
      nothing.hidden = !log.hidden;
      if (isTroubled) setText(words, "");
      isTroubled = false;
    } catch (error) {
      setText(words, troubleOf(error));
      isTroubled = true;
    }
  }

  /** Loads the lists; one request at a time, so that no older answer replaces a newer one. */
  let [last, waiting] = [Promise.resolve(), 0];
  function load() {
    waiting += 1;
    return last = last.then(look).finally(() => (waiting -= 1));
  }

  /** @param {string} id */
  async function liftSilence(id) {
    // What it says of this stays when the lists come.
    isTroubled = false;
    try {
      await api.unsilence(id);
      setText(words, `${isolate(nameOf(id))} can comment again.`);
    } catch (error) {
      setText(words, troubleOf(error));
    }
    const dialog = silenced.closest("dialog");
    await load();
    // The pressed button is gone: focus the next one.
    if (!dialog?.contains(document.activeElement)) (silenced.querySelector("button") ?? dialog?.querySelector("[data-value=close]"))?.focus();
  }

  load();
  const timer = setInterval(() => waiting === 0 && load(), LOOK_MS);
  await ask({
    name: "moderation", title: "Moderation", isReady: true,
    body: [h("h3", {}, "Silenced"), silenced, nobody, h("h3", {}, "Activity"), log, nothing, words],
    choices: [{ value: "close", label: "Close" }],
  });
  clearInterval(timer);
}

/** @param {unknown} error */
function troubleOf(error) {
  return error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.";
}

/**
 * @param {AuditEntry} entry
 * @param {(id: string) => string} nameOf
 */
function sentenceOf({ action, by, name, participant, text, until }, nameOf) {
  const who = isolate(callName(by, name));
  const whom = isolate(participant === null ? "someone" : nameOf(participant));
  // The text is missing if the comment is no longer stored.
  const quoted = text === null ? "" : ` “${isolate(text)}”`;
  const end = until === null ? "" : ` until ${when(until)}`;
  switch (action) {
    case "deleted": return `${who} deleted a comment by ${whom}${quoted && `:${quoted}`}`;
    case "pinned": return `${who} pinned a comment by ${whom}${quoted && `:${quoted}`}`;
    case "unpinned": return `${who} unpinned the comment`;
    case "silenced": return `${who} silenced ${whom}${end}`;
    case "shadowed": return `${who} silenced ${whom}${end}, without telling them`;
    case "unsilenced": return `${who} lifted the silence for ${whom}`;
    case "card-shown": return `${who} showed the card${quoted}`;
    case "card-removed": return `${who} removed the card`;
    default: return `${who}: ${action}`;
  }
}
