// @ts-check

import { devices as listDevices } from "../capture.js";
import { follow, h } from "../dom.js";
import { FRAME_RATES } from "../own-media.js";

/**
 * Fields for camera, microphone and picture size.
 * @param {import("../own-media.js").OwnMedia} own
 */
export function deviceFields(own) {
  const camera = h("select#camera", { onchange: () => own.choose({ camera: camera.value }) });
  const microphone = h("select#microphone", { onchange: () => own.choose({ microphone: microphone.value }) });
  /** Shows what is chosen: a device may be gone, and where one could not be opened, another is the chosen one again. */
  const show = () => {
    for (const [select, chosen] of [[camera, own.camera], [microphone, own.microphone]]) {
      if (select.value !== chosen) select.value = chosen;
      if (select.selectedIndex < 0) select.value = "";
    }
  };
  const list = async () => {
    for (const [select, kind] of /** @type {const} */ ([[camera, "videoinput"], [microphone, "audioinput"]])) {
      const found = (await listDevices(kind)).map(({ deviceId, label }) => new Option(label, deviceId));
      select.replaceChildren(new Option("Default", ""), ...found);
    }
    show();
  };
  list();
  const unfollow = follow(own, show);
  own.addEventListener("source", list);
  navigator.mediaDevices?.addEventListener("devicechange", list);
  return {
    fields: [h("label", {}, "Camera", camera), h("label", {}, "Microphone", microphone)],
    stop() {
      unfollow();
      own.removeEventListener("source", list);
      navigator.mediaDevices?.removeEventListener("devicechange", list);
    },
  };
}

/** The choice of camera, microphone and picture size. */
export const devices = {
  name: "devices",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { own, onAir } = room;
    const chosen = deviceFields(own);
    const quality = h("select#quality", { onchange: () => own.choose({ height: Number(quality.value) }) },
      new Option("Full HD, 1080p", "1080"), new Option("HD, 720p", "720"), new Option("Small, 480p", "480"),
      new Option("Smallest, 360p", "360"));
    const frameRate = h("select#frame-rate", { onchange: () => own.choose({ frameRate: Number(frameRate.value) }) },
      ...FRAME_RATES.map((rate) => new Option(`${rate} fps`, String(rate))));
    const simulcast = h("input#simulcast", {
      type: "checkbox", checked: own.simulcast, onchange: () => (own.simulcast = simulcast.checked),
    });
    const root = h("details.card.settings#settings", {}, h("summary", {}, "Camera and microphone"), h("div.fields", {},
      ...chosen.fields, h("label", {}, "Quality", quality), h("label", {}, "Frame rate", frameRate),
      h("label.check", {}, simulcast, " ", h("span", {}, "Send several sizes at once", h("br"), h("small.muted", {},
        "Viewers on slow networks get a smaller picture. Uses a bit more upload.")))));
    layer.append(root);
    const lock = () => (simulcast.disabled = onAir.isOn);
    onAir.addEventListener("change", lock);
    const unfollow = follow(own, () => {
      quality.value = String(own.height);
      frameRate.value = String(own.frameRate);
    });
    return () => {
      unfollow();
      chosen.stop();
      onAir.removeEventListener("change", lock);
      root.remove();
    };
  },
};
