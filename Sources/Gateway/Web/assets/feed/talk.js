// @ts-check

/**
 * The comments on the story in view, from shortly after the viewer arrives until they leave. There is only one socket
 * at a time, however fast the viewer swipes.
 */

import { Audience } from "../audience.js";
import { makeBarrage } from "../barrage.js";
import { makeDuelBar } from "../duel.js";
import { makeGifts } from "../gifts.js";
import { useName } from "../naming.js";
import { askName, ownName } from "../person.js";
import { StageAPI } from "../stage-api.js";
import { StreamSync } from "../sync.js";
import { makeComments, makeReactions } from "../talk.js";
import { ensureToken, knownToken, replaceToken } from "../tokens.js";

/** A token stored under this role identifies a viewer by name. */
const ROLE = "viewer";
/** Viewers who swipe on sooner do not load the comments, in milliseconds. */
const STAY_MS = 350;

export class StoryTalk {
  #story = "";
  /** @type {number | undefined} */
  #timer;
  /** @type {(() => void) | null} */
  #leave = null;
  /** The audience being followed; for tests. @type {Audience | null} */
  audience = null;

  /**
   * @param {HTMLElement} layer
   * @param {(text: string) => void} say
   */
  constructor(layer, say) {
    this.layer = layer;
    this.say = say;
  }

  /** @param {string | null} id of the story in view; null for none */
  show(id) {
    if (this.#story === (id ?? "")) return;
    this.stop();
    if (!id) return;
    this.#story = id;
    this.#timer = setTimeout(() => this.#follow(id), STAY_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#leave?.();
    this.#leave = this.audience = null;
    this.#story = "";
  }

  /** @param {string} id */
  #follow(id) {
    const sync = new StreamSync(id, async () => knownToken(id, ROLE), (refused) => replaceToken(id, ROLE, refused));
    const api = new StageAPI(id, ROLE);
    const audience = this.audience = new Audience(sync, api);
    /** @param {boolean} needsName */
    const identify = async (needsName) => {
      if (needsName && !ownName() && await askName(NAME_WORDS) === null) return false;
      if (sync.you) {
        if (needsName && await useName(api, ownName())) sync.reconnect();
        return true;
      }
      if (await ensureToken(id, ROLE) === null) {
        this.say("You need an invitation link to join in here.");
        return false;
      }
      sync.reconnect();
      return true;
    };
    /** @type {import("../talk.js").Part} */
    const part = { audience, identify, say: this.say, shows: (widget) => audience.shows(widget) };
    const [comments, reactions] = [makeComments(part), makeReactions(part)];
    const gifts = makeGifts(part);
    const [duel, barrage] = [makeDuelBar(part), makeBarrage(part)];
    this.layer.append(barrage.root, duel.root, gifts.root, comments.root, reactions.root);
    // The title of the story is placed above the comments.
    const watch = new ResizeObserver(() => {
      document.body.style.setProperty("--talk-height", `${comments.root.offsetHeight}px`);
    });
    watch.observe(comments.root);
    this.#leave = () => {
      watch.disconnect();
      barrage.stop();
      duel.stop();
      gifts.stop();
      comments.stop();
      reactions.stop();
      audience.close();
      sync.close();
    };
  }
}

/** The question before a viewer's first comment. */
export const NAME_WORDS = { title: "Your name", text: "Everyone sees it next to your comments.", yes: "Continue" };
