// @ts-check

/** The comments of a recording, to be shown as it plays. */

/**
 * @typedef {object} RecordedComment
 * @property {number} number
 * @property {string} author
 * @property {string | null} name
 * @property {"host" | "speaker" | "viewer"} role
 * @property {string} text
 * @property {number} at in milliseconds since the start of the recording
 *
 * @typedef {object} Asked the API, which knows them
 * @property {(recording: string, after: number) => Promise<{ comments: RecordedComment[], more: boolean }>} recordedComments
 */

/** The most comments that are loaded: the server keeps no more of a stream. */
const MOST = 2000;

/** Fires `change` when they are loaded. */
export class RecordedComments extends EventTarget {
  /** Oldest first. @type {RecordedComment[]} */
  list = [];

  /** The id of the recording. */
  #recording = "";

  /** @param {Asked} api */
  constructor(api) {
    super();
    this.api = api;
  }

  /** Loads the comments of another recording. @param {string} recording empty for none */
  async choose(recording) {
    if (this.#recording === recording) return;
    this.#recording = recording;
    this.#show([]);
    /** @type {RecordedComment[]} */
    const list = [];
    let isMore = recording !== "";
    while (isMore && list.length < MOST) {
      const page = await this.api.recordedComments(recording, list.at(-1)?.number ?? 0).catch(() => null);
      if (this.#recording !== recording) return;
      list.push(...page?.comments ?? []);
      isMore = page !== null && page.more && page.comments.length > 0;
    }
    this.#show(list);
  }

  /** The last comments before a time of the recording. @param {number} seconds @param {number} count at most */
  at(seconds, count) {
    let [low, high] = [0, this.list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.list[middle].at <= seconds * 1000) low = middle + 1;
      else high = middle;
    }
    return this.list.slice(Math.max(0, low - count), low);
  }

  /** @param {RecordedComment[]} list */
  #show(list) {
    this.list = list;
    this.dispatchEvent(new Event("change"));
  }
}
