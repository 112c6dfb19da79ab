// @ts-check

/** Keeps this person on the air for as long as they want, across lost connections and changes of source. */

import { isForgotten, Persistent } from "./persistent.js";
import { replaceMedia } from "./sending.js";
import { SignallingError } from "./session.js";
import { StatsReader } from "./stats.js";
import { joinStage } from "./stage-session.js";
import { askForStream } from "./sync.js";
import { withToken } from "./tokens.js";

/** The same person, in another window or from an encoder, has taken our place. */
class TakenOver extends Error {}

/** The network is reported as too slow after this many checks in a row, one a second, and again after as many more. */
const LIMITED_LOOKS = 5;

/** Fires `change`. */
export class OnAir extends EventTarget {
  /** Whether the person wants to be on the air; the connection follows as well as it can. */
  isOn = false;
  hasConnected = false;
  /** @type {number | null} */
  since = null;
  /** @type {StatsReader | null} */
  stats = null;
  /** The latest numbers. @type {import("./stats.js").Numbers | null} */
  numbers = null;

  /** @type {import("./stage-session.js").StageSession | null} */
  session = null;

  /** The screen that is shared next to the picture. @type {MediaStream | null} */
  screen = null;

  /** The last session, until it is known why it ended. @type {import("./session.js").MediaSession | null} */
  #previous = null;
  /** Whether the last session ended while its connection worked. */
  #endedSuddenly = false;
  #wasConnected = false;
  /** Whether the last session has ever connected, and how many in a row have not. */
  #hasArrived = false;
  #fruitless = 0;
  /** Whether a stream that had ended was tried once more. */
  #hasBegunAnew = false;
  /** Checks in a row in which the network limited what the browser sends. */
  #limitedFor = 0;
  /** The number of sync's interruptions when the session began. */
  #interruptions = 0;
  /** @type {WakeLockSentinel | null} */
  #wakeLock = null;
  /** Whether the browser is asking which screen to share. */
  #isAsking = false;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    super();
    this.room = room;
    this.connection = new Persistent((signal) => this.#open(signal));
    this.connection.addEventListener("statechange", () => this.#stateChanged());
    room.own.addEventListener("source", () => this.#replace());
    room.addEventListener("second", () => this.#examine());
    // If another server answers, every viewer waits for us.
    room.sync.addEventListener("resume", () => this.connection.recheck());
    document.addEventListener("visibilitychange", () => {
      if (this.isOn && document.visibilityState === "visible") this.#stayAwake();
    });
  }

  async start() {
    this.isOn = true;
    this.hasConnected = false;
    this.#fruitless = 0;
    this.#previous = null;
    this.#hasBegunAnew = false;
    this.connection.start();
    this.#changed();
    await this.#stayAwake();
  }

  /** Keeps the screen on. Browsers let it sleep again whenever the page was out of sight. */
  async #stayAwake() {
    const lock = await navigator.wakeLock?.request("screen").catch(() => null) ?? null;
    // Two requests may overlap, and the screen stays on until both locks are released.
    this.#sleep();
    this.#wakeLock = lock;
    if (!this.isOn) this.#sleep();
  }

  stop() {
    this.isOn = false;
    this.connection.close();
    this.since = null;
    this.stats = this.numbers = null;
    this.#stopSharing();
    this.#sleep();
    this.#changed();
  }

  /**
   * Why there is no connection yet, as far as is known; it keeps trying. `blocked`: the server answers, but no media
   * gets through to it.
   * @returns {"server" | "busy" | "blocked" | null}
   */
  get trouble() {
    const { state, error } = this.connection;
    if (!this.isOn || state === "connected" || state === "failed") return null;
    if (error instanceof SignallingError) return error.status === 429 || error.status >= 500 ? "busy" : null;
    return error ? "server" : this.#fruitless > 0 ? "blocked" : null;
  }

  /** Whether a screen can be shared next to the picture now. */
  get canShareScreen() {
    return this.connection.state === "connected" && "getDisplayMedia" in (navigator.mediaDevices ?? {});
  }

  /** Starts or stops sharing a screen next to the picture. */
  async toggleScreen() {
    if (this.screen) return this.#stopSharing();
    // The screen of a second question would take the place of the first, which nobody would stop.
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      const screen = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { ideal: 30 } } });
      const [track] = screen.getVideoTracks();
      track.contentHint = "detail";
      track.addEventListener("ended", () => this.screen === screen && this.#stopSharing());
      this.screen = screen;
      if (!this.isOn) return this.#stopSharing();
      await this.session?.showScreen(track);
      this.room.say("Your screen is shared.");
    } catch (error) {
      // People who close the browser's own dialog know.
      if (/** @type {DOMException} */ (error).name !== "NotAllowedError") this.room.say("Your screen couldn’t be shared.");
    } finally {
      this.#isAsking = false;
    }
    this.#changed();
  }

  #stopSharing() {
    if (!this.screen) return;
    for (const track of this.screen.getTracks()) track.stop();
    this.screen = null;
    this.session?.showScreen(null);
    this.#changed();
  }

  #sleep() {
    this.#wakeLock?.release();
    this.#wakeLock = null;
  }

  /** @param {AbortSignal} signal */
  async #open(signal) {
    const { room } = this;
    if (await this.#isTaken(signal)) throw new TakenOver("You’re now on this stage from another window or device.");
    const media = room.own.source?.media;
    if (!media) throw new Error("There’s no picture to send.");
    // Invited people, and those with a speaker's token or on another host's stream, enter the stage by this.
    const isGuest = await this.#isGuest(signal);
    // Whoever has left meanwhile neither enters the stage nor creates the stream.
    signal.throwIfAborted();
    if (isGuest) await room.api.join();
    const session = await this.#join(media, signal).catch(async (error) => {
      if (!(error instanceof SignallingError)) throw error;
      // A stream that ended while we were coming, with the host who was there, may begin anew with us as its host.
      if (error.rule === "ended" && this.#mayBegin && !this.#hasBegunAnew) {
        this.#hasBegunAnew = true;
        throw error;
      }
      // There is no point in retrying what will not change.
      if (error.rule === "ended") throw new Error("This stream has ended. Start a new one from the home page.");
      if (error.rule !== "unknown-stream" || !room.isHost) throw error;
      signal.throwIfAborted();
      await room.create();
      return this.#join(media, signal);
    });
    // Whoever asked for it closes it.
    if (signal.aborted) return session;
    session.addEventListener("slots", () => this.#changed());
    this.session = this.#previous = session;
    this.#hasBegunAnew = this.#hasArrived = false;
    this.#interruptions = room.sync.interruptions;
    this.stats = new StatsReader(session.peer, "outbound-rtp");
    return session;
  }

  /**
   * Whether the stage is someone else's. Publishing with a host's token without having joined takes the host's place,
   * so if the socket does not tell who the host is, the stream itself is asked.
   * @param {AbortSignal} signal
   */
  async #isGuest(signal) {
    const { room } = this;
    await room.sync.firstNews(signal);
    if (room.you) return room.isOpen && !room.isHost;
    const ask = (/** @type {string | null} */ token) => askForStream(room.stream, { token, signal });
    const stream = room.info ?? await withToken(room.stream, room.tokenRole, ask).catch(() => null);
    if (stream?.state !== "live" && stream?.state !== "backstage") return false;
    return !room.isHost || Boolean(stream.host) && stream.host !== room.ownClaims?.sub;
  }

  /** Whether our token is a host's, whoever we were in a stream that ended, unless that was its last. */
  get #mayBegin() {
    const { ownClaims, isOver } = this.room;
    return !isOver && (ownClaims?.role === "host" || ownClaims?.role === "admin");
  }

  /** @param {MediaStream} media @param {AbortSignal} signal */
  #join(media, signal) {
    const { stream, tokenRole, own, query } = this.room;
    return withToken(stream, tokenRole, (token) => joinStage({
      endpoint: `/v1/streams/${encodeURIComponent(stream)}/sessions`,
      token,
      media,
      // Guests are seen in small tiles by the others on stage and in compositions; the host alone fills the picture.
      simulcast: own.simulcast || this.room.isOpen && !this.room.isHost,
      codec: query.get("codec"),
      maxBitrate: own.maxBitrate,
      signal,
    }));
  }

  async #examine() {
    const { stats } = this;
    if (!stats || this.connection.state !== "connected") return;
    const numbers = await stats.read().catch(() => null);
    // The session may have ended meanwhile.
    if (!numbers || stats !== this.stats) return;
    this.numbers = numbers;
    if (stats.report) this.session?.lookAtLayers(stats.report, this.room.own.maxBitrate);
    this.#limitedFor = numbers.limitation === "bandwidth" ? this.#limitedFor + 1 : 0;
    if (this.#limitedFor > 0 && this.#limitedFor % LIMITED_LOOKS === 0) this.session?.sayUplinkIsWeak();
    this.#changed();
  }

  /**
   * Whether a session was lost because someone took our place, and not by the network: then it is not taken back.
   * @param {AbortSignal} signal
   */
  async #isTaken(signal) {
    const { room } = this;
    const previous = this.#previous;
    if (!previous || !this.#endedSuddenly) return false;
    const isGone = await isForgotten(previous, signal);
    // Neither yes nor no: it is asked again with the next attempt, which would otherwise take the place back.
    if (isGone === null) throw new TypeError("The server isn’t responding.");
    // A restarted server may not accept the old token.
    const stream = isGone && await withToken(
      room.stream, room.tokenRole, (token) => askForStream(room.stream, { token, signal }));
    signal.throwIfAborted();
    const isServerTheSame = room.sync.interruptions === this.#interruptions;
    // Once it is answered, a failure of the attempt says nothing more of it.
    this.#endedSuddenly = isServerTheSame && ["live", "backstage"].includes(stream ? stream.state : "");
    return this.#endedSuddenly;
  }

  /** The source may change while there is a session, or while there is none. */
  async #replace() {
    const { session } = this.connection;
    if (!session) return;
    // A session that ends meanwhile refuses; the next one begins with the source of then.
    await replaceMedia(session, this.room.own.source?.media ?? new MediaStream(), this.session?.screenSender)
      .catch(() => {});
  }

  #stateChanged() {
    const { connection } = this;
    // An attempt that failed had no session that could have ended.
    if (connection.state === "retrying" && !connection.error) {
      this.#endedSuddenly = this.#wasConnected;
      if (!this.#hasArrived) this.#fruitless += 1;
    }
    this.#wasConnected = connection.state === "connected";
    if (!connection.session) this.session = null;
    if (connection.state === "connected") {
      this.hasConnected = this.#hasArrived = true;
      this.#fruitless = 0;
      this.since ??= Date.now();
      this.#replace();
      this.session?.showScreen(this.screen?.getVideoTracks()[0] ?? null);
    }
    if (connection.state === "failed") this.#failed(connection.error);
    this.#changed();
  }

  /** @param {Error | null} error */
  #failed(error) {
    this.isOn = false;
    this.since = null;
    this.#stopSharing();
    this.#sleep();
    const needsToken = error instanceof SignallingError && error.status === 401;
    this.room.own.setProblem({
      title: error instanceof TakenOver ? "Live from somewhere else" : "The server didn’t accept the stream",
      text: needsToken
        ? "You don’t have permission to go live here. Open this page with a host’s link."
        : error?.message ?? "",
      canRetry: true,
      offersTest: false,
    });
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
