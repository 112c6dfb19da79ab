// @ts-check

/** What was written while a recording was made, to be shown as it plays. */

/**
 * @typedef {object} RecordedComment
 * @property {number} number
 * @property {string} author
 * @property {string | null} name
 * @property {"host" | "speaker" | "viewer"} role
 * @property {string} text
 * @property {number} at in milliseconds from the recording's beginning
 *
 * @typedef {object} Asked who knows them
 * @property {(recording: string, after: number) => Promise<{ comments: RecordedComment[], more: boolean }>} recordedComments
 */

/** More of a stream the server does not know. */
const MOST = 2000;

/** Fires `change` when they are known. */
export class RecordedComments extends EventTarget {
  /** In the order in which they were written. @type {RecordedComment[]} */
  list = [];

  /** Of which recording. */
  #recording = "";

  /** @param {Asked} api */
  constructor(api) {
    super();
    this.api = api;
  }

  /** Asks for those of another recording. @param {string} recording nothing for none */
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

  /** The latest at some time of the recording. @param {number} seconds @param {number} count at most */
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
