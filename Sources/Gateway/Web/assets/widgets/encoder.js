// @ts-check

import { confirm } from "../dialog.js";
import { copyFrom, follow, h, icon } from "../dom.js";
import { showCode } from "../qr.js";
import { toldByServer } from "../server.js";
import { encoderReport } from "./encoder-report.js";

/** @typedef {import("../room.js").Room} Room */

/** What OBS and others are told: where to publish by RTMP and SRT, with a key of whoever looks; and what comes of them. */
export const encoder = {
  name: "encoder",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    /** @param {string} id @param {string} words @param {string} type */
    const field = (id, words, type) => {
      const input = h(`input#${id}`, { type, readOnly: true, autocomplete: "off", onfocus: () => input.select() });
      const copy = h(`button.button#copy-${id}`, { type: "button", onclick: () => copyFrom(copy, input.value) },
        icon("link"), h("span", {}, "Copy"));
      return { input, element: h("div.field", {}, h("label", { for: id }, words), h("div.row", {}, input, copy)) };
    };
    const server = field("encoder-server", "Server", "text");
    // Others may see this screen.
    const key = field("encoder-key", "Stream key, which is a password", "password");
    const srt = field("encoder-srt", "SRT: server with the key in it, which is a password", "password");
    const srtHint = h("p.muted#encoder-srt-hint");
    const report = encoderReport(room);
    const code = h("button.button#encoder-code", { type: "button", hidden: true, onclick: () => showAddresses() },
      icon("qr"), h("span", {}, "QR code"));
    const replace = h("button.button#replace-key", { type: "button", onclick: () => replaceKey() }, "New key…");
    const root = h("details.card.share.settings#encoder", { hidden: true }, h("summary", {}, "Encoder (OBS and others)"),
      h("div.fields", {}, server.element, key.element, srt.element, srtHint,
        h("p.muted", {}, "H.264 without B-frames (x264: tune zerolatency), by RTMP also AV1, a key frame every 2 seconds, and AAC."),
        report.element, h("div.row", {}, code, replace)));
    layer.append(root);

    let isOn = false;
    let isAsking = false;
    const show = () => { root.hidden = !isOn || !room.isHost || room.isOver || room.isOut; };
    /** @param {() => Promise<import("../stage-api.js").Ingest>} request */
    const ask = async (request) => {
      if (isAsking) return;
      isAsking = true;
      const answer = await room.attempt(request);
      isAsking = false;
      server.input.value = answer?.rtmp?.server ?? "";
      key.input.value = answer?.rtmp?.key ?? "";
      srt.input.value = answer?.srt?.url ?? "";
      srtHint.textContent = !answer?.srt ? "" : !answer.srt.url
        ? "Your key is longer than SRT takes: use RTMP, or a shorter name."
        : answer.srt.passphrase ? "By SRT the encoder also needs the passphrase of this server: ask who runs it." : "";
      code.hidden = addresses().length === 0;
      report.set(answer?.encoders ?? []);
    };
    /** Where to send, with the key in it, as apps on phones take it. */
    const addresses = () => {
      const choices = [];
      if (server.input.value && key.input.value) {
        const text = `${server.input.value}/${key.input.value}`;
        choices.push({ label: "An app that takes an address, by RTMP", text });
        // Larix Grove: the phone's camera opens the app, which asks whether it may add the connection.
        const connection = `conn[][url]=${encodeURIComponent(text)}&conn[][name]=${encodeURIComponent(room.stream)}`;
        choices.push({ label: "Larix Broadcaster, by RTMP", text: `larix://set/v1?${connection}` });
      }
      if (srt.input.value) choices.push({ label: "An app that takes an address, by SRT", text: srt.input.value });
      return choices;
    };
    const showAddresses = () => showCode(room, {
      title: "Scan with the phone that sends", hint: "Your key is in it, which is a password: whoever sees this can send to your stream.",
      choices: addresses(),
    });
    /** A key is made when somebody looks, and again when they look again: the one before may have been revoked. */
    const look = () => { if (root.open) ask(() => room.api.showIngest()); };
    const replaceKey = async () => {
      const isSure = await confirm({
        name: "replace-key", title: "Make a new key?", yes: "Make a new key",
        text: "The key that you have now opens nothing from then on. An encoder that publishes by it goes on.",
      });
      if (isSure) await ask(() => room.api.replaceIngestKey());
    };
    root.addEventListener("toggle", look);
    toldByServer().then((about) => {
      isOn = about.rtmp || about.srt;
      for (const { element } of [server, key]) element.hidden = !about.rtmp;
      srt.element.hidden = srtHint.hidden = !about.srt;
      show();
    });
    const unfollow = follow(room, show);
    return () => {
      unfollow();
      report.unmount();
      root.remove();
    };
  },
};
