// @ts-check

/** Keyboard and pointer input of a player, and when its controls fade. */

/** Controls fade this long after the last movement, in milliseconds. */
const FADE_MS = 3000;
/** A second click within this time asks for full screen, in milliseconds. */
const DOUBLE_MS = 250;
/** How much an arrow key changes. */
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

/** What a click or tap is meant for itself. */
const CONTROLS = "a, button, input, .menu, .bar .row";

/**
 * @param {HTMLElement} root
 * @param {Actions} actions
 * @returns {() => void} shows the controls as if someone had moved; to be called when the player comes into a page
 */
export function listen(root, actions) {
  /** @type {number | undefined} */
  let fading;
  /** @type {number | undefined} */
  let clicking;
  /** What the last press was made with: not every browser says so of a click. */
  let pointer = "mouse";
  const isStill = () => root.classList.contains("still-pointer");
  const fade = () => {
    clearTimeout(fading);
    if (actions.mayFade()) root.classList.add("still-pointer");
    // A timer would keep a player that was removed from its page alive for ever.
    else if (root.isConnected) fading = setTimeout(fade, FADE_MS);
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
    const isVolume = target.matches("input.volume");
    // The timeline's own step is too small to leave the live edge, or to get anywhere in a recording.
    const isTimeline = target.matches("input.position");
    const [back, forth] = [-SKIP_SECONDS, SKIP_SECONDS].map((seconds) => () => actions.skip(seconds));
    const action = {
      k: actions.toggle,
      m: actions.toggleSound,
      f: actions.toggleFull,
      // It presses a button, and arrows move the volume's slider.
      " ": target.matches("button") ? null : actions.toggle,
      ArrowUp: isVolume ? null : isTimeline ? forth : () => actions.louder(VOLUME_STEP),
      ArrowDown: isVolume ? null : isTimeline ? back : () => actions.louder(-VOLUME_STEP),
      ArrowLeft: isVolume ? null : back,
      ArrowRight: isVolume ? null : forth,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    // Otherwise the page would scroll.
    event.preventDefault();
    action();
  };

  /** @param {MouseEvent} event */
  const click = (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.closest(".menu, [aria-haspopup]")) actions.leave();
    if (target.closest(CONTROLS) || !actions.mayListen()) return;
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
    const isOnPicture = !(/** @type {HTMLElement} */ (event.target)).closest(CONTROLS);
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
  return wake;
}
