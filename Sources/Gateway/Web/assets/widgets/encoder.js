// @ts-check

import { confirm } from "../dialog.js";
import { copyFrom, follow, h, icon } from "../dom.js";
import { showCode } from "../qr.js";
import { toldByServer } from "../server.js";
import { encoderReport } from "./encoder-report.js";

/** @typedef {import("../room.js").Room} Room */

/** Settings for OBS and other encoders: where to publish over RTMP and SRT, the key, and what the server receives. */
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
    // The screen may be shared.
    const key = field("encoder-key", "Stream key (keep it secret)", "password");
    const srt = field("encoder-srt", "SRT URL with your key (keep it secret)", "password");
    const srtHint = h("p.muted#encoder-srt-hint");
    const report = encoderReport(room);
    const code = h("button.button#encoder-code", { type: "button", hidden: true, onclick: () => showAddresses() },
      icon("qr"), h("span", {}, "QR code"));
    const replace = h("button.button#replace-key", { type: "button", onclick: () => replaceKey() }, "New key…");
    const root = h("details.card.share.settings#encoder", { hidden: true }, h("summary", {}, "Encoder (OBS and others)"),
      h("div.fields", {}, server.element, key.element, srt.element, srtHint,
        h("p.muted", {}, "Use AAC and H.264 without B-frames (x264: tune zerolatency) or, over RTMP, AV1. Set a key frame every 2 seconds."),
        report.element, h("div.row", {}, code, replace)));
    layer.append(root);

    let isOn = false;
    /** The last request, and how many are not answered: one at a time, so that the newest key is the one shown. */
    let [last, waiting] = [Promise.resolve(), 0];
    const show = () => { root.hidden = !isOn || !room.isHost || room.isOver || room.isOut; };
    /** @param {() => Promise<import("../stage-api.js").Ingest>} request */
    const ask = (request) => {
      waiting += 1;
      return last = last.then(async () => fill(await room.attempt(request))).finally(() => (waiting -= 1));
    };
    /** Without an answer, the key from before may still work. @param {import("../stage-api.js").Ingest | null} answer */
    const fill = (answer) => {
      if (!answer) return;
      server.input.value = answer.rtmp?.server ?? "";
      key.input.value = answer.rtmp?.key ?? "";
      srt.input.value = answer.srt?.url ?? "";
      srtHint.textContent = !answer.srt ? "" : !answer.srt.url
        ? "Your key is too long for SRT. Use RTMP, or a shorter name."
        : answer.srt.passphrase ? "SRT also needs this server’s passphrase. Ask the server’s admin for it." : "";
      code.hidden = addresses().length === 0;
      report.set(answer.encoders ?? []);
    };
    /** Addresses with the key, for phone apps. */
    const addresses = () => {
      const choices = [];
      if (server.input.value && key.input.value) {
        const text = `${server.input.value}/${key.input.value}`;
        choices.push({ label: "Any app with an RTMP URL", text });
        // Larix Grove: the phone's camera opens the app, which asks whether it may add the connection.
        const connection = `conn[][url]=${encodeURIComponent(text)}&conn[][name]=${encodeURIComponent(room.stream)}`;
        choices.push({ label: "Larix Broadcaster (RTMP)", text: `larix://set/v1?${connection}` });
      }
      if (srt.input.value) choices.push({ label: "Any app with an SRT URL", text: srt.input.value });
      return choices;
    };
    const showAddresses = () => showCode(room, {
      title: "Scan with your streaming phone", hint: "This code contains your stream key. Anyone who scans it can stream as you.",
      choices: addresses(),
    });
    /** A key is made each time the panel is opened, because the previous one may have been revoked. */
    const look = () => { if (root.open && waiting === 0) ask(() => room.api.showIngest()); };
    const replaceKey = async () => {
      const isSure = await confirm({
        name: "replace-key", title: "Create a new key?", yes: "Create new key",
        text: "Your current key stops working. An encoder that’s already streaming with it stays connected.",
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
