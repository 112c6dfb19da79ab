// @ts-check

import { devices as listDevices } from "../capture.js";
import { h } from "../dom.js";

/** Which camera and microphone, and how good a picture. */
export const devices = {
  name: "devices",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { own, onAir } = room;
    const camera = h("select#camera", { onchange: () => own.choose({ camera: camera.value }) });
    const microphone = h("select#microphone", { onchange: () => own.choose({ microphone: microphone.value }) });
    const quality = h("select#quality", { onchange: () => own.choose({ height: Number(quality.value) }) },
      new Option("Full HD, 1080p", "1080"), new Option("HD, 720p", "720"), new Option("Small, 480p", "480"));
    quality.value = String(own.height);
    const simulcast = h("input#simulcast", {
      type: "checkbox", checked: own.simulcast, onchange: () => (own.simulcast = simulcast.checked),
    });
    const root = h("details.card.settings#settings", {}, h("summary", {}, "Camera and microphone"), h("div.fields", {},
      h("label", {}, "Camera", camera), h("label", {}, "Microphone", microphone), h("label", {}, "Quality", quality),
      h("label.check", {}, simulcast, " ", h("span", {}, "Send three sizes at once", h("br"), h("small.muted", {},
        "Viewers on slow networks get a smaller picture. Costs some more upload.")))));
    layer.append(root);

    const list = async () => {
      for (const [select, kind, chosen] of /** @type {const} */ ([
        [camera, "videoinput", own.camera], [microphone, "audioinput", own.microphone],
      ])) {
        const found = (await listDevices(kind)).map(({ deviceId, label }) => new Option(label, deviceId));
        select.replaceChildren(new Option("Default", ""), ...found);
        select.value = chosen;
      }
    };
    const lock = () => (simulcast.disabled = onAir.isOn);
    list();
    own.addEventListener("source", list);
    navigator.mediaDevices?.addEventListener("devicechange", list);
    onAir.addEventListener("change", lock);
    return () => {
      own.removeEventListener("source", list);
      navigator.mediaDevices?.removeEventListener("devicechange", list);
      onAir.removeEventListener("change", lock);
      root.remove();
    };
  },
};
