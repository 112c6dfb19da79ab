// @ts-check

/**
 * Plays a stream's programme while someone watches, and reports how that goes: over WebRTC, and over HLS while WebRTC
 * does not connect.
 */

import { Fallback } from "./fallback.js";
import { readGate } from "./gate.js";
import { PictureChoice, weaknessOf } from "./picture-choice.js";
import { Persistent } from "./persistent.js";
import { QualityQuestion } from "./quality-question.js";
import { Rewind } from "./rewind.js";
import { SignallingError } from "./session.js";
import { onceShowable } from "./showable.js";
import { DelayedReader, StatsReader } from "./stats.js";
import { playOn } from "./unpaused.js";
import { play } from "./whep.js";

/** How long the server is asked to keep a session for a stream that has not begun, in seconds. */
const WAIT_SECONDS = 60;
/** Without media for this long while the stream is live, the session is broken, in milliseconds. */
const STALL_MS = 6000;
/** If sound arrives but pictures are lost or held back, the session is kept this many times as long. */
const WEAK_FACTOR = 10;
/** Each session that brought no media doubles that time, up to this many times. */
const MOST_DOUBLINGS = 4;
/** The viewer is told if connecting, or the first media, takes longer than this, in milliseconds. */
const SLOW_MS = 8000;
const LATE_MS = 4000;
/** Fewer bytes than this are not media but only reports. */
const FEW_BYTES = 20_000;
/** After this time, sound without a picture counts as a live stream, in milliseconds. */
const SOUND_ONLY_MS = 3000;
/** This long after the free preview should have ended, the server is asked whether it has, in milliseconds. */
const GATE_MS = 300;
/** The session of a stream that has ended is closed after this time, in milliseconds. */
const LINGER_MS = 20_000;

/**
 * @typedef {"connecting" | "waiting" | "backstage" | "live" | "paused" | "gated" | "reconnecting" | "ended" | "removed"
 *   | "expired" | "failed"} ViewingState `gated`: the stream requires a tier that we do not have
 */

/**
 * @typedef {object} Watched the stream, and the viewer's access to it
 * @property {import("./sync.js").StreamSync} sync
 * @property {string} endpoint WHEP
 * @property {string} hls the address of its playlists
 * @property {string | null} codec accept only this one
 * @property {boolean} hasToken
 * @property {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken
 * @property {boolean} isLinkDead the link that we came by is no longer valid
 */

/**
 * Why there is no picture although there should be: the server does not answer, or accepts no viewers; only requests
 * get through to it, and no media; connected, nothing arrives, or too little for a picture.
 * @typedef {"server" | "busy" | "blocked" | "nothing" | "weak"} Trouble
 */

/** Fires `change`, and `picture` when a new picture was shown. */
export class Viewing extends EventTarget {
  /** Shows the programme; null while no one watches. @type {HTMLVideoElement | null} */
  video = null;
  /** The browser requires a tap before it plays anything. */
  isBlocked = false;
  hasPlayed = false;
  /** The server's last report on what it sends. @type {import("./picture-choice.js").Quality | null} */
  quality = null;
  /** The gate that the viewer has not passed; null if there is none. @type {import("./gate.js").Gate | null} */
  gate = null;
  /** The stream's gate when we last asked for our state at it, as JSON. */
  #gateTerms = "null";
  /** Counts what we heard of our state at the gate. */
  #verdicts = 0;
  /** @type {number | undefined} */
  #gateTimer;
  /** @type {StatsReader | null} */
  stats = null;
  /** The last numbers. @type {import("./stats.js").Numbers | null} */
  numbers = null;
  lost = 0;

  #question = new QualityQuestion();

  #delayed = new DelayedReader();
  /** The tracks of the current session. @type {MediaStream | null} */
  #media = null;
  /** Totals of the current session when they last grew. */
  #bytes = 0;
  #frames = 0;
  #videoPackets = 0;
  /** When anything last arrived, and when sound last arrived without pictures. */
  #arrivedAt = -Infinity;
  #heldAt = -Infinity;
  /** Packets lost since the last picture. */
  #lostSince = 0;
  /** When the current session last showed a picture, or played sound; 0 if it has not. */
  #mediaAt = 0;
  /** Since when the current session has been without media. */
  #quietSince = 0;
  /** When the current session was answered; 0 while there is none. */
  #answeredAt = 0;
  /** Sessions in a row that brought no media. */
  #fruitless = 0;
  /** Whether the current session, or the one before it, has connected. */
  #hasConnected = false;
  /** The stream's last known state. @type {string | undefined} */
  #told;
  /** @type {number | undefined} */
  #lingering;
  /** @type {number | undefined} */
  #timer;

