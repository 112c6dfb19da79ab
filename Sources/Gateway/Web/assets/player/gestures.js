// @ts-check

/** Keys and pointers over a player, and whether anybody moves. */

/** Controls fade this long after the last movement, in milliseconds. */
const FADE_MS = 3000;
/** A second click within this time asks for the full screen, in milliseconds. */
const DOUBLE_MS = 250;
/** What an arrow changes. */
const VOLUME_STEP = 0.05;
const SKIP_SECONDS = 5;

/**
 * @typedef {object} Actions
 * @property {() => boolean} mayListen
 * @property {() => boolean} mayFade
 * @property {() => void} toggle
 * @property {() => void} toggleSound
 * @property {() => void} toggleFull
 * @property {(by: number) => void} louder
 * @property {(seconds: number) => void} skip
 * @property {() => void} leave closes what is open
 */

/** @param {HTMLElement} root @param {Actions} actions */
export function listen(root, actions) {
  /** @type {number | undefined} */
  let fading;
  /** @type {number | undefined} */
  let clicking;
  /** By what the last press was: not every browser says so of a click. */
  let pointer = "mouse";
  const isStill = () => root.classList.contains("still-pointer");
  const fade = () => {
    clearTimeout(fading);
    if (actions.mayFade()) root.classList.add("still-pointer");
    else fading = setTimeout(fade, FADE_MS);
  };
  const wake = () => {
    root.classList.remove("still-pointer");
    clearTimeout(fading);
    fading = setTimeout(fade, FADE_MS);
  };

  /** @param {KeyboardEvent} event */
  const key = (event) => {
    wake();
    if (!actions.mayListen() || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const isSlider = target.matches("input");
    const action = {
      k: actions.toggle,
      m: actions.toggleSound,
      f: actions.toggleFull,
      // A button is pressed by it, and a slider is moved by arrows.
      " ": target.matches("button") ? null : actions.toggle,
      ArrowUp: isSlider ? null : () => actions.louder(VOLUME_STEP),
      ArrowDown: isSlider ? null : () => actions.louder(-VOLUME_STEP),
      ArrowLeft: isSlider ? null : () => actions.skip(-SKIP_SECONDS),
      ArrowRight: isSlider ? null : () => actions.skip(SKIP_SECONDS),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    // The page does not scroll by it.
    event.preventDefault();
    action();
  };

  /** @param {MouseEvent} event */
  const click = (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.closest(".menu, [aria-haspopup]")) actions.leave();
    if (target.closest("button, input, .menu, .bar .row") || !actions.mayListen()) return;
    // A finger only wants to see what there is.
    if (pointer !== "mouse") return;
    clearTimeout(clicking);
    if (event.detail === 2) actions.toggleFull();
    if (event.detail === 1) clicking = setTimeout(actions.toggle, DOUBLE_MS);
  };

  /** @param {PointerEvent} event */
  const down = (event) => {
    pointer = event.pointerType;
    // The first tap shows the controls, the next one hides them.
    const isOnPicture = !(/** @type {HTMLElement} */ (event.target)).closest("button, input, .menu, .bar .row");
    if (pointer === "touch" && isOnPicture && !isStill() && actions.mayFade()) {
      clearTimeout(fading);
      root.classList.add("still-pointer");
    } else wake();
  };

  root.addEventListener("keydown", key);
  root.addEventListener("click", click);
  root.addEventListener("pointerdown", down);
  root.addEventListener("pointermove", (event) => event.pointerType === "mouse" && wake());
  root.addEventListener("focusin", wake);
  root.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "mouse") return;
    clearTimeout(fading);
    fade();
  });
  wake();
}
