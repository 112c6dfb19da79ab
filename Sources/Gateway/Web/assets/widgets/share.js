// @ts-check

import { confirm } from "../dialog.js";
import { copyFrom, follow, h, icon, setText } from "../dom.js";
import { showCode } from "../qr.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */

/** Shortest remaining validity of a link that is shared, in milliseconds: people may open it hours later. */
const LEAST_LIFETIME_MS = 12 * 60 * 60 * 1000;

/** Links for viewers and speakers. Where viewers need an invitation, the server makes one; speakers always need one. */
export const share = {
  name: "share",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const address = new URL(`/watch/${encodeURIComponent(room.stream)}`, location.href).href;
    const words = h("label", { for: "link" });
    const link = h("input#link", { readOnly: true, onfocus: () => link.select() });
    const copy = h("button.button#copy", { type: "button", onclick: () => copyFrom(copy, link.value) },
      icon("link"), h("span", {}, "Copy"));
    const code = h("button.button#link-code", {
      type: "button", title: "QR code for this link", onclick: () => showLinkCode(),
    }, icon("qr"), h("span", {}, "QR"));
    const row = h("div.row", {}, link, copy, code);
    const speaker = h("button.button#copy-speaker", { type: "button", onclick: () => copySpeakerLink() },
      icon("microphone"), h("span", {}, "Copy speaker link"));
    const speakerCode = h("button.button#speaker-code", {
      type: "button", title: "QR code for the speaker link", onclick: () => showSpeakerCode(),
    }, icon("qr"), h("span", {}, "QR"));
    const speakers = h("div.row", {}, speaker, speakerCode);
    const revoke = h("button.button#revoke-links", { type: "button", onclick: () => revokeLinks() }, "Revoke links…");
    const root = h("div.card.share#share", { hidden: true }, words, row, speakers,
      h("p.muted#speaker-words", {}, "Anyone with the speaker link can come on stage."), revoke);
    layer.append(root);

    /** Whether viewers need an invitation; null until the server has answered. @type {boolean | null} */
    let isPrivate = null;
    let isAsking = false;
    /** Links by role, shared again until they expire soon. @type {Map<string, Promise<string | null>>} */
    const made = new Map();
    /** When they expire, in milliseconds since 1970. @type {Map<string, number>} */
    const ends = new Map();
    /** @param {"speaker" | "viewer"} role */
    const isFresh = (role) => (ends.get(role) ?? Infinity) - Date.now() > LEAST_LIFETIME_MS;
    /** @param {"speaker" | "viewer"} role */
    const make = (role) => {
      if (!isFresh(role)) {
        made.delete(role);
        ends.delete(role);
      }
      const promise = made.get(role) ?? room.attempt(() => room.api.makeLink(role)).then((answer) => {
        if (!answer) return null;
        ends.set(role, Date.parse(answer.expiresAt));
        return new URL(answer.path, location.href).href;
      });
      made.set(role, promise);
      promise.then((url) => !url && made.delete(role));
      return promise;
    };
    const copySpeakerLink = async () => {
      const url = await make("speaker");
      if (url) await copyFrom(speaker, url);
    };
    const showLinkCode = () => showCode(room, {
      title: "Scan to watch", hint: "Point a phone’s camera at this code to open the stream.", choices: [{ label: "", text: link.value }],
    });
    const showSpeakerCode = async () => {
      const url = await make("speaker");
      if (!url) return;
      await showCode(room, {
        title: "Scan to come on stage", hint: "Anyone who scans this code can come on stage.", choices: [{ label: "", text: url }],
      });
    };
    /** Revokes all links, for one that got into the wrong hands; the next ones are new. */
    const revokeLinks = async () => {
      const isSure = await confirm({
        name: "revoke-links", title: "Revoke all links?", yes: "Revoke links",
        text: isPrivate
          ? "Links you’ve shared so far stop working. People already here stay."
          : "Speaker links you’ve shared so far stop working. People already on stage stay.",
      });
      if (!isSure || !await room.attempt(() => room.api.revokeLinks())) return;
      made.clear();
      ends.clear();
      link.value = "";
      room.say("Links revoked. Copy a new link to share.");
      await show();
    };
    const show = async () => {
      root.hidden = !room.onAir.isOn && !(room.isOpen && room.isOnStage) && !room.isOver || room.isOut;
      revoke.hidden = speakers.hidden = !room.isHost || room.isOver;
      root.querySelector("#speaker-words").hidden = speakers.hidden;
      if (root.hidden || isPrivate === null) return;
      if (!isPrivate) {
        setText(words, room.isOver ? "Link to this stream" : "Anyone with this link can watch");
        link.value = address;
        return;
      }
      row.hidden = !link.value;
      if (!room.isHost) return setText(words, "Viewers need an invitation from the host.");
      setText(words, "Anyone with this link can watch for one day");
      if ((link.value && isFresh("viewer")) || isAsking || room.isOver) return;
      isAsking = true;
      link.value = await make("viewer") ?? "";
      isAsking = false;
      row.hidden = !link.value;
    };
    toldByServer().then(({ viewers }) => {
      isPrivate = viewers === "token";
      show();
    });
    const unfollow = follow(room, show);
    return () => {
      unfollow();
      root.remove();
    };
  },
};
