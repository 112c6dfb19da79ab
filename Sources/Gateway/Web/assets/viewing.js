// @ts-check

/** Plays a stream's programme for as long as somebody watches, and tells how that goes. */

import { PictureChoice, wordsForWeakLink } from "./picture-choice.js";
import { Persistent } from "./persistent.js";
import { SignallingError } from "./session.js";
import { StatsReader } from "./stats.js";
import { play } from "./whep.js";

/** A session for a stream that has not begun is asked to wait this long, in seconds. */
const WAIT_SECONDS = 60;
/** Media that stays away this long while the stream is live means the session is broken, in milliseconds. */
const STALL_MS = 6000;
/** Where sound comes, but pictures are lost or held back, the session is kept so many times as long. */
const WEAK_FACTOR = 10;
/** Each session that brought nothing doubles that time, up to so many times. */
const MOST_DOUBLINGS = 4;
/** A connection that takes longer than this to come about, or to bring media, is worth a word, in milliseconds. */
const SLOW_MS = 8000;
const LATE_MS = 4000;
/** What is sent after a change is asked for so much later, and again while the connection is weak, in milliseconds. */
const SETTLED_MS = 1500;
const WEAK_MS = 5000;
/** Fewer bytes than this are no media, only reports. */
const FEW_BYTES = 20_000;
/** Sound without a picture counts as a live stream after this time, in milliseconds. */
const SOUND_ONLY_MS = 3000;
/** An ended stream's session is given up after this time, in milliseconds. */
const LINGER_MS = 20_000;

/**
 * @typedef {"connecting" | "waiting" | "backstage" | "live" | "paused" | "reconnecting" | "ended" | "removed"
 *   | "expired" | "failed"} ViewingState
 */

/**
 * @typedef {object} Watched what is played, and as whom
 * @property {import("./sync.js").StreamSync} sync
 * @property {string} endpoint that plays it (WHEP)
 * @property {string | null} codec the only one to be taken, if there is one
 * @property {boolean} hasToken
 * @property {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken
 * @property {boolean} isLinkDead nobody is let in any more by what we came with
 */

/**
 * Why nothing is seen although it should be: the server does not answer, or takes nobody in; nothing gets through to
 * it but requests; connected, nothing comes, or too little for a picture.
 * @typedef {"server" | "busy" | "blocked" | "nothing" | "weak"} Trouble
 */

/** Fires `change`, and `picture` when a new picture was seen. */
export class Viewing extends EventTarget {
  /** Where the programme shows; null while nobody watches. @type {HTMLVideoElement | null} */
  video = null;
  /** The browser wants a tap before anything plays. */
  isBlocked = false;
  hasPlayed = false;
  /** What the server said last of what it sends. @type {import("./picture-choice.js").Quality | null} */
  quality = null;
  /** @type {StatsReader | null} */
  stats = null;
  /** The last numbers. @type {import("./stats.js").Numbers | null} */
  numbers = null;
  lost = 0;

  /** Height of the picture that the server was last asked about, and when it is asked again. */
  #askedHeight = 0;
  #askAt = Infinity;

  /** Everything that the current session brings. @type {MediaStream | null} */
  #media = null;
  /** Totals of the current session when they last grew. */
  #bytes = 0;
  #frames = 0;
  #videoPackets = 0;
  /** When sound last came without pictures. */
  #heldAt = -Infinity;
  /** Packets lost since the last picture. */
  #lostSince = 0;
  /** When a picture of the current session was last seen, or its sound heard; 0 when none was. */
  #mediaAt = 0;
  /** Since when the current session has been without media. */
  #quietSince = 0;
  /** When the current session was answered; 0 while there is none. */
  #answeredAt = 0;
  /** How many sessions one after the other brought no media. */
  #fruitless = 0;
  /** Whether media could come over the current session, or the one before it. */
  #hasConnected = false;
  /** What the server last said of the stream. @type {string | undefined} */
  #told;
  /** @type {number | undefined} */
  #lingering;
  /** @type {number | undefined} */
  #timer;

