// @ts-check

/** The page of the feed: connects the stories, the cube and the viewer's gestures. */

import { $, follow, h, isolate, setText } from "./dom.js";
import { DELAYED_HAND } from "./fallback.js";
import { Cube } from "./feed/cube.js";
import { DelayedStory } from "./feed/delayed.js";
import { Gestures } from "./feed/gestures.js";
import { Joining } from "./feed/join.js";
import { makeMenu } from "./feed/menu.js";
import { followPicture } from "./feed/picture.js";
import { share } from "./feed/share.js";
import { titleOf } from "./feed/side.js";
import { fillEnd, makeStatus } from "./feed/status.js";
import { signOf } from "./feed/swipe.js";
import { StoryTalk } from "./feed/talk.js";
import { Watching } from "./feed/watching.js";
import { keepFocus } from "./focus.js";
import { areLettersKeys, letterSwitch } from "./keys.js";
import { PictureChoice, pictureRadios, weakLinkSign, wordsForWeakness } from "./picture-choice.js";
import { lastingStorage } from "./storage.js";
import { StoryFeed, Swipe } from "./story-feed.js";

/** Storage key for whether the viewer wants sound. */
const SOUND = "rostrum:sound";
/** Up to this number of stories, each has a mark of its own. */
const MARKS = 14;
/** A hidden page without sound closes its connection after this time, in milliseconds. */
const AWAY_MS = 30_000;
/** How long a message is shown, in milliseconds. */
const MESSAGE_MS = 2600;

const saves = Boolean(/** @type {any} */ (navigator).connection?.saveData);
const feed = new StoryFeed({
  stream: new URLSearchParams(location.search).get("stream"), preload: saves ? "on-swipe" : "eager",
});
const stage = $("stage");
const cube = new Cube(stage);
const choice = new PictureChoice();
const delayed = new DelayedStory(feed, cube, choice);
const menu = makeMenu(feed);
const weakLink = weakLinkSign();
$("menu-button").before(weakLink);
followPicture(feed, cube, weakLink, choice);
$("picture").append(pictureRadios(choice), letterSwitch("m sound"));
delayed.addEventListener("change", () => weakLink.say(wordsForWeakness(delayed.weakness)));
const updateEnds = cube.sides.map((side) => fillEnd(feed, side.end));
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** The direction of the story that was left, which the other side shows until the picture is at rest; 0 for none. */
let leaving = 0;
/** @type {"forward" | "backward"} */
let heading = "forward";

const swipe = new Swipe({
  peek(direction) {
    leaving = 0;
    feed.peek(direction);
    showBehind(direction);
  },
  commit(direction) {
    feed.commit(direction);
  },
  cancel() {
    feed.cancel();
  },
});

const gestures = new Gestures(stage, $("overlay"), swipe, {
  way: () => ({ forward: feed.mayGo("forward"), backward: feed.mayGo("backward") }),
  draw(progress, axis) {
    const sign = Math.sign(progress);
    if (sign !== 0 && sign !== leaving) {
      leaving = 0;
      showBehind(sign > 0 ? "forward" : "backward");
    }
    cube.place(progress, axis);
  },
  rested() {
    leaving = 0;
    showBehind(likely());
  },
  tapped() {
    if (isMuted && !wasChosen) setSound(true);
    else document.body.classList.toggle("plain");
  },
  pressed(key) {
    if (key === "m" && areLettersKeys()) setSound(isMuted);
    else if (key === "Home" && feed.stories.length) feed.go(feed.stories[0].id);
  },
});

/** Where the viewer will probably go next: on or, at an end of the feed, back. */
function likely() {
  const other = heading === "forward" ? "backward" : "forward";
  return feed.beside(heading) || !feed.beside(other) ? heading : other;
}

/**
 * Prepares the side that a swipe would show.
 * @param {"forward" | "backward"} direction
 */
function showBehind(direction) {
  const { backSide } = cube;
  const story = feed.beside(direction);
  if (!story && !feed.mayGo(direction)) {
    // The end of the feed is a dark wall.
    backSide.root.classList.add("is-wall");
    return;
  }
  backSide.root.classList.remove("is-wall");
  backSide.stay();
  backSide.show(story);
  wire();
}

