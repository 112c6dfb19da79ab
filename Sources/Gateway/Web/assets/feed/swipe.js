// @ts-check

/**
 * A swipe as a state machine: touches, keys and time in, progress and decisions out. It has no elements and no timers,
 * so that tests can play any gesture.
 *
 * `progress` says how far the picture is turned away from the current story: 0 at rest, 1 when the next one fills the
 * screen, −1 for the previous one. A committed swipe makes the other story the current one: progress jumps by one, and
 * then settles towards 0.
 */

/** Distance after which a touch is a swipe, in pixels. */
const SLOP = 8;
/** A shorter touch that stays within that distance is a tap, in milliseconds. */
const TAP_MS = 350;
/** Speed from which a swipe is a fling, in screens per second. */
const FLICK = 0.5;
/** Distance after which a slow swipe completes, as a share of the screen. */
const TURN = 1 / 3;
/** Time over which the speed is measured, in milliseconds. */
const MEMORY_MS = 90;
/** How fast the picture settles: the frequency of a critically damped spring, in 1/s. */
const STIFFNESS = 15;
/** How far the picture follows the finger at the end of the feed, as a share. */
const RUBBER = 0.22;
/** Below this progress, the picture is at rest. */
const REST = 0.0015;

/** @typedef {"forward" | "backward"} Direction */

/**
 * @typedef {object} Way whether there is anything in each direction
 * @property {boolean} forward
 * @property {boolean} backward
 *
 * @typedef {object} Decisions callbacks, each called at most once per gesture
 * @property {(direction: Direction) => void} peek a swipe begins to show the story in this direction
 * @property {(direction: Direction) => void} commit that story is the current one now
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
   * The direction of a peek that was neither committed nor canceled.
   * @type {Direction | null}
   */
  peeked = null;

  /** @type {Way} */
  #way = { forward: true, backward: true };
  #size = { width: 1, height: 1 };
  #start = { x: 0, y: 0, at: 0 };
  /** Progress when the touch began. */
  #base = 0;
  /** Progress according to the finger, without the resistance at the ends. */
  #wish = 0;
  /** @type {{ at: number, wish: number }[]} */
  #trail = [];
  /** Initial position, speed and time of the spring. */
  #spring = { from: 0, speed: 0, at: 0 };

  /** @param {Decisions} decisions */
  constructor(decisions) {
    this.decisions = decisions;
  }

  get isMoving() {
    return this.state === "dragging" || this.state === "settling";
  }

  /**
   * A finger touches the screen. A picture that is still settling stops where it is.
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
      // A picture that was stopped goes on along its own axis.
      if (this.#base === 0) this.axis = Math.abs(dx) >= Math.abs(dy) ? "x" : "y";
      // The picture follows from where the finger became a swipe, even if it has moved much further since.
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
    // The story that was just left needs no new request unless the finger pulls it back.
    const pullsBack = Math.abs(this.#wish) > Math.abs(this.#base) || Math.sign(this.#wish) !== Math.sign(this.#base);
    if (!way[direction] || !pullsBack || this.peeked === direction) return;
    this.peeked = direction;
    this.decisions.peek(direction);
  }

  /**
   * The speed of the finger, in screens per second.
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
    // A fling back to the start completes nothing.
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
   * Whether a swipe can complete in this direction. If it began on a picture that was settling, it must have moved on
   * from there in this direction.
   * @param {number} sign
   */
  #isAhead(sign) {
    return Math.sign(this.#wish - this.#base) === sign || this.#isBeyond;
  }

  /** Whether the finger has moved far enough to complete a slow swipe. */
  get #isBeyond() {
    return Math.abs(this.#wish) > TURN;
  }

  /**
   * Cancels the swipe: the browser took over the gesture, or the story is gone.
   * @param {number} at
   */
  abandon(at) {
    if (this.state === "resting" || this.state === "settling") return;
    this.#cancel();
    this.#settle(0, at);
  }

  /**
   * Takes a step by key, wheel, tap or button.
   * @param {Direction} direction
   * @param {"x" | "y"} axis
   * @param {number} at
   * @param {Way} way
   * @returns {boolean} false if there is nothing in that direction
   */
  step(direction, axis, at, way) {
    if (this.state === "held" || this.state === "dragging") this.abandon(at);
    if (this.state === "settling") this.tick(at);
    this.#way = way;
    if (!way[direction]) {
      // A nudge shows that there is nothing more.
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
   * Turns to a story without a decision, for example because the previous one has ended.
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
   * Moves a settling picture.
   * @param {number} at in milliseconds
   * @returns {number} progress
   */
  tick(at) {
    if (this.state !== "settling") return this.progress;
    const { from, speed } = this.#spring;
    const t = Math.max(0, at - this.#spring.at) / 1000;
    const bent = speed + STIFFNESS * from;
    const position = (from + bent * t) * Math.exp(-STIFFNESS * t);
    // It never overshoots, which would show another story.
    const isThrough = from !== 0 && Math.sign(position) !== Math.sign(from);
    const isStill = Math.abs(position) < REST && t > 0.05;
    this.progress = isThrough || isStill || t > 2 ? 0 : Math.max(-1, Math.min(1, position));
    if (this.progress === 0 && t > 0) this.state = "resting";
    return this.progress;
  }
}
