// @ts-check

/**
 * A swipe as a state machine: fingers, keys and time in, progress and decisions out. It knows no element and no clock,
 * so that tests can play any gesture.
 *
 * `progress` says how far the picture is turned away from the story that counts now: 0 at rest, 1 when the next one
 * fills the screen, −1 for the one before. A swipe that is committed makes the other story the one that counts, so
 * progress jumps by one and then always runs out towards 0.
 */

/** Movement that makes a touch a swipe, in pixels. */
const SLOP = 8;
/** A touch that is shorter and moves less is a tap, in milliseconds. */
const TAP_MS = 350;
/** Speed that decides by itself, in screens a second. */
const FLICK = 0.5;
/** What a slow finger has to move for the other story to stay, as a share of the screen. */
const TURN = 1 / 3;
/** Movement that counts for the speed, in milliseconds. */
const MEMORY_MS = 90;
/** How fast the picture runs out: a critically damped spring's frequency, in 1/s. */
const STIFFNESS = 15;
/** What a finger moves where there is nothing more, as a share. */
const RUBBER = 0.22;
/** As good as at rest. */
const REST = 0.0015;

/** @typedef {"forward" | "backward"} Direction */

/**
 * @typedef {object} Way what may be reached from the story that counts now
 * @property {boolean} forward
 * @property {boolean} backward
 *
 * @typedef {object} Decisions what the machine asks for; each is called at most once for what happened once
 * @property {(direction: Direction) => void} peek a swipe shows the story in this direction
 * @property {(direction: Direction) => void} commit that story counts now
 * @property {() => void} cancel the swipe was called off
 * @property {(x: number, y: number) => void} [tap]
 */

/**
 * @param {number} sign
 * @returns {Direction}
 */
const directionOf = (sign) => (sign > 0 ? "forward" : "backward");
/** @param {Direction} direction */
export const signOf = (direction) => (direction === "forward" ? 1 : -1);

export class Swipe {
  /** @type {"resting" | "held" | "dragging" | "settling"} */
  state = "resting";
  progress = 0;
  /**
   * The axis along which the picture turns.
   * @type {"x" | "y"}
   */
  axis = "x";
  /**
   * The direction of a story that was peeked and neither committed nor canceled.
   * @type {Direction | null}
   */
  peeked = null;

  /** @type {Way} */
  #way = { forward: true, backward: true };
  #size = { width: 1, height: 1 };
  #start = { x: 0, y: 0, at: 0 };
  /** Progress when the finger came down. */
  #base = 0;
  /** What the finger wants, without the resistance at the ends. */
  #wish = 0;
  /** @type {{ at: number, wish: number }[]} */
  #trail = [];
  /** The spring's beginning: position, speed and time. */
  #spring = { from: 0, speed: 0, at: 0 };

  /** @param {Decisions} decisions */
  constructor(decisions) {
    this.decisions = decisions;
  }

  get isMoving() {
    return this.state === "dragging" || this.state === "settling";
  }

  /**
   * A finger touches the screen. What still runs out is caught where it is.
   * @param {{ x: number, y: number, at: number }} point in pixels and milliseconds
   * @param {{ width: number, height: number }} size of the screen
   */
  press(point, size) {
    if (this.state === "settling") this.tick(point.at);
    this.#base = this.#wish = this.progress;
    this.#start = point;
    this.#size = { width: Math.max(1, size.width), height: Math.max(1, size.height) };
    this.#trail = [{ at: point.at, wish: this.#base }];
    this.state = "held";
  }

