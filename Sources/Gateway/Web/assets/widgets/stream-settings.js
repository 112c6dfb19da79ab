// @ts-check

import { ask } from "../dialog.js";
import { h } from "../dom.js";
import { LAYERS } from "../layers.js";

/** @typedef {import("../room.js").Room} Room */

const LAYER_NAMES = {
  background: "Last picture behind", player: "Programme", movable: "Movable numbers", lite: "Title and state",
  float: "Controls, hands, messages",
};

/** Makes the stream, with its doors closed. @param {Room} room */
export async function openBackstage(room) {
  const form = makeForm(room);
  const answer = await ask({
    name: "stream", title: "Open the backstage", body: [form.element],
    choices: [{ value: "open", label: "Open", look: "primary" }, { value: "no", label: "Cancel" }],
  });
  if (answer !== "open") return;
  if (await room.attempt(async () => { await room.create(form.details()); return true; })) await room.enterStage();
}

/** Changes title, start and what viewers see. @param {Room} room */
export async function editStream(room) {
  const form = makeForm(room);
  const answer = await ask({
    name: "stream", title: "Stream settings", body: [form.element],
    choices: [{ value: "save", label: "Save", look: "primary" }, { value: "no", label: "Cancel" }],
  });
  if (answer === "save") await room.edit(form.details());
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
    new Option("15 minutes before the start", "900"), new Option("An hour before the start", "3600"));
  ahead.value = [...ahead.options].some(({ value }) => value === String(info?.joinAheadSeconds))
    ? String(info?.joinAheadSeconds) : "0";
  const programme = h("select", { name: "programme" },
    new Option("Everybody on stage together", "composed"), new Option("Whoever speaks", "active-speaker"),
    new Option("Me, the host, alone", "host"));
  programme.value = before.programme;
  const recording = h("input", {
    type: "checkbox", name: "recording", checked: info?.recording === "automatic",
  });
  const boxes = LAYERS.map((layer) => h("input", {
    type: "checkbox", value: layer, checked: info?.layers?.includes(layer) ?? true,
  }));
  const isBackstage = info?.state !== "live";
  const element = h("div.fields", {},
    h("label", {}, "Title", title),
    ...isBackstage ? [h("label", {}, "Start, if it is known", startsAt), h("label", {}, "Viewers come in", ahead)] : [],
    h("label", {}, "Viewers see and hear", programme),
    h("label.check", {}, recording, h("span", {}, "Record it from the start")),
    h("details", {}, h("summary", {}, "What is on the viewers' page"),
      ...LAYERS.map((layer, index) => h("label.check", {}, boxes[index], h("span", {}, LAYER_NAMES[layer])))));
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
      if (programme.value !== before.programme) details.programme = programme.value;
      const recorded = recording.checked ? "automatic" : "manual";
      if (recorded !== (info?.recording ?? "manual")) details.recording = recorded;
      const layers = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      if (layers.join() !== (info?.layers ?? LAYERS).join()) details.layers = layers;
      return details;
    },
  };
}

/** As `datetime-local` wants it. @param {string | null | undefined} time */
function localTime(time) {
  if (!time) return "";
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
