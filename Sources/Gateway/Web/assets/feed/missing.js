// @ts-check

/** What is shown for a linked story that is not live: it has ended, has not started, or never existed. */

import { h, isolate, setText } from "../dom.js";
import { Recordings } from "../recordings.js";
import { StageAPI } from "../stage-api.js";
import { pageOf } from "./side.js";

/** @typedef {import("./wish.js").Missing} Missing */

/** @param {Missing} missing @returns {[title: string, hint: string]} */
function wordsFor({ id, why, title, hostName, startsAt }) {
  const name = isolate(title || (hostName ? `${hostName}’s stream` : id));
  switch (why) {
    case "ended": return [`${name} has ended.`, title && hostName ? `Hosted by ${isolate(hostName)}.` : ""];
    case "backstage": return [`${name} hasn’t started yet.`, `${startsAt ? `It starts ${timeOf(startsAt)}. ` : ""}It will play here automatically.`];
    case "forbidden": return ["Your invitation is for another stream.", `Ask the host of ${name} for a new one.`];
    default: return [`There’s no live stream called ${name}.`, "Check that the link is complete. If the stream goes live, it starts here automatically."];
  }
}

/** @param {string} instant ISO 8601 */
function timeOf(instant) {
  const date = new Date(instant);
  return `on ${date.toLocaleString(undefined, { weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" })}`;
}

/** The card for a missing story, with links to go on from there. */
export class MissingCard {
  /** @type {Recordings | null} */
  #recordings = null;
  #shown = "";

  /**
   * @param {import("../story-feed.js").StoryFeed} feed
   * @param {{ title: HTMLElement, hint: HTMLElement, actions: HTMLElement }} places
   */
  constructor(feed, places) {
    this.feed = feed;
    this.places = places;
  }

  /** @param {Missing | null} missing null removes the card */
  show(missing) {
    const key = missing ? JSON.stringify(missing) : "";
    if (key === this.#shown) return;
    this.#shown = key;
    this.#recordings?.close();
    this.#recordings = null;
    if (!missing) return;
    const [title, hint] = wordsFor(missing);
    setText(this.places.title, title);
    setText(this.places.hint, hint);
    this.#offer(missing, false);
    if (missing.why === "ended") this.#lookForRecordings(missing);
  }

  /** @param {Missing} missing @param {boolean} isRecorded */
  #offer({ id, why }, isRecorded) {
    const others = h("button.button.large", { type: "button", onclick: () => this.feed.seeOthers() }, "See who’s live");
    const first = isRecorded ? h("a.button.primary.large", { href: pageOf(id) }, "Watch the recording")
      : why === "backstage" ? h("a.button.primary.large", { href: pageOf(id) }, "Open the stream page") : null;
    if (!first) others.classList.add("primary");
    this.places.actions.replaceChildren(...first ? [first, others] : [others]);
  }

  /** @param {Missing} missing */
  #lookForRecordings(missing) {
    const api = new StageAPI(missing.id, "viewer");
    // Only their number matters: the stream's own page plays them.
    const recordings = this.#recordings = new Recordings({ info: { state: "ended" }, api, addressOf: (path) => path });
    recordings.addEventListener("change", () => this.#offer(missing, recordings.list.length > 0));
    recordings.update();
  }
}
