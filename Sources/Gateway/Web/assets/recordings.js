// @ts-check

/** What was recorded of a stream that has ended. */

/**
 * @typedef {object} Recorded the stream it is of, as somebody sees it
 * @property {{ state: string } | null} info
 * @property {{ recordings: () => Promise<{ recordings: Recording[] }> }} api
 * @property {(path: string) => string} addressOf where somebody finds a file
 *
 * @typedef {object} Recording one file
 * @property {string} id
 * @property {"recording" | "clip"} [kind] a clip is what somebody kept of it
 * @property {string | null} [title] of a clip
 * @property {number} part
 * @property {"recording" | "ended"} state
 * @property {number} duration in seconds
 * @property {number} size in bytes
 * @property {string | null} url
 * @property {string | null} [hls] the playlist of one in MP4
 * @property {string} startedAt ISO 8601
 * @property {string | null} [endReason]
 */

/** How often a list with unfinished files is asked for again, and how many times in all. */
const PAUSE_MS = 1500;
const MOST_TRIES = 60;

/** Fires `change` when its list did. */
export class Recordings extends EventTarget {
  /** Those that can be played: recordings, the oldest first, and clips after them. @type {Recording[]} */
  list = [];

  #isOpen = false;
  #tries = 0;
  /** @type {number | undefined} */
  #timer;

  /** @param {Recorded} stream */
  constructor(stream) {
    super();
    this.stream = stream;
  }

  /** Asks once a stream has ended, and again until every file is complete; forgets them when it goes on. */
  update() {
    const isOver = this.stream.info?.state === "ended";
    if (isOver === this.#isOpen) return;
    this.#isOpen = isOver;
    this.#tries = 0;
    clearTimeout(this.#timer);
    if (isOver) this.ask();
    else this.#show([]);
  }

  async ask() {
    clearTimeout(this.#timer);
    const all = (await this.stream.api.recordings().catch(() => null))?.recordings;
    if (!this.#isOpen) return;
    if (all) {
      const whole = all.filter(({ url, state, duration }) => url && state === "ended" && duration > 0);
      this.#show([...whole.filter((each) => !isClip(each)), ...whole.filter(isClip)]);
    }
    const isComplete = all?.every(({ state }) => state === "ended");
    this.#tries += 1;
    if (!isComplete && this.#tries < MOST_TRIES) this.#timer = setTimeout(() => this.ask(), PAUSE_MS);
  }

  close() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  /** @param {Recording} recording */
  address({ url }) {
    return url === null ? "" : this.stream.addressOf(url);
  }

  /** What goes on where this one ends: clips stand for themselves. @param {string | undefined} id */
  after(id) {
    const whole = this.list.filter((each) => !isClip(each));
    const index = whole.findIndex((each) => each.id === id);
    return index < 0 ? undefined : whole[index + 1];
  }

  /** @param {Recording[]} list */
  #show(list) {
    if (JSON.stringify(list) === JSON.stringify(this.list)) return;
    this.list = list;
    this.dispatchEvent(new Event("change"));
  }
}

/** @param {Recording} recording */
export function isClip({ kind }) {
  return kind === "clip";
}

/** @param {number} bytes */
export function formatSize(bytes) {
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}
