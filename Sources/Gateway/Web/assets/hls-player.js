// @ts-check

/**
 * Plays a stream by low-latency HLS, some two seconds late: for viewers whom WebRTC does not reach. Pages load it only
 * for them. It draws nothing, and does not press play: `ready` says when there is something to play.
 *
 * Source: RFC 8216bis §6.3 (what clients do).
 */

import { LiveBuffer, Source } from "./hls/buffer.js";
import { ask, read, rest, seconds } from "./hls/fetching.js";
import { EMPTY_S, FAR_S, LivePace, PastPace } from "./hls/pace.js";
import { chunksAfter, endOf, isRecorded, parsePlaylist, parseVariants, PlaylistError } from "./hls/playlist.js";
import { RenditionRule } from "./hls/renditions.js";
import { SignallingError } from "./session.js";

/** First and longest pause after something went wrong, in milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;
/** A stream that has ended, as its playlist says, is asked for anew after this time, in milliseconds. */
const AFTER_END_MS = 3000;
/** What was being loaded would come too late, and a poorer rendition may not. */
class TooSlow extends Error {
  name = "TooSlow";
}

/**
 * @typedef {object} HLSOptions
 * @property {string} base where the stream's HLS is, with a slash at its end
 * @property {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} withToken does something with a viewer's
 *   token, and once more with another one where the server refuses it
 * @property {import("./picture-choice.js").ChoiceName} [choice] what the viewer wants of the pictures
 * @property {number} [behind] so many seconds behind what is live it begins, and stays, where the stream keeps that
 *
 * @typedef {"starting" | "playing" | "failed"} HLSState `failed`: this browser plays none of it, or the server said no
 *   for good; `error` tells why
 */

/** Whether this browser says that it plays something. @param {string} codecs */
const takes = (codecs) => Source?.isTypeSupported(`video/mp4; codecs="${codecs}"`) ?? false;

/** Fires `change`, and `ready` when the video has something to play. */
export class HLSPlayer extends EventTarget {
  /** @type {HLSState} */
  state = "starting";
  /** What went wrong last; null since something came. @type {Error | null} */
  error = null;
  /** Bytes of media so far. */
  bytes = 0;

  /** @type {HTMLVideoElement | null} */
  #video = null;
  #end = new AbortController();
  /** @type {LiveBuffer | null} */
  #buffer = null;
  /** Nothing more comes of it, and it is still in the video. @type {LiveBuffer | null} */
  #spent = null;
  /** @type {import("./hls/playlist.js").Position | null} */
  #position = null;
  /** The initialization segment that was appended last. @type {string | null} */
  #map = null;
  /**
   * The part that comes next is asked for before it is there.
   * @type {{ uri: string, bytes: Promise<ArrayBuffer>, end: AbortController } | null}
   */
  #hinted = null;
  /** The richest first. @type {import("./hls/playlist.js").Variant[]} */
  #variants = [];
  #rule = new RenditionRule();
  /** Codecs that this browser took at first, and then did not. @type {Set<string>} */
  #refused = new Set();
  /** Of what is loaded now. */
  #variantURI = "";
  /** When what is at the end of the buffer was captured, by the clock of days; null where that is not told. @type {number | null} */
  #endDate = null;
  /**
   * Where another rendition was left, until something of this one is there.
   * @type {{ uri: string, map: string | null, position: import("./hls/playlist.js").Position | null } | null}
   */
  #left = null;
  /** @param {HLSOptions} options */
  constructor({ base, withToken, choice = "auto", behind }) {
    super();
    this.pace = behind === undefined ? new LivePace() : new PastPace(behind);
    this.choice = choice;
    this.base = new URL(base, location.href).href;
    this.withToken = withToken;
  }

  /** How late pictures are seen, in seconds, as far as is known; null where the browser alone knows. */
  get delay() {
    const { state } = this;
    // What is at the end was captured half a part and an encoder's time ago.
    return state === "playing" && this.#buffer && this.#video ? this.#buffer.ahead + 0.5 : null;
  }

