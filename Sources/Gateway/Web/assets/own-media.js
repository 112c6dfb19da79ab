// @ts-check

/** What this person sends: camera, microphone only, screen or test picture, and whether sound and picture are off. */

import { CaptureError, isAllowed, isGone, openSource } from "./capture.js";

/** Picture heights to choose from, with the bitrate of the largest layer, in bit/s. */
export const BITRATES = new Map([[1080, 4_500_000], [720, 2_500_000], [480, 1_000_000], [360, 600_000]]);
/** Frame rates to choose from. */
export const FRAME_RATES = [60, 30, 15];

/**
 * @typedef {{ title: string, text: string, canRetry: boolean, offersTest: boolean, offersSound?: boolean }} Problem
 */

/**
 * Why this browser cannot go live; null if it has WebRTC.
 * @param {boolean} isHost whether they could use an encoder instead
 * @returns {Problem | null}
 */
export function missingWebRTC(isHost) {
  if ("RTCPeerConnection" in globalThis) return null;
  return {
    title: "This browser can watch, but can’t go live",
    text: `It doesn’t support WebRTC. Use a current Chrome, Edge, Firefox or Safari${isHost ? ", or stream from an encoder" : ""}.`,
    canRetry: false,
    offersTest: false,
  };
}

/** Fires `change`, `source` when other tracks are to be sent, and `muted` when sound or picture went off or on. */
export class OwnMedia extends EventTarget {
  /** @type {import("./capture.js").Source | null} */
  source = null;
  /** The chosen kind; opened on demand. @type {import("./capture.js").SourceKind} */
  kind = "camera";
  height = 720;
  frameRate = 30;
  camera = "";
  microphone = "";
  simulcast = true;
  muted = { audio: false, video: false };
  /** @type {Problem | null} */
  problem = null;

  /** What the current source was opened with. */
  #opened = this.#wishes;
  #hasNewChoice = false;
  /** Whether the source being opened is to be stopped as soon as it is open. */
  #isUnwanted = false;
  /** The source being opened, for all who wait for it. @type {Promise<boolean> | null} */
  #opening = null;

  /**
   * @param {URLSearchParams} query `?source=camera|sound|screen|test`, `?quality=1080|720|480|360`, `?fps=60|30|15`,
   *   `?simulcast=0|1`
   */
  constructor(query) {
    super();
    const wanted = query.get("source");
    if (wanted === "camera" || wanted === "sound" || wanted === "screen" || wanted === "test") this.kind = wanted;
    if (BITRATES.has(Number(query.get("quality")))) this.height = Number(query.get("quality"));
    if (FRAME_RATES.includes(Number(query.get("fps")))) this.frameRate = Number(query.get("fps"));
    // Most machines cannot encode three sizes of VP9 or AV1 at once.
    this.simulcast = query.get("simulcast") === "1"
      || query.get("simulcast") !== "0" && !["vp9", "av1"].includes(query.get("codec") ?? "");
  }

  get maxBitrate() {
    return BITRATES.get(this.height);
  }

  /** Whether the system has paused the camera, as phones do while another app is in front. */
  get isPaused() {
    return this.source?.kind === "camera" && this.source.media.getVideoTracks()[0]?.muted === true;
  }

  /** Whether the browser was asked for a source and has not answered yet. */
  get isOpening() {
    return this.#opening !== null;
  }

  /** Whether there is a picture, and it is on. */
  get hasPicture() {
    return !this.muted.video && (this.source?.media.getVideoTracks().length ?? 0) > 0;
  }

  /** Whether there is a source whose picture is off or missing. */
  get isSoundOnly() {
    return this.source !== null && !this.hasPicture;
  }

  /** Opens the source if the browser does not ask for permission. */
  async openIfAllowed() {
    if (this.source) return;
    const isReady = this.kind === "test" || this.kind === "camera" && await isAllowed()
      || this.kind === "sound" && await isAllowed("microphone");
    if (isReady) await this.open();
  }

  /** @param {Partial<Pick<OwnMedia, "kind" | "height" | "frameRate" | "camera" | "microphone">>} wish */
  async choose(wish) {
    const isOther = wish.kind !== undefined && wish.kind !== this.kind;
    Object.assign(this, wish);
    if (isOther || this.source) await this.open();
  }

