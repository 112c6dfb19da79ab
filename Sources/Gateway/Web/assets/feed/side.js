// @ts-check

/**
 * A side of the cube: the picture and the texts of a story. First it shows the BlurHash, then the preview, and then the
 * video, which lies below both and is uncovered once it has drawn a frame of this story.
 */

import { formatDuration, formatViewers, h, icon, initials, setText } from "../dom.js";
import { FreePill, showUnlock, unlockLink, wordsForGate } from "../gate.js";
import { holdsLoading, onceShowable } from "../showable.js";
import { wordsForPlace } from "../waiting.js";
import { decodeBlurHash, isBlurHash } from "./blurhash.js";

/** Longer side of a decoded BlurHash, in pixels. */
const HASH_SIZE = 32;
/** Pictures whose aspect ratio differs from the screen's by less than this factor are cropped to fill it. */
const FILL_RATIO = 1.5;
/** Frames without a time of reception are trusted after this time, in milliseconds. */
const TRUST_MS = 400;
/**
 * A frame received before its slot changed is only trusted after this time, in milliseconds: on a bad network or a busy
 * machine, frames of the previous story arrive late, but a still picture may have no other frame.
 */
const STILL_MS = 4000;
/**
 * A frame up to this much older than a story's first one, in RTP's 90,000 ticks per second, is of the previous story,
 * however late it arrives. One that seems even older may be newer: the timestamps have 32 bits, and wrap around twice a
 * day.
 */
const OLD_TICKS = 90_000 * 3600;
/** A video that has drawn nothing for this long is frozen, in milliseconds; `remind` looks once a second. */
const MOVING_MS = 3000;

/**
 * @typedef {import("./list.js").Story} Story
 * @typedef {import("./session.js").Slot} Slot
 */

/**
 * Fires `frame` (detail: id, at) when the first frame of a story is on the screen, and `arrived` when a slot that it
 * has not attached yet carries a picture.
 */
export class Side extends EventTarget {
  /**
   * The story that is shown; null for the end of the feed.
   * @type {Story | null}
   */
  story = null;
  /** Whether the video is visible. */
  isUncovered = false;

  /**
   * What the video must carry before it is uncovered.
   * @type {{ id: string, since: number, at: number, slot: Slot } | null}
   */
  #awaited = null;
  /** `since` of its slot when the video was uncovered: if it changes, the slot carried something else meanwhile. */
  #shownSince = 0;
  /** Whether the viewer has turned away from it. */
  #isLeft = false;
  /**
   * The requests of its slot's session.
   * @type {Slot["requests"] | null}
   */
  #requests = null;
  /**
   * The last request when it came back into view or got another story. Until the server has answered that, its reports
   * on the slot may be out of date.
   */
  #needed = 0;
  /** The callback for the next frame. */
  #request = 0;
  /** Whether its slot carries its story, so that it should play. */
  #isFed = false;
  /** When a frame was last drawn, and the callback that watches for the next one. */
  #drawnAt = -Infinity;
  #look = 0;
  #isMuted = true;
  #drawnHash = "";
  #pictureURL = "";

  constructor() {
    super();
    this.video = h("video", {
      autoplay: true, muted: true, playsInline: true, disablePictureInPicture: true, "aria-label": "Live video", tabIndex: -1,
    });
    this.ambient = h("canvas.ambient", { width: 8, height: 8 });
    this.blur = h("canvas", { width: 8, height: 8 });
    this.preview = h("img", { alt: "", decoding: "async", hidden: true });
    // The last picture, while a connection is renewed.
    this.last = h("canvas", { width: 8, height: 8, hidden: true });
    this.cover = h("div.cover", {}, this.blur, this.preview, this.last);
    this.words = words();
    this.end = h("div.end-card", { hidden: true });
    this.gate = gateCard();
    this.root = h("section.side", { "aria-roledescription": "slide" },
      this.ambient, this.video, this.cover, this.words.root, this.gate.root, this.end, h("div.shade"));
    this.preview.addEventListener("load", () => (this.preview.hidden = false));
    this.preview.addEventListener("error", () => (this.preview.hidden = true));
    this.video.addEventListener("resize", () => this.fit());
  }

  /**
   * @param {Story | null} story null for the end
   * @param {string} [position] such as “2 of 8”, for screen readers
   */
  show(story, position = "") {
    const isOther = this.story?.id !== story?.id;
    this.story = story;
    this.root.classList.toggle("is-end", story === null);
    this.end.hidden = story !== null;
    this.words.root.hidden = story === null;
    if (!story) return this.coverUp();
    this.root.setAttribute("aria-label", [titleOf(story), position].filter(Boolean).join(", "));
    if (isOther) {
      this.coverUp();
      this.#awaitAnswer();
      this.#pictureURL = "";
      this.preview.hidden = true;
      this.preview.removeAttribute("src");
      this.last.hidden = true;
    }
    this.#drawHash(story);
    // The video covers the preview.
    if (!this.isUncovered) this.#loadPreview(story);
    this.words.update(story);
    this.fit();
  }

