// @ts-check

/**
 * Plays a stream over low-latency HLS with a delay of about two seconds, for viewers whom WebRTC cannot reach. Pages
 * load it only for them. It draws nothing and does not start playback: `ready` says when there is something to play.
 *
 * Source: RFC 8216bis §6.3 (client responsibilities).
 */

import { LiveBuffer, Source } from "./hls/buffer.js";
import { ask, askForMedia, read, rest, seconds } from "./hls/fetching.js";
import { EMPTY_S, FAR_S, LivePace, PastPace } from "./hls/pace.js";
import { chunksAfter, endOf, isRecorded, parsePlaylist, parseVariants, PlaylistError } from "./hls/playlist.js";
import { RenditionRule } from "./hls/renditions.js";
import { SignallingError } from "./session.js";

/** First and longest pause after a failure, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;
/** After the end of a stream, its playlist is requested again after this time, in milliseconds. */
const AFTER_END_MS = 3000;
/** A download would finish too late; that of a lower rendition may not. */
class TooSlow extends Error {
  name = "TooSlow";
}

/**
 * @typedef {object} HLSOptions
 * @property {string} base the address of the stream's HLS, with a trailing slash
 * @property {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken runs an action with a viewer's
 *   token, and once more with another one if the server refuses the first
 * @property {import("./picture-choice.js").ChoiceName} [choice] the viewer's choice of picture quality
 * @property {number} [behind] how many seconds behind live to start and stay, if the server keeps the stream
 *
 * @typedef {"starting" | "playing" | "failed"} HLSState `failed`: this browser cannot play it, or the server refused
 *   for good; `error` tells why
 */

/** Whether this browser claims to play these codecs. @param {string} codecs */
const takes = (codecs) => Source?.isTypeSupported(`video/mp4; codecs="${codecs}"`) ?? false;

/** Fires `change`, and `ready` when the video has something to play. */
export class HLSPlayer extends EventTarget {
  /** @type {HLSState} */
  state = "starting";
  /** The last failure; null once something was received again. @type {Error | null} */
  error = null;
  /** Bytes of media received so far. */
  bytes = 0;

  /** @type {HTMLVideoElement | null} */
  #video = null;
  #end = new AbortController();
  /** @type {LiveBuffer | null} */
  #buffer = null;
  /** Complete, and still attached to the video. @type {LiveBuffer | null} */
  #spent = null;
  /** @type {import("./hls/playlist.js").Position | null} */
  #position = null;
  /** The last appended initialization segment. @type {string | null} */
  #map = null;
  /**
   * The request for the next part, which the server answers as soon as the part exists.
   * @type {{ uri: string, bytes: Promise<ArrayBuffer>, end: AbortController } | null}
   */
  #hinted = null;
  /** Best first. @type {import("./hls/playlist.js").Variant[]} */
  #variants = [];
  #rule = new RenditionRule();
  /** Codecs that this browser claimed to support, but then failed to play. @type {Set<string>} */
  #refused = new Set();
  /** The rendition that is being loaded. */
  #variantURI = "";
  /** Wall-clock time at which the end of the buffer was captured; null if unknown. @type {number | null} */
  #endDate = null;
  /**
   * Where the previous rendition was left, until something of the current one was loaded.
   * @type {{ uri: string, map: string | null, position: import("./hls/playlist.js").Position | null } | null}
   */
  #left = null;
  /** Counts what a browser that plays HLS itself was given, and its failures: of several, only the last is mended. */
  #turn = 0;

  /** @param {HLSOptions} options */
  constructor({ base, withToken, choice = "auto", behind }) {
    super();
    this.pace = behind === undefined ? new LivePace() : new PastPace(behind);
    this.choice = choice;
    this.base = new URL(base, location.href).href;
    this.withToken = withToken;
  }

  /** The delay of the picture in seconds; null if only the browser knows it. */
  get delay() {
    // The end of the buffer was captured about half a second ago: half a part, and the time of the encoder.
    return this.state === "playing" && this.#buffer && this.#video ? this.#buffer.ahead + 0.5 : null;
  }

