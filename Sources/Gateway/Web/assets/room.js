// @ts-check

/**
 * A stream as one person's page sees it: what is known about it, what can be done, and what is played or sent. Widgets
 * get this as their context; it notifies them of changes, at most once per turn of the event loop.
 */

import { alone } from "./alone.js";
import { Audience } from "./audience.js";
import { streamFromAddress } from "./dom.js";
import { Mutes } from "./mutes.js";
import { Naming } from "./naming.js";
import { OnAir } from "./on-air.js";
import { missingWebRTC, OwnMedia } from "./own-media.js";
import { askName } from "./person.js";
import { keepOnAir } from "./resume.js";
import { toldByServer } from "./server.js";
import { SignallingError } from "./session.js";
import { StageAPI } from "./stage-api.js";
import { StreamSync } from "./sync.js";
import { deathOfLink, ensureToken, expiryOf, knownClaims, knownToken, replaceToken, usualToken, withToken } from "./tokens.js";
import { Viewing } from "./viewing.js";

/**
 * @typedef {"studio" | "audience"} View
 *
 * @typedef {"idle" | "ready" | "starting" | "backstage" | "live" | "reconnecting" | "ended" | "removed"
 *   | "expired"} StudioState
 */

/** A token is renewed this long before it expires; shortest pause between two attempts. In milliseconds. */
const RENEWAL_MS = 180_000;
const RENEWAL_PAUSE_MS = 30_000;

/** Fires `change`, `say` (detail: text) when something is to be said aloud, and `second` once a second. */
export class Room extends EventTarget {
  stream = streamFromAddress();
  query = new URLSearchParams(location.search);

  /** Whether the viewer wants to see only the picture. */
  isPictureOnly = false;
  /** Whether *Go live* was pressed and is waiting for the camera. */
  isGoingLive = false;

  /** People who stepped down, or were moved, see what the audience sees. */
  #wasOnStage = false;
  #isQueued = false;
  #wantsLive = false;
  /** Our role at the last change. */
  #role = "";
  /** The stream's state at the last change; undefined before the first. @type {string | undefined} */
  #state;
  #renewedAt = -Infinity;
  /** Banned people, as of the last answer. @type {Record<string, { since: string }>} */
  bans = {};
  /** The key of the large tile: an identity, with a suffix for a shared screen. @type {string | null} */
  pinned = null;
  /**
   * Settings for a stream that we create: by default everyone on stage is seen and heard, together in one picture, or
   * one after the other if the server does not compose.
   * @type {import("./stage-api.js").Details & { programme: string }}
   */
  wishes = { title: null, programme: "composed" };
  /** Whether the stream came into being when we published, without a command that set its details. */
  #isOurs = false;
  #isDescribing = false;
  /** The highest number of viewers at once that this page has seen. @type {number | null} */
  mostViewers = null;

