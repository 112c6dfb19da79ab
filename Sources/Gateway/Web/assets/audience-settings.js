// @ts-check

/** What a host lets the audience write and tap: fields for forms, and a dialog of their own. */

import { makeAudienceAction } from "./audience-action.js";
import { h } from "./dom.js";
import { KINDS, nameOf, signOf } from "./reaction-signs.js";
import { askAndSave } from "./saving.js";

/**
 * @typedef {import("./audience.js").AudienceSettings} AudienceSettings
 *
 * @typedef {Pick<AudienceSettings, "comments" | "commentTier" | "reactions" | "slowMode">} TalkSettings
 */

/** As many kinds of reactions as a stream may have. */
const MOST_KINDS = 5;
/** Between two comments of a viewer, in seconds. */
const PAUSES = [5, 15, 30, 60, 120];
/** What the tokens of members name, where a host says nothing else. */
const USUAL_TIER = "members";
/** What a stream has before its host decides. @type {TalkSettings} */
export const USUAL = { comments: true, commentTier: null, reactions: ["heart"], slowMode: 0 };

/** A host's way to these settings while people talk. @param {import("./talk.js").Part} part */
export function makeTalkSettings(part) {
  return makeAudienceAction(part, "edit-comments", "Comments…", editTalk);
}

/** @param {import("./talk.js").Part} part */
async function editTalk({ audience: { api, settings } }) {
  const fields = makeTalkFields(settings ?? USUAL, askForWords(api));
  await askAndSave({
    name: "talk", title: "Comments and reactions", body: [fields.element],
    choices: [{ value: "save", label: "Save", look: "primary" }, { value: "no", label: "Cancel" }],
  }, async () => {
    const changes = fields.changes();
    if (Object.keys(changes).length > 0) await api.editInteraction(changes);
  });
}

/**
 * The words that a stream's host does not want, which followers are not told; null where the server does not say.
 * @param {import("./stage-api.js").StageAPI} api
 */
export function askForWords(api) {
  return api.interaction().then(({ words }) => words ?? null, () => null);
}

/**
 * Fields for who may write, how often, without which words, and what can be tapped.
 * @param {TalkSettings} before
 * @param {Promise<string[] | null>} words
 */
export function makeTalkFields(before, words) {
  const writers = h("select", { name: "writers", onchange: () => showTier() },
    new Option("Everyone", "everybody"), new Option("Members", "members"), new Option("No one", "nobody"));
  writers.value = !before.comments ? "nobody" : before.commentTier === null ? "everybody" : "members";
  const tier = h("input", { type: "text", name: "commentTier", maxLength: 32, autocapitalize: "none", value: before.commentTier ?? USUAL_TIER });
  const tierLabel = h("label", {}, "Tier named in members’ tokens: letters, digits, _ and -", tier);
  const showTier = () => (tierLabel.hidden = writers.value !== "members");
  showTier();
  const pauses = [...new Set([...PAUSES, ...before.slowMode ? [before.slowMode] : []])].sort((one, other) => one - other);
  const slowMode = h("select", { name: "slowMode" }, new Option("No limit", "0"),
    ...pauses.map((pause) => new Option(`One every ${pause} seconds`, String(pause))));
  slowMode.value = String(before.slowMode);
  const list = h("textarea", { name: "words", rows: 4, dir: "auto", disabled: true, spellcheck: false, autocapitalize: "none" });
  /** Null while they are not known, and then they stay as they are. @type {string[] | null} */
  let known = null;
  words.then((told) => {
    if (!told) return;
    known = told;
    list.value = told.join("\n");
    list.disabled = false;
  });
  const boxes = [...KINDS, ...before.reactions.filter((kind) => !KINDS.includes(kind))].map((kind) => h("input", {
    type: "checkbox", name: "reaction", value: kind, checked: before.reactions.includes(kind), onchange: () => limitKinds(),
  }));
  /** There is no room for more. */
  const limitKinds = () => {
    const isFull = boxes.filter(({ checked }) => checked).length >= MOST_KINDS;
    for (const box of boxes) box.disabled = isFull && !box.checked;
  };
  limitKinds();
  const element = h("div.fields", {},
    h("label", {}, "Who can comment", writers), tierLabel,
    h("label", {}, "Comments per viewer", slowMode),
    h("label", {}, "Blocked words, one per line", list),
    h("fieldset.kinds", {}, h("legend", {}, `Reactions, up to ${MOST_KINDS}`),
      ...boxes.map((box) => h("label.check", {}, box, h("i", { "aria-hidden": "true" }, signOf(box.value)), h("span", {}, nameOf(box.value)))),
      h("p.small.muted", {}, "Removing a reaction resets its count.")));
  return {
    element,
    /** Only what differs from what the stream has. */
    changes() {
      /** @type {Partial<AudienceSettings & { words: string[] }>} */
      const changes = {};
      const comments = writers.value !== "nobody";
      if (comments !== before.comments) changes.comments = comments;
      // Who shall write when comments are on again is no matter while nobody does.
      const commentTier = writers.value === "members" ? tier.value.trim() || USUAL_TIER : writers.value === "everybody" ? null : before.commentTier;
      if (commentTier !== before.commentTier) changes.commentTier = commentTier;
      if (Number(slowMode.value) !== before.slowMode) changes.slowMode = Number(slowMode.value);
      const lines = [...new Set(/** @type {string} */ (list.value).split("\n").map((line) => line.trim()).filter(Boolean))];
      if (known && lines.join("\n") !== known.join("\n")) changes.words = lines;
      const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      // Those that stay keep their order, which the host may have chosen elsewhere.
      const reactions = [...before.reactions.filter((kind) => chosen.includes(kind)), ...chosen.filter((kind) => !before.reactions.includes(kind))];
      if (reactions.join() !== before.reactions.join()) changes.reactions = reactions;
      return changes;
    },
  };
}
