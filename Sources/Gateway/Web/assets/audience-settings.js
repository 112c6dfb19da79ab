// @ts-check

/** Settings for comments and reactions: form fields, and a dialog with them. */

import { makeAudienceAction } from "./audience-action.js";
import { h } from "./dom.js";
import { KINDS, nameOf, signOf } from "./reaction-signs.js";
import { askAndSave } from "./saving.js";

/**
 * @typedef {import("./audience.js").AudienceSettings} AudienceSettings
 *
 * @typedef {Pick<AudienceSettings, "comments" | "commentTier" | "reactions" | "slowMode">} TalkSettings
 */

/** Most kinds of reactions that a stream can have. */
const MOST_KINDS = 5;
/** Choices for the time between two comments of a viewer, in seconds. */
const PAUSES = [5, 15, 30, 60, 120];
/** Default name of the tier for members. */
const USUAL_TIER = "members";
/** Defaults of the server. @type {TalkSettings} */
export const USUAL = { comments: true, commentTier: null, reactions: ["heart"], slowMode: 0 };

/** The button that opens the dialog. @param {import("./talk.js").Part} part */
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
 * The blocked words of a stream, which sync does not contain; null if the server does not tell.
 * @param {import("./stage-api.js").StageAPI} api
 */
export function askForWords(api) {
  return api.interaction().then(({ words }) => words ?? null, () => null);
}

/**
 * Fields for who may comment, how often and without which words, and for the reactions.
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
  /** The blocked words before; null while unknown, and then they stay unchanged. @type {string[] | null} */
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
  /** Once the most are chosen, disables the others. */
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
    /** Only the settings that differ from before. */
    changes() {
      /** @type {Partial<AudienceSettings & { words: string[] }>} */
      const changes = {};
      const comments = writers.value !== "nobody";
      if (comments !== before.comments) changes.comments = comments;
      // While no one may comment, the tier stays as it was.
      const commentTier = writers.value === "members" ? tier.value.trim() || USUAL_TIER : writers.value === "everybody" ? null : before.commentTier;
      if (commentTier !== before.commentTier) changes.commentTier = commentTier;
      if (Number(slowMode.value) !== before.slowMode) changes.slowMode = Number(slowMode.value);
      const lines = [...new Set(/** @type {string} */ (list.value).split("\n").map((line) => line.trim()).filter(Boolean))];
      if (known && lines.join("\n") !== known.join("\n")) changes.words = lines;
      const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      // Keep the order of the remaining ones, which the host may have set by the API.
      const reactions = [...before.reactions.filter((kind) => chosen.includes(kind)), ...chosen.filter((kind) => !before.reactions.includes(kind))];
      if (reactions.join() !== before.reactions.join()) changes.reactions = reactions;
      return changes;
    },
  };
}
