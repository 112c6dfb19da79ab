// @ts-check

/** Tells the server which story is in view and which comes next, and once more what it has not followed. */

/** A focus that the server has not followed is repeated after this time, in milliseconds. */
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

  /** Asks for the story that is in view. */
  focus() {
    const { ahead, list: { current } } = this.place;
    this.#corrected = null;
    this.session()?.say({ type: "focus", stream: current, ...(ahead ? { ahead: ahead.id } : {}) });
    // A message that was lost or refused for its number leaves the server behind.
    clearTimeout(this.#repeat);
    this.#repeat = setTimeout(() => {
      const session = this.session();
      if (session?.isTold && this.place.list.current !== null && session.focus !== this.place.list.current) this.focus();
    }, REPEAT_MS);
  }

  /** The server may know another order by now, and preload what does not come next here. */
  correct() {
    const { ahead, direction, list: { current } } = this.place;
    const session = this.session();
    const loaded = session?.slots.find(({ quality }) => quality === "preview")?.stream ?? null;
    if (!session || !ahead || loaded === null || loaded === ahead.id || this.#corrected === ahead.id) return;
    if (session.focus !== current) return;
    this.#corrected = ahead.id;
    session.say({ type: "peek", stream: ahead.id, direction });
  }

  /** Repeats nothing any more. */
  rest() {
    clearTimeout(this.#repeat);
  }
}
