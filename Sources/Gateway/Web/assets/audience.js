// @ts-check

/**
 * What the audience of a stream says and taps: comments, the one that is pinned, reactions; and this page's part in it.
 * Follows a `StreamSync`; needs no element, so that any page can show it as it likes.
 */

import { SignallingError } from "./session.js";

/** The latest are kept. */
const MOST_COMMENTS = 150;
/** Of those before them, while somebody reads them. */
const MOST_OLDER = 1000;
/** Taps are sent together, so often at most, in milliseconds. */
const SEND_MS = 500;
/** Taps that wait for a name, or for the server: more than it counts at once are no use. */
const MOST_WAITING = 40;
/** Of the gifts that were given while this page was away those are told one by one, so many; the others as a sum. */
const MOST_CAUGHT_UP = 3;

/**
 * @typedef {object} StreamComment
 * @property {number} number
 * @property {string} id by its author's client
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
 * @property {string | null} commentTier which of a token's tiers commenting takes; null where it takes none
 * @property {import("./gifts.js").GiftCatalogue | null} gifts
 * @property {Widget[]} widgets what viewers' pages show
 * @property {boolean} duels whether other hosts may invite
 *
 * @typedef {"comments" | "barrage" | "composer" | "reactions" | "gifts" | "ranks" | "poll" | "card" | "duel"} Widget
 */

/** How many, and what they cost together. @param {import("./gifts.js").Gift[]} gifts */
function sumOf(gifts) {
  return {
    gifts: gifts.reduce((sum, { count }) => sum + count, 0),
    value: gifts.reduce((sum, { count, price }) => sum + count * price.amount, 0),
  };
}

/**
 * Fires `change`; `comment` (detail: the comment) for each one that is new, `more` (detail: how many) for those that the
 * server left out, `taps` (detail: kind, count) when others tapped, and `gift` (detail: the gift) for each that was
 * given while this page was there, once and in order. Of those that were given while it was away come the latest alone,
 * and before them `missed` (detail: gifts, value) with the sum of the others.
 */
export class Audience extends EventTarget {
  /** The oldest first. @type {StreamComment[]} */
  comments = [];
  /** What was said before those, as far as somebody has asked for it, the oldest first. @type {StreamComment[]} */
  older = [];
  /** Nothing was said before what is there. */
  #isWhole = false;
  /** Changes when what was asked for is not wanted any more. */
  #turn = 0;
  #isLoading = false;
  /** @type {StreamComment | null} */
  pinned = null;
  /** By kind. @type {Record<string, Count>} */
  reactions = {};
  /** Null until the server has told. @type {AudienceSettings | null} */
  settings = null;

  /** What the host points to. @type {import("./card.js").Card | null} */
  card = null;
  /** Of all that was given; null until the server has told. @type {import("./gifts.js").GiftTotals | null} */
  gifts = null;
  /** Of what this page was told, one by one or as a sum; the totals may be ahead of it. */
  #counted = { gifts: 0, value: 0 };

  /** Those who gave most, the first first. @type {Rank[]} */
  givers = [];
  /** Those who took part most, the first first. @type {Rank[]} */
  fans = [];

  /**
   * The duel that is seen, or an invitation to one, which only the host is told of.
   * @type {import("./duel.js").Duel | null}
   */
  duel = null;
  /** What the server's clock is ahead of ours, in milliseconds; what was told late makes it too small. */
  #ahead = -Infinity;

  /** The one to show: open, or closed while this page was there. @type {import("./poll.js").Poll | null} */
  poll = null;
  /** @type {{ poll: number, options: number[] } | null} */
  #vote = null;
  #asksForVotes = false;
  /** Of which poll, and as whom, we asked what we had chosen. */
  #asked = "";

  /** The last comments that were taken away, by their numbers. @type {number[]} */
  #removed = [];

  /** By kind, whose names hosts choose: these objects have no others. @type {Record<string, number>} */
  #waiting = Object.create(null);
  /** Of ours, that the server has not told of yet. @type {Record<string, number>} */
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

