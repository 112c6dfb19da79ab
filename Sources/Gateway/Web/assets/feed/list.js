// @ts-check

/**
 * The feed as one viewer sees it: what was passed stays where it is, what is on the screen does not move, and what
 * lies ahead follows the server. Nothing comes twice.
 */

/**
 * @typedef {object} Preview
 * @property {string} [url] a picture, as of `capturedAt`
 * @property {number} width in pixels
 * @property {number} height
 * @property {string} [capturedAt] ISO 8601
 * @property {string} [blurHash]
 *
 * @typedef {object} Story one live stream
 * @property {string} id
 * @property {string | null} [title]
 * @property {string | null} [host] identity
 * @property {string | null} [hostName]
 * @property {string | null} [startedAt] ISO 8601
 * @property {number} [viewers]
 * @property {boolean} [paused]
 * @property {"on" | "off"} [hls] whether it may be watched by HLS
 * @property {Preview | null} [preview]
 */

/** Stories kept, the current one among them; what was passed long ago is let go of first. */
const LIMIT = 1000;

export class StoryList {
  /**
   * Where the viewer is.
   * @type {string | null}
   */
  current = null;

  /** @type {Map<string, Story>} */
  #stories = new Map();
  /** @type {string[]} */
  #order = [];

  get length() {
    return this.#order.length;
  }

  /**
   * In order.
   * @returns {Story[]}
   */
  get stories() {
    return this.#order.map((id) => /** @type {Story} */ (this.#stories.get(id)));
  }

  /** Of the current story; −1 while there is none. */
  get index() {
    return this.current === null ? -1 : this.#order.indexOf(this.current);
  }

  /**
   * @param {string | null | undefined} id
   * @returns {Story | null}
   */
  get(id) {
    return this.#stories.get(id ?? "") ?? null;
  }

  /** @param {string} id */
  indexOf(id) {
    return this.#order.indexOf(id);
  }

  /**
   * The story beside the current one.
   * @param {1 | -1} step
   * @returns {Story | null}
   */
  beside(step) {
    const index = this.index;
    if (index < 0) return null;
    return this.get(this.#order[index + step]);
  }

  /**
   * Puts stories at the end, in their order; of those that are there already only the words change.
   * @param {Story[]} stories
   * @returns {number} how many are new
   */
  append(stories) {
    let added = 0;
    for (const story of stories) {
      if (this.#update(story)) continue;
      this.#stories.set(story.id, pick(story));
      this.#order.push(story.id);
      added++;
    }
    this.#trim();
    return added;
  }

  /**
   * Something went live. It stands behind `after`, but never where the viewer has passed or is about to look: there it
   * would be missed, or take the place of what is being preloaded.
   * @param {Story} story
   * @param {string | null | undefined} after null: first
   * @returns {boolean} whether it is new
   */
  insert(story, after) {
    if (this.#update(story)) return false;
    this.#stories.set(story.id, pick(story));
    this.#order.splice(this.#placeBehind(after), 0, story.id);
    this.#trim();
    return true;
  }

  /**
   * A story has moved on the server. Where the viewer has passed or is about to look nothing moves.
   * @param {string} id
   * @param {string | null | undefined} after
   */
  move(id, after) {
    const place = this.#order.indexOf(id);
    if (place < 0 || place <= this.#firstFree() - 1) return;
    this.#order.splice(place, 1);
    this.#order.splice(this.#placeBehind(after), 0, id);
  }

  /**
   * The server's order is another one. What lies ahead is put in it; what it does not name follows, as it stood.
   * @param {Story[]} stories
   */
  arrange(stories) {
    const order = new Set(this.#order.slice(0, this.#firstFree()));
    for (const story of stories) {
      if (!this.#update(story)) this.#stories.set(story.id, pick(story));
      order.add(story.id);
    }
    for (const id of this.#order) order.add(id);
    this.#order = [...order];
    this.#trim();
  }

  /** The first place that may change: behind the story that comes next. */
  #firstFree() {
    return this.index < 0 ? 0 : Math.min(this.index + 2, this.#order.length);
  }

  /** @param {string | null | undefined} after */
  #placeBehind(after) {
    const place = after ? this.#order.indexOf(after) : -1;
    // Behind what is not known, which is further on: last.
    if (after && place < 0) return this.#order.length;
    return Math.max(place + 1, this.#firstFree());
  }

  /**
   * What is shown first, wherever it stands on the server.
   * @param {Story} story
   */
  begin(story) {
    if (this.#update(story)) return;
    this.#stories.set(story.id, pick(story));
    this.#order.unshift(story.id);
  }

  /**
   * Takes a story that is not here where the viewer is now.
   * @param {Story} story
   */
  insertBesideCurrent(story) {
    if (this.#update(story)) return;
    this.#stories.set(story.id, pick(story));
    this.#order.splice(this.index + 1, 0, story.id);
  }

  /**
   * @param {string} id
   * @returns {boolean} whether it was there
   */
  remove(id) {
    const place = this.#order.indexOf(id);
    if (place < 0) return false;
    this.#order.splice(place, 1);
    this.#stories.delete(id);
    if (this.current === id) this.current = null;
    return true;
  }

  /**
   * @param {string} id
   * @param {Partial<Story>} news
   * @returns {boolean} whether anything changed
   */
  edit(id, news) {
    return this.#stories.has(id) && this.#update(/** @type {Story} */ ({ ...news, id }));
  }

  /**
   * @param {Story} story
   * @returns {boolean} whether it is here
   */
  #update(story) {
    const old = this.#stories.get(story.id);
    if (old) this.#stories.set(story.id, { ...old, ...pick(story) });
    return old !== undefined;
  }

  clear() {
    this.#stories.clear();
    this.#order = [];
    this.current = null;
  }

  #trim() {
    while (this.#order.length > LIMIT && this.index > 0) {
      this.#stories.delete(/** @type {string} */ (this.#order.shift()));
    }
    while (this.#order.length > LIMIT && this.#order.at(-1) !== this.current) {
      this.#stories.delete(/** @type {string} */ (this.#order.pop()));
    }
  }
}

const MEMBERS = /** @type {const} */ (
  ["id", "title", "host", "hostName", "startedAt", "viewers", "paused", "hls", "preview"]);

/**
 * Only what is known, and only what is said.
 * @param {Record<string, any>} story
 * @returns {Story}
 */
function pick(story) {
  return /** @type {Story} */ (
    Object.fromEntries(MEMBERS.filter((name) => story[name] !== undefined).map((name) => [name, story[name]])));
}
