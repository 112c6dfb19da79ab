// @ts-check

import { confirm } from "../dialog.js";
import { copyFrom, follow, h, icon, setText } from "../dom.js";
import { showCode } from "../qr.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */

/** Shortest remaining validity of a link that is shared, in milliseconds: people may open it hours later. */
const LEAST_LIFETIME_MS = 12 * 60 * 60 * 1000;
/** After a failure, the link for viewers is asked for again by itself after this time, in milliseconds. */
const ASK_AGAIN_MS = 10_000;

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
    /** When that failed; each failure is told. */
    let failedAt = -Infinity;
    /** Links by role, shared again until they expire soon. @type {Map<string, Promise<string | null>>} */
    const made = new Map();
    /** When they expire, in milliseconds since 1970. @type {Map<string, number>} */
    const ends = new Map();
    /** @param {"speaker" | "viewer"} role */
    const isFresh = (role) => (ends.get(role) ?? Infinity) - Date.now() > LEAST_LIFETIME_MS;
    /** Counts revocations: a link that was asked for before one may be among those that it revokes. */
    let revocations = 0;
    /** The one in progress, if there is any. @type {Promise<unknown>} */
    let revoking = Promise.resolve();
    /** @param {"speaker" | "viewer"} role @returns {Promise<string | null>} */
    const askFor = async (role) => {
      await revoking;
      const before = revocations;
      const answer = await room.attempt(() => room.api.makeLink(role));
      if (!answer) return null;
      if (before !== revocations) return askFor(role);
      ends.set(role, Date.parse(answer.expiresAt));
      return new URL(answer.path, location.href).href;
    };
    /** @param {"speaker" | "viewer"} role */
    const make = (role) => {
      if (!isFresh(role)) {
        made.delete(role);
        ends.delete(role);
      }
      const promise = made.get(role) ?? askFor(role);
      made.set(role, promise);
      promise.then((url) => !url && made.get(role) === promise && made.delete(role));
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
      if (!isSure) return;
      // Also if the answer gets lost: the server may have revoked them.
      revocations += 1;
      made.clear();
      ends.clear();
      if (isPrivate) link.value = "";
      failedAt = -Infinity;
      const answer = room.attempt(() => room.api.revokeLinks());
      revoking = answer;
      // The next link is asked for once they are revoked.
      const shown = show();
      if (await answer) room.say("Links revoked. Copy a new link to share.");
      await shown;
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
      const hasJustFailed = performance.now() - failedAt < ASK_AGAIN_MS;
      if ((link.value && isFresh("viewer")) || isAsking || hasJustFailed || room.isOver) return;
      isAsking = true;
      link.value = await make("viewer") ?? "";
      failedAt = link.value ? -Infinity : performance.now();
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
