// @ts-check

/** Passes touches, mouse, wheel and keys to a `Swipe`, and draws the result once per frame. */

/** How far the wheel turns for a step, in pixels. */
const WHEEL_STEP = 50;
/** How long the wheel must rest between two steps, in milliseconds: trackpads scroll on by themselves. */
const WHEEL_REST_MS = 160;
/** Shortest time between two notches of a mouse wheel that count as two steps, in milliseconds. */
const WHEEL_AGAIN_MS = 450;
/** Width of the edges where a tap is a step, as a share of the screen. */
const EDGE = 0.28;

/** @type {Record<string, ["forward" | "backward", "x" | "y"]>} */
const KEYS = {
  ArrowRight: ["forward", "x"], ArrowLeft: ["backward", "x"], ArrowDown: ["forward", "y"], ArrowUp: ["backward", "y"],
  PageDown: ["forward", "y"], PageUp: ["backward", "y"],
};

/**
 * @typedef {object} Handlers
 * @property {() => import("./swipe.js").Way} way
 * @property {(progress: number, axis: "x" | "y") => void} draw
 * @property {() => void} rested after all movement has stopped
 * @property {() => void} tapped after a tap in the middle
 * @property {(key: string) => void} pressed after any other key
 */

export class Gestures {
  #pointer = -1;
  /** Whether the pointer went down on a control, which gets the tap or click. */
  #isOnControl = false;
  #frame = 0;
  #wheel = { sum: 0, at: 0, stepAt: -Infinity, sign: 0 };

  /**
   * @param {HTMLElement} stage
   * @param {HTMLElement} overlay over the stage; swipes can begin on its buttons, too
   * @param {import("./swipe.js").Swipe} swipe
   * @param {Handlers} handlers
   */
  constructor(stage, overlay, swipe, handlers) {
    this.stage = stage;
    this.swipe = swipe;
    this.handlers = handlers;
    for (const surface of [stage, overlay]) {
      surface.addEventListener("pointerdown", (event) => this.#down(event));
      surface.addEventListener("pointermove", (event) => this.#move(event));
      surface.addEventListener("pointerup", (event) => this.#up(event));
      for (const name of ["pointercancel", "lostpointercapture"]) {
        surface.addEventListener(name, (event) => this.#lost(/** @type {PointerEvent} */ (event)));
      }
    }
    // On the whole window, for the buttons beside the picture, too.
    addEventListener("wheel", (event) => this.#turned(event), { passive: false });
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("resize", () => this.#draw());
    // Otherwise the mouse drags pictures and links.
    stage.addEventListener("dragstart", (event) => event.preventDefault());
    swipe.decisions.tap = (x) => this.#tapped(x);
  }

  /**
   * @param {"forward" | "backward"} direction
   * @param {"x" | "y"} [axis]
   */
  step(direction, axis = "x") {
    const hasMoved = this.swipe.step(direction, axis, performance.now(), this.handlers.way());
    this.wake();
    return hasMoved;
  }

  /** Draws until all movement has stopped. */
  wake() {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#tick());
  }

  #tick() {
    this.#frame = 0;
    const wasMoving = this.swipe.isMoving;
    this.swipe.tick(performance.now());
    this.#draw();
    if (this.swipe.state === "settling") this.#frame = requestAnimationFrame(() => this.#tick());
    else if (wasMoving && this.swipe.state === "resting") this.handlers.rested();
  }

  #draw() {
    this.handlers.draw(this.swipe.progress, this.swipe.axis);
  }

  /** @param {PointerEvent} event */
  #down(event) {
    // If another pointer is still down, its release went to a dialog or another window.
    if (!event.isPrimary || event.button !== 0) return;
    this.#isOnControl = event.target instanceof Element && event.target.closest("a, button, form") !== null;
    this.#pointer = event.pointerId;
    this.swipe.press(pointOf(event), { width: innerWidth, height: innerHeight });
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (event.pointerId !== this.#pointer) return;
    if (event.pointerType === "mouse" && event.buttons === 0) return this.#abandon(event);
    const wasDragging = this.swipe.state === "dragging";
    this.swipe.move(pointOf(event), this.handlers.way());
    if (this.swipe.state !== "dragging") return;
    // Captured only for a swipe, so that clicks still work.
    if (!wasDragging) this.stage.setPointerCapture(event.pointerId);
    this.wake();
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (event.pointerId !== this.#pointer) return;
    this.#pointer = -1;
    if (this.#isOnControl && this.swipe.state === "held") this.swipe.abandon(event.timeStamp);
    else this.swipe.lift(pointOf(event));
    this.wake();
  }

  /** @param {PointerEvent} event */
  #lost(event) {
    // Touches are captured by their first target, which loses them when the stage captures them.
    if (event.pointerId !== this.#pointer || event.type === "lostpointercapture" && event.target !== this.stage) return;
    this.#abandon(event);
  }

  /** @param {PointerEvent} event */
  #abandon(event) {
    this.#pointer = -1;
    this.swipe.abandon(event.timeStamp);
    this.wake();
  }

  /** @param {number} x */
  #tapped(x) {
    const place = x / innerWidth;
    if (place < EDGE) this.step("backward");
    else if (place > 1 - EDGE) this.step("forward");
    else this.handlers.tapped();
  }

  /** @param {WheelEvent} event */
  #turned(event) {
    if (event.ctrlKey || event.target instanceof Element && event.target.closest("dialog")) return;
    event.preventDefault();
    const now = event.timeStamp;
    const axis = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? "x" : "y";
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 400 : 1;
    const delta = (axis === "x" ? event.deltaX : event.deltaY) * unit;
    const wheel = this.#wheel;
    const isRun = now - wheel.at < WHEEL_REST_MS && Math.sign(delta) === wheel.sign;
    wheel.at = now;
    // Scrolling that goes on after a step is part of it.
    if (isRun && now - wheel.stepAt < WHEEL_AGAIN_MS) {
      if (Math.abs(delta) < 100) wheel.stepAt = Math.max(wheel.stepAt, now - WHEEL_AGAIN_MS + WHEEL_REST_MS);
      return;
    }
    wheel.sum = isRun ? wheel.sum + delta : delta;
    wheel.sign = Math.sign(delta);
    if (Math.abs(wheel.sum) < WHEEL_STEP) return;
    wheel.stepAt = now;
    wheel.sum = 0;
    this.step(delta > 0 ? "forward" : "backward", axis);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const isElsewhere = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
    if (isElsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    const known = KEYS[event.key];
    if (!known) return this.handlers.pressed(event.key);
    event.preventDefault();
    // A held key would rush through the feed.
    if (event.repeat && this.swipe.isMoving) return;
    this.step(...known);
  }
}

/** @param {PointerEvent} event */
const pointOf = ({ clientX, clientY, timeStamp }) => ({ x: clientX, y: clientY, at: timeStamp });
