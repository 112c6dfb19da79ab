// @ts-check

/** Tells the server which story is in view and which comes next, and repeats what it has not followed or answered. */

/** Time after which the focus is repeated if the server has not followed or answered, in milliseconds. */
const REPEAT_MS = 1500;

export class Asking {
  /**
   * The story that we asked for in place of the one that the server preloaded.
   * @type {string | null}
   */
  #corrected = null;
  /** @type {number | undefined} */
  #repeat;

  /**
   * @param {import("./place.js").FeedPlace} place
   * @param {() => import("./session.js").FeedSession | null} session the current one
   */
  constructor(place, session) {
    this.place = place;
    this.session = session;
  }

  /**
   * Tells the server what the viewer does, and makes sure that it follows.
   * @param {Parameters<import("./session.js").FeedSession["say"]>[0]} message
   */
  say(message) {
    this.session()?.say(message);
    // If the message is lost or refused as one too many, the server stays behind, or we do not know its slots.
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

  /** Asks for the next story if the server, whose order may have changed, has preloaded another one. */
  correct() {
    const { ahead, direction, list: { current } } = this.place;
    const session = this.session();
    const loaded = session?.slots.find(({ quality }) => quality === "preview")?.stream ?? null;
    if (!session || !ahead || loaded === null || loaded === ahead.id || this.#corrected === ahead.id) return;
    if (session.focus !== current) return;
    this.#corrected = ahead.id;
    this.say({ type: "peek", stream: ahead.id, direction });
  }

  /** Stops repeating. */
  rest() {
    clearTimeout(this.#repeat);
  }
}
