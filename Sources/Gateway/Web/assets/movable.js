// @ts-check

/** Lets people move an element by dragging its handle, or with the arrow keys on the handle. */

/** One press of an arrow key moves this far, in CSS pixels. */
const STEP = 24;

/**
 * @param {HTMLElement} element positioned by the page; moves by `translate`, and never out of the window
 * @param {HTMLElement} handle
 * @returns {() => void} ends it
 */
export function makeMovable(element, handle) {
  let x = 0;
  let y = 0;
  /** @param {number} dx @param {number} dy */
  const move = (dx, dy) => {
    const box = element.getBoundingClientRect();
    x += clamp(dx, -box.left, innerWidth - box.right);
    y += clamp(dy, -box.top, innerHeight - box.bottom);
    element.style.translate = `${x}px ${y}px`;
  };
  /** @param {PointerEvent} event */
  const drag = (event) => {
    if (handle.hasPointerCapture(event.pointerId)) move(event.movementX, event.movementY);
  };
  /** @param {PointerEvent} event */
  const begin = (event) => handle.setPointerCapture(event.pointerId);
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    const way = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (!way) return;
    event.preventDefault();
    move(way[0], way[1]);
  };
  // Keep it inside when the window gets smaller.
  const stay = () => element.checkVisibility() && move(0, 0);
  handle.addEventListener("pointerdown", begin);
  handle.addEventListener("pointermove", drag);
  handle.addEventListener("keydown", key);
  addEventListener("resize", stay);
  return () => {
    handle.removeEventListener("pointerdown", begin);
    handle.removeEventListener("pointermove", drag);
    handle.removeEventListener("keydown", key);
    removeEventListener("resize", stay);
  };
}

/** @param {number} value @param {number} low @param {number} high */
function clamp(value, low, high) {
  return Math.max(Math.min(low, 0), Math.min(value, Math.max(high, 0)));
}