  /**
   * Opens the chosen source in place of the current one, also while live. A choice made meanwhile is opened next.
   * @returns {Promise<boolean>} whether the chosen source is open now
   */
  open() {
    this.#hasNewChoice = true;
    this.#isUnwanted = false;
    if (!this.#opening) {
      this.#opening = this.#openChoices();
      this.#changed();
    }
    return this.#opening;
  }

  /**
   * Waits for the source being opened, or opens it if there is none.
   * @returns {Promise<boolean>} whether there is one
   */
  async ready() {
    if (this.#opening) return this.#opening;
    return this.source !== null || this.open();
  }

  async #openChoices() {
    while (this.#hasNewChoice) {
      this.#hasNewChoice = false;
      this.setProblem(null);
      await this.#openChosen();
    }
    this.#opening = null;
    this.#changed();
    return this.problem === null && !this.#isUnwanted;
  }

  get #wishes() {
    const { height, frameRate, camera, microphone } = this;
    return { height, frameRate, camera, microphone };
  }

  async #openChosen() {
    const { kind, source: before } = this;
    try {
      // Safari asks for a screen only at once, within a gesture, and a missing microphone keeps none from opening.
      if (kind !== "screen") await this.#forgetGone();
      const wishes = this.#wishes;
      const opened = await openSource(kind, wishes);
      if (this.#isUnwanted) return opened.stop();
      const picture = opened.media.getVideoTracks()[0];
      picture?.addEventListener("ended", () => opened === this.source && this.#ended());
      for (const event of ["mute", "unmute"]) {
        picture?.addEventListener(event, () => opened === this.source && this.dispatchEvent(new Event("muted")));
      }
      const sound = opened.media.getAudioTracks()[0];
      sound?.addEventListener("ended", () => opened === this.source && this.#soundEnded());
      this.source = opened;
      this.#opened = wishes;
      this.#applyMutes();
      this.dispatchEvent(new Event("source"));
      before?.stop();
      // Shared no more before anybody listened, such as while the browser asked for the microphone.
      if (picture?.readyState === "ended") this.#ended();
    } catch (error) {
      if (this.#hasNewChoice || this.#isUnwanted) return;
      const { title, message } = error instanceof CaptureError
        ? error : { title: "The picture didn’t start", message: String(error) };
      // The source that was on air stays on air, and is the chosen one again.
      if (before) Object.assign(this, this.#opened, { kind: before.kind });
      this.setProblem({ title, text: message, canRetry: true, offersTest: kind !== "test", offersSound: kind === "camera" });
    }
  }

  /** Asked for by its id, a device that was unplugged would keep the others from opening, too. */
  async #forgetGone() {
    const { camera, microphone } = this;
    // Another one may be chosen meanwhile.
    if (camera && await isGone("videoinput", camera) && this.camera === camera) this.camera = "";
    if (microphone && await isGone("audioinput", microphone) && this.microphone === microphone) this.microphone = "";
  }

  /** Releases camera and microphone, also those for which permission is still pending. */
  stop() {
    this.#isUnwanted = this.#opening !== null;
    this.#hasNewChoice = false;
    this.source?.stop();
    this.source = null;
    this.problem = null;
    this.#changed();
  }

  /** The camera was unplugged, or sharing was ended from outside the page. */
  #ended() {
    const title = this.source?.kind === "screen" ? "Screen sharing has ended" : "The camera was disconnected";
    this.source?.stop();
    this.source = null;
    this.dispatchEvent(new Event("source"));
    this.setProblem({
      title, text: "No one can see you now. Choose a source to continue.", canRetry: true, offersTest: true,
    });
  }

  /** The microphone was unplugged, or its permission was taken back; a picture goes on. */
  #soundEnded() {
    this.setProblem({
      title: "The microphone was disconnected",
      text: "No one can hear you now. Connect a microphone, or choose another one, and try again.",
      canRetry: true, offersTest: false,
    });
  }

  /** @param {Problem | null} problem */
  setProblem(problem) {
    this.problem = problem;
    this.#changed();
  }

  /** @param {"audio" | "video"} kind @param {boolean} isOff */
  setMuted(kind, isOff) {
    if (this.muted[kind] === isOff) return;
    this.muted = { ...this.muted, [kind]: isOff };
    this.#applyMutes();
    this.dispatchEvent(new Event("muted"));
    this.#changed();
  }

  #applyMutes() {
    for (const track of this.source?.media.getTracks() ?? []) {
      track.enabled = !this.muted[/** @type {"audio" | "video"} */ (track.kind)];
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