  /** @param {Watched} watched @param {PictureChoice} [choice] of picture quality */
  constructor(watched, choice = new PictureChoice()) {
    super();
    const { sync } = watched;
    this.watched = watched;
    this.sync = sync;
    this.choice = choice;
    this.fallback = new Fallback((action) => watched.withToken(action), choice);
    this.fallback.addEventListener("change", () => this.#changed());
    this.fallback.addEventListener("ready", () => this.play());
    this.fallback.addEventListener("leave", () => {
      // At once, so that there is no black in between.
      if (this.connection.state === "connected" && this.#media) this.#show(this.#media);
    });
    this.rewind = new Rewind(this);
    this.rewind.addEventListener("change", () => this.#changed());
    this.rewind.addEventListener("ready", () => this.play());
    this.connection = new Persistent((signal) => this.#open(signal));
    this.connection.addEventListener("statechange", () => this.#stateChanged());
    this.choice.addEventListener("change", () => this.#tellChoice());
    sync.addEventListener("change", () => this.#streamChanged());
    sync.addEventListener("refused", () => (this.rewind.close(), this.connection.close()));
    sync.addEventListener("resume", () => this.rewind.isOn || this.connection.recheck());
  }

  /** Starts playing. @param {HTMLVideoElement} video */
  attach(video) {
    this.video = video;
    this.hasPlayed = false;
    this.#timer = setInterval(() => (playOn(this), this.#examine()), 1000);
    this.goLive();
  }

  detach() {
    clearInterval(this.#timer);
    for (const timer of [this.#lingering, this.#gateTimer]) clearTimeout(timer);
    this.gate = null;
    this.video = null;
    this.rewind.close();
    this.leave();
    this.numbers = null;
    this.#mediaAt = 0;
  }

  /** Ends live playback: the viewer goes back in the stream, or leaves. */
  leave() {
    this.connection.close();
    this.fallback.rest();
    this.stats = null;
  }

  /** Starts live playback, unless the stream is over or closed to us, or we were sent away. */
  goLive() {
    if (this.video && this.#told !== "ended" && !this.sync.isShut && !this.sync.refusal) this.connection.start();
  }

  /** @returns {ViewingState} */
  get state() {
    const { connection, sync } = this;
    if (sync.refusal) return sync.isKeptOut ? "removed" : "expired";
    if (this.watched.isLinkDead) return "expired";
    if (this.rewind.isOn) return "live";
    if (this.isDelayed) return this.#told === "live" && (sync.isProgrammeSilent || sync.isHostAway) ? "paused" : "live";
    const isGated = this.gate?.state === "shut" && this.#told !== "ended";
    if (connection.state === "failed" && (isGated || !this.fallback.isOnlyWay)) {
      return isGated ? "gated" : this.#isLinkRefused ? "expired" : "failed";
    }
    if (this.#told === "ended") return "ended";
    if (isGated && this.#told !== "backstage") return "gated";
    const isLate = this.#told === "waiting" || this.#told === "backstage";
    if (connection.state === "connected") {
      if (this.#told === "live" && (sync.isProgrammeSilent || sync.isHostAway)) return "paused";
      // Without sync this is the only sign: if media arrives, the stream is live.
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

  /** Whether it plays over HLS, with a delay. */
  get isDelayed() {
    return this.fallback.isPlaying;
  }

  /** The delay in seconds; null if there is next to none, or only the browser knows it. */
  get delay() {
    return this.fallback.delay;
  }

  /** What a slow connection costs; null for nothing. */
  get weakness() {
    return this.isDelayed ? this.fallback.weakness : weaknessOf(this.quality);
  }

  /** @returns {Trouble | null} */
  get trouble() {
    const { connection, sync, state } = this;
    if (state !== "connecting" && state !== "reconnecting" || this.fallback.isStarting) return null;
    const { isOnlyWay } = this.fallback;
    const { error } = isOnlyWay ? this.fallback : connection;
    const now = performance.now();
    if (connection.state === "connected") {
      if (this.#told !== "live" || now - this.#quietSince < LATE_MS) return null;
      return this.#bytes > FEW_BYTES ? "weak" : "nothing";
    }
    if (error && (isOnlyWay || connection.state === "retrying")) {
      if (!(error instanceof SignallingError)) return "server";
      if (error.status === 429 || error.status >= 500) return "busy";
    }
    const isSlow = this.#answeredAt > 0 && now - this.#answeredAt > SLOW_MS;
    return isSlow || this.#fruitless > 0 && sync.isOpen && !this.#hasConnected ? "blocked" : null;
  }

  /** Whether the server refuses the token of our link. */
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
        onceShowable(media, () => media === this.#media && this.video?.srcObject !== media && !this.fallback.isOn && this.#show(media));
      },
    })).catch((error) => {
      if (error.rule === "gated") this.gate = readGate({ ...error.problem, state: "shut" });
      throw error;
    });
    this.gate = null;
    this.stats = new StatsReader(session.peer, "inbound-rtp");
    this.quality = null;
    this.#question = new QualityQuestion();
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

  /** Starts playback; some browsers refuse even muted playback without a tap, for example to save power. */
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
    if (video.paused && (video.srcObject || this.fallback.isOn || this.rewind.isOn)) this.play();
    this.#changed();
  }

  /** Presents another token: what it opens arrives on the existing connection. */
  async showToken() {
    const { connection } = this;
    if (connection.state === "failed" || connection.state === "retrying") return this.retry();
    const { session } = connection;
    // What is on its way has the token of before.
    if (!session) return void (connection.state === "connecting" && connection.start());
    await this.#hear(this.watched.withToken((token) => token ? session.openGate(token) : session.gate()));
  }

  /** Asks for our state at the stream's gate, if it has one. */
  async #askForGate() {
    const { session } = this.connection;
    this.#gateTerms = JSON.stringify(this.sync.stream?.gate ?? null);
    if (!session || this.sync.stream && !this.sync.stream.gate) return this.#stand(null);
    await this.#hear(session.gate());
  }

  /** Takes in an answer about the gate. @param {Promise<any>} answer */
  async #hear(answer) {
    const [{ session }, verdicts] = [this.connection, this.#verdicts];
    const told = await answer.catch(() => null);
    if (!told || session !== this.connection.session) return;
    // What was received meanwhile may be newer.
    if (verdicts !== this.#verdicts) return this.#askForGate();
    this.#stand(told);
  }

  /** @param {any} told */
  #stand(told) {
    const wasShut = this.gate?.state === "shut";
    this.#verdicts += 1;
    this.gate = readGate(told);
    clearTimeout(this.#gateTimer);
    if (this.gate?.state === "free") {
      const wait = Math.max(this.gate.endsAt - performance.now(), 0) + GATE_MS;
      this.#gateTimer = setTimeout(() => this.#askForGate(), wait);
    }
    // No media could arrive while it was shut.
    if (wasShut) this.#quietSince = performance.now();
    this.#changed();
  }

  retry() {
    this.#fruitless = 0;
    this.fallback.retry();
    if (this.connection.state === "failed") this.connection.start();
    else this.connection.retryNow();
  }

  /** Checks once a second whether media arrives, and how well. */
  async #examine() {
    if (this.rewind.isOn) return this.#examineFile(this.rewind);
    const { stats } = this;
    if (!stats || this.connection.state !== "connected") {
      this.#lookForAnotherWay(false);
      return this.#examineFile(this.fallback);
    }
    const numbers = await stats.read().catch(() => null);
    // The session may have ended meanwhile.
    if (!numbers || stats !== this.stats) return;
    const now = performance.now();
    const isSeen = numbers.frames > this.#frames;
    const isArriving = numbers.bytes > this.#bytes;
    if (isArriving) this.#arrivedAt = now;
    if (isArriving && numbers.videoPackets === this.#videoPackets) this.#heldAt = now;
    const isHeard = isArriving && now - this.#quietSince > SOUND_ONLY_MS;
    this.#frames = numbers.frames;
    this.#bytes = numbers.bytes;
    this.#videoPackets = numbers.videoPackets;
    this.numbers = numbers;
    this.lost += numbers.lost;
    this.#lostSince += numbers.lost;
    // Browsers play no sound of a stream whose video track has not shown its first picture.
    const isSoundAlone = this.choice.name === "sound" ? isArriving && !isSeen : isHeard && !numbers.frames;
    this.#lookForAnotherWay(isSeen || isSoundAlone);
    if (this.fallback.isOn) this.#examineFile(this.fallback);
    else if (isSoundAlone && this.video?.srcObject === this.#media) this.#show(new MediaStream(this.#media?.getAudioTracks()));
    else if (isSeen && this.#media && this.video?.srcObject !== this.#media) this.#show(this.#media);
    if (isSeen || isSoundAlone) {
      this.#mediaAt = this.#quietSince = now;
      this.#fruitless = this.#lostSince = 0;
      this.dispatchEvent(new Event("picture"));
    } else if (this.#told === "live" && this.gate?.state !== "shut" && !this.sync.isProgrammeSilent && now - this.#quietSince > this.#patience) {
      this.#mediaAt = 0;
      // The server sends what the connection can carry, and holds pictures back if that is only sound; a new session
      // would begin with a burst. One second without anything means nothing.
      const isThere = now - this.#arrivedAt < this.#patience;
      const isWeak = isThere && (this.#lostSince > 0 || now - this.#heldAt < this.#patience);
      if (!isWeak || now - this.#quietSince > this.#patience * WEAK_FACTOR) this.connection.renew();
    }
    this.#askForQuality(isSeen || isSoundAlone ? numbers.height ?? 0 : 0);
    this.#changed();
  }

  /**
   * Uses HLS while WebRTC brings nothing.
   * @param {boolean} isSeen whether WebRTC does
   */
  #lookForAnotherWay(isSeen) {
    const { connection, fallback, video } = this;
    if (!video) return;
    const isConnected = connection.state === "connected";
    fallback.isAllowed = this.sync.stream?.hls !== "off";
    fallback.look({ isWanted: this.#isWanted, isConnected, isSeen }, this.watched.hls, video);
    // There is no hurry with the next attempts.
    connection.isCalm = this.isDelayed;
  }

  /** Reads the numbers of HLS. @param {Fallback | Rewind} way */
  #examineFile({ isPlaying, bytes }) {
    if (!this.video || !isPlaying) return;
    const before = this.#delayed.frames;
    this.numbers = this.#delayed.read(this.video, bytes);
    if (this.#delayed.frames !== before) this.dispatchEvent(new Event("picture"));
    this.#changed();
  }

  /** Whether there is something to see, as far as is known, and the server has not refused it. */
  get #isWanted() {
    const { connection: { error }, sync } = this;
    if (sync.refusal || sync.isShut || this.watched.isLinkDead) return false;
    // A server that is too busy for another session may still serve playlists.
    if (error instanceof SignallingError && !(error.isTemporary && this.isDelayed)) return false;
    return this.#told === "live" || this.#told === undefined;
  }

  /** The viewer has chosen another quality. */
  async #tellChoice() {
    this.#changed();
    await this.connection.session?.prefer(this.choice.preferences).catch(() => {});
    this.#question.changed(performance.now());
  }

  /** Asks for a report on what the server sends, when it is due. @param {number} height of the picture, in pixels */
  async #askForQuality(height) {
    const { session } = this.connection;
    if (!session || !this.#question.isDue(height, performance.now())) return;
    const quality = await session.quality().catch(() => null);
    if (session !== this.connection.session) return;
    this.quality = quality;
    this.#question.answered(quality, performance.now());
    this.#changed();
  }

  /** Grows, because new sessions do not help a slow or blocked connection, and only cost more. */
  get #patience() {
    return STALL_MS * 2 ** Math.min(this.#fruitless, MOST_DOUBLINGS);
  }

  #stateChanged() {
    const { connection } = this;
    if (connection.state === "retrying" && this.#answeredAt) {
      if (!this.#mediaAt) this.#fruitless += 1;
      this.#answeredAt = 0;
    }
    // After the end no session is needed; the sync socket says when to come back.
    if (connection.state === "retrying" && this.#told === "ended") connection.close();
    if (connection.state === "connected") {
      this.#quietSince = performance.now();
      this.#hasConnected = true;
      this.#askForGate();
    }
    if (connection.state !== "connected") this.#lookForAnotherWay(false);
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
    } else if (this.connection.state === "closed" && !this.sync.refusal && !this.rewind.isOn) {
      this.connection.start();
    } else if (state !== this.#told) {
      if (state === "live" && this.#told !== "live") this.#quietSince = performance.now();
      // The free preview starts over with it.
      if (this.gate && this.connection.state === "failed") this.connection.start();
      this.connection.retryNow();
    }
    this.#told = state;
    if (this.video && this.#gateTerms !== JSON.stringify(this.sync.stream?.gate ?? null)) {
      if (this.connection.state === "connected") this.#askForGate();
      // Its host has changed the gate.
      else if (this.connection.state === "failed" && this.gate) this.connection.start();
    }
    this.#changed();
  }

  #changed() {
    if (this.state === "live") this.hasPlayed = true;
    this.dispatchEvent(new Event("change"));
  }
}
