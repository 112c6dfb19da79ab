// @ts-check

/** The feed's page: puts the stories, the cube and the viewer's fingers together. */

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
import { PictureChoice, pictureRadios, weakLinkSign, wordsForWeakness } from "./picture-choice.js";
import { lastingStorage } from "./storage.js";
import { StoryFeed, Swipe } from "./story-feed.js";

/** Whether the viewer wants sound is remembered under this name. */
const SOUND = "rostrum:sound";
/** Marks for single stories fit the screen up to this number. */
const MARKS = 14;
/** A page without sound that nobody looks at ends its connection after this time, in milliseconds. */
const AWAY_MS = 30_000;
/** A short message stays for so long, in milliseconds. */
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
$("picture").append(pictureRadios(choice));
delayed.addEventListener("change", () => weakLink.say(wordsForWeakness(delayed.weakness)));
const updateEnds = cube.sides.map((side) => fillEnd(feed, side.end));
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Until the picture has come to rest the other side shows what was left, which lies where this sign says. */
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
    if (key === "m") setSound(isMuted);
    else if (key === "Home" && feed.stories.length) feed.go(feed.stories[0].id);
  },
});

/** Where the viewer will go next: on, or back where nothing lies ahead. */
function likely() {
  const other = heading === "forward" ? "backward" : "forward";
  return feed.beside(heading) || !feed.beside(other) ? heading : other;
}

/**
 * Makes ready what a swipe would show.
 * @param {"forward" | "backward"} direction
 */
function showBehind(direction) {
  const { backSide } = cube;
  const story = feed.beside(direction);
  if (!story && !feed.mayGo(direction)) {
    // Nothing is there: a dark wall.
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
  // What had the focus turns away; the same on the new side takes it.
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

/** Gives the sides what the connection brings, unless the story comes another way. */
function wire() {
  if (!delayed.isOn) cube.wire(feed.slots);
}
for (const side of cube.sides) side.addEventListener("arrived", wire);

feed.addEventListener("gate", () => {
  showGates();
  // What it hid is waited for anew.
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
  // Not disabled, which would take the focus from whoever goes step by step.
  $("next").setAttribute("aria-disabled", String(!feed.mayGo("forward")));
  $("previous").setAttribute("aria-disabled", String(!feed.mayGo("backward")));
  $("share").disabled = !feed.current;
  document.body.classList.toggle("at-end", feed.isAtEnd);
  applySound();
});

// Sound.

let isMuted = lastingStorage.getItem(SOUND) !== "on";
/** The viewer has said in this visit what they want. */
let wasChosen = false;

/** @param {boolean} isOn */
function setSound(isOn) {
  isMuted = !isOn;
  wasChosen = true;
  lastingStorage.setItem(SOUND, isOn ? "on" : "off");
  applySound();
  // In the viewer's gesture, for browsers that ask for one for each element.
  for (const side of cube.sides) if (side.isUncovered) side.play();
}

function applySound() {
  for (const side of cube.sides) side.muted = isMuted || feed.isAtEnd || !feed.current;
  $("sound").setAttribute("aria-pressed", String(!isMuted));
  $("unmute").hidden = !isMuted || wasChosen || feed.isAtEnd || feed.state !== "playing" || !feed.current
    || feed.gateOf(feed.current.id)?.state === "shut";
}

cube.addEventListener("blocked", () => {
  // Remembered sound that the browser wants a tap for.
  isMuted = true;
  wasChosen = false;
  applySound();
  for (const side of cube.sides) side.play();
});
$("sound").addEventListener("click", () => setSound(isMuted));
$("unmute").addEventListener("click", () => setSound(true));

// The rest of what is around the picture.

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

/** A reload comes back to the same story. */
function remember() {
  const { current } = feed;
  const address = new URL(location.href);
  if (current) address.searchParams.set("stream", current.id);
  else address.searchParams.delete("stream");
  history.replaceState(null, "", address);
  entitle();
}

/** What a story is called may be known, or be changed, only when it has been in view for a while. */
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
// Whoever neither sees nor hears it needs no stream.
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
// Somebody has unlocked a story.
addEventListener("hashchange", () => feed.showToken());
// Back from the browser's memory.
addEventListener("pageshow", (event) => event.persisted && feed.play());
feed.play();

/** For tests and the curious. */
Object.assign(globalThis, { rostrum: { feed, cube, swipe, gestures, joining, talk, connection: feed.connection } });