  /** How far behind what is live is seen, and how far back can be gone, in seconds; null where it was not gone back. */
  get past() {
    const { pace } = this;
    if (pace.isLive || pace.reach === null) return null;
    return { behind: pace.behindNow(this.#endDate, this.#buffer?.ahead ?? 0) ?? pace.behind, reach: pace.reach };
  }

  /** What a weak link costs: the pictures, or their size; null for nothing. @returns {"picture" | "size" | null} */
  get weakness() {
    const [richest] = this.#variants;
    if (this.choice !== "auto" || !richest || this.#variantURI === richest.uri) return null;
    return this.#variant?.height === null ? "picture" : "size";
  }

  /** Another choice counts from what is loaded next. @param {import("./picture-choice.js").ChoiceName} choice */
  prefer(choice) {
    if (choice === this.choice) return;
    this.choice = choice;
    if (!Source) return void (this.#video && this.#playNatively(this.#video));
    this.#choose();
    this.dispatchEvent(new Event("change"));
  }

  /** Begins to load. @param {HTMLVideoElement} video */
  attach(video) {
    this.#video = video;
    const { signal } = this.#end;
    video.addEventListener("waiting", () => this.#stood(), { signal });
    if (Source) return void this.#run(signal);
    video.addEventListener("loadeddata", () => this.#become("playing"), { signal });
    video.addEventListener("error", () => this.#failedNatively(video.error && new Error(video.error.message)), { signal });
    this.#playNatively(video);
  }

  /** Loads no more; the video is another's. */
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
        // Who went back plays to its end, and to nothing else.
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
   * @returns {Promise<boolean>} whether there is more to come
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
    // What is over, and was never seen, is not begun any more.
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

  /** What is to be loaded now. @param {import("./hls/playlist.js").Playlist} playlist */
  #next(playlist) {
    const [buffer, left, endDate] = [this.#buffer, this.#left, this.#endDate];
    if (left && buffer) {
      const chunks = chunksAfter(playlist, { map: left.map, date: endDate });
      const [first, ...others] = chunks;
      if (!first) {
        // Nothing of it has been made yet: the first part is waited for.
        this.#position = endOf(playlist);
        return [];
      }
      this.#left = null;
      const overlap = endDate !== null && first.date !== null ? (endDate - first.date) / 1000 : 0;
      buffer.join(overlap < buffer.ahead + FAR_S ? Math.max(0, overlap) : 0);
      // What it is not continuous with was not loaded.
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

  /** Sees to it that what the link takes, or the viewer chose, is what is loaded next. */
  #choose() {
    if (!this.#variants.length) return;
    const { uri } = this.#variants[this.#rule.choose(this.#variants, this.choice, seconds())];
    if (uri === this.#variantURI) return;
    this.#forgetHint();
    if (this.#left?.uri === uri) {
      // Back before anything else was loaded.
      [this.#position, this.#map, this.#left] = [this.#left.position, this.#left.map, null];
    } else {
      if (this.#variantURI) this.#left ??= { uri: this.#variantURI, map: this.#map, position: this.#position };
      this.#position = this.#map = null;
    }
    this.#variantURI = uri;
    this.dispatchEvent(new Event("change"));
  }

  /** Whether something was not loaded because another rendition is wanted. @param {Error} error */
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
   * @param {string} playlist its address
   * @param {AbortSignal} signal
   */
  async #take({ uri, map, isDiscontinuous, date, duration }, playlist, signal) {
    if (map !== null && map !== this.#map) {
      const [answer, codecs] = await Promise.all([
        ask(new URL(map, playlist).href, signal), this.#askForCodecs(signal),
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
   * @param {number} duration that it is played, in seconds
   * @param {AbortSignal} signal
   * @throws {TooSlow} when it would come too late
   */
  async #load(address, duration, signal) {
    const answer = await ask(address, signal);
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

  /** Of the rendition that is loaded, which may have changed with what is loaded. @param {AbortSignal} signal */
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
    // Whoever waits for it hears of it.
    bytes.catch(() => {});
    this.#hinted = { uri: address, bytes, end };
  }

  /**
   * Asks for a playlist as whoever watches: a token stands in the path, so that what playlists name is relative to it.
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

  /** Something new is there. */
  #came() {
    const [buffer, video] = [this.#buffer, this.#video];
    if (!buffer || !video) return;
    if (!this.pace.came(buffer, video)) return;
    if (this.pace.isStuck(buffer, video, seconds())) {
      this.#startAnew();
      return this.#become("starting");
    }
    this.error = null;
    this.#become("playing");
  }

  /** What came was played: the next time there is to be more before that. */
  #stood() {
    if (this.pace.isHeld || !this.#buffer || this.#buffer.ahead > EMPTY_S) return;
    // What a rendition takes to begin says nothing of the link.
    if (!this.#left) this.#rule.stood();
    this.pace.stood();
  }

  /** Until something is to be loaded. @param {AbortSignal} signal */
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

  /** What is in the video stays to be seen; the next thing that comes has a source of its own. */
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
      // It is not there any more: what is there now comes next.
      if (error.status === 400 || error.status === 404) this.#position = this.pace.afterLoss(this.#position);
      if (!error.isTemporary && error.status !== 400) return this.#become("failed");
    } else if (error.name === "NotSupportedError") {
      return this.#become("failed");
    } else if (!(error instanceof TypeError || error instanceof PlaylistError || error.name === "TimeoutError")) {
      // The browser did not take it: perhaps another codec.
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

  // Browsers that play HLS, and have nothing to build a player of.

  /** @param {HTMLVideoElement} video */
  async #playNatively(video) {
    const { signal } = this.#end;
    try {
      // Whether there is any is asked here: the browser does not say why it does not play.
      const isReduced = this.choice === "low" || this.choice === "sound";
      const live = isReduced ? `media.m3u8?rendition=${this.choice}` : "index.m3u8";
      const { url } = await this.#ask(this.pace.isLive ? live : "dvr.m3u8", null, signal);
      if (signal.aborted) return;
      video.srcObject = null;
      video.src = url;
      if (!this.pace.isLive) this.#goBackNatively(video, this.pace.behind);
      this.dispatchEvent(new Event("ready"));
    } catch (error) {
      this.#failedNatively(/** @type {Error} */ (error));
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
    const { signal } = this.#end;
    if (signal.aborted) return;
    this.error = error;
    if (error instanceof SignallingError && !error.isTemporary) return this.#become("failed");
    this.#become("starting");
    await rest(LONGEST_PAUSE_MS, signal);
    if (!signal.aborted && this.#video) this.#playNatively(this.#video);
  }

  #emptyNative() {
    const video = this.#video;
    if (!video?.hasAttribute("src")) return;
    video.removeAttribute("src");
    if (!video.srcObject) video.load();
  }
}
