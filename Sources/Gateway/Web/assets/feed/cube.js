// @ts-check

/**
 * The two sides of the feed: the story in view and the one that a swipe turns to. Each side belongs to a slot of the
 * connection, so that a turn changes no video's source: the next story already plays there.
 */

import { h } from "../dom.js";
import { Side } from "./side.js";

/** @typedef {import("./list.js").Story} Story */

/** Fires `frame` (detail: id, at) when the first frame of a story is on the screen. */
export class Cube extends EventTarget {
  /** @type {[Side, Side]} */
  sides = [new Side(), new Side()];
  /**
   * Which side is in view.
   * @type {0 | 1}
   */
  front = 0;
  /** Whether it turns like a cube, or slides. */
  isFlat = false;

  /** Whether side 0 shows slot 0, and side 1 slot 1, or the other way round. */
  #isStraight = true;
  #transforms = ["", ""];

  /** @param {HTMLElement} stage */
  constructor(stage) {
    super();
    this.stage = stage;
    this.root = h("div.cube", {}, ...this.sides.map(({ root }) => root));
    stage.append(this.root);
    for (const side of this.sides) {
      side.addEventListener("frame", (event) =>
        this.dispatchEvent(new CustomEvent("frame", { detail: /** @type {CustomEvent} */ (event).detail })));
      side.addEventListener("blocked", () => this.dispatchEvent(new Event("blocked")));
    }
    this.#expose();
    this.place(0, "x");
  }

  get frontSide() {
    return this.sides[this.front];
  }

  get backSide() {
    return this.sides[1 - this.front];
  }

  /** Brings the other side into view. */
  swap() {
    this.front = /** @type {0 | 1} */ (1 - this.front);
    this.backSide.leave();
    this.frontSide.stay();
    this.#expose();
  }

  /** Hides the other side from screen readers and from the focus. */
  #expose() {
    for (const side of this.sides) {
      const isFront = side === this.frontSide;
      side.root.inert = !isFront;
      side.root.setAttribute("aria-hidden", String(!isFront));
      side.root.classList.toggle("is-front", isFront);
    }
  }

  /**
   * Gives each side the slot that it shows.
   * @param {import("./session.js").Slot[]} slots empty without a connection
   */
  wire(slots) {
    if (slots.length < 2) return;
    const at = slots.findIndex(({ stream }) => stream !== null && stream === this.frontSide.story?.id);
    // This only changes with a new connection, which starts in slot 0.
    if (at >= 0) this.#isStraight = at === this.front;
    this.sides.forEach((side, index) => side.attach(slots[this.#isStraight ? index : 1 - index]));
  }

  /**
   * @param {number} progress how far the side in view is turned away: at ±1, the other one fills the screen
   * @param {"x" | "y"} axis
   */
  place(progress, axis) {
    const isStill = progress === 0;
    const isAhead = progress > 0;
    this.root.classList.toggle("is-still", isStill);
    const offsets = [-progress, (isAhead ? 1 : -1) - progress];
    [this.frontSide, this.backSide].forEach((side, index) => {
      const transform = isStill ? "" : this.isFlat ? slide(offsets[index], axis) : turn(offsets[index], axis);
      const number = this.sides.indexOf(side);
      if (this.#transforms[number] === transform) return;
      this.#transforms[number] = transform;
      side.root.style.transform = transform;
      side.root.style.setProperty("--shade", String(this.isFlat ? 0 : Math.min(0.7, Math.abs(offsets[index]) * 0.75)));
    });
  }
}

/**
 * @param {number} offset in screens
 * @param {"x" | "y"} axis
 */
function slide(offset, axis) {
  return axis === "x" ? `translate3d(${offset * 100}%, 0, 0)` : `translate3d(0, ${offset * 100}%, 0)`;
}

/**
 * A side of a cube whose middle lies half a screen behind the picture.
 * @param {number} offset in sides
 * @param {"x" | "y"} axis
 */
function turn(offset, axis) {
  const half = (axis === "x" ? innerWidth : innerHeight) / 2;
  const angle = offset * 90;
  const rotation = axis === "x" ? `rotateY(${angle}deg)` : `rotateX(${-angle}deg)`;
  return `translateZ(${-half}px) ${rotation} translateZ(${half}px)`;
}