  /**
   * The finger moves.
   * @param {{ x: number, y: number, at: number }} point
   * @param {Way} way
   * @returns {void}
   */
  move(point, way) {
    if (this.state !== "held" && this.state !== "dragging") return;
    const dx = this.#start.x - point.x;
    const dy = this.#start.y - point.y;
    if (this.state === "held") {
      if (Math.max(Math.abs(dx), Math.abs(dy)) < SLOP) return;
      // A picture that was caught goes on along its own axis.
      if (this.#base === 0) this.axis = Math.abs(dx) >= Math.abs(dy) ? "x" : "y";
      // The picture begins to follow where the finger left the slop, however far it has come since.
      const along = this.axis === "x" ? dx : dy;
      const slop = Math.sign(along) * Math.min(SLOP, Math.abs(along));
      if (this.axis === "x") this.#start = { ...this.#start, x: this.#start.x - slop };
      else this.#start = { ...this.#start, y: this.#start.y - slop };
      this.state = "dragging";
      return this.move(point, way);
    }
    const moved = this.axis === "x" ? dx / this.#size.width : dy / this.#size.height;
    this.#follow(this.#base + moved, point.at, way);
  }

  /**
   * @param {number} wish
   * @param {number} at
   * @param {Way} way
   */
  #follow(wish, at, way) {
    this.#way = way;
    this.#wish = Math.max(-1, Math.min(1, wish));
    this.#trail.push({ at, wish: this.#wish });
    while (this.#trail.length > 2 && this.#trail[0].at < at - MEMORY_MS) this.#trail.shift();
    if (this.#wish === 0) {
      this.progress = 0;
      return;
    }
    const direction = directionOf(this.#wish);
    this.progress = way[direction] ? this.#wish : this.#wish * RUBBER;
    // What was left a moment ago and still runs out needs no second request unless the finger pulls it back.
    const pullsBack = Math.abs(this.#wish) > Math.abs(this.#base) || Math.sign(this.#wish) !== Math.sign(this.#base);
    if (!way[direction] || !pullsBack || this.peeked === direction) return;
    this.peeked = direction;
    this.decisions.peek(direction);
  }

  /**
   * In screens a second.
   * @param {number} at
   */
  #speed(at) {
    const trail = this.#trail.filter((each) => each.at >= at - MEMORY_MS);
    const [first, last] = [trail[0], trail[trail.length - 1]];
    return trail.length < 2 || last.at === first.at ? 0 : (last.wish - first.wish) / (last.at - first.at) * 1000;
  }

  /**
   * The finger lifts: the swipe completes after a third of the screen, or after a fling.
   * @param {{ x: number, y: number, at: number }} point
   */
  lift(point) {
    if (this.state === "held") {
      const isTap = point.at - this.#start.at <= TAP_MS && this.#base === 0;
      this.#settle(0, point.at);
      if (isTap) this.decisions.tap?.(point.x, point.y);
      return;
    }
    if (this.state !== "dragging") return;
    const speed = this.#speed(point.at);
    const isFlung = Math.abs(speed) >= FLICK;
    const sign = isFlung ? Math.sign(speed) : Math.sign(this.#wish);
    // Flung back to where it came from is no way to somewhere else.
    const isFar = isFlung ? Math.sign(this.#wish) === sign || this.#base !== 0 : this.#isBeyond;
    const direction = directionOf(sign);
    if (sign !== 0 && isFar && this.#way[direction] && this.#isAhead(sign)) {
      this.#commit(direction, speed, point.at);
    } else {
      this.#cancel();
      this.#settle(speed, point.at);
    }
  }

  /**
   * Whether letting go now may lead on: from what was caught in its run, only by going on in that way or by pulling it
   * back, both of which move away from where it was caught.
   * @param {number} sign
   */
  #isAhead(sign) {
    return Math.sign(this.#wish - this.#base) === sign || this.#isBeyond;
  }

  /** Whether the finger has moved the picture far enough for the other story to stay. */
  get #isBeyond() {
    return Math.abs(this.#wish) > TURN;
  }

  /**
   * The browser took over the gesture, or its story is gone.
   * @param {number} at
   */
  abandon(at) {
    if (this.state === "resting" || this.state === "settling") return;
    this.#cancel();
    this.#settle(0, at);
  }

  /**
   * A step by key, wheel, tap or button.
   * @param {Direction} direction
   * @param {"x" | "y"} axis
   * @param {number} at
   * @param {Way} way
   * @returns {boolean} false where there is nothing
   */
  step(direction, axis, at, way) {
    if (this.state === "held" || this.state === "dragging") this.abandon(at);
    if (this.state === "settling") this.tick(at);
    this.#way = way;
    if (!way[direction]) {
      // A nudge says that there is nothing more.
      if (this.state === "resting") {
        this.axis = axis;
        this.#settle(signOf(direction) * 1.2, at);
      }
      return false;
    }
    if (this.state === "resting") this.axis = axis;
    this.peeked = null;
    this.#commit(direction, 0, at);
    return true;
  }

  /**
   * Turns to a story without asking for a decision, such as when the one before has ended.
   * @param {Direction} direction
   * @param {"x" | "y"} axis
   * @param {number} at
   */
  turn(direction, axis, at) {
    this.peeked = null;
    if (this.state === "resting") this.axis = axis;
    this.progress = -signOf(direction);
    this.#settle(0, at);
  }

  /**
   * @param {Direction} direction
   * @param {number} speed
   * @param {number} at
   */
  #commit(direction, speed, at) {
    this.peeked = null;
    this.progress = Math.max(-1, Math.min(1, this.progress - signOf(direction)));
    this.#settle(speed, at);
    this.decisions.commit(direction);
  }

  #cancel() {
    if (!this.peeked) return;
    this.peeked = null;
    this.decisions.cancel();
  }

  /**
   * @param {number} speed
   * @param {number} at
   */
  #settle(speed, at) {
    this.#spring = { from: this.progress, speed: Math.max(-8, Math.min(8, speed)), at };
    this.state = Math.abs(this.progress) < REST && speed === 0 ? "resting" : "settling";
    if (this.state === "resting") this.progress = 0;
  }

  /**
   * Moves what runs out.
   * @param {number} at in milliseconds
   * @returns {number} progress
   */
  tick(at) {
    if (this.state !== "settling") return this.progress;
    const { from, speed } = this.#spring;
    const t = Math.max(0, at - this.#spring.at) / 1000;
    const bent = speed + STIFFNESS * from;
    const position = (from + bent * t) * Math.exp(-STIFFNESS * t);
    // It never runs through to the other side, where another story would come into sight.
    const isThrough = from !== 0 && Math.sign(position) !== Math.sign(from);
    const isStill = Math.abs(position) < REST && t > 0.05;
    this.progress = isThrough || isStill || t > 2 ? 0 : Math.max(-1, Math.min(1, position));
    if (this.progress === 0 && t > 0) this.state = "resting";
    return this.progress;
  }
}