  /** @param {View} intent what the page was opened for */
  constructor(intent) {
    super();
    this.intent = intent;
    /** The role under which this page's token is stored. @type {import("./tokens.js").Role} */
    this.tokenRole = intent === "studio" ? "host" : "viewer";
    this.sync = new StreamSync(
      this.stream, () => this.#tokenForSync(), (refused) => replaceToken(this.stream, this.tokenRole, refused));
    this.api = new StageAPI(this.stream, this.tokenRole);
    this.audience = new Audience(this.sync, this.api);
    this.naming = new Naming(this);
    this.own = new OwnMedia(this.query);
    this.mutes = new Mutes(this);
    this.onAir = new OnAir(this);
    this.viewing = new Viewing(this);
    for (const part of [this.sync, this.own, this.onAir, this.viewing]) {
      part.addEventListener("change", () => this.changed());
    }
    this.sync.addEventListener("change", () => this.#youChanged());
    this.sync.addEventListener("mute", (event) => this.#muteAsked(/** @type {CustomEvent} */ (event).detail));
    this.sync.addEventListener("refused", () => {
      this.#leave();
      this.own.stop();
    });
    for (const event of ["muted", "source"]) this.own.addEventListener(event, () => this.mutes.tell());
    this.onAir.addEventListener("change", () => {
      if (this.onAir.isOn && this.own.source) keepOnAir(this.stream, this.own.source.kind);
      // Someone else has our place, or the server refuses us: neither a reload nor a backstage goes live by itself.
      else if (this.onAir.connection.state === "failed") this.#leave();
      this.#goLiveIfReady();
      this.#describeOurs();
    });
    this.addEventListener("second", () => this.#renewInTime());
    setInterval(() => this.dispatchEvent(new Event("second")), 1000);
    toldByServer().then(({ transcoder }) => {
      if (!transcoder && this.wishes.programme === "composed") this.wishes.programme = "active-speaker";
    });
  }

  /** Hosts and speakers have a token, or get one; viewers need none until they take part. */
  token() {
    return usualToken(this.stream, this.tokenRole);
  }

  /** Where the link is no longer valid, the stream is not followed at all. */
  async #tokenForSync() {
    const token = await this.token();
    const death = deathOfLink();
    if (death) this.sync.refuse(death);
    return token;
  }

  get hasToken() {
    return knownToken(this.stream, this.tokenRole) !== null;
  }

  /** Runs an action with our token. @template T @param {(token: string | null) => Promise<T>} action */
  withToken(action) {
    return withToken(this.stream, this.tokenRole, action);
  }

  /** The programme's WHEP endpoint. */
  get endpoint() {
    return `/whep/${encodeURIComponent(this.stream)}`;
  }

  /** The address of its HLS playlists. */
  get hls() {
    return `/hls/${encodeURIComponent(this.stream)}/`;
  }

  get codec() {
    return this.query.get("codec");
  }

  /** The address of a file, with the token in it, because players cannot set headers. @param {string} path */
  addressOf(path) {
    const token = knownToken(this.stream, this.tokenRole);
    return token ? `${path}?access_token=${encodeURIComponent(token)}` : path;
  }

  /** The sync socket closes when the token expires that it was opened with. */
  #renewInTime() {
    const left = expiryOf(this.stream, this.tokenRole) - Date.now();
    if (!this.you || left > RENEWAL_MS || left < 0 || performance.now() - this.#renewedAt < RENEWAL_PAUSE_MS) return;
    this.#renewedAt = performance.now();
    this.api.renewToken().catch(() => {});
  }

  changed() {
    if (this.#isQueued) return;
    this.#isQueued = true;
    queueMicrotask(() => {
      this.#isQueued = false;
      this.dispatchEvent(new Event("change"));
    });
  }

  /** Shows a message for a moment; screen readers read it aloud. @param {string} text */
  say(text) {
    this.dispatchEvent(new CustomEvent("say", { detail: text }));
  }

  // What is known.

  get info() {
    return this.sync.stream;
  }

  get you() {
    return this.sync.you;
  }

  /** The claims of our token. */
  get ownClaims() {
    return knownClaims(this.stream, this.tokenRole);
  }

  /** As in the feed. */
  get title() {
    return this.info?.title || (this.info?.hostName ? `${this.info.hostName} is live` : this.stream);
  }

  get isOnStage() {
    return this.you?.role === "host" || this.you?.role === "speaker";
  }

  /** Whether the stream is live or backstage. */
  get isOpen() {
    return this.info?.state === "live" || this.info?.state === "backstage";
  }

  /** Whether we have a host's rights; before the stream exists, whether we may create it. */
  get isHost() {
    if (this.isOpen && this.you) return this.you.isModerator;
    const role = this.ownClaims?.role;
    return role === "host" || role === "admin" || role === undefined && this.intent === "studio";
  }

  /** Whether the programme is being recorded. */
  get isRecording() {
    return this.info?.isRecording === true && this.info.state !== "ended";
  }

  /** Nothing can arrive: no one sends, or those who do have paused. */
  get isProgrammeSilent() {
    return this.sync.isProgrammeSilent;
  }

  /** @returns {View} */
  get view() {
    if (this.isOnStage) return "studio";
    return this.intent === "studio" && !this.#wasOnStage ? "studio" : "audience";
  }

  get state() {
    return this.view === "studio" ? this.#studioState : this.viewing.state;
  }

  /** @returns {StudioState} */
  get #studioState() {
    const { isOn, hasConnected, connection } = this.onAir;
    if (this.sync.refusal) return this.isKeptOut ? "removed" : "expired";
    if (deathOfLink() || this.#isLinkRefused) return "expired";
    if (!isOn) {
      if (this.info?.state === "ended") return "ended";
      if (this.info?.state === "backstage" && this.isOnStage) return "backstage";
      return this.own.source ? "ready" : "idle";
    }
    if (connection.state !== "connected") return hasConnected ? "reconnecting" : "starting";
    if (this.info?.state === "backstage") return "backstage";
    // We are connected, but the server has not let viewers in yet.
    const isAwaited = this.sync.isOpen && (this.info?.state === "waiting" || this.info?.state === "ended");
    return isAwaited ? "starting" : "live";
  }

  /** The latest statistics. */
  get numbers() {
    return this.view === "studio" ? this.onAir.numbers : this.viewing.numbers;
  }

  /** Our session on the stage, with the others' voices and pictures. */
  get stage() {
    return this.onAir.session;
  }

  /** The server has removed us, or refuses our link. */
  get isOut() {
    return this.state === "removed" || this.state === "expired";
  }

  /** The host has removed or banned us. */
  get isKeptOut() {
    return this.sync.isKeptOut;
  }

  /** The host has revoked the link that we came by. */
  get isLinkRevoked() {
    return this.sync.refusal === "revoked" || deathOfLink() === "revoked" || this.#isLinkRefused;
  }

  /** Our link no longer lets anyone in. */
  get isLinkDead() {
    return deathOfLink() !== null || this.isLinkRevoked;
  }

  /** The server refused a session because our link was revoked. */
  get #isLinkRefused() {
    return [this.onAir, this.viewing].some(({ connection: { state, error } }) =>
      state === "failed" && error instanceof SignallingError && error.rule === "link-revoked");
  }

  /** The stream is live and we are on its stage, but we send nothing. */
  get isOffAir() {
    return this.info?.state === "live" && this.isOnStage && !this.onAir.isOn;
  }

  /** It has ended for good: going live would be refused. */
  get isOver() {
    return this.info?.state === "ended" && this.info.final === true;
  }

  /** Enlarges one tile, or makes all the same size again. @param {string | null} key */
  pin(key) {
    this.pinned = this.pinned === key ? null : key;
    this.changed();
  }

  /** Asks for the list of banned people. */
  async askForBans() {
    if (!this.isHost || !this.isOpen) return;
    this.bans = (await this.api.bans().catch(() => null))?.bans ?? this.bans;
    this.changed();
  }

  // What can be done.

  /**
   * Asks the server for something; a refusal is shown as a message.
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T | null>} null when it was refused
   */
  async attempt(action) {
    try {
      return await action();
    } catch (error) {
      this.say(
        error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
      return null;
    }
  }

  /** Hides everything over the picture, or shows it again. @param {boolean} isWanted */
  showPictureOnly(isWanted) {
    if (isWanted === this.isPictureOnly) return;
    this.isPictureOnly = isWanted;
    this.changed();
  }

  /** Goes on the air, and takes the stream live if it is ours. */
  async goLive() {
    if (this.isOver || this.isGoingLive) return;
    const problem = missingWebRTC(this.isHost);
    if (problem) return this.own.setProblem(problem);
    this.isGoingLive = true;
    this.changed();
    const isReady = await this.own.ready();
    this.isGoingLive = false;
    this.changed();
    // The stream may have ended while the browser asked for the camera.
    if (!isReady || this.isOver) return;
    this.#wantsLive = true;
    if (!this.isOpen) this.#isOurs = true;
    this.own.setProblem(null);
    if (!this.isOpen) this.wishes.title ||= this.naming.usualTitle;
    if (!this.onAir.isOn) await this.naming.use();
    if (this.onAir.isOn) this.#goLiveIfReady();
    else await this.onAir.start();
  }

  /** Sends media first, so that viewers see something when they are let in. */
  async #goLiveIfReady() {
    if (!this.#wantsLive || this.onAir.connection.state !== "connected" || this.info?.state !== "backstage") return;
    this.#wantsLive = false;
    if (this.isHost) await this.attempt(() => this.api.goLive());
  }

  /** Creates the stream by a command, or fails. @param {import("./stage-api.js").Details} [details] beside `wishes` */
  async create(details = {}) {
    const { wishes } = this;
    const title = details.title ?? wishes.title ?? this.naming.usualTitle;
    this.wishes = { ...wishes, ...details, title };
    await this.api.create(this.wishes).catch((error) => {
      this.wishes = wishes;
      throw error;
    });
    this.#isOurs = false;
  }

  /**
   * Sends our settings for a stream that came into being when we published; also again after a server that keeps no
   * state was restarted.
   */
  #describeOurs() {
    const { info, wishes } = this;
    if (!this.#isOurs || !info || info.state === "ended" || !this.you?.isModerator || this.onAir.connection.state !== "connected") return;
    if (info.title || info.programme !== "host" || this.#isDescribing) return;
    this.#isDescribing = true;
    this.api.edit(wishes).catch(() => {}).finally(() => (this.#isDescribing = false));
  }

  /** Changes the stream's details; fails if they are refused. @param {import("./stage-api.js").Details} details */
  async edit(details) {
    await this.api.edit(details);
    this.wishes = { ...this.wishes, ...details };
  }

  /** Enters the stage without going live. */
  async enterStage() {
    if (this.onAir.isOn || !this.own.source && !(await this.own.open())) return;
    await this.naming.use();
    await this.onAir.start();
  }

  /** Ends the stream for everyone. */
  async end() {
    this.#leave();
    try {
      await this.api.end();
    } catch (error) {
      // It has ended already, or never existed.
      if (!(error instanceof SignallingError && [404, 409].includes(error.status))) {
        this.say("The server isn’t responding. The stream will end automatically in a while.");
      }
    }
  }

  /** Goes back to the audience. */
  async stepDown() {
    const { you } = this;
    this.#leave();
    if (you?.role === "speaker") await this.attempt(() => this.api.leaveStage(you.id));
  }

  #leave() {
    this.#wantsLive = false;
    keepOnAir(this.stream, null);
    if (this.onAir.isOn) this.onAir.stop();
  }

  /** Raises the viewer's hand, after making them known to the server if need be. */
  async raiseHand() {
    await this.attempt(async () => {
      await this.#takePart();
      await this.api.raiseHand();
    });
  }

  /**
   * Makes us known to the server.
   * @param {boolean} needsName whether others will see it
   * @returns {Promise<boolean>} false if they did not give a name
   */
  async identify(needsName) {
    if (needsName && !(await this.naming.isKnown(() => askName({
      title: "Your name", text: "Everyone sees it next to your comments.", yes: "Continue",
    })))) return false;
    if (needsName || !this.you) await this.#takePart();
    return true;
  }

  async #takePart() {
    if (this.you) return this.naming.use();
    await ensureToken(this.stream, this.tokenRole);
    const watching = this.viewing.connection.session?.resource;
    if (watching) this.sync.claim(watching);
    this.sync.reconnect();
  }

  /** From the audience to the stage, on this page. @param {string} me @returns {Promise<boolean>} whether it worked */
  async accept(me) {
    const { api, isOnStage: wasThere, own } = this;
    const answer = await alone(`rostrum:accept:${this.stream}:${me}`, async () => {
      await this.naming.use();
      return this.isOnStage === wasThere && this.attempt(() => api.accept(me, { videoMuted: own.isSoundOnly }));
    });
    // Null: if only the answer got lost, sync has told that we are on stage. False or undefined: we have accepted in
    // another tab, which would lose its place to this one.
    const isAccepted = Boolean(answer) || answer === null && this.isOnStage;
    if (!isAccepted) own.stop();
    else if (own.source || await own.open()) await this.onAir.start();
    return isAccepted;
  }

  // What happens to us.

  #youChanged() {
    const role = this.you?.role ?? "";
    if (this.isOnStage) this.#wasOnStage = true;
    // A restarted server may not know anyone's role until the stream is back.
    else if (this.#wasOnStage && this.you && (this.#role === "speaker" || this.#role === "host")
      && ["backstage", "live"].includes(this.info?.state ?? "")) {
      this.#leave();
      this.own.stop();
      if (this.isOpen) this.say("You’re in the audience now.");
    }
    if (this.#role && role && role !== this.#role) this.api.renewToken().catch(() => {});
    if (role && role !== this.#role && this.isOnStage) this.mutes.tell();
    if (role === "speaker" && this.#role === "viewer") this.say("You’re on stage now.");
    if (role === "host" && this.#role !== "host") this.askForBans();
    if (role) this.#role = role;
    this.#goLiveIfReady();
    this.#describeOurs();
    if (this.info?.state === "live") {
      this.mostViewers = Math.max(this.mostViewers ?? 0, this.sync.known?.counts.viewers ?? 0);
    }
    const { state } = this.info ?? {};
    // The first state is not a change: that an earlier stream has ended may be received after we went on the air. And a
    // restarted server knows nothing about the stream until we are back.
    if (state === "ended" && this.#state && this.#state !== "ended" && this.sync.isOpen) this.#leave();
    this.#state = state;
  }

  /** Mutes us at the host's request; we may unmute again. @param {{ kind: "audio" | "video", by: string }} request */
  #muteAsked({ kind }) {
    if (this.own.muted[kind]) return;
    this.own.setMuted(kind, true);
    this.say(kind === "audio" ? "The host muted your microphone." : "The host turned your camera off.");
  }
}
