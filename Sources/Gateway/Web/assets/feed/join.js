// @ts-check

/**
 * Joining in from the feed: raising a hand in the story in view, the host's answer, and the way to the stage. A viewer
 * has one hand; it stays up while they watch other stories.
 */

import { ask } from "../dialog.js";
import { h, isolate } from "../dom.js";
import { keepName, nameField } from "../person.js";
import { SignallingError } from "../session.js";
import { StageAPI } from "../stage-api.js";
import { StreamSync } from "../sync.js";
import { ensureToken, knownToken, replaceToken } from "../tokens.js";
import { pageOf } from "./side.js";

/**
 * @typedef {import("./list.js").Story} Story
 *
 * @typedef {"down" | "asking" | "raised" | "invited"} HandState
 */

/** A token stored under this role identifies a viewer by name. */
const ROLE = "viewer";

const NOT_THERE = "The server isn’t responding. Try again in a moment.";

/** Fires `change`, and `say` (detail: text) with messages for the viewer. */
export class Joining extends EventTarget {
  /** The story in which the hand is up, or about to be. @type {Story | null} */
  story = null;

  #isAsking = false;
  /** Whether the server has reported the hand as raised. */
  #wasRaised = false;
  /** @type {StreamSync | null} */
  #sync = null;
  /** Withdraws the question about an invitation. @type {AbortController | null} */
  #question = null;

  /**
   * The state of the viewer's hand in a story.
   * @param {string | undefined} id
   * @returns {HandState}
   */
  stateIn(id) {
    if (!this.story || this.story.id !== id) return "down";
    if (this.#sync?.you?.invited) return "invited";
    return this.#sync?.you?.handRaised ? "raised" : this.#isAsking ? "asking" : "down";
  }

  /** Our place among the raised hands; null if the host holds our hand back. */
  get place() {
    return this.#sync?.you?.handPlace ?? null;
  }

  /** Acts on the button of a story. @param {Story} story */
  press(story) {
    switch (this.stateIn(story.id)) {
      case "down": return this.#begin(story);
      case "raised": return this.#lower();
      case "invited": return this.#invite();
    }
  }

  /** Lowers the hand, and stops following the stream. */
  stop() {
    this.#question?.abort();
    this.#question = null;
    this.#sync?.close();
    this.#sync = null;
    this.story = null;
    this.#wasRaised = false;
    this.#changed();
  }

  /** @param {Story} story */
  async #begin(story) {
    if (this.#isAsking) return;
    const host = isolate(story.hostName || story.host || "the host");
    const name = nameField();
    const answer = await ask({
      name: "join", title: "Join in",
      text: `Raise your hand, and ${host} may invite you on stage. You can get ready before anyone sees or hears you.`,
      body: [
        h("div.fields", {}, h("label", {}, "Your name", name)),
        h("p.small", {}, h("a", { href: pageOf(story.id, true) }, "Open the stream page")),
      ],
      choices: [{ value: "yes", label: "Raise hand", look: "primary" }, { value: "no", label: "Not now" }],
    });
    if (answer !== "yes") return;
    keepName(name.value);
    await this.#raise(story);
  }

  /** @param {Story} story */
  async #raise(story) {
    const before = this.story;
    if (before && before.id !== story.id) {
      await this.#lower();
      // It may still be up there, as has been said; a viewer has one hand.
      if (this.story) return;
    }
    this.story = story;
    this.#isAsking = true;
    this.#changed();
    try {
      if (await ensureToken(story.id, ROLE) === null) return this.#fail("You need an invitation link to join in here.");
      this.#follow(story);
      await new StageAPI(story.id, ROLE).raiseHand();
      this.#say(`Your hand is up. ${isolate(story.hostName || "The host")} may invite you.`);
    } catch (error) {
      if (error instanceof SignallingError) this.#fail(error.message);
      else if (!this.#sync) this.#fail(NOT_THERE);
      // The hand may be up although the answer got lost: sync tells.
      else this.#say(NOT_THERE);
    } finally {
      this.#isAsking = false;
      this.#changed();
    }
  }

  /** @param {string} words */
  #fail(words) {
    this.#say(words);
    this.stop();
  }

  /** @param {Story} story */
  #follow({ id }) {
    this.#sync?.close();
    const sync = this.#sync = new StreamSync(
      id, async () => knownToken(id, ROLE), (refused) => replaceToken(id, ROLE, refused));
    const heard = () => sync === this.#sync && this.#heard(sync);
    sync.addEventListener("change", heard);
    sync.addEventListener("refused", heard);
  }

  /** @param {StreamSync} sync */
  #heard(sync) {
    const { you } = sync;
    const isGone = sync.refusal !== null || sync.stream?.state === "ended";
    const wasRaised = this.#wasRaised;
    this.#wasRaised = Boolean(you?.handRaised || you?.invited);
    if (isGone) return this.stop();
    if (you?.invited && !this.#question) this.#invite();
    else if (!you?.invited) {
      this.#question?.abort();
      this.#question = null;
      // The host has lowered it, or the viewer answered in another tab.
      if (wasRaised && !this.#wasRaised && !this.#isAsking) return this.stop();
    }
    this.#changed();
  }

  async #lower() {
    const { story } = this;
    const id = this.#sync?.you?.id;
    this.stop();
    if (!story || id === undefined) return;
    await new StageAPI(story.id, ROLE).lowerHand(id).catch((error) => {
      // The server knows better whether it is up.
      if (error instanceof SignallingError) return;
      this.#say(NOT_THERE);
      if (this.story) return;
      this.story = story;
      this.#follow(story);
    });
  }

  /** Passes on the host's invitation. The stage itself is on the stream's own page. */
  async #invite() {
    const { story } = this;
    if (!story || this.#question?.signal.aborted === false && document.querySelector("dialog[data-name=invited]")) return;
    const question = this.#question = new AbortController();
    const where = story.title ? ` in ${isolate(story.title)}` : "";
    const answer = await ask({
      name: "invited", title: "Join the stage?",
      text: `${isolate(story.hostName || "The host")} invites you to speak${where}. Get ready first. No one sees or hears you yet.`,
      choices: [
        { value: "ready", label: "Get ready", look: "primary" }, { value: "later", label: "Later" },
        { value: "decline", label: "No, thanks" },
      ],
      isUrgent: true, signal: question.signal,
    });
    if (question.signal.aborted) return;
    const id = this.#sync?.you?.id;
    if (answer === "ready") location.assign(pageOf(story.id, true));
    else if (answer === "decline" && id !== undefined) {
      const isLost = await new StageAPI(story.id, ROLE).endInvitation(id)
        .then(() => false, (error) => !(error instanceof SignallingError));
      // It was answered elsewhere, or withdrawn; the hand may be up in another story by now.
      if (question !== this.#question) return;
      // The host still waits for an answer: the story's button asks again.
      if (isLost) this.#say(NOT_THERE);
      else this.stop();
    }
  }

  /** @param {string} text */
  #say(text) {
    this.dispatchEvent(new CustomEvent("say", { detail: text }));
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