  /**
   * Shows the story's gate. While it is shut, nothing that arrives is of this story.
   * @param {import("../gate.js").Gate | null} gate
   */
  showGate(gate) {
    const isShut = gate?.state === "shut" && this.story !== null;
    if (isShut && !this.root.classList.contains("is-gated")) {
      this.coverUp();
      this.last.hidden = true;
    }
    this.root.classList.toggle("is-gated", isShut);
    this.gate.update(this.story ? gate : null);
  }

  /** Whether the video is visible and draws new frames. */
  get isMoving() {
    return this.isUncovered && performance.now() - this.#drawnAt < MOVING_MS;
  }

  /** Hides the video behind blur and preview, at once. */
  coverUp() {
    this.#awaited = null;
    this.isUncovered = false;
    this.root.classList.remove("is-live");
  }

  /** Copies the current picture to the cover. */
  keepPicture() {
    const { video, last } = this;
    if (!this.isUncovered || !video.videoWidth) return;
    const scale = Math.min(1, 720 / Math.max(video.videoWidth, video.videoHeight));
    [last.width, last.height] = [video.videoWidth * scale, video.videoHeight * scale];
    last.getContext("2d").drawImage(video, 0, 0, last.width, last.height);
    last.hidden = false;
  }

  /** Keeps showing the current picture after its connection was lost: browsers show black a moment later. */
  freeze() {
    if (!this.isUncovered) return;
    this.keepPicture();
    this.coverUp();
  }

  /** Freezes the picture when the viewer turns away: the next one in its slot may be of another story. */
  leave() {
    this.#isLeft = true;
    this.#isFed = false;
    this.#awaited = null;
    if (this.isUncovered) this.video.pause();
  }

  /** Resumes: it is in view, or comes next. */
  stay() {
    if (this.#isLeft) this.#awaitAnswer();
    this.#isLeft = false;
  }

  #tellOfArrival = () => void this.dispatchEvent(new Event("arrived"));

  /** From now on, only reports that take the last request into account count. */
  #awaitAnswer() {
    this.#needed = this.#requests?.said ?? 0;
  }

