// @ts-check

import { confirm } from "../dialog.js";
import { copyFrom, follow, h, icon, setText } from "../dom.js";
import { showCode } from "../qr.js";
import { toldByServer } from "../server.js";

/** @typedef {import("../room.js").Room} Room */

/** Links for viewers and for speakers. Where viewers need an invitation, the server makes one; speakers need one always. */
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
      type: "button", title: "QR code of this link", onclick: () => showLinkCode(),
    }, icon("qr"), h("span", {}, "QR"));
    const row = h("div.row", {}, link, copy, code);
    const speaker = h("button.button#copy-speaker", { type: "button", onclick: () => copySpeakerLink() },
      icon("microphone"), h("span", {}, "Copy speaker link"));
    const speakerCode = h("button.button#speaker-code", {
      type: "button", title: "QR code of the speaker link", onclick: () => showSpeakerCode(),
    }, icon("qr"), h("span", {}, "QR"));
    const speakers = h("div.row", {}, speaker, speakerCode);
    const revoke = h("button.button#revoke-links", { type: "button", onclick: () => revokeLinks() }, "Revoke links…");
    const root = h("div.card.share#share", { hidden: true }, words, row, speakers,
      h("p.muted#speaker-words", {}, "Whoever has the speaker link may come onto the stage."), revoke);
    layer.append(root);

    /** Whether viewers need an invitation; null until the server has said. @type {boolean | null} */
    let isPrivate = null;
    let isAsking = false;
    /** Made once for a page; those who have it share it. @type {Map<string, Promise<string | null>>} */
    const made = new Map();
    /** @param {"speaker" | "viewer"} role */
    const make = (role) => {
      const promise = made.get(role) ?? room.attempt(() => room.api.makeLink(role))
        .then((answer) => answer && new URL(answer.path, location.href).href);
      made.set(role, promise);
      promise.then((url) => !url && made.delete(role));
      return promise;
    };
    const copySpeakerLink = async () => {
      const url = await make("speaker");
      if (url) await copyFrom(speaker, url);
    };
    const showLinkCode = () => showCode(room, {
      title: "Scan to watch", hint: "A phone whose camera sees this opens the stream.", choices: [{ label: "", text: link.value }],
    });
    const showSpeakerCode = async () => {
      const url = await make("speaker");
      if (!url) return;
      await showCode(room, {
        title: "Scan to come onto the stage", hint: "Whoever sees this may come onto the stage.", choices: [{ label: "", text: url }],
      });
    };
    /** For a link that came into the wrong hands: the next ones are new. */
    const revokeLinks = async () => {
      const isSure = await confirm({
        name: "revoke-links", title: "Revoke the links?", yes: "Revoke them",
        text: isPrivate
          ? "Nobody comes in any more by the links given out so far. Whoever is here stays."
          : "Nobody comes onto the stage any more by the speaker links given out so far. Whoever is there stays.",
      });
      if (!isSure || !await room.attempt(() => room.api.revokeLinks())) return;
      made.clear();
      link.value = "";
      room.say("The links are revoked. Those you copy from now on are new.");
      await show();
    };
    const show = async () => {
      root.hidden = !room.onAir.isOn && !(room.isOpen && room.isOnStage) && !room.isOver || room.isOut;
      revoke.hidden = speakers.hidden = !room.isHost || room.isOver;
      root.querySelector("#speaker-words").hidden = speakers.hidden;
      if (root.hidden || isPrivate === null) return;
      if (!isPrivate) {
        setText(words, room.isOver ? "The link for what is left of it" : "Anyone with this link can watch");
        link.value = address;
        return;
      }
      row.hidden = !link.value;
      if (!room.isHost) return setText(words, "Viewers need an invitation, which the host makes.");
      setText(words, "Whoever has this link can watch; it holds for a day");
      if (link.value || isAsking || room.isOver) return;
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
