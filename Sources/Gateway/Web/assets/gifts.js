// @ts-check

/**
 * Gifts over the picture: one after the other, with a count that rises while someone keeps giving. They take no clicks
 * and no swipes.
 */

import { callName, follow, h, setText } from "./dom.js";
import { formatPrice } from "./money.js";
import { makeLeaders, makeRankLists } from "./ranks.js";

/** How long a gift is shown, and how long again after each further one of a combo, in milliseconds. */
const SHOW_MS = 2600;
const COMBO_MS = 1400;
/** The longest that a combo is shown while other gifts wait, in milliseconds. */
const LONGEST_MS = 8000;
/** Most gifts that wait to be shown; beyond that, the cheapest one is only counted. */
const MOST_WAITING = 20;
/** How long the line about missed gifts is shown, in milliseconds. */
const MISSED_MS = 6000;
/** Shown if the picture of a gift cannot be loaded. */
const PARCEL = "🎁";

/**
 * @typedef {object} Gift
 * @property {number} number
 * @property {string} giver
 * @property {string | null} name
 * @property {string} gift a kind of the catalogue
 * @property {number} count
 * @property {number} combo the number of gifts in a row, including these
 * @property {{ amount: number, currency: string }} price for each
 *
 * @typedef {{ id: string, name: string, picture: string, price: number }} GiftKind
 * @typedef {{ currency: string, kinds: GiftKind[] }} GiftCatalogue
 * @typedef {{ gifts: number, value: number, currency: string | null, last: number }} GiftTotals
 */

/** @param {Gift} one @param {Gift} other */
const isSameCombo = (one, other) => one.giver === other.giver && one.gift === other.gift && other.combo > other.count;

/** The order in which gifts are shown; without elements or timers. */
export class GiftQueue {
  /** @type {Gift | null} */
  current = null;
  /** @type {Gift[]} */
  waiting = [];

  /** Adds a gift. Returns whether the current one changes. @param {Gift} gift */
  add(gift) {
    if (this.current && isSameCombo(this.current, gift)) {
      this.current = gift;
      return true;
    }
    const place = this.waiting.findIndex((other) => isSameCombo(other, gift));
    if (place >= 0) this.waiting[place] = gift;
    else this.waiting.push(gift);
    if (this.waiting.length > MOST_WAITING) {
      const worth = this.waiting.map(({ combo, price }) => combo * price.amount);
      this.waiting.splice(worth.indexOf(Math.min(...worth)), 1);
    }
    return this.current === null && this.next() !== null;
  }

  /** Goes on to the next gift; null if there is none. */
  next() {
    return this.current = this.waiting.shift() ?? null;
  }
}

/** Shows gifts as they arrive. @param {import("./talk.js").Part} part @param {{ totals?: boolean }} [options] */
export function makeGifts(part, { totals = false } = {}) {
  const { audience } = part;
  const queue = new GiftQueue();
  const sum = h("p.gift-sum.small", { hidden: true });
  const ranks = totals ? makeRankLists(part) : makeLeaders(part);
  const missed = h("p.gift-missed", { hidden: true });
  const stage = h("div.gift-stage", { role: "status", "aria-label": "Gifts" }, missed);
  const root = h("div.gifts", {}, ...totals ? [sum] : [], ranks.root, stage);
  /** @type {any} */
  let banner = null;
  /** @type {number | undefined} */
  let timer;
  let shownAt = 0;
  /** What the line about missed gifts says, and the timer that hides it. */
  let away = { gifts: 0, value: 0 };
  /** @type {number | undefined} */
  let awayTimer;

  function end() {
    timer = undefined;
    queue.next();
    show();
  }

  function show() {
    banner?.remove();
    banner = null;
    const { current } = queue;
    if (!current) return;
    const kind = kindOf(current.gift);
    banner = h("p.gift", {}, pictureOf(kind), h("span", {}, h("b", { dir: "auto" }, callName(current.giver, current.name)),
      h("small", { dir: "auto" }, `sent ${kind?.name ?? current.gift}`)), h("strong"));
    stage.append(banner);
    shownAt = Date.now();
    count(SHOW_MS);
  }

  /** @param {number} stay in milliseconds */
  function count(stay) {
    const { current } = queue;
    if (!current || !banner) return;
    banner.dataset.number = String(current.number);
    const number = banner.querySelector("strong");
    setText(number, current.combo > 1 ? `×${current.combo}` : "");
    // Restarts the animation.
    number.classList.remove("up");
    void number.offsetWidth;
    number.classList.add("up");
    clearTimeout(timer);
    timer = setTimeout(end, queue.waiting.length > 0 ? Math.min(stay, shownAt + LONGEST_MS - Date.now()) : stay);
  }

  /** @param {string} id */
  const kindOf = (id) => audience.settings?.gifts?.kinds.find((kind) => kind.id === id);

  const take = (/** @type {Event} */ event) => {
    const { current } = queue;
    if (!queue.add(/** @type {CustomEvent} */ (event).detail)) return;
    if (current) count(COMBO_MS);
    else show();
  };
  audience.addEventListener("gift", take);
  const tellMissed = (/** @type {Event} */ event) => {
    const { gifts, value } = /** @type {CustomEvent} */ (event).detail;
    // There may be several interruptions while it is shown.
    away = { gifts: away.gifts + gifts, value: away.value + value };
    const price = totals ? `, ${formatPrice(away.value, audience.gifts?.currency ?? "")}` : "";
    setText(missed, `${countOf(away.gifts)} while you were away${price}`);
    missed.hidden = false;
    clearTimeout(awayTimer);
    awayTimer = setTimeout(() => {
      away = { gifts: 0, value: 0 };
      missed.hidden = true;
    }, MISSED_MS);
  };
  audience.addEventListener("missed", tellMissed);
  const unfollow = follow(audience, () => {
    const { gifts } = audience;
    stage.hidden = !part.shows("gifts");
    sum.hidden = !gifts?.gifts;
    if (gifts?.gifts) {
      setText(sum, `${countOf(gifts.gifts)}, ${formatPrice(gifts.value, gifts.currency ?? "")}`);
    }
  });
  return {
    root,
    stop() {
      clearTimeout(timer);
      clearTimeout(awayTimer);
      audience.removeEventListener("gift", take);
      audience.removeEventListener("missed", tellMissed);
      unfollow();
      ranks.stop();
      root.remove();
    },
  };
}

/** @param {number} gifts */
const countOf = (gifts) => gifts === 1 ? "1 gift" : `${gifts} gifts`;

/** @param {GiftKind | undefined} kind */
function pictureOf(kind) {
  const frame = h("i", { "aria-hidden": "true" });
  if (!kind || !/^(https:\/\/|\/)/.test(kind.picture)) frame.append(kind?.picture ?? PARCEL);
  else {
    frame.append(h("img", {
      alt: "", referrerPolicy: "no-referrer", onerror: () => frame.replaceChildren(PARCEL), src: kind.picture,
    }));
  }
  return frame;
}
