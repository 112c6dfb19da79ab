// @ts-check

/**
 * Plays the story in view over HLS while the feed cannot connect. Other stories show their preview until they are in
 * view.
 */

import { DELAYED_HINT, Fallback, wordsForDelay } from "../fallback.js";
import { SignallingError } from "../session.js";
import { withToken } from "../tokens.js";

/** Fires `change` when it starts or stops playing, and when the connection becomes too slow or recovers. */
export class DelayedStory extends EventTarget {
  #fallback;
  /** The side that shows it. @type {import("./side.js").Side | null} */
  #side = null;
  #wasPlaying = false;
  #oldWeakness = /** @type {import("../picture-choice.js").Weakness | null} */ (null);
  /** The story, and its pictures that arrived over the connection. */
  #arrived = { id: "", frames: 0 };

  /**
   * @param {import("../story-feed.js").StoryFeed} feed
   * @param {import("./cube.js").Cube} cube
   * @param {import("../picture-choice.js").PictureChoice} choice
   */
  constructor(feed, cube, choice) {
    super();
    this.#fallback = new Fallback((action) => withToken("*", "viewer", action), choice);
    this.feed = feed;
    this.cube = cube;
    this.#fallback.addEventListener("change", () => this.#tell());
    this.#fallback.addEventListener("ready", () => this.#uncover());
    this.#fallback.addEventListener("leave", () => this.#side?.freeze());
    this.#tell();
    // Another story, once it is on the side in view, another connection, or no story.
    feed.addEventListener("turn", () => queueMicrotask(() => this.#look(false)));
    feed.addEventListener("change", () => this.isOn && !feed.current && this.#look(false));
    feed.connection.addEventListener("statechange", () => this.#look(false));
  }

  /** Whether the side shows HLS. */
  get isOn() {
    return this.#fallback.isOn;
  }

  get isPlaying() {
    return this.#fallback.isPlaying;
  }

  /** What a slow connection costs; null for nothing. */
  get weakness() {
    return this.isPlaying ? this.#fallback.weakness : null;
  }

  /** Once a second. */
  async tick() {
    const { id = "" } = this.feed.current ?? {};
    const before = this.#arrived;
    const frames = await this.#count();
    this.#arrived = { id, frames };
    this.#look(id !== "" && before.id === id && frames > before.frames);
    this.#tell();
  }

  /** The number of pictures of the current story that arrived over the connection. */
  async #count() {
    const { connection, current } = this.feed;
    const session = /** @type {import("./session.js").FeedSession | null} */ (connection.session);
    const slot = this.feed.slotOf(current?.id);
    return session && slot && connection.state === "connected" ? (await session.arrivalsOf(slot)).frames : 0;
  }

  /** @param {boolean} isSeen whether pictures of the current story arrive over the connection */
  #look(isSeen) {
    const { cube: { frontSide: side }, feed: { connection, current } } = this;
    const id = current && side.story?.id === current.id ? current.id : "";
    const facts = { isWanted: id !== "" && this.#isWanted, isConnected: connection.state === "connected", isSeen };
    const wasOn = this.isOn;
    this.#fallback.isAllowed = current?.hls !== "off";
    this.#fallback.look(facts, `/hls/${encodeURIComponent(id)}/`, side.video, () => (this.#side = side));
    // There is no hurry with the next attempts.
    connection.isCalm = this.isPlaying;
    if (wasOn && !this.isOn) this.cube.wire(this.feed.slots);
    this.#tell();
  }

  /** Whether there is something to see that the server lets us watch. */
  get #isWanted() {
    const { connection: { error }, isAtEnd, missing, state } = this.feed;
    if (isAtEnd || missing || state === "idle" || state === "replaced" || state === "empty") return false;
    return !(error instanceof SignallingError) || error.isTemporary && this.isPlaying;
  }

  #uncover() {
    const { current } = this.feed;
    const side = this.#side;
    if (!side || !current || side.story?.id !== current.id) return;
    // This source has never shown another story.
    side.attach(/** @type {any} */ ({
      index: 0, media: null, stream: current.id, quality: "full", since: -Infinity, begun: null, requests: { said: 0, answered: 0 },
    }));
  }

  #tell() {
    const { cube, feed, isPlaying, weakness } = this;
    feed.isDelayed = this.#fallback.isOnlyWay || this.isOn && (isPlaying || this.#fallback.isStarting);
    for (const side of cube.sides) {
      side.words.showDelay(isPlaying && side === this.#side ? wordsForDelay(this.#fallback.delay) : "", DELAYED_HINT);
    }
    if (isPlaying === this.#wasPlaying && weakness === this.#oldWeakness) return;
    this.#wasPlaying = isPlaying;
    this.#oldWeakness = weakness;
    this.dispatchEvent(new Event("change"));
  }
}
