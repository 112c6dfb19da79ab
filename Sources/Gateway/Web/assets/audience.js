// @ts-check

/**
 * The audience of a stream: its comments, the pinned one, reactions, gifts, ranks, polls and duels, and what this page
 * adds to them. Follows a `StreamSync`. It has no elements, so that each page can show it in its own way.
 */

import { SignallingError } from "./session.js";

/** The number of latest comments that are kept. */
const MOST_COMMENTS = 150;
/** The number of comments before them that are kept while someone reads them. */
const MOST_OLDER = 1000;
/** Shortest time between two messages with our taps, in milliseconds. */
const SEND_MS = 500;
/** Most taps of a kind that wait until they can be sent: the server counts no more at once. */
const MOST_WAITING = 40;
/** Most gifts shown one by one of those that were given while this page was away; the others are shown as a sum. */
const MOST_CAUGHT_UP = 3;

/**
 * @typedef {object} StreamComment
 * @property {number} number
 * @property {string} id chosen by its author's client
 * @property {string} author
 * @property {string | null} name
 * @property {"host" | "speaker" | "viewer"} role
 * @property {boolean} moderator
 * @property {string} text
 * @property {string} at
 *
 * @typedef {{ total: number, rate: number }} Count
 *
 * @typedef {{ participant: string, name: string | null, value: number }} Rank
 *
 * @typedef {object} AudienceSettings
 * @property {boolean} comments
 * @property {string[]} reactions
 * @property {number} slowMode in seconds
 * @property {string | null} commentTier the tier that commenting requires; null if it requires none
 * @property {import("./gifts.js").GiftCatalogue | null} gifts
 * @property {Widget[]} widgets what viewers' pages show
 * @property {boolean} duels whether other hosts may invite
 *
 * @typedef {"comments" | "barrage" | "composer" | "reactions" | "gifts" | "ranks" | "poll" | "card" | "duel"} Widget
 */

/** The number of gifts, and their total price. @param {import("./gifts.js").Gift[]} gifts */
function sumOf(gifts) {
  return {
    gifts: gifts.reduce((sum, { count }) => sum + count, 0),
    value: gifts.reduce((sum, { count, price }) => sum + count * price.amount, 0),
  };
}

/**
 * Fires `change`, `comment` (detail: the comment) for each new one, `more` (detail: the number) for comments that the
 * server left out, `taps` (detail: kind, count) for the taps of others, and `gift` (detail: the gift) for each new
 * gift, once and in order. After an interruption, it fires `missed` (detail: gifts, value) with the sum of the gifts
 * meanwhile, and `gift` for the last few of them, which are not part of that sum.
 */
export class Audience extends EventTarget {
  /** The latest comments, oldest first. @type {StreamComment[]} */
  comments = [];
  /** The comments before those that were loaded on request, oldest first. @type {StreamComment[]} */
  older = [];
  /** Whether `older` begins with the very first comment. */
  #isWhole = false;
  /** Counts up when an answer that is still to come is no longer wanted. */
  #turn = 0;
  #isLoading = false;
  /** @type {StreamComment | null} */
  pinned = null;
  /** By kind. @type {Record<string, Count>} */
  reactions = {};
  /** Null until the server has sent them. @type {AudienceSettings | null} */
  settings = null;

  /** The card that the host shows. @type {import("./card.js").Card | null} */
  card = null;
  /** Totals of all gifts; null until the server has sent them. @type {import("./gifts.js").GiftTotals | null} */
  gifts = null;
  /** Totals of the gifts that this page has fired events for; `gifts` may be ahead of them. */
  #counted = { gifts: 0, value: 0 };

  /** Top givers, highest rank first. @type {Rank[]} */
  givers = [];
  /** Most active viewers, highest rank first. @type {Rank[]} */
  fans = [];

  /**
   * The duel in progress, or an invitation to one, which only the host gets.
   * @type {import("./duel.js").Duel | null}
   */
  duel = null;
  /** How far the server's clock is ahead of ours, in milliseconds: the highest seen, as delays make it look smaller. */
  #ahead = -Infinity;

  /**
   * The poll to show: an open one, or one that closed while this page was open.
   * @type {import("./poll.js").Poll | null}
   */
  poll = null;
  /** @type {{ poll: number, options: number[] } | null} */
  #vote = null;
  #asksForVotes = false;
  /** The poll, and our identity, for which we last asked for our own answer. */
  #asked = "";