feed.addEventListener("turn", (event) => {
  const { from, to, direction, reason } = /** @type {CustomEvent<import("./story-feed.js").Turn>} */ (event).detail;
  heading = direction;
  const story = to === null ? null : feed.story(to);
  const isFirst = from === null && reason === "jump" && cube.frontSide.story === null && !feed.isAtEnd && !hasShown;
  hasShown = true;
  const hadFocus = cube.frontSide.root.contains(document.activeElement);
  if (!isFirst) {
    if (reason !== "swipe") swipe.turn(direction, "x", performance.now());
    cube.swap();
    leaving = -signOf(direction);
  }
  cube.frontSide.root.classList.remove("is-wall");
  cube.frontSide.show(story, placeInWords());
  showHands();
  showGates();
  wire();
  gestures.wake();
  // The focused element turns away: focus its counterpart on the new side.
  if (hadFocus) cube.frontSide.root.querySelector(story ? ".join" : ".end-card .button")?.focus();
  if (reason === "ended") say(`${isolate(nameOf(from))} has ended`);
  announce();
  remember();
});
let hasShown = false;

feed.addEventListener("slots", () => {
  wire();
  applySound();
});

/** Attaches the connection's slots to the sides, unless the story plays over HLS. */
function wire() {
  if (!delayed.isOn) cube.wire(feed.slots);
}
for (const side of cube.sides) side.addEventListener("arrived", wire);

feed.addEventListener("gate", () => {
  showGates();
  // Wait again for the video that the gate covered.
  wire();
  applySound();
});

function showGates() {
  for (const side of cube.sides) side.showGate(feed.gateOf(side.story?.id));
}

feed.addEventListener("change", () => {
  for (const side of cube.sides) {
    const story = side.story && feed.story(side.story.id);
    if (story) side.show(story, side === cube.frontSide ? placeInWords() : "");
  }
  if (!feed.current && !feed.isAtEnd && hasShown) {
    hasShown = false;
    cube.frontSide.coverUp();
    cube.frontSide.story = null;
  }
  showGates();
  for (const update of updateEnds) update();
  if (swipe.state === "resting" && hasShown) showBehind(likely());
  if (feed.state === "reconnecting" && !feed.connection.session) for (const side of cube.sides) side.freeze();
  talk.show(feed.isAtEnd ? null : feed.current?.id ?? null);
  showHands();
  showPlace();
  entitle();
  // Not disabled, which would take the focus away.
  $("next").setAttribute("aria-disabled", String(!feed.mayGo("forward")));
  $("previous").setAttribute("aria-disabled", String(!feed.mayGo("backward")));
  $("share").setAttribute("aria-disabled", String(!feed.current));
  document.body.classList.toggle("at-end", feed.isAtEnd);
  applySound();
});

// Sound.

let isMuted = lastingStorage.getItem(SOUND) !== "on";
/** Whether the viewer has chosen during this visit. */
let wasChosen = false;

/** @param {boolean} isOn */
function setSound(isOn) {
  isMuted = !isOn;
  wasChosen = true;
  lastingStorage.setItem(SOUND, isOn ? "on" : "off");
  applySound();
  // During the viewer's gesture, as some browsers require one for each element.
  for (const side of cube.sides) if (side.isUncovered) side.play();
}

function applySound() {
  for (const side of cube.sides) side.muted = isMuted || feed.isAtEnd || !feed.current;
  $("sound").setAttribute("aria-pressed", String(!isMuted));
  $("unmute").hidden = !isMuted || wasChosen || feed.isAtEnd || feed.state !== "playing" || !feed.current
    || feed.gateOf(feed.current.id)?.state === "shut";
}

cube.addEventListener("blocked", () => {
  // The browser requires a tap for the sound that the viewer chose earlier.
  isMuted = true;
  wasChosen = false;
  applySound();
  for (const side of cube.sides) side.play();
});
$("sound").addEventListener("click", () => setSound(isMuted));
$("unmute").addEventListener("click", () => setSound(true));

// Other controls.

$("next").addEventListener("click", () => gestures.step("forward"));
$("previous").addEventListener("click", () => gestures.step("backward"));
$("menu-button").addEventListener("click", () => menu.open());
$("share").addEventListener("click", () => feed.current && share(feed.current, say));

