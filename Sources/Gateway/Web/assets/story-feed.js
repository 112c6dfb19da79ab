// @ts-check

/**
 * A story feed without a page: the list of live streams, where the viewer is in it, and one peer connection whose two
 * slots always carry the story in view and the one that comes next. It draws nothing and listens to no finger; a page
 * shows what it says and tells it what the viewer does.
 *
 *     import { StoryFeed } from "/assets/story-feed.js";
 *
 *     const feed = new StoryFeed();
 *     const [a, b] = document.querySelectorAll("video");       // one for each slot, muted, playsinline
 *     feed.addEventListener("slots", () => {
 *       for (const [video, slot] of [[a, feed.slots[0]], [b, feed.slots[1]]]) {
 *         if (video.srcObject !== slot?.media) video.srcObject = slot?.media ?? null;
 *         video.hidden = !slot?.stream || slot.stream !== feed.current?.id;
 *       }
 *     });
 *     feed.play();
 *
 *     feed.peek("forward");      // a swipe begins: the next story starts to play, without sound
 *     feed.commit("forward");    // it is in view now: with sound, at full quality, within a frame; or
 *     feed.cancel();             // it was called off
 *     feed.go("some-stream");    // any other story
 *
 * `play()` and `stop()`, called twice, change nothing. A feed that was stopped begins again where it was.
 *
 * | event | when |
 * | --- | --- |
 * | `change` | the list, a story's words or numbers, the current story or the state is another one |
 * | `slots` | a slot carries another stream, or the slots are those of a new connection |
 * | `turn` | the current story is another one; `detail` is a {@link Turn} |
 * | `gate` | how we stand with the gate of a story is another; `detail` is its name |
 *
 * What may be called apart from it: `Swipe` (a gesture as a state machine) and `decodeBlurHash`.
 */

import { Asking } from "./feed/asking.js";
import { FeedNews } from "./feed/news.js";
import { FeedPlace } from "./feed/place.js";
import { openFeedSession } from "./feed/session.js";
import { Wish } from "./feed/wish.js";
import { Persistent } from "./persistent.js";
import { SignallingError } from "./session.js";
import { withToken, knownToken } from "./tokens.js";

export { decodeBlurHash, isBlurHash } from "./feed/blurhash.js";
export { Swipe } from "./feed/swipe.js";

/**
 * @typedef {import("./feed/list.js").Story} Story
 * @typedef {import("./feed/session.js").Slot} Slot
 * @typedef {import("./feed/swipe.js").Direction} Direction
 *
 * @typedef {"idle" | "connecting" | "playing" | "reconnecting" | "empty" | "missing" | "replaced" | "failed"} FeedState
 * `empty`: no one is live; the next stream to go live will be shown. `missing`: the story to begin with is not live,
 * and `missing` tells why; it starts automatically when it goes live, and `seeOthers()` gives up on it. `replaced`: the
 * same viewer watches elsewhere; `play()` resumes here. `failed`: the server refused for good, `error` tells why.
 *
 * @typedef {object} Turn
 * @property {string | null} from
 * @property {string | null} to
 * @property {Direction} direction
 * @property {"swipe" | "ended" | "not-permitted" | "jump"} reason
 *
 * @typedef {object} StoryFeedOptions
 * @property {string} [origin] the server's origin; by default the page's
 * @property {string | null} [stream] the story to begin with; by default the first one
 * @property {"eager" | "on-swipe"} [preload] whether the next story is loaded once one has settled, or when a swipe
 *   begins, which saves data
 * @property {<T>(action: (token: string | null) => Promise<T>) => Promise<T>} [withToken] does something with a viewer's
 *   token; by default with the one in the page's address, if there is one
 */

/** An ended story is left after this time if the server does not say what comes next, in milliseconds. */
const PATIENCE_MS = 2500;

export class StoryFeed extends FeedPlace {
  /**
   * Why it `failed`, or why the last attempt did not succeed.
   * @type {Error | null}
   */
  error = null;

