// @ts-check

/** What was recorded of a stream that has ended. */

import { SignallingError } from "./session.js";

/**
 * @typedef {object} Recorded the recorded stream, as one person sees it
 * @property {{ state: string } | null} info
 * @property {{ recordings: () => Promise<{ recordings: Recording[] }> }} api
 * @property {(path: string) => string} addressOf the address of a file for this person
 *
 * @typedef {object} Recording a file
 * @property {string} id
 * @property {"recording" | "clip"} [kind] a clip is a part of the stream that someone saved
 * @property {string | null} [title] of a clip
 * @property {number} part
 * @property {"recording" | "ended"} state
 * @property {number} duration in seconds
 * @property {number} size in bytes
 * @property {string | null} url
 * @property {string | null} [hls] the playlist, if the file is an MP4
 * @property {string} startedAt ISO 8601
 * @property {string | null} [endReason]
 */

/** Pause before a list with unfinished files is requested again, in milliseconds, and how often at most. */
const PAUSE_MS = 1500;
const MOST_TRIES = 60;
/** Without an answer, the pause is doubled each time, up to this one, in milliseconds: the network may come back. */
const LONGEST_PAUSE_MS = 32_000;

/** The recordings and clips of an ended stream. Fires `change` when its list changes. */
export class Recordings extends EventTarget {
  /** The files that can be played: recordings, oldest first, then clips. @type {Recording[]} */
  list = [];

  #isOpen = false;
  #tries = 0;
  #pause = PAUSE_MS;
  /** Counts requests, so that a late answer does not replace a newer one. */
  #turn = 0;
  /** @type {number | undefined} */
  #timer;

  /** @param {Recorded} stream */
  constructor(stream) {
    super();
    this.stream = stream;
  }

  /** Requests the list when the stream ends, until every file is complete; clears it when the stream starts again. */
  update() {
    const isOver = this.stream.info?.state === "ended";
    if (isOver === this.#isOpen) return;
    this.#isOpen = isOver;
    this.#tries = 0;
    this.#pause = PAUSE_MS;
    clearTimeout(this.#timer);
    if (isOver) this.ask();
    else this.#show([]);
  }

  async ask() {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    let isAnswered = true;
    const answer = await this.stream.api.recordings().catch((error) => {
      isAnswered = error instanceof SignallingError;
      return null;
    });
    if (!this.#isOpen || turn !== this.#turn) return;
    const all = answer?.recordings;
    if (all) {
      const whole = all.filter(({ url, state, duration }) => url && state === "ended" && duration > 0);
      this.#show([...whole.filter((each) => !isClip(each)), ...whole.filter(isClip)]);
    }
    const isComplete = all?.every(({ state }) => state === "ended");
    if (isAnswered) this.#tries += 1;
    if (isComplete || this.#tries >= MOST_TRIES) return;
    if (isAnswered) this.#pause = PAUSE_MS;
    this.#timer = setTimeout(() => this.ask(), this.#pause);
    if (!isAnswered) this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }

  close() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  /** @param {Recording} recording */
  address({ url }) {
    return url === null ? "" : this.stream.addressOf(url);
  }

  /** The recording that continues this one; clips have none. @param {string | undefined} id */
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
