// @ts-check

import { askForWords, makeTalkFields, USUAL } from "../audience-settings.js";
import { h } from "../dom.js";
import { LAYERS } from "../layers.js";
import { askAndSave } from "../saving.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */

/** As many as a stage takes besides its host. */
const MOST_GUESTS = 49;

/** How far viewers can rewind, in seconds. @type {[number, string][]} */
const WINDOWS = [[0, "Off"], [600, "10 minutes"], [1800, "30 minutes"], [3600, "1 hour"], [7200, "2 hours"]];

const LAYER_NAMES = {
  background: "Last picture as background", player: "Video", movable: "Comments, reactions, stats", lite: "Title and status",
  float: "Controls, raised hands, messages",
};

/** @type {Record<import("../audience.js").Widget, string>} */
const WIDGET_NAMES = {
  comments: "Comment list", barrage: "Comments across the picture", composer: "Comment box", reactions: "Hearts and other reactions",
  gifts: "Gifts", ranks: "Ranks and medals", poll: "Polls", card: "Card", duel: "Duels",
};

/** Makes the stream, with its doors closed. @param {Room} room */
export async function openBackstage(room) {
  const form = makeForm(room);
  const isMade = await askAndSave({
    name: "stream", title: "Open the backstage", body: [form.element],
    choices: [{ value: "open", label: "Open", look: "primary" }, { value: "no", label: "Cancel" }],
  }, () => room.create(form.details()));
  if (!isMade) return;
  // Not together with the stream, which cannot be made twice.
  await room.attempt(() => saveInteraction(room, form.interaction()));
  await room.enterStage();
}

/** Changes the title, the start and what viewers see. @param {Room} room */
export async function editStream(room) {
  const form = makeForm(room);
  await askAndSave({
    name: "stream", title: "Stream settings", body: [form.element],
    choices: [{ value: "save", label: "Save", look: "primary" }, { value: "no", label: "Cancel" }],
  }, async () => {
    await room.edit(form.details());
    await saveInteraction(room, form.interaction());
  });
}

/** @param {Room} room @param {Partial<import("../audience.js").AudienceSettings>} settings those that changed */
async function saveInteraction(room, settings) {
  if (Object.keys(settings).length > 0) await room.api.editInteraction(settings);
}

