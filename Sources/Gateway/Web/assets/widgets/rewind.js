// @ts-check

import { follow, formatDuration, h, setText } from "../dom.js";

/** With less than this to rewind, the timeline is hidden, in seconds. */
const LEAST_REACH_S = 10;
/** Step of the arrow keys, in seconds: the slider's own step is too small to leave the live edge. */
const KEY_STEP_S = 10;

/** The timeline of a stream that viewers can rewind; it ends at the live edge. */
export const rewind = {
  name: "rewind",
  layer: /** @type {const} */ ("float"),
  /** @param {import("../room.js").Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const { viewing } = room;
    const position = h("input#position", { type: "range", min: 0, max: 1, step: 0.1, "aria-label": "Position" });
    const behind = h("span.behind");
    const live = h("button.button#to-live", { type: "button", onclick: () => viewing.rewind.leave() }, "Go live");
    const root = h("div.rewind", { hidden: true }, position, behind, live);
    layer.append(root);
    let isDragged = false;
    position.addEventListener("input", () => {
      isDragged = true;
      show();
    });
    // Dragged back to where it was, it has not changed. Later, because otherwise the change is still to come.
    const release = () => setTimeout(() => (isDragged = false));
    for (const end of ["pointerup", "pointercancel", "blur"]) position.addEventListener(end, release);
    position.addEventListener("change", () => {
      isDragged = false;
      viewing.rewind.go(Number(position.max) - Number(position.value));
    });
    position.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const step = {
        ArrowLeft: KEY_STEP_S, ArrowDown: KEY_STEP_S, ArrowRight: -KEY_STEP_S, ArrowUp: -KEY_STEP_S,
      }[event.key];
      // With these, arrow keys are the browser's.
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      viewing.rewind.go(Math.max(0, (viewing.rewind.behind ?? 0) + step));
    });
    const show = () => {
      const { behind: away, reach } = viewing.rewind;
      root.hidden = viewing.state !== "live" || reach < LEAST_REACH_S;
      if (root.hidden) return;
      live.hidden = away === null;
      if (!isDragged) {
        position.max = String(Math.ceil(reach));
        position.value = String(Math.ceil(reach) - Math.min(away ?? 0, reach));
      }
      const length = Number(position.max);
      const left = length - Number(position.value);
      const isLive = isDragged ? left < 1 : away === null;
      setText(behind, isLive ? "" : `−${formatDuration(left * 1000)}`);
      position.setAttribute("aria-valuetext", isLive ? "Live" : `${behind.textContent} from live`);
      position.style.setProperty("--share", `${(100 * Number(position.value) / length).toFixed(2)}%`);
    };
    const unfollow = follow(room, show);
    room.addEventListener("second", show);
    return () => {
      room.removeEventListener("second", show);
      unfollow();
      root.remove();
    };
  },
};
