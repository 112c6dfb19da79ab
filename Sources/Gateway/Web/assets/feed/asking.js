// @ts-check

/** Tells the server which story is in view and which comes next, and once more what it has not followed or answered. */

/** The focus is repeated after this time where the server has not followed or not answered, in milliseconds. */
const REPEAT_MS = 1500;

export class Asking {
  /**
   * What was asked for instead of what the server preloaded.
   * @type {string | null}
   */
  #corrected = null;
  /** @type {number | undefined} */
  #repeat;

  /**
   * @param {import("./place.js").FeedPlace} place
   * @param {() => import("./session.js").FeedSession | null} session the one there is now
   */
  constructor(place, session) {
    this.place = place;
    this.session = session;
  }

  /**
   * Says what the viewer does, and sees to it that the server follows.
   * @param {Parameters<import("./session.js").FeedSession["say"]>[0]} message
   */
  say(message) {
    this.session()?.say(message);
    // A message that was lost, or was one too many, leaves the server behind, or us without its word on the slots.
    clearTimeout(this.#repeat);
    this.#repeat = setTimeout(() => {
      const session = this.session();
      const { current } = this.place.list;
      if (!session?.isTold || current === null) return;
      if (session.focus !== current || !session.isAnswered) this.focus();
    }, REPEAT_MS);
  }

  /** Asks for the story that is in view. */
  focus() {
    const { ahead, list: { current } } = this.place;
    this.#corrected = null;
    this.say({ type: "focus", stream: current, ...(ahead ? { ahead: ahead.id } : {}) });
  }

  /** The server may know another order by now, and preload what does not come next here. */
  correct() {
    const { ahead, direction, list: { current } } = this.place;
    const session = this.session();
    const loaded = session?.slots.find(({ quality }) => quality === "preview")?.stream ?? null;
    if (!session || !ahead || loaded === null || loaded === ahead.id || this.#corrected === ahead.id) return;
    if (session.focus !== current) return;
    this.#corrected = ahead.id;
    this.say({ type: "peek", stream: ahead.id, direction });
  }

  /** Repeats nothing any more. */
  rest() {
    clearTimeout(this.#repeat);
  }
}