/** @param {Room} room */
function makeForm(room) {
  const { info } = room;
  /** What it is now, or will be unless something else is chosen. */
  const before = room.isOpen ? { title: info?.title ?? "", programme: info?.programme ?? "host" } : room.wishes;
  const title = h("input", { name: "title", dir: "auto", maxLength: 200, value: before.title ?? "", placeholder: room.title });
  const startsAt = h("input", { name: "startsAt", type: "datetime-local", value: localTime(info?.startsAt) });
  const ahead = h("select", { name: "joinAhead" },
    new Option("When I go live", "0"), new Option("5 minutes before the start", "300"),
    new Option("15 minutes before the start", "900"), new Option("1 hour before the start", "3600"));
  ahead.value = [...ahead.options].some(({ value }) => value === String(info?.joinAheadSeconds))
    ? String(info?.joinAheadSeconds) : "0";
  const programme = h("select", { name: "programme" },
    new Option("Everyone on stage", "composed"), new Option("The active speaker", "active-speaker"),
    new Option("Only me, the host", "host"));
  programme.value = before.programme;
  const recording = h("input", {
    type: "checkbox", name: "recording", checked: info?.recording === "automatic",
  });
  const clips = h("select", { name: "clips" },
    new Option("Me and moderators", "moderators"), new Option("Everyone with a name", "everybody"), new Option("No one", "off"));
  clips.value = info?.clips ?? "moderators";
  const hls = h("input", { type: "checkbox", name: "hls", checked: info?.hls !== "off" });
  const delayed = h("label.check", { hidden: true }, hls,
    h("span", {}, "Delayed video (HLS) for viewers whose network blocks live video"));
  const dvr = h("select", { name: "dvr" }, ...WINDOWS.map(([seconds, words]) => new Option(words, String(seconds))));
  const kept = info?.dvrSeconds ?? 0;
  if (!WINDOWS.some(([seconds]) => seconds === kept)) dvr.append(new Option(`${Math.round(kept / 60)} minutes`, String(kept)));
  dvr.value = String(kept);
  const window = h("label", { hidden: true }, "How far viewers can rewind", dvr);
  toldByServer().then((about) => {
    delayed.hidden = !about.hls;
    window.hidden = !about.dvrSeconds;
    for (const option of dvr.options) option.hidden = Number(option.value) > (about.dvrSeconds ?? 0);
  });
  const boxes = LAYERS.map((layer) => h("input", {
    type: "checkbox", value: layer, checked: info?.layers?.includes(layer) ?? true,
  }));
  const usual = /** @type {import("../audience.js").Widget[]} */ (Object.keys(WIDGET_NAMES)).filter((name) => name !== "barrage");
  const audience = room.audience.settings ?? { ...USUAL, duels: true, widgets: usual };
  const widgets = /** @type {import("../audience.js").Widget[]} */ (Object.keys(WIDGET_NAMES)).map((name) => h("input", {
    type: "checkbox", name: "widget", value: name, checked: audience.widgets.includes(name),
  }));
  const guests = h("input", {
    name: "maxSpeakers", type: "number", min: 0, max: MOST_GUESTS, value: String(info?.maxSpeakers ?? MOST_GUESTS),
  });
  // A stream that is yet to be made has no words.
  const talk = makeTalkFields(audience, room.isOpen ? askForWords(room.api) : Promise.resolve([]));
  const duels = h("input", { type: "checkbox", name: "duels", checked: audience.duels });
  const tier = h("input", { name: "tier", maxLength: 32, pattern: "[A-Za-z0-9_\\-]*", placeholder: "Everyone", value: info?.gate?.tier ?? "" });
  const free = h("input", { name: "free", type: "number", min: 0, max: 600, value: String(info?.gate?.freeSeconds ?? 10) });
  const unlock = h("input", { name: "unlock", type: "url", maxLength: 500, placeholder: "https://…", value: info?.gate?.unlock ?? "" });
  const isBackstage = info?.state !== "live";
  const element = h("div.fields", {},
    h("label", {}, "Title", title),
    ...isBackstage ? [h("label", {}, "Start (optional)", startsAt), h("label", {}, "Viewers can join", ahead)] : [],
    h("label", {}, "Viewers see and hear", programme),
    h("label", {}, "Maximum guests on stage", guests),
    h("label.check", {}, recording, h("span", {}, "Record from the start")),
    h("label", {}, "Who can make clips", clips),
    delayed, window,
    h("label.check", {}, duels, h("span", {}, "Other hosts can invite me to duels")),
    h("details", {}, h("summary", {}, "Comments and reactions"), talk.element),
    h("details", {}, h("summary", {}, "Who can watch"),
      h("label", {}, "Required tier: letters, digits, _ and -", tier),
      h("label", {}, "Free preview, in seconds", free),
      h("label", {}, "Link to unlock the tier", unlock)),
    h("details", {}, h("summary", {}, "What’s on the viewers’ page"),
      ...LAYERS.map((layer, index) => h("label.check", {}, boxes[index], h("span", {}, LAYER_NAMES[layer]))),
      h("p.small.muted", {}, "Audience features:"),
      ...widgets.map((box) => h("label.check", {}, box,
        h("span", {}, WIDGET_NAMES[/** @type {import("../audience.js").Widget} */ (box.value)])))));
  return {
    element,
    /** Only what differs from what the stream has: the schedule of a live one cannot be named at all. */
    details() {
      /** @type {import("../stage-api.js").Details} */
      const details = {};
      if (title.value.trim() !== (before.title ?? "")) details.title = title.value.trim() || null;
      if (isBackstage && startsAt.value !== localTime(info?.startsAt)) {
        details.startsAt = startsAt.value ? new Date(startsAt.value).toISOString() : null;
      }
      if (isBackstage && Number(ahead.value) !== (info?.joinAheadSeconds ?? 0)) {
        details.joinAheadSeconds = Number(ahead.value);
      }
      if (guests.value !== "" && Number(guests.value) !== (info?.maxSpeakers ?? MOST_GUESTS)) details.maxSpeakers = Number(guests.value);
      if (programme.value !== before.programme) details.programme = programme.value;
      const recorded = recording.checked ? "automatic" : "manual";
      if (recorded !== (info?.recording ?? "manual")) details.recording = recorded;
      if (clips.value !== (info?.clips ?? "moderators")) details.clips = clips.value;
      const delay = hls.checked ? "on" : "off";
      if (delay !== (info?.hls ?? "on")) details.hls = delay;
      if (Number(dvr.value) !== kept) details.dvrSeconds = Number(dvr.value);
      const gate = tier.value.trim() === "" ? null
        : { tier: tier.value.trim(), freeSeconds: Number(free.value), unlock: unlock.value.trim() || null };
      const earlier = info?.gate ? { tier: info.gate.tier, freeSeconds: info.gate.freeSeconds, unlock: info.gate.unlock ?? null } : null;
      if (JSON.stringify(gate) !== JSON.stringify(earlier)) details.gate = gate;
      const layers = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      if (layers.join() !== (info?.layers ?? LAYERS).join()) details.layers = layers;
      return details;
    },
    /** What differs of what the audience may do. */
    interaction() {
      /** @type {Partial<import("../audience.js").AudienceSettings>} */
      const settings = talk.changes();
      if (duels.checked !== audience.duels) settings.duels = duels.checked;
      const shown = widgets.filter(({ checked }) => checked).map(({ value }) => value);
      if (shown.join() !== audience.widgets.join()) settings.widgets = shown;
      return settings;
    },
  };
}

/** As `datetime-local` wants it. @param {string | null | undefined} time */
function localTime(time) {
  if (!time) return "";
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
