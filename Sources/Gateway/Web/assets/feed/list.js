// @ts-check

/**
 * The feed as one viewer sees it: stories that they have passed, and those on the screen, keep their places; those
 * ahead follow the order of the server. No story occurs twice.
 */

/**
 * @typedef {object} Preview
 * @property {string} [url] of a picture taken at `capturedAt`
 * @property {number} width in pixels
 * @property {number} height
 * @property {string} [capturedAt] ISO 8601
 * @property {string} [blurHash]
 *
 * @typedef {object} Story a live stream
 * @property {string} id
 * @property {string | null} [title]
 * @property {string | null} [host] identity
 * @property {string | null} [hostName]
 * @property {string | null} [startedAt] ISO 8601
 * @property {number} [viewers]
 * @property {boolean} [paused]
 * @property {"on" | "off"} [hls] whether viewers can watch it over HLS
 * @property {Preview | null} [preview]
 */

/** The most stories that are kept, including the current one; those passed longest ago are dropped first. */
const LIMIT = 1000;

export class StoryList {
  /**
   * The id of the story that the viewer is at.
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

  /** The index of the current story; −1 if there is none. */
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
   * Appends stories in their order. Known ones are updated and keep their places.
   * @param {Story[]} stories
   * @returns {number} the number of new ones
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
   * Inserts a story that went live after `after`, but no earlier than two places after the current one: the viewer
   * would never see it among those that they have passed, and the next place belongs to the story being preloaded.
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
   * Moves a story as on the server, unless the viewer has passed it, or it is the current or the next one.
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
   * Takes over a new order of the server for the stories ahead; those that it does not name follow in their old order.
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

  /** The first place that can change: after the next story. */
  #firstFree() {
    return this.index < 0 ? 0 : Math.min(this.index + 2, this.#order.length);
  }

  /** @param {string | null | undefined} after */
  #placeBehind(after) {
    const place = after ? this.#order.indexOf(after) : -1;
    // An unknown story is further on than all known ones.
    if (after && place < 0) return this.#order.length;
    return Math.max(place + 1, this.#firstFree());
  }

  /**
   * Puts a story first, wherever the server has it.
   * @param {Story} story
   */
  begin(story) {
    if (this.#update(story)) return;
    this.#stories.set(story.id, pick(story));
    this.#order.unshift(story.id);
  }

  /**
   * Inserts an unknown story after the current one.
   * @param {Story} story
   */
  insertBesideCurrent(story) {
    if (this.#update(story)) return;
    this.#stories.set(story.id, pick(story));
    this.#order.splice(this.index + 1, 0, story.id);
  }

  /**
   * @param {string} id
   * @returns {boolean} whether it was in the list
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
   * @returns {boolean} whether it is in the list
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
 * Only known members, and only those that are present.
 * @param {Record<string, any>} story
 * @returns {Story}
 */
function pick(story) {
  return /** @type {Story} */ (
    Object.fromEntries(MEMBERS.filter((name) => story[name] !== undefined).map((name) => [name, story[name]])));
}