  /** Asks for what was said before all that is there, unless that is all, or enough. */
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
      // It is asked again when somebody reads on.
    } finally {
      this.#isLoading = false;
    }
  }

  /** Nobody reads them any more. */
  dropOlder() {
    this.#turn += 1;
    this.older = [];
    this.#isWhole = false;
  }

  /** Whether anything can be said or tapped now. */
  get isOpen() {
    const { stream } = this.sync;
    return this.settings !== null && this.sync.refusal === null
      && (stream?.state === "live" || stream?.state === "backstage" && stream.doorsOpen === true);
  }

  /** Whether we may take away what others wrote, silence them and pin. */
  get mayModerate() {
    return this.sync.you?.mayModerate ?? false;
  }

  /** Whether comments take a tier that we do not have. */
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
   * From 1 on, of the three who are first; 0 for all others.
   * @param {string} participant
   * @param {"givers" | "fans"} [rank]
   */
  rankOf(participant, rank = "givers") {
    return this[rank].slice(0, 3).findIndex((other) => other.participant === participant) + 1;
  }

  /** Whether the host wants something to be seen on viewers' pages. @param {Widget} widget */
  shows(widget) {
    return this.settings?.widgets.includes(widget) ?? false;
  }

  /** @param {StreamComment} comment */
  isOwn(comment) {
    return comment.author === this.sync.you?.id;
  }

  /**
   * Writes a comment; one that is tried again is the same.
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
    // It may come after somebody has taken the comment away again.
    if (!this.#removed.includes(comment.number)) this.#add([comment]);
    this.#changed();
  }

  /** By the server's clock, in milliseconds since 1970. */
  serverNow() {
    return Date.now() + (Number.isFinite(this.#ahead) ? this.#ahead : 0);
  }

  /** Takes in what the server says of a duel. @param {import("./duel.js").Duel | null} duel */
  showDuel(duel) {
    if (duel) this.#ahead = Math.max(this.#ahead, Date.parse(duel.at) - Date.now());
    // An answer may come after what followers were told since.
    if (duel && this.duel?.id === duel.id && this.duel.at > duel.at) return;
    this.duel = duel;
    this.#changed();
  }

  /** What we chose in the poll that is shown; null while we have not. @returns {number[] | null} */
  get vote() {
    return this.#vote?.poll === this.poll?.number ? this.#vote?.options ?? null : null;
  }

  /** Answers the poll that is shown. @param {number[]} options */
  async answer(options) {
    const { poll } = this;
    if (!poll) return;
    const told = await this.api.vote(poll.number, options);
    // It may come after followers were told that the poll is over, or of more answers.
    const { poll: known } = this;
    if (known?.number === told.number && known.closedAt === null && known.voters <= told.voters) this.#showPoll(told);
    this.#vote = { poll: poll.number, options };
    this.#changed();
  }

  /** The poll is over, and was looked at. */
  dismissPoll() {
    this.poll = null;
    this.#changed();
  }

  /** Who leads sees what others see at the end: hidden results, what is right. What all are told does not have it. */
  async #askForVotes() {
    const { poll } = this;
    if (!poll || poll.closedAt || !this.isModerator || this.#asksForVotes) return;
    if (poll.results === "live" && (!poll.quiz || poll.options.some(({ right }) => right))) return;
    this.#asksForVotes = true;
    const full = await this.api.poll(poll.number).catch(() => null);
    this.#asksForVotes = false;
    // Somebody answered meanwhile.
    if (full && this.poll?.number === full.number && this.poll.voters > full.voters) return this.#askForVotes();
    if (full) this.#learn(full);
  }

  /** Takes in what a host alone may know of the poll that is shown. @param {import("./poll.js").Poll} full */
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
    // What a host knows of hidden results stays in sight until there are others.
    const options = poll.options.map((option, index) => ({ ...known?.options[index], ...option }));
    this.poll = isKnown ? { ...known, ...poll, options } : poll;
    if (!isKnown && !poll.closedAt) this.#askForVote();
    this.#askForVotes();
  }

  /** Whoever comes back may have answered before. */
  async #askForVote() {
    const { poll } = this;
    if (!poll || !this.sync.you || this.#asked === `${poll.number} ${this.sync.you.id}`) return;
    const asked = this.#asked = `${poll.number} ${this.sync.you.id}`;
    const full = await this.api.poll(poll.number).catch((error) => {
      // It is asked again with the next news, unless the server has refused to tell.
      if (!(error instanceof SignallingError && error.status < 500) && this.#asked === asked) this.#asked = "";
      return null;
    });
    if (!full) return;
    this.#learn(full);
    if (!full.vote) return;
    this.#vote = { poll: poll.number, options: full.vote };
    this.#changed();
  }

  /** Taps once; it is sent together with others, as soon as the server knows us. @param {string} kind */
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
        // That there is nothing for everybody to see takes no invitation away from the host.
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
      // Taps that were too many are no matter.
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
    // Who reads what was before is left no gap.
    if (this.older.length > 0) this.older = [...this.older, ...all.slice(0, -MOST_COMMENTS)].slice(0, MOST_OLDER);
    if (isNews) for (const detail of fresh) this.dispatchEvent(new CustomEvent("comment", { detail }));
  }

  /**
   * Learns what was given before we came, or while we were away. Its sum needs no ledger, which hosts alone may read:
   * it is what the totals have grown by.
   * @param {import("./gifts.js").Gift[]} recent the latest, of which there may have been more
   * @param {import("./gifts.js").GiftTotals} totals
   */
  #catchUp(recent, totals) {
    const { gifts: known } = this;
    const before = this.#counted;
    this.gifts = totals;
    this.#counted = { gifts: totals.gifts, value: totals.value };
    // What was given before this page came is only counted; and where another programme began, numbers did as well.
    if (!known || totals.last < known.last) return;
    const latest = recent.filter(({ number }) => number > known.last).slice(-MOST_CAUGHT_UP);
    const told = sumOf(latest);
    const detail = { gifts: totals.gifts - before.gifts - told.gifts, value: totals.value - before.value - told.value };
    if (detail.gifts > 0) this.dispatchEvent(new CustomEvent("missed", { detail }));
    for (const gift of latest) this.dispatchEvent(new CustomEvent("gift", { detail: gift }));
  }

  /**
   * @param {import("./gifts.js").Gift[]} gifts
   * @param {import("./gifts.js").GiftTotals} totals which may be ahead of the gifts that they come with
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
