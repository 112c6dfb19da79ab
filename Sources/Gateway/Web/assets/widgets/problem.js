// @ts-check

import { follow, h, setText } from "../dom.js";

/** Shows what is wrong with the person's own picture or its connection, and what to do about it. */
export const problem = {
  name: "problem",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { own } = room;
    const title = h("h2#error-title");
    const text = h("p#error-text");
    const retry = h("button.button#error-retry", {
      type: "button", onclick: () => {
        const wasRefused = own.source !== null && room.onAir.connection.state === "failed";
        own.setProblem(null);
        if (wasRefused) room.goLive();
        else own.open();
      },
    }, "Try again");
    const test = h("button.button#error-test", {
      type: "button", onclick: () => {
        own.kind = "test";
        own.open();
      },
    }, "Use test picture");
    const sound = h("button.button#error-sound", {
      type: "button", onclick: () => {
        own.kind = "sound";
        own.open();
      },
    }, "Sound only");
    const root = h("div.card.alert#error", { role: "alert", hidden: true },
      title, text, h("p.actions", {}, retry, sound, test));
    layer.append(root);
    const unfollow = follow(own, () => {
      const { problem } = own;
      root.hidden = problem === null;
      setText(title, problem?.title ?? "");
      setText(text, problem?.text ?? "");
      retry.hidden = !problem?.canRetry;
      test.hidden = !problem?.offersTest;
      sound.hidden = !problem?.offersSound;
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};