  /** Numbers of the last deleted comments. @type {number[]} */
  #removed = [];

  /**
   * Taps to be sent, by kind. Without a prototype, as hosts choose the names of kinds.
   * @type {Record<string, number>}
   */
  #waiting = Object.create(null);
  /** Our sent taps that are not part of `reactions` yet, by kind. @type {Record<string, number>} */
  #own = Object.create(null);
  /** @type {number | undefined} */
  #timer;
  #listener = (/** @type {Event} */ event) => this.#receive(/** @type {CustomEvent} */ (event).detail);
  #changeListener = () => {
    this.#send();
    this.#askForVote();
  };

  /**
   * @param {import("./sync.js").StreamSync} sync
   * @param {import("./stage-api.js").StageAPI} api
   */
  constructor(sync, api) {
    super();
    this.sync = sync;
    this.api = api;
    sync.addEventListener("interaction", this.#listener);
    sync.addEventListener("change", this.#changeListener);
  }

  close() {
    clearTimeout(this.#timer);
    this.sync.removeEventListener("interaction", this.#listener);
    this.sync.removeEventListener("change", this.#changeListener);
  }

  /** Loads the comments before the first known one, unless there are none, or enough are loaded. */
  async loadOlder() {
    const [first] = [...this.older, ...this.comments];
    if (!first || first.number <= 1 || this.#isWhole || this.#isLoading || this.older.length >= MOST_OLDER) return;
    this.#isLoading = true;
    const turn = this.#turn;
    try {
      const { comments, more } = await this.api.comments(first.number);
      if (turn !== this.#turn) return;
      const removed = new Set(this.#removed);
      this.older = [...comments.filter(({ number }) => !removed.has(number)), ...this.older];
      this.#isWhole = !more;
      this.#changed();
    } catch {
      // The next scroll asks again.
    } finally {
      this.#isLoading = false;
    }
  }

  /** Forgets older comments when no one reads them anymore. */
  dropOlder() {
    this.#turn += 1;
    this.older = [];
    this.#isWhole = false;
  }

  /** Whether the audience can write and tap now. */
  get isOpen() {
    const { stream } = this.sync;
    return this.settings !== null && this.sync.refusal === null
      && (stream?.state === "live" || stream?.state === "backstage" && stream.doorsOpen === true);
  }

  /** Whether we may delete others' comments, silence people, and pin. */
  get mayModerate() {
    return this.sync.you?.mayModerate ?? false;
  }

  /** Whether commenting requires a tier that we do not have. */
  get isForMembers() {
    const { settings, sync: { you } } = this;
    if (!settings || settings.commentTier === null) return false;
    return !you || you.role === "viewer" && !you.mayModerate && !you.tiers.includes(settings.commentTier);
  }

  /** Whether we have a host's rights. */
  get isModerator() {
    return this.sync.you?.isModerator ?? false;
  }

  /**
   * The rank of one of the top three, from 1; 0 for everyone else.
   * @param {string} participant
   * @param {"givers" | "fans"} [rank]
   */
  rankOf(participant, rank = "givers") {
    return this[rank].slice(0, 3).findIndex((other) => other.participant === participant) + 1;
  }

  /** Whether viewers' pages are to show a widget. @param {Widget} widget */
  shows(widget) {
    return this.settings?.widgets.includes(widget) ?? false;
  }

  /** @param {StreamComment} comment */
  isOwn(comment) {
    return comment.author === this.sync.you?.id;
  }

  /**
   * Writes a comment. A second attempt has the same id, so that it is not written twice.
   * @param {string} text
   * @throws {SignallingError} when the server refuses it
   */
  async write(text) {
    const id = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    const send = () => this.api.writeComment(id, text);
    const comment = await send().catch((error) => {
      if (error instanceof SignallingError) throw error;
      return send();
    });
    // Someone may have deleted it before this answer arrived.
    if (!this.#removed.includes(comment.number)) this.#add([comment]);
    this.#changed();
  }

  /** The server's time, in milliseconds since 1970. */
  serverNow() {
    return Date.now() + (Number.isFinite(this.#ahead) ? this.#ahead : 0);
  }

  /** Takes in the state of a duel. @param {import("./duel.js").Duel | null} duel */
  showDuel(duel) {
    if (duel) this.#ahead = Math.max(this.#ahead, Date.parse(duel.at) - Date.now());
    // The answer to a request may arrive after newer events.
    if (duel && this.duel?.id === duel.id && this.duel.at > duel.at) return;
    this.duel = duel;
    this.#changed();
  }

  /** Our answer in the current poll; null if we have not answered. @returns {number[] | null} */
  get vote() {
    return this.#vote?.poll === this.poll?.number ? this.#vote?.options ?? null : null;
  }

  /** Answers the current poll. @param {number[]} options */
  async answer(options) {
    const { poll } = this;
    if (!poll) return;
    const told = await this.api.vote(poll.number, options);
    // This may arrive after an event that the poll is over, or has more answers.
    const { poll: known } = this;
    if (known?.number === told.number && known.closedAt === null && known.voters <= told.voters) this.#showPoll(told);
    this.#vote = { poll: poll.number, options };
    this.#changed();
  }

  /** Stops showing a closed poll. */
  dismissPoll() {
    this.poll = null;
    this.#changed();
  }

  /** Asks for what only hosts may know before the end, and events do not contain: hidden results and right answers. */
  async #askForVotes() {
    const { poll } = this;
    if (!poll || poll.closedAt || !this.isModerator || this.#asksForVotes) return;
    if (poll.results === "live" && (!poll.quiz || poll.options.some(({ right }) => right))) return;
    this.#asksForVotes = true;
    const full = await this.api.poll(poll.number).catch(() => null);
    this.#asksForVotes = false;
    // There were more answers meanwhile.
    if (full && this.poll?.number === full.number && this.poll.voters > full.voters) return this.#askForVotes();
    if (full) this.#learn(full);
  }

  /** Takes in what only hosts may know of the current poll. @param {import("./poll.js").Poll} full */
  #learn(full) {
    const { poll: known } = this;
    if (!this.isModerator || known?.number !== full.number || known.closedAt || known.voters > full.voters) return;
    this.poll = full;
    this.#changed();
  }

  /** @param {import("./poll.js").Poll} poll */
  #showPoll(poll) {
    const { poll: known } = this;
    const isKnown = known?.number === poll.number;
    // Hosts keep seeing the results that they know until they get newer ones.
    const options = poll.options.map((option, index) => ({ ...known?.options[index], ...option }));
    this.poll = isKnown ? { ...known, ...poll, options } : poll;
    if (!isKnown && !poll.closedAt) this.#askForVote();
    this.#askForVotes();
  }

  /** Asks for our own answer, which we may have given before we came back. */
  async #askForVote() {
    const { poll } = this;
    if (!poll || !this.sync.you || this.#asked === `${poll.number} ${this.sync.you.id}`) return;
    const asked = this.#asked = `${poll.number} ${this.sync.you.id}`;
    const full = await this.api.poll(poll.number).catch((error) => {
      // The next change asks again, unless the server has refused.
      if (!(error instanceof SignallingError && error.status < 500) && this.#asked === asked) this.#asked = "";
      return null;
    });
    if (!full) return;
    this.#learn(full);
    if (!full.vote) return;
    this.#vote = { poll: poll.number, options: full.vote };
    this.#changed();
  }

  /** Taps once. Taps are sent together, as soon as the server knows who we are. @param {string} kind */
  tap(kind) {
    this.#waiting[kind] = Math.min((this.#waiting[kind] ?? 0) + 1, MOST_WAITING);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#send();
    }, SEND_MS);
  }

  #send() {
    const kinds = Object.keys(this.#waiting);
    if (this.#timer !== undefined || kinds.length === 0 || !this.sync.you || !this.sync.isOpen) return;
    for (const kind of kinds) this.#own[kind] = (this.#own[kind] ?? 0) + this.#waiting[kind];
    this.sync.say({ type: "react", reactions: this.#waiting });
    this.#waiting = Object.create(null);
  }

  /** @param {any} message */
  #receive(message) {
    switch (message.type) {
      case "snapshot":
        this.comments = [];
        this.dropOlder();
        this.#add(message.interaction.comments, false);
        this.pinned = message.interaction.pinned;
        this.reactions = message.interaction.reactions;
        this.settings = message.interaction.settings;
        this.card = message.interaction.card;
        this.showDuel(message.interaction.duel ?? null);
        this.#rank(message.interaction.ranks);
        this.#catchUp(message.interaction.gifts.recent, message.interaction.gifts.totals);
        if (message.interaction.poll?.closedAt === null) this.#showPoll(message.interaction.poll);
        else if (message.interaction.poll?.number !== this.poll?.number) this.poll = null;
        else this.poll = message.interaction.poll;
        break;
      case "interaction":
        if (message.settings) this.settings = message.settings;
        if ("card" in message) this.card = message.card;
        // No duel for everyone to see does not end an invitation, which only the host gets.
        if (message.duel || message.duel === null && this.duel?.state !== "invited") this.showDuel(message.duel);
        if ("pinned" in message) this.pinned = message.pinned;
        if (message.poll) this.#showPoll(message.poll);
        if (message.comments) this.#add(message.comments);
        if (message.deleted) this.#remove(message.deleted);
        if (message.more) this.dispatchEvent(new CustomEvent("more", { detail: message.more }));
        if (message.reactions) this.#count(message.reactions);
        if (message.ranks) this.#rank(message.ranks);
        if (message.gifts) this.#give(message.gifts, message.giftTotals);
        break;
      // Also errors about too many taps, which do not matter.
      default: return;
    }
    this.#changed();
  }

  /** @param {StreamComment[]} comments @param {boolean} [isNews] */
  #add(comments, isNews = true) {
    const known = new Set(this.comments.map(({ number }) => number));
    const fresh = comments.filter(({ number }) => !known.has(number));
    if (fresh.length === 0) return;
    const all = [...this.comments, ...fresh].sort((one, other) => one.number - other.number);
    this.comments = all.slice(-MOST_COMMENTS);
    // Leave no gap for people who read older comments.
    if (this.older.length > 0) this.older = [...this.older, ...all.slice(0, -MOST_COMMENTS)].slice(0, MOST_OLDER);
    if (isNews) for (const detail of fresh) this.dispatchEvent(new CustomEvent("comment", { detail }));
  }

  /**
   * Takes in the gifts before we came, or during an interruption. The sum of missed gifts is what the totals have grown
   * by: only hosts may read the list of all gifts.
   * @param {import("./gifts.js").Gift[]} recent the last few
   * @param {import("./gifts.js").GiftTotals} totals
   */
  #catchUp(recent, totals) {
    const { gifts: known } = this;
    const before = this.#counted;
    this.gifts = totals;
    this.#counted = { gifts: totals.gifts, value: totals.value };
    // Nothing is missed before the first snapshot; and after a restart of the stream, numbers start over.
    if (!known || totals.last < known.last) return;
    const latest = recent.filter(({ number }) => number > known.last).slice(-MOST_CAUGHT_UP);
    const told = sumOf(latest);
    const detail = { gifts: totals.gifts - before.gifts - told.gifts, value: totals.value - before.value - told.value };
    if (detail.gifts > 0) this.dispatchEvent(new CustomEvent("missed", { detail }));
    for (const gift of latest) this.dispatchEvent(new CustomEvent("gift", { detail: gift }));
  }

  /**
   * @param {import("./gifts.js").Gift[]} gifts
   * @param {import("./gifts.js").GiftTotals} totals which may include more than these gifts
   */
  #give(gifts, totals) {
    const last = this.gifts?.last ?? 0;
    const fresh = gifts.filter(({ number }) => number > last);
    const sum = sumOf(fresh);
    this.#counted = { gifts: this.#counted.gifts + sum.gifts, value: this.#counted.value + sum.value };
    this.gifts = { ...totals, last: fresh.at(-1)?.number ?? last };
    for (const detail of fresh) this.dispatchEvent(new CustomEvent("gift", { detail }));
  }

  /** @param {{ givers: Rank[], fans: Rank[] }} ranks */
  #rank({ givers, fans }) {
    this.givers = givers;
    this.fans = fans;
  }

  /** @param {number[]} numbers */
  #remove(numbers) {
    this.comments = this.comments.filter(({ number }) => !numbers.includes(number));
    this.older = this.older.filter(({ number }) => !numbers.includes(number));
    this.#removed = [...this.#removed, ...numbers].slice(-MOST_COMMENTS);
  }

  /** @param {Record<string, Count>} counts */
  #count(counts) {
    for (const [kind, { total }] of Object.entries(counts)) {
      const more = total - (this.reactions[kind]?.total ?? 0);
      const own = Math.min(this.#own[kind] ?? 0, Math.max(more, 0));
      this.#own[kind] = (this.#own[kind] ?? 0) - own;
      if (more > own) this.dispatchEvent(new CustomEvent("taps", { detail: { kind, count: more - own } }));
    }
    this.reactions = counts;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