  /** How far behind live the viewer is, and how far back they can go, in seconds; null while live. */
  get past() {
    const { pace } = this;
    if (pace.isLive || pace.reach === null) return null;
    return { behind: pace.behindNow(this.#endDate, this.#buffer?.ahead ?? 0) ?? pace.behind, reach: pace.reach };
  }

  /** What a slow connection costs: the picture, or its size; null for nothing. @returns {"picture" | "size" | null} */
  get weakness() {
    const [richest] = this.#variants;
    if (this.choice !== "auto" || !richest || this.#variantURI === richest.uri) return null;
    return this.#variant?.height === null ? "picture" : "size";
  }

  /** Applies another choice from the next request on. @param {import("./picture-choice.js").ChoiceName} choice */
  prefer(choice) {
    if (choice === this.choice) return;
    this.choice = choice;
    if (!Source) return void (this.#video && this.#playNatively(this.#video));
    this.#choose();
    this.dispatchEvent(new Event("change"));
  }

  /** Starts loading. @param {HTMLVideoElement} video */
  attach(video) {
    this.#video = video;
    const { signal } = this.#end;
    video.addEventListener("waiting", () => this.#stood(), { signal });
    if (Source) return void this.#run(signal);
    video.addEventListener("loadeddata", () => (this.error = null, this.#become("playing")), { signal });
    video.addEventListener("error", () => this.#failedNatively(video.error && new Error(video.error.message)), { signal });
    this.#playNatively(video);
  }

  /** Stops loading, and releases the video. */
  detach() {
    this.#end.abort();
    this.#forgetHint();
    for (const buffer of [this.#buffer, this.#spent]) buffer?.close();
    if (!Source) this.#emptyNative();
    this.#buffer = this.#spent = this.#video = null;
  }

  // The loop.

  /** @param {AbortSignal} signal */
  async #run(signal) {
    let pause = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      let wait = 0;
      try {
        wait = await this.#step(signal) ? 0 : AFTER_END_MS;
        // A viewer who went back plays to the end, and no stream that may follow.
        if (wait > 0 && !this.pace.isLive) return;
        pause = FIRST_PAUSE_MS;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#isLeft(/** @type {Error} */ (error))) continue;
        this.#failed(/** @type {Error} */ (error));
        if (this.state === "failed") return;
        const asked = error instanceof SignallingError ? error.retryAfter : null;
        wait = Math.max(asked ?? 0, pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
      if (wait > 0) await rest(wait, signal);
    }
  }

  /**
   * Loads what is new.
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} whether the stream continues
   */
  async #step(signal) {
    await this.#whileEnough(signal);
    if (!this.#variants.length) this.#variants = await this.#askForVariants(signal);
    this.#choose();
    const uri = this.#variantURI;
    const address = await this.#ask(uri, this.#position && {
      _HLS_msn: String(this.#position.number), _HLS_part: String(this.#position.part),
    }, signal);
    if (uri !== this.#variantURI) return true;
    const playlist = parsePlaylist(address.text);
    // A stream that ended before anything was shown is not started.
    if (playlist.hasEnded && !this.pace.hasBegun && this.pace.isLive) return false;
    const chunks = this.#next(playlist);
    for (const chunk of chunks) {
      if (!this.pace.isLive) await this.#whileEnough(signal);
      await this.#take(chunk, address.url, signal);
      if (uri !== this.#variantURI || !this.#buffer) return true;
      this.#position = chunk.next;
      this.#choose();
      if (uri !== this.#variantURI) return true;
    }
    if (playlist.hasEnded) {
      this.#finish();
      return false;
    }
    if (!chunks.length && !playlist.canBlock) await rest(FIRST_PAUSE_MS, signal);
    const end = endOf(playlist);
    const isNext = end.number === this.#position?.number && end.part === this.#position.part;
    if (playlist.hint && isNext) this.#expect(new URL(playlist.hint, address.url).href, playlist.holdBack / 3, signal);
    return true;
  }

  /** What to load now. @param {import("./hls/playlist.js").Playlist} playlist */
  #next(playlist) {
    const [buffer, left, endDate] = [this.#buffer, this.#left, this.#endDate];
    if (left && buffer) {
      const chunks = chunksAfter(playlist, { map: left.map, date: endDate });
      const [first, ...others] = chunks;
      if (!first) {
        // The server has not made any of it yet: wait for the first part.
        this.#position = endOf(playlist);
        return [];
      }
      this.#left = null;
      const overlap = endDate !== null && first.date !== null ? (endDate - first.date) / 1000 : 0;
      buffer.join(overlap < buffer.ahead + FAR_S ? Math.max(0, overlap) : 0);
      // The discontinuity is with a segment that was not loaded.
      return [{ ...first, isDiscontinuous: false }, ...others];
    }
    this.#left = null;
    const { chunks, isJump } = this.pace.next(playlist, this.#position, !buffer);
    if (isJump) buffer?.join();
    return chunks;
  }

  // The rendition.

  get #variant() {
    return this.#variants.find(({ uri }) => uri === this.#variantURI);
  }

  /** Switches to the rendition that the connection can carry, or that the viewer chose. */
  #choose() {
    if (!this.#variants.length) return;
    const { uri } = this.#variants[this.#rule.choose(this.#variants, this.choice, seconds())];
    if (uri === this.#variantURI) return;
    this.#forgetHint();
    if (this.#left?.uri === uri) {
      // Back to the previous rendition before anything of the next was loaded.
      [this.#position, this.#map, this.#left] = [this.#left.position, this.#left.map, null];
    } else {
      if (this.#variantURI) this.#left ??= { uri: this.#variantURI, map: this.#map, position: this.#position };
      this.#position = this.#map = null;
    }
    this.#variantURI = uri;
    this.dispatchEvent(new Event("change"));
  }

  /** Whether a download was ended because another rendition is wanted. @param {Error} error */
  #isLeft(error) {
    if (!(error instanceof TooSlow) && error.name !== "AbortError") return false;
    if (error instanceof TooSlow) this.#rule.stood();
    this.#forgetHint();
    return true;
  }

  get #mayGoDown() {
    return this.choice === "auto" && this.#variantURI !== this.#variants.at(-1)?.uri;
  }

  #forgetHint() {
    this.#hinted?.end.abort();
    this.#hinted = null;
  }

  /**
   * @param {import("./hls/playlist.js").Chunk} chunk
   * @param {string} playlist the address of its playlist
   * @param {AbortSignal} signal
   */
  async #take({ uri, map, isDiscontinuous, date, duration }, playlist, signal) {
    if (map !== null && map !== this.#map) {
      const [answer, codecs] = await Promise.all([
        askForMedia(new URL(map, playlist).href, signal), this.#askForCodecs(signal),
      ]);
      const bytes = await answer.arrayBuffer();
      if (this.#buffer && !this.#buffer.takes(codecs)) this.#startAnew();
      const buffer = this.#buffer ?? await this.#open(signal);
      await buffer.begin(bytes, codecs);
      this.#map = map;
    }
    const address = new URL(uri, playlist).href;
    const hinted = this.#hinted?.uri === address ? this.#hinted.bytes : null;
    const bytes = await (hinted ?? this.#load(address, duration, signal));
    signal.throwIfAborted();
    if (isDiscontinuous) this.#buffer?.join();
    await this.#buffer?.append(bytes);
    signal.throwIfAborted();
    this.bytes += bytes.byteLength;
    this.#endDate = date === null ? null : date + duration * 1000;
    this.#came();
  }

  /**
   * @param {string} address
   * @param {number} duration of the media, in seconds
   * @param {AbortSignal} signal
   * @throws {TooSlow} if it would finish too late
   */
  async #load(address, duration, signal) {
    const answer = await askForMedia(address, signal);
    const total = Number(answer.headers.get("Content-Length"));
    const begun = seconds();
    const bytes = await read(answer, (count) => {
      const taken = seconds() - begun;
      if (!this.#mayGoDown || !this.#rule.isHopeless(count, total, taken, this.#buffer?.ahead ?? 0)) return;
      this.#rule.note(count, taken, duration, seconds());
      throw new TooSlow();
    });
    this.#rule.note(bytes.byteLength, seconds() - begun, duration, seconds());
    return bytes;
  }

  /** @param {AbortSignal} signal */
  async #open(signal) {
    const buffer = new LiveBuffer(/** @type {HTMLVideoElement} */ (this.#video));
    this.#buffer = buffer;
    await buffer.open();
    signal.throwIfAborted();
    this.#spent?.close();
    this.#spent = null;
    return buffer;
  }

  /** @param {AbortSignal} signal */
  async #askForVariants(signal) {
    const { text } = await this.#ask("index.m3u8?renditions=all", null, signal);
    if (isRecorded(text)) throw new DOMException("The stream has ended.", "NotSupportedError");
    return this.pace.variants(parseVariants(text), (codecs) => this.#plays(codecs));
  }

  /** The codecs of the current rendition, which can change during a stream. @param {AbortSignal} signal */
  async #askForCodecs(signal) {
    this.#variants = await this.#askForVariants(signal);
    const { codecs } = this.#variant ?? this.#variants[0];
    if (!takes(codecs)) {
      throw new DOMException(`This browser can’t play ${codecs}.`, "NotSupportedError");
    }
    return codecs;
  }

  /** @param {string} codecs */
  #plays(codecs) {
    return takes(codecs) && !this.#refused.has(codecs);
  }

  /** @param {string} address @param {number} duration in seconds @param {AbortSignal} signal */
  #expect(address, duration, signal) {
    const end = new AbortController();
    const bytes = this.#load(address, duration, AbortSignal.any([signal, end.signal]));
    // Whoever awaits it gets the error.
    bytes.catch(() => {});
    this.#hinted = { uri: address, bytes, end };
  }

  /**
   * Requests a playlist with the viewer's token, which is part of the path, so that relative addresses in the playlist
   * contain it, too.
   * @param {string} name
   * @param {Record<string, string> | null} query
   * @param {AbortSignal} signal
   */
  #ask(name, query, signal) {
    return this.withToken(async (token) => {
      const url = this.#addressOf(name, token);
      for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
      const response = await ask(url.href, signal);
      return { text: await response.text(), url: response.url || url.href };
    });
  }

  /** @param {string} name @param {string | null} token */
  #addressOf(name, token) {
    return new URL(token ? `t/${encodeURIComponent(token)}/${name}` : name, this.base);
  }

  // Where it plays.

  /** Something was appended. */
  #came() {
    const [buffer, video] = [this.#buffer, this.#video];
    if (!buffer || !video || !this.pace.came(buffer, video)) return;
    if (this.pace.isStuck(buffer, video, seconds())) {
      this.#startAnew();
      return this.#become("starting");
    }
    this.error = null;
    this.#become("playing");
  }

  /** The buffer ran empty: more is to be buffered the next time. */
  #stood() {
    if (this.pace.isHeld || !this.#buffer || this.#buffer.ahead > EMPTY_S) return;
    // How long a new rendition takes to start says nothing about the connection.
    if (!this.#left) this.#rule.stood();
    this.pace.stood();
  }

  /** Waits until something has to be loaded. @param {AbortSignal} signal */
  async #whileEnough(signal) {
    const [buffer, video] = [this.#buffer, this.#video];
    if (!buffer || !video || !(await this.pace.whileEnough(buffer, video, signal))) return;
    this.#position = null;
    this.#forgetHint();
    this.dispatchEvent(new Event("change"));
  }

  #finish() {
    this.#buffer?.finish();
    if (this.#video) this.#video.playbackRate = 1;
    if (this.pace.isLive) this.#startAnew();
  }

  /** Leaves the video as it is; what is loaded next gets a source of its own. */
  #startAnew() {
    if (this.#buffer) {
      this.#spent?.close();
      this.#spent = this.#buffer;
    }
    this.#buffer = this.#position = this.#map = this.#endDate = null;
    this.#forgetHint();
    this.pace.startAnew();
  }

  /** @param {Error} error */
  #failed(error) {
    this.error = error;
    this.#forgetHint();
    if (error instanceof SignallingError) {
      // It was deleted on the server: continue with what is there now.
      if (error.status === 400 || error.status === 404) this.#position = this.pace.afterLoss(this.#position);
      if (!error.isTemporary && error.status !== 400) return this.#become("failed");
    } else if (error.name === "NotSupportedError") {
      return this.#become("failed");
    } else if (!(error instanceof TypeError || error instanceof PlaylistError || error.name === "TimeoutError")) {
      // The browser failed to play it: another codec may work.
      if (this.#variant) this.#refused.add(this.#variant.codecs);
      this.#variants = [];
      this.#startAnew();
    }
    if (!this.#buffer || this.#buffer.ahead < EMPTY_S) this.#become("starting");
    this.dispatchEvent(new Event("change"));
  }

  /** @param {HLSState} state */
  #become(state) {
    const isReady = state === "playing" && this.state !== "playing";
    this.state = state;
    if (isReady) this.dispatchEvent(new Event("ready"));
    this.dispatchEvent(new Event("change"));
  }

  // Browsers that play HLS themselves, and have no MediaSource.

  /** @param {HTMLVideoElement} video */
  async #playNatively(video) {
    const [{ signal }, turn] = [this.#end, ++this.#turn];
    try {
      // Requested here first, because the browser does not say why it cannot play something.
      const isReduced = this.choice === "low" || this.choice === "sound";
      const live = isReduced ? `media.m3u8?rendition=${this.choice}` : "index.m3u8";
      const { url } = await this.#ask(this.pace.isLive ? live : "dvr.m3u8", null, signal);
      if (signal.aborted || turn !== this.#turn) return;
      video.srcObject = null;
      video.src = url;
      if (!this.pace.isLive) this.#goBackNatively(video, this.pace.behind);
      this.dispatchEvent(new Event("ready"));
    } catch (error) {
      if (turn === this.#turn) this.#failedNatively(/** @type {Error} */ (error));
    }
  }

  /** @param {HTMLVideoElement} video @param {number} behind in seconds */
  #goBackNatively(video, behind) {
    video.addEventListener("loadedmetadata", () => {
      const { seekable } = video;
      if (seekable.length) video.currentTime = Math.max(seekable.start(0), seekable.end(seekable.length - 1) - behind);
    }, { once: true, signal: this.#end.signal });
  }

  /** @param {Error | null} error */
  async #failedNatively(error) {
    const [{ signal }, turn] = [this.#end, ++this.#turn];
    if (signal.aborted) return;
    this.error = error;
    if (error instanceof SignallingError && !error.isTemporary) return this.#become("failed");
    this.#become("starting");
    await rest(LONGEST_PAUSE_MS, signal);
    if (!signal.aborted && turn === this.#turn && this.#video) this.#playNatively(this.#video);
  }

  #emptyNative() {
    const video = this.#video;
    if (!video?.hasAttribute("src")) return;
    video.removeAttribute("src");
    if (!video.srcObject) video.load();
  }
}
