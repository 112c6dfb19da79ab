// @ts-check

import { follow, h, icon, reconcile, setText } from "../dom.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */
/** @typedef {import("../stage-api.js").Restream} Restream */

const STATES = { waiting: "Waiting for you to go live", connecting: "Connecting…", live: "Live", failed: "Failed" };

/** Milliseconds as people say them; never "in 0 seconds". @param {number} ms */
const formatWait = (ms) => {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return seconds === 1 ? "1 second" : `${seconds} seconds`;
};

/** Other servers to which the programme is sent over RTMP, and their states. */
export const restream = {
  name: "restream",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const url = h("input#restream-url", {
      type: "url", autocomplete: "off", required: true, maxLength: 500, placeholder: "rtmps://live.example.com/app",
    });
    // The screen may be shared.
    const key = h("input#restream-key", { type: "password", autocomplete: "off", required: true, maxLength: 2000 });
    const list = h("ul#restream-list");
    const form = h("form.fields", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); add(); } },
      h("div.field", {}, h("label", { for: "restream-url" }, "Server"), url),
      h("div.field", {}, h("label", { for: "restream-key" }, "Stream key (never shown again)"), key),
      h("div.row", {}, h("button.button#restream-add", { type: "submit" }, icon("share"), h("span", {}, "Add"))));
    const root = h("details.card.share.settings#restream", { hidden: true },
      h("summary", {}, "Restream (YouTube, Twitch and others)"), h("div.fields", {}, list, form,
        h("p.muted", {}, "While you’re live, your stream is also sent to each of these by RTMP.")));
    layer.append(root);

    let isOn = false;
    let isAdding = false;
    /** Numbers of targets that are being removed. @type {Set<number>} */
    const removing = new Set();
    /** The targets, by number. @type {Map<number, Restream>} */
    const known = new Map();
    /** Numbers of targets whose failure was announced since they were last live. @type {Set<number>} */
    const said = new Set();
    /** Numbers of targets that changed since the list was requested. @type {Set<number>} */
    const heard = new Set();
    let isLooking = false;

    /** @param {Restream} target */
    const describe = ({ state, detail, nextTryAt, droppedPictures }) => {
      if (state === "failed") {
        const wait = nextTryAt ? ` Trying again in ${formatWait(Date.parse(nextTryAt) - Date.now())}.` : "";
        return `${detail ?? STATES.failed}${wait}`;
      }
      return droppedPictures && state === "live"
        ? `${STATES.live}, but too slow: ${droppedPictures} frames dropped` : STATES[state];
    };
    /** @param {string} key the number of the target */
    const makeRow = (key) => {
      const address = h("span");
      const remove = h("button.button", { type: "button", onclick: () => removeTarget(Number(key)) },
        icon("close"), h("span", {}, "Remove"));
      const sign = icon("warning");
      const text = h("span");
      const words = h("p", {}, sign, text);
      const line = h("li", { "data-number": key }, h("div.row", {}, address, remove), words);
      line.update = (/** @type {Restream} */ target) => {
        line.dataset.state = target.state;
        setText(address, target.url);
        remove.setAttribute("aria-label", `Remove ${target.url}`);
        words.className = target.state === "failed" ? "warning" : "muted";
        sign.toggleAttribute("hidden", target.state !== "failed");
        setText(text, describe(target));
      };
      return line;
    };
    // Rows are kept, so that the change of one target does not take the focus from another.
    const showList = () => {
      const targets = [...known.values()].sort((one, other) => one.number - other.number);
      reconcile(list, targets.map((each) => [String(each.number), each]), makeRow);
    };
    const look = async () => {
      if (!root.open || isLooking) return;
      isLooking = true;
      heard.clear();
      const answer = await room.attempt(() => room.api.listRestreams());
      isLooking = false;
      if (!answer) return;
      for (const number of [...known.keys()]) if (!heard.has(number)) known.delete(number);
      for (const target of answer.restreams) if (!heard.has(target.number)) known.set(target.number, target);
      showList();
    };
    const add = async () => {
      if (isAdding) return;
      isAdding = true;
      const given = [url.value, key.value];
      const target = await room.attempt(() => room.api.addRestream(given[0].trim(), given[1].trim()));
      isAdding = false;
      if (!target) return;
      // Events that arrived meanwhile are newer.
      if (!known.has(target.number)) known.set(target.number, target);
      heard.add(target.number);
      // On a slow network, the next one may already be in the fields.
      if (url.value === given[0] && key.value === given[1]) url.value = key.value = "";
      showList();
    };
    /** @param {number} number */
    const removeTarget = async (number) => {
      if (removing.has(number)) return;
      removing.add(number);
      await room.attempt(() => room.api.removeRestream(number));
      removing.delete(number);
    };
    /** @param {Event} event */
    const take = (event) => {
      const { restream: target } = /** @type {CustomEvent} */ (event).detail;
      heard.add(target.number);
      if (target.state === "removed") known.delete(target.number);
      else known.set(target.number, target);
      if (target.state === "live" || target.state === "removed") said.delete(target.number);
      if (target.state === "failed" && !said.has(target.number)) {
        said.add(target.number);
        room.say(`The stream isn’t reaching ${target.url}. ${target.detail}`);
      }
      showList();
    };
    root.addEventListener("toggle", look);
    room.sync.addEventListener("restream", take);
    toldByServer().then((about) => {
      isOn = about.restreams;
      show();
    });
    // A stream that does not exist yet has no targets.
    const isMade = () => ["backstage", "live"].includes(room.info?.state ?? "");
    const show = () => { root.hidden = !isOn || !room.isHost || !isMade() || room.isOut; };
    const unfollow = follow(room, show);
    // What it says of the next try counts down.
    const tick = () => { if (root.open) showList(); };
    room.addEventListener("second", tick);
    return () => {
      unfollow();
      room.removeEventListener("second", tick);
      room.sync.removeEventListener("restream", take);
      root.remove();
    };
  },
};
