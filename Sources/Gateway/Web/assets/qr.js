// @ts-check

/** Shows links and addresses as QR codes, which the camera of a phone reads. */

import { ask } from "./dialog.js";
import { h } from "./dom.js";

/**
 * Shows a code in a dialog until it is closed.
 * @param {import("./room.js").Room} room
 * @param {object} code
 * @param {string} code.title
 * @param {string} code.hint who is to scan it, and what it reveals
 * @param {{ label: string, text: string }[]} code.choices possible contents, the usual one first
 */
export async function showCode(room, { title, hint, choices }) {
  const picture = h("img.qr#qr", { alt: "QR code" });
  const select = h("select", { name: "code", onchange: () => draw() },
    ...choices.map(({ label }, index) => new Option(label, String(index))));
  let drawnValue = select.value;
  const draw = async () => {
    const { value } = select;
    const drawn = await room.attempt(() => room.api.qrCode(choices[Number(value)].text));
    if (value !== select.value) return false;
    if (!drawn) {
      // The code of before is still there.
      select.value = drawnValue;
      return false;
    }
    drawnValue = value;
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(drawn);
    return true;
  };
  if (!await draw()) return;
  await ask({
    name: "qr", title, text: hint, isReady: true,
    body: choices.length > 1 ? [h("div.fields", {}, h("label", {}, "For", select)), picture] : [picture],
    choices: [{ value: "close", label: "Close", look: "primary" }],
  });
  URL.revokeObjectURL(picture.src);
}