  /**
   * Uncovers the slot's video as soon as it shows this story. While no slot carries the story, the picture stays as it
   * is.
   * @param {Slot | null} slot
   */
  attach(slot) {
    const { story, video } = this;
    if (!slot) return;
    if (this.#requests !== slot.requests) {
      this.#requests = slot.requests;
      this.#awaitAnswer();
    }
    if (video.srcObject !== slot.media) {
      // An empty slot is attached once the document has loaded, and one with a stream once it has media.
      if (slot.stream === null && document.readyState !== "complete") return;
      if (holdsLoading(slot.media)) return onceShowable(slot.media, this.#tellOfArrival);
      this.keepPicture();
      video.srcObject = slot.media;
      this.coverUp();
    }
    this.#isFed = false;
    if (this.#isLeft) return;
    if (!story || slot.stream !== story.id) {
      this.#awaited = null;
      // Keep its last picture while the cube turns away.
      if (this.isUncovered) video.pause();
      else this.play();
      return;
    }
    // The slot carried something else meanwhile, whose last frames may still arrive.
    if (this.isUncovered && this.#shownSince !== slot.since) this.freeze();
    if (slot.requests.answered < this.#needed) {
      // What the slot carries is not known yet; the report calls this again.
      if (!this.isUncovered) this.play();
      return;
    }
    this.#isFed = true;
    this.play();
    if (this.isUncovered || this.#awaited?.id === story.id && this.#awaited.since === slot.since) return;
    this.#awaited = { id: story.id, since: slot.since, at: performance.now(), slot };
    this.#listen();
  }

  /** @param {boolean} isMuted */
  set muted(isMuted) {
    const plays = this.#isMuted && !this.video.paused;
    this.#isMuted = isMuted;
    this.video.muted = isMuted;
    // Browsers that require a gesture for sound pause a video that started muted when it is unmuted.
    if (plays && !isMuted) this.#begin();
  }

  /** @returns {Promise<boolean>} false if the browser requires a gesture before it plays sound */
  async play() {
    return !this.video.paused || this.#begin();
  }

  /** @returns {Promise<boolean>} */
  async #begin() {
    const { video } = this;
    if (!video.srcObject && !video.src || this.#isLeft) return true;
    // The picture is frozen because its slot carries something else, or may do so.
    if (this.isUncovered && !this.#isFed) return true;
    try {
      await video.play();
      return true;
    } catch (error) {
      // Either another source was set, which plays by itself, or sound is not allowed.
      if (/** @type {Error} */ (error).name !== "NotAllowedError" || this.#isMuted) return true;
      this.dispatchEvent(new Event("blocked"));
      return false;
    }
  }

  #listen() {
    // Firefox drops some callbacks that were requested before a pause.
    this.video.cancelVideoFrameCallback(this.#request);
    this.#request = this.video.requestVideoFrameCallback((/** @type {number} */ now, /** @type {any} */ frame) => {
      const awaited = this.#awaited;
      if (!awaited) return;
      if (!isOf(awaited, frame, now)) return this.#listen();
      this.#awaited = null;
      this.#drawnAt = performance.now();
      this.#shownSince = awaited.since;
      this.isUncovered = true;
      this.fit();
      this.root.classList.add("is-live");
      if (this.root.classList.contains("is-bare")) this.#paintAmbient();
      this.dispatchEvent(new CustomEvent("frame", { detail: { id: awaited.id, at: now } }));
    });
  }

  /**
   * Once a second, asks again for what should have happened. A video that should play may have been paused otherwise,
   * such as by a media key or to save power.
   */
  remind() {
    if (this.#isFed && this.video.paused) this.#begin();
    this.video.cancelVideoFrameCallback(this.#look);
    this.#look = this.video.requestVideoFrameCallback(() => (this.#drawnAt = performance.now()));
    if (this.#awaited && performance.now() - this.#awaited.at > TRUST_MS) this.#listen();
  }

  /** Without a BlurHash, paints the area around the picture with its own blurred copy. */
  #paintAmbient() {
    const { width, height } = this.ambient;
    this.ambient.getContext("2d").drawImage(this.video, 0, 0, width, height);
  }

  /** Lets the picture fill the screen if that crops only a little. */
  fit() {
    const { video, story } = this;
    const isSeen = this.isUncovered && video.videoWidth > 0;
    const width = isSeen ? video.videoWidth : story?.preview?.width ?? 0;
    const height = isSeen ? video.videoHeight : story?.preview?.height ?? 0;
    if (!width || !height || !innerWidth || !innerHeight) return;
    const ratio = (width / height) / (innerWidth / innerHeight);
    this.root.classList.toggle("is-whole", Math.max(ratio, 1 / ratio) >= FILL_RATIO);
  }

  /** @param {Story} story */
  #drawHash(story) {
    const { blurHash, width = 9, height = 16 } = story.preview ?? {};
    const key = isBlurHash(blurHash) ? `${blurHash} ${width}×${height}` : story.id;
    if (this.#drawnHash === key) return;
    this.#drawnHash = key;
    const scale = HASH_SIZE / Math.max(width, height, 1);
    const [w, v] = [width, height].map((each) => Math.max(4, Math.round(each * scale)));
    const image = isBlurHash(blurHash) ? new ImageData(decodeBlurHash(blurHash, w, v), w, v) : null;
    for (const canvas of [this.blur, this.ambient]) {
      [canvas.width, canvas.height] = [w, v];
      const context = canvas.getContext("2d");
      if (image) context.putImageData(image, 0, 0);
      else paintCard(context, w, v, story.id);
    }
    this.root.classList.toggle("is-bare", !image);
  }

  /** @param {Story} story */
  #loadPreview(story) {
    const url = story.preview?.url ?? "";
    if (!url || url === this.#pictureURL) return;
    this.#pictureURL = url;
    this.preview.src = url;
  }
}

/**
 * Whether a frame is of the awaited story: by the RTP timestamp of the story's first picture, otherwise by its time of
 * reception, which alone would miss first frames that arrive together with the report on the slot.
 * @param {{ id: string, since: number, at: number, slot: Slot }} awaited
 * @param {{ receiveTime?: number, rtpTimestamp?: number }} frame
 * @param {number} now
 */
function isOf({ id, since, at, slot }, { receiveTime, rtpTimestamp }, now) {
  if (slot.begun?.stream === id && rtpTimestamp !== undefined) {
    // Serial number arithmetic, as timestamps wrap around (RFC 1982).
    const ticks = (rtpTimestamp - slot.begun.timestamp) | 0;
    if (ticks >= -OLD_TICKS) return ticks >= 0;
  }
  if (performance.now() - at > STILL_MS) return true;
  return (receiveTime ?? (now - at > TRUST_MS ? Infinity : -Infinity)) >= since;
}

/**
 * The address of a stream's own page, with the token that the feed was opened with.
 * @param {string} id
 * @param {boolean} [comesBack] whether that page leads back to the story in the feed
 */
export function pageOf(id, comesBack = false) {
  const token = new URLSearchParams(location.search).get("access_token");
  const query = new URLSearchParams({ ...(comesBack && { from: "feed" }), ...(token && { access_token: token }) });
  return `/watch/${encodeURIComponent(id)}${query.size ? `?${query}` : ""}${location.hash}`;
}

/** Labels of the button of a story, by the state of the viewer's hand. */
const HAND_WORDS = { down: "Join in", asking: "Join in", raised: "Lower hand", invited: "You’re invited" };

/** @param {Story} story */
export function titleOf(story) {
  return story.title || (story.hostName ? `${story.hostName} is live` : story.id);
}

/**
 * Two colours derived from a name, for streams without a picture.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {string} name
 */
export function paintCard(context, width, height, name) {
  // Multiplied by the golden angle, so that similar names get different colours.
  const sum = [...name].reduce((total, letter) => (total * 31 + (letter.codePointAt(0) ?? 0)) % 9973, 7) * 137.5 % 360;
  const gradient = context.createLinearGradient(0, 0, width, height);
  gradient.addColorStop(0, `hsl(${sum} 48% 34%)`);
  gradient.addColorStop(1, `hsl(${(sum + 70) % 360} 55% 14%)`);
  context.fillStyle = gradient;
  context.fillRect(0, 0, width, height);
}

/** The card of a story that requires a tier, with the link to unlock it. */
function gateCard() {
  const pill = new FreePill();
  const title = h("h3");
  const hint = h("p");
  const link = unlockLink(".button.primary.large");
  const card = h("div.gate-card", { role: "status", hidden: true }, icon("lock"), title, hint, link);
  const root = h("div.gate", {}, pill.element, card);
  return {
    root,
    /** @param {import("../gate.js").Gate | null} gate */
    update(gate) {
      pill.update(gate);
      card.hidden = gate?.state !== "shut";
      if (!gate || card.hidden) return;
      const [name, text] = wordsForGate(gate);
      setText(title, name);
      setText(hint, text);
      showUnlock(link, gate);
    },
  };
}

/** The texts of a side. */
function words() {
  const face = h("span.face", { "aria-hidden": "true" });
  const host = h("span.host", { dir: "auto" });
  const badge = h("span.badge");
  const time = h("span.time", { title: "Time live" });
  const delay = h("span.delay");
  const count = h("span");
  const viewers = h("span.viewers", {}, icon("people"), count);
  const title = h("h2", { dir: "auto" });
  const joinWords = h("span", {}, HAND_WORDS.down);
  const line = h("small", { role: "status", hidden: true });
  const join = h("button.join", { type: "button", "aria-pressed": "false" }, icon("hand"), h("span.lines", {}, joinWords, line));
  const root = h("div.words", {},
    h("div.head", {}, face, h("div.who-row", {}, host, h("div.facts", {}, badge, delay, time, viewers))),
    h("div.foot", {}, title, join));
  /** @type {Story | null} */
  let shown = null;
  return {
    root,
    /** @param {Story} story */
    update(story) {
      shown = story;
      const name = story.hostName || story.host || story.id;
      setText(face, initials(name));
      setText(host, name);
      setText(title, titleOf(story));
      setText(badge, story.paused ? "Paused" : "Live");
      badge.classList.toggle("quiet", Boolean(story.paused));
      viewers.hidden = story.viewers === undefined;
      setText(count, String(story.viewers ?? 0));
      viewers.setAttribute("aria-label", formatViewers(story.viewers ?? 0));
      this.tick();
    },
    /** @param {string} text empty for none @param {string} hint the explanation */
    showDelay(text, hint) {
      delay.hidden = text === "";
      delay.title = text && hint;
      setText(delay, text);
    },
    /**
     * @param {boolean} isWithin whether the viewer could join the stage if the host invited them
     * @param {string} hint why not
     */
    showReach(isWithin, hint) {
      join.setAttribute("aria-disabled", String(!isWithin));
      join.title = isWithin ? "" : hint;
    },
    /**
     * @param {import("./join.js").HandState} state of the viewer's hand in the story
     * @param {number | null} place among the raised hands; null if the host holds it back
     */
    showHand(state, place) {
      setText(joinWords, HAND_WORDS[state]);
      line.hidden = state !== "raised";
      setText(line, state === "raised" ? wordsForPlace(place) : "");
      join.setAttribute("aria-pressed", String(state === "raised" || state === "invited"));
    },
    tick() {
      time.hidden = !shown?.startedAt;
      if (shown?.startedAt) setText(time, formatDuration(Date.now() - Date.parse(shown.startedAt)));
    },
  };
}