  /** @param {Watched} watched @param {PictureChoice} [choice] what we want of the pictures */
  constructor(watched, choice = new PictureChoice()) {
    super();
    const { sync } = watched;
    this.watched = watched;
    this.sync = sync;
    this.choice = choice;
    this.connection = new Persistent((signal) => this.#open(signal));
    this.connection.addEventListener("statechange", () => this.#stateChanged());
    this.choice.addEventListener("change", () => this.#tellChoice());
    sync.addEventListener("change", () => this.#streamChanged());
    sync.addEventListener("refused", () => this.connection.close());
    // The server was away: if it was started again it has forgotten our session, long before ICE finds out.
    sync.addEventListener("resume", async () => {
      const { session } = this.connection;
      if (!session) return this.connection.retryNow();
      if (!(await session.exists()) && session === this.connection.session) this.connection.renew();
    });
  }

  /** Begins to play. @param {HTMLVideoElement} video */
  attach(video) {
    this.video = video;
    this.hasPlayed = false;
    this.#timer = setInterval(() => this.#examine(), 1000);
    if (this.#told !== "ended" && !this.sync.isShut) this.connection.start();
  }

  detach() {
    clearInterval(this.#timer);
    clearTimeout(this.#lingering);
    this.connection.close();
    this.video = null;
    this.stats = this.numbers = null;
    this.#mediaAt = 0;
  }

  /** @returns {ViewingState} */
  get state() {
    const { connection, sync } = this;
    if (sync.refusal) return sync.isKeptOut ? "removed" : "expired";
    if (this.watched.isLinkDead) return "expired";
    if (connection.state === "failed") return this.#isLinkRefused ? "expired" : "failed";
    if (this.#told === "ended") return "ended";
    const isLate = this.#told === "waiting" || this.#told === "backstage";
    if (connection.state === "connected") {
      if (this.#told === "live" && (sync.isProgrammeSilent || sync.isHostAway)) return "paused";
      // Nothing else is heard from a server without sync: media that flows is live.
      if (this.#mediaAt && !isLate) return "live";
      if (this.#told === "live") return this.hasPlayed ? "reconnecting" : "connecting";
      return this.#told === "backstage" ? "backstage" : "waiting";
    }
    if (this.#told === "backstage") return "backstage";
    if (this.#told === "live" && sync.isHostAway) return "paused";
    const { error } = connection;
    if (error instanceof SignallingError && [404, 409].includes(error.status)) return "waiting";
    if (this.hasPlayed) return "reconnecting";
    return isLate ? "waiting" : "connecting";
  }

  /** @returns {Trouble | null} */
  get trouble() {
    const { connection, sync, state } = this;
    if (state !== "connecting" && state !== "reconnecting") return null;
    const { error } = connection;
    const now = performance.now();
    if (connection.state === "connected") {
      if (this.#told !== "live" || now - this.#quietSince < LATE_MS) return null;
      return this.#bytes > FEW_BYTES ? "weak" : "nothing";
    }
    if (connection.state === "retrying" && error) {
      if (!(error instanceof SignallingError)) return "server";
      if (error.status === 429 || error.status >= 500) return "busy";
    }
    const isSlow = this.#answeredAt > 0 && now - this.#answeredAt > SLOW_MS;
    return isSlow || this.#fruitless > 0 && sync.isOpen && !this.#hasConnected ? "blocked" : null;
  }

  /** The server does not take the token that we came with. */
  get #isLinkRefused() {
    const { error } = this.connection;
    return error instanceof SignallingError && error.status === 401 && this.watched.hasToken;
  }

  /** @param {AbortSignal} signal */
  async #open(signal) {
    const media = this.#media = new MediaStream();
    this.#bytes = this.#frames = this.#videoPackets = this.#lostSince = this.#mediaAt = this.#answeredAt = 0;
    const session = await this.watched.withToken((token) => play({
      endpoint: `${this.watched.endpoint}?wait=${WAIT_SECONDS}`,
      token,
      codec: this.watched.codec,
      signal,
      onTrack: (track) => {
        media.addTrack(track);
        if (this.video && this.video.srcObject !== media) this.#show(media);
      },
    }));
    this.stats = new StatsReader(session.peer, "inbound-rtp");
    this.quality = null;
    this.#askAt = Infinity;
    this.#askedHeight = 0;
    if (this.choice.name !== "auto") session.prefer(this.choice.preferences).catch(() => {});
    this.#answeredAt = performance.now();
    this.#hasConnected = false;
    return session;
  }

  /** @param {MediaStream} media */
  #show(media) {
    const { video } = this;
    if (!video) return;
    video.srcObject = media;
    video.requestVideoFrameCallback?.(() => {
      performance.mark("rostrum:first-frame");
      this.#mediaAt = performance.now();
      this.#changed();
    });
    return this.play();
  }

  /** Plays what there is; some browsers refuse even silent playback without a tap, for instance to save power. */
  async play() {
    try {
      await this.video?.play();
      this.isBlocked = false;
    } catch (error) {
      this.isBlocked = /** @type {DOMException} */ (error).name === "NotAllowedError";
    }
    this.#changed();
  }

  toggleSound() {
    const { video } = this;
    if (!video) return;
    video.muted = !video.muted;
    if (video.paused && video.srcObject) this.play();
    this.#changed();
  }

  retry() {
    this.#fruitless = 0;
    if (this.connection.state === "failed") this.connection.start();
    else this.connection.retryNow();
  }

  /** Once a second: does media flow, and how well? */
  async #examine() {
    if (!this.stats || this.connection.state !== "connected") return;
    const numbers = await this.stats.read();
    const now = performance.now();
    const isSeen = numbers.frames > this.#frames;
    const isArriving = numbers.bytes > this.#bytes;
    if (isArriving && numbers.videoPackets === this.#videoPackets) this.#heldAt = now;
    const isHeard = isArriving && now - this.#quietSince > SOUND_ONLY_MS;
    this.#frames = numbers.frames;
    this.#bytes = numbers.bytes;
    this.#videoPackets = numbers.videoPackets;
    this.numbers = numbers;
    this.lost += numbers.lost;
    this.#lostSince += numbers.lost;
    // With a track without pictures browsers wait for the first one, and play no sound until then.
    const isSoundAlone = this.choice.name === "sound" ? isArriving && !isSeen : isHeard && !numbers.frames;
    if (isSoundAlone && this.video?.srcObject === this.#media) this.#show(new MediaStream(this.#media?.getAudioTracks()));
    else if (isSeen && this.#media && this.video?.srcObject !== this.#media) this.#show(this.#media);
    if (isSeen || isSoundAlone) {
      this.#mediaAt = this.#quietSince = now;
      this.#fruitless = this.#lostSince = 0;
      this.dispatchEvent(new Event("picture"));
    } else if (this.#told === "live" && !this.sync.isProgrammeSilent && now - this.#quietSince > this.#patience) {
      this.#mediaAt = 0;
      // The server sends what the link takes, and holds pictures back where it takes sound alone; a new session would
      // begin with a burst.
      const isWeak = isArriving && (this.#lostSince > 0 || now - this.#heldAt < this.#patience);
      if (!isWeak || now - this.#quietSince > this.#patience * WEAK_FACTOR) this.connection.renew();
    }
    this.#askForQuality(isSeen || isSoundAlone ? numbers.height ?? 0 : 0);
    this.#changed();
  }

  /** Other pictures are wanted than before. */
  async #tellChoice() {
    this.#changed();
    await this.connection.session?.prefer(this.choice.preferences).catch(() => {});
    this.#askAt = performance.now() + SETTLED_MS;
  }

  /**
   * Asks what the server sends when the picture has another size than before, or stands still, and as long as the
   * connection does not take what is wanted: nobody who gets the best there is asks again.
   * @param {number} height of the picture, in pixels
   */
  async #askForQuality(height) {
    const now = performance.now();
    const { session } = this.connection;
    if (height !== this.#askedHeight) {
      this.#askedHeight = height;
      this.#askAt = now + SETTLED_MS;
    }
    if (!session || now < this.#askAt) return;
    this.#askAt = Infinity;
    const quality = await session.quality().catch(() => null);
    if (session !== this.connection.session) return;
    this.quality = quality;
    if (wordsForWeakLink(quality)) this.#askAt = performance.now() + WEAK_MS;
    this.#changed();
  }

  /** What is weak or blocked is not mended by new sessions, which only cost more. */
  get #patience() {
    return STALL_MS * 2 ** Math.min(this.#fruitless, MOST_DOUBLINGS);
  }

  #stateChanged() {
    const { connection } = this;
    if (connection.state === "retrying" && this.#answeredAt) {
      if (!this.#mediaAt) this.#fruitless += 1;
      this.#answeredAt = 0;
    }
    // After the end nobody needs a session; the sync socket tells when to come back.
    if (connection.state === "retrying" && this.#told === "ended") connection.close();
    if (connection.state === "connected") {
      this.#quietSince = performance.now();
      this.#hasConnected = true;
    }
    this.#changed();
  }

  #streamChanged() {
    const state = this.sync.stream?.state;
    if (state !== "ended") clearTimeout(this.#lingering);
    if (!this.video) {
      this.#told = state;
    } else if (state === "ended") {
      if (this.#told !== "ended") {
        this.#mediaAt = 0;
        this.#lingering = setTimeout(() => this.connection.close(), LINGER_MS);
      }
    } else if (this.sync.isShut) {
      this.connection.close();
    } else if (this.connection.state === "closed" && !this.sync.refusal) {
      this.connection.start();
    } else if (state !== this.#told) {
      if (state === "live" && this.#told !== "live") this.#quietSince = performance.now();
      this.connection.retryNow();
    }
    this.#told = state;
    this.#changed();
  }

  #changed() {
    if (this.state === "live") this.hasPlayed = true;
    this.dispatchEvent(new Event("change"));
  }
}