const talk = new StoryTalk($("talk"), say);
const joining = new Joining();
joining.addEventListener("say", (event) => say(/** @type {CustomEvent<string>} */ (event).detail));
joining.addEventListener("change", showHands);
stage.addEventListener("click", (event) => {
  const { story } = cube.frontSide;
  if (!story || !(event.target instanceof Element) || !event.target.closest(".join")) return;
  if (delayed.isPlaying && joining.stateIn(story.id) === "down") say(DELAYED_HAND);
  else joining.press(story);
});
delayed.addEventListener("change", showHands);

function showHands() {
  for (const side of cube.sides) {
    const state = joining.stateIn(side.story?.id);
    side.words.showHand(state, joining.place);
    side.words.showReach(!delayed.isPlaying || state !== "down", DELAYED_HAND);
  }
}

/** Puts the story into the address, for reloads. */
function remember() {
  const { current } = feed;
  const address = new URL(location.href);
  if (current) address.searchParams.set("stream", current.id);
  else address.searchParams.delete("stream");
  history.replaceState(null, "", address);
  entitle();
}

/** Sets the title of the page. The title of a story may arrive or change while it is in view. */
function entitle() {
  const { current } = feed;
  const title = current && !feed.isAtEnd ? `${titleOf(current)} – Rostrum` : "Rostrum";
  if (document.title !== title) document.title = title;
}

function placeInWords() {
  return feed.index < 0 ? "" : `${feed.index + 1} of ${feed.count}`;
}

function showPlace() {
  const place = $("place");
  const { count, index } = feed;
  const total = count <= MARKS ? Math.max(count, feed.stories.length) : 0;
  if (place.childElementCount !== total) place.replaceChildren(...Array.from({ length: total }, () => h("i")));
  [...place.children].forEach((mark, at) => {
    mark.classList.toggle("is-passed", at < index || feed.isAtEnd);
    mark.classList.toggle("is-here", at === index && !feed.isAtEnd);
  });
  place.dataset.text = total === 0 && count > 0 && index >= 0 ? `${index + 1} / ${count}` : "";
  place.hidden = count < 2;
}

function announce() {
  const { current } = feed;
  if (feed.isAtEnd) return setText($("announcement"), "End of the feed.");
  if (!current) return;
  const by = current.hostName ? `, by ${current.hostName}` : "";
  setText($("announcement"), `${titleOf(current)}${by}, story ${placeInWords()}`);
}

/** @param {string | null} id */
function nameOf(id) {
  const story = cube.backSide.story;
  return story && story.id === id ? titleOf(story) : "The stream";
}

/** @type {number | undefined} */
let messageTimer;
/** @param {string} message */
function say(message) {
  const toast = $("toast");
  setText(toast, message);
  toast.classList.add("is-shown");
  clearTimeout(messageTimer);
  messageTimer = setTimeout(() => {
    toast.classList.remove("is-shown");
    setText(toast, "");
  }, MESSAGE_MS);
}

keepFocus(document.body);
follow(calm, () => (cube.isFlat = calm.matches));
const status = makeStatus(feed);
const watching = new Watching(feed);
setInterval(async () => {
  for (const side of cube.sides) {
    side.words.tick();
    side.remind();
  }
  showGates();
  const { frontSide } = cube;
  await delayed.tick();
  status.tick(frontSide.isUncovered, delayed.isOn ? "fine" : await watching.look(frontSide.isMoving));
}, 1000);
addEventListener("resize", () => cube.sides.forEach((side) => side.fit()));
addEventListener("pagehide", () => {
  talk.stop();
  feed.stop();
});
// A hidden page without sound needs no stream.
/** @type {number | undefined} */
let leaveTimer;
document.addEventListener("visibilitychange", () => {
  clearTimeout(leaveTimer);
  if (document.visibilityState === "visible") {
    if (feed.state === "idle") feed.play();
  } else if (isMuted) {
    leaveTimer = setTimeout(() => feed.stop(), AWAY_MS);
  }
});
// The viewer has unlocked a story, or opened another link: its token is in the address.
addEventListener("hashchange", () => feed.showToken());
// Restored from the back/forward cache.
addEventListener("pageshow", (event) => event.persisted && feed.play());
feed.play();

/** For tests and debugging. */
Object.assign(globalThis, { rostrum: { feed, cube, swipe, gestures, joining, talk, connection: feed.connection } });