  /** @type {FeedState} */
  #state = "idle";
  #isPlaying = false;
  /** What a swipe shows beside the current story, and if we asked for it. @type {{ id: string, isOurs: boolean } | null} */
  #peeked = null;
  #isReplaced = false;
  /** The server said that no one is live. */
  #isEmpty = false;
  /** The viewer went somewhere since the connection was asked for. */
  #hasSwiped = false;
  #hasConnected = false;
  #connections = 0;
  /** @type {number | undefined} */
  #patience;
  /** @type {import("./feed/session.js").FeedSession | null} */
  #session = null;

  /** @param {StoryFeedOptions} [options] */
  constructor(options = {}) {
    const { origin = location.origin, stream = null, preload = "eager", withToken: act } = options;
    const withViewerToken = act ?? ((action) => withToken("*", "viewer", action));
    const tokenForSocket = act ? () => act(async (token) => token) : () => knownToken("*", "viewer");
    super(new FeedNews(origin, withViewerToken, tokenForSocket));
    this.preload = preload;
    this.#asking = new Asking(this, () => this.#session);
    this.#wish = new Wish(stream, this.news);
    this.#wish.addEventListener("change", () => {
      // Not another host's stream instead.
      if (this.missing) this.#disconnect();
      this.#choose();
      this.#update();
    });
    /** The connection, kept up. */
    this.connection = new Persistent((signal) => withViewerToken(async (token) => {
      const stream = this.list.current ?? this.#wish.id;
      this.#hasSwiped = false;
      const session = await openFeedSession({ origin, stream, preload: this.preload, token, signal });
      // Given up meanwhile, it is closed by who asked for it.
      if (!signal.aborted) this.#adopt(session);
      return session;
    }));
    this.connection.addEventListener("statechange", () => this.#connectionChanged());
    this.news.addEventListener("change", () => {
      this.#choose();
      this.#return();
      this.#update();
    });
    this.news.addEventListener("gone", (event) => {
      // The server says in a moment where the viewer is now.
      const { detail: id } = /** @type {CustomEvent} */ (event);
      clearTimeout(this.#patience);
      this.#patience = setTimeout(() => id === this.list.current && this.#leave(), PATIENCE_MS);
    });
    this.news.addEventListener("resume", () => this.connection.recheck());
  }

  /** @type {Asking} */
  #asking;
  /** Where to begin. @type {Wish} */
  #wish;

  // What there is to see.

  get state() {
    return this.#state;
  }

  /** The story to begin with if it is not live; null if it is, or if none was given. */
  get missing() {
    return this.#wish.missing;
  }

  /**
   * The two slots of the current connection; empty before the first one.
   * @returns {Slot[]}
   */
  get slots() {
    return this.#session?.slots ?? [];
  }

  /**
   * The slot that carries a story; null if none does.
   * @param {string | null | undefined} id
   */
  slotOf(id) {
    return this.#session?.slotOf(id ?? null) ?? null;
  }

  // What the viewer does.

  /** Starts, or resumes after `stop()` or after the viewer watched elsewhere. */
  play() {
    if (this.#isPlaying) return;
    this.#isPlaying = true;
    this.#isReplaced = false;
    this.error = null;
    this.news.start();
    this.#wish.look();
    if (!this.missing) this.connection.start();
    this.#update();
  }

  /** Stops sound, picture and updates. Keeps the viewer's position. */
  stop() {
    if (!this.#isPlaying) return;
    this.#isPlaying = false;
    this.#asking.rest();
    clearTimeout(this.#patience);
    this.#peeked = null;
    this.news.stop();
    this.#wish.rest();
    this.#disconnect();
    this.#update();
  }

  #disconnect() {
    this.connection.close();
    this.#session = null;
    this.#hasConnected = false;
    this.dispatchEvent(new Event("slots"));
  }

  /** There was no connection as long as the story to begin with was missing. */
  #reconnect() {
    if (this.#isPlaying && this.connection.state === "closed") this.connection.start();
  }

  /** Gives up on the missing story and begins with the first one available. */
  seeOthers() {
    this.#wish.drop();
    this.#choose();
    this.#reconnect();
    this.#update();
  }

  /**
   * A swipe reveals the story in this direction: start playing it.
   * @param {Direction} direction
   */
  peek(direction) {
    const story = this.beside(direction);
    // At the end the last story is still the focus.
    if (!story || story.id === this.list.current || story.id === this.#peeked?.id) return;
    this.#peeked = { id: story.id, isOurs: this.slotOf(story.id) === null };
    this.#asking.say({ type: "peek", stream: story.id, direction });
  }

  /**
   * The swipe is complete: that story becomes the current one.
   * @param {Direction} direction
   */
  commit(direction) {
    this.#peeked = null;
    const from = this.list.current;
    const story = this.beside(direction);
    this.direction = direction;
    if (this.isAtEnd && story?.id === from) {
      this.isAtEnd = false;
      return this.#turned({ from: null, to: from, direction, reason: "swipe" });
    }
    if (!story) {
      if (!this.mayGo(direction)) return;
      this.isAtEnd = true;
      return this.#turned({ from, to: null, direction, reason: "swipe" });
    }
    this.#arrive(story.id);
    this.#turned({ from, to: story.id, direction, reason: "swipe" });
  }

  /** The swipe was canceled. The current story stays. */
  cancel() {
    const peeked = this.#peeked;
    this.#peeked = null;
    if (peeked?.isOurs) this.#asking.say({ type: "release", stream: peeked.id });
  }

  /**
   * Goes to any story of the list; for others nothing happens.
   * @param {string} id
   * @returns {boolean} whether it is there
   */
  go(id) {
    const place = this.list.indexOf(id);
    if (place < 0) return false;
    if (id === this.list.current && !this.isAtEnd) return true;
    const from = this.list.current;
    const direction = place < this.index || this.isAtEnd ? "backward" : "forward";
    this.direction = direction;
    this.#arrive(id);
    this.#turned({ from, to: id, direction, reason: "jump" });
    return true;
  }

  /** @param {string} id */
  #arrive(id) {
    this.#wish.drop();
    this.#peeked = null;
    this.isAtEnd = false;
    this.#hasSwiped = true;
    this.lost = null;
    this.list.current = id;
    this.#reconnect();
    this.#focus();
  }

  // What the server does.

  #focus() {
    if (this.list.current === null) return;
    clearTimeout(this.#patience);
    this.#asking.focus();
  }

  /** @param {import("./feed/session.js").FeedSession} session */
  #adopt(session) {
    this.#session = session;
    this.gates.clear();
    this.#connections++;
    let isFirst = true;
    session.addEventListener("slots", () => {
      if (session !== this.#session) return;
      this.#slotsChanged(isFirst);
      isFirst = false;
    });
    session.addEventListener("notice", (event) => {
      if (session === this.#session) this.#noticed(/** @type {CustomEvent} */ (event).detail);
    });
    this.dispatchEvent(new Event("slots"));
    session.listen();
  }

  /** @param {boolean} isFirst of this connection */
  #slotsChanged(isFirst) {
    const focus = this.#session?.focus ?? null;
    const { current } = this.list;
    if (focus !== null) {
      this.#isEmpty = false;
      if (current === null) {
        // What was wished for is looked for first.
        if (this.#wish.id === null || this.#wish.id === focus) this.#show(focus, "jump");
      } else if (isFirst && focus !== current) {
        // A story that was asked for and that the server did not begin with is none any more. Otherwise what is shown
        // counts: where the viewer went meanwhile, or what was first when the list was read.
        if (!this.#hasSwiped && this.#session?.asked === current) {
          this.#lose(current, focus);
          this.lookForLost();
        } else {
          this.#focus();
        }
      }
    }
    if (!this.#peeked) this.#asking.correct();
    this.dispatchEvent(new Event("slots"));
    this.#update();
  }

  /** @param {any} notice */
  #noticed(notice) {
    switch (notice.type) {
      case "moved":
        return this.#moved(notice.from, notice.to, notice.reason);
      case "empty":
        if (!this.#hasSwiped) this.#lose(this.#session?.asked ?? null, null);
        this.list.clear();
        this.#isEmpty = true;
        this.isAtEnd = false;
        this.#peeked = null;
        this.lookForLost();
        return this.#update();
      case "refused":
        return this.#refused(notice);
      case "gate":
        return this.takeGate(notice);
      case "replaced":
        this.#isReplaced = true;
        return this.stop();
    }
  }

  /**
   * A renewed connection could not begin where the viewer was.
   * @param {string | null} from
   * @param {string | null} to
   */
  #lose(from, to) {
    if (from !== null && this.#connections > 1) this.miss(from);
    if (from !== null && to !== null) this.#moved(from, to, "ended");
  }

  /** Back to where the viewer was, once that story is there again. */
  #return() {
    const { lost } = this;
    if (!lost || lost.id === this.list.current || !this.#session?.isTold || !this.list.get(lost.id)) return;
    this.lost = null;
    if (performance.now() < lost.until) this.go(lost.id);
  }

  /**
   * @param {string} from
   * @param {string} to
   * @param {"ended" | "not-permitted"} reason
   */
  #moved(from, to, reason) {
    clearTimeout(this.#patience);
    // A viewer who has already moved on stays there; the server has heard of it, or will in a moment.
    if (from === this.list.current) this.#show(to, reason);
    this.news.forget(from);
    this.#update();
  }

  /**
   * @param {string} to
   * @param {Turn["reason"]} reason
   */
  #show(to, reason) {
    const from = this.list.current;
    const place = this.list.indexOf(to);
    const direction = place >= 0 && place < this.index ? "backward" : "forward";
    if (place < 0) {
      this.list.insertBesideCurrent({ id: to });
      this.news.describe(to);
    }
    this.list.current = to;
    this.#wish.drop();
    this.#peeked = null;
    if (this.isAtEnd) return this.#update();
    this.#turned({ from, to, direction, reason });
  }

  /** @param {{ message: string, stream?: string, reason: string }} notice */
  #refused({ message, stream, reason }) {
    if (!stream || reason !== "not-live" && reason !== "not-permitted") return;
    if (stream !== this.list.current) {
      this.news.forget(stream);
      return this.#update();
    }
    if (message === "focus") this.#leave();
  }

  /** Goes on from a story that is none any more, without the server's help. */
  #leave() {
    const gone = this.list.current;
    if (gone === null) return;
    // Without a connection, an end looks the same as a server restart.
    if (this.connection.state !== "connected") this.miss(gone);
    const focus = this.#session?.focus;
    const next = this.list.beside(this.direction === "forward" ? 1 : -1) ?? this.list.beside(1) ?? this.list.beside(-1);
    if (next) {
      this.#show(next.id, "ended");
      this.news.forget(gone);
      return this.#focus();
    }
    if (focus && focus !== gone) this.#show(focus, "ended");
    this.news.forget(gone);
    this.#isEmpty = this.list.length === 0;
    this.#update();
  }

  // Where to begin.

  /** The first story, until the viewer swipes. */
  #choose() {
    const wish = this.#wish;
    if (this.list.current !== null || this.#isEmpty && wish.id === null) return;
    if (wish.id !== null && !wish.isThere) return;
    const told = this.#session?.isTold ? this.#session.focus : null;
    const first = wish.id ?? told ?? this.list.stories[0]?.id ?? null;
    if (first === null || !this.list.get(first)) return;
    wish.drop();
    this.#isEmpty = false;
    this.list.current = first;
    this.#reconnect();
    if (told !== null && told !== first) this.#focus();
    this.#turned({ from: null, to: first, direction: "forward", reason: "jump" });
  }

  // State.

  #connectionChanged() {
    const { state, error } = this.connection;
    if (state === "failed" || state === "retrying") this.error = error;
    // Whom the server does not let watch it does not tell who is live, either.
    if (state === "failed" && error instanceof SignallingError) this.news.stop();
    if (state === "connected") this.error = null;
    this.#update();
  }

  /** @returns {FeedState} */
  #judge() {
    if (this.#isReplaced) return "replaced";
    if (!this.#isPlaying) return "idle";
    if (this.missing) return "missing";
    const { state } = this.connection;
    if (!this.isDelayed && state === "failed") return "failed";
    if (!this.isDelayed && state !== "connected") return this.#hasConnected || this.error ? "reconnecting" : "connecting";
    return this.#isEmpty || this.news.reader.hasRead && this.list.length === 0 ? "empty" : "playing";
  }

  #update() {
    if (this.connection.state === "connected") this.#hasConnected = true;
    this.#state = this.#judge();
    this.dispatchEvent(new Event("change"));
    this.news.read();
  }

  /** @param {Turn} turn */
  #turned(turn) {
    this.dispatchEvent(new CustomEvent("turn", { detail: turn }));
    this.#update();
  }
}
