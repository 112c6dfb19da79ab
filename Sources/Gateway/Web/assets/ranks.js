// @ts-check

/** Rankings, people who are here, and the marks next to their names. */

import { ask } from "./dialog.js";
import { callName, follow, h, reconcile, setText } from "./dom.js";
import { formatPrice } from "./money.js";
import { SignallingError } from "./session.js";

/** How many people get a medal. */
export const MEDALS = 3;

/** @typedef {"givers" | "fans"} RankName @typedef {"stream" | "day"} Period */

/** @type {Record<RankName, { title: string, nobody: string, medals: string[] }>} */
const RANKS = {
  givers: {
    title: "Top givers", nobody: "No gifts yet.",
    medals: ["Top giver", "Number 2 giver", "Number 3 giver"],
  },
  fans: {
    title: "Top fans", nobody: "No one has points yet. Viewers earn them by the minute.",
    medals: ["Top fan", "Number 2 fan", "Number 3 fan"],
  },
};

/** A mark for one of the first three; hidden for others. @param {RankName} [rank] */
export function makeMedal(rank = "givers") {
  const medal = h(`span.medal.of-${rank}`, { role: "img", hidden: true });
  /** @param {number} place from 1 on; 0 for none */
  medal.update = (place) => {
    medal.hidden = place < 1 || place > MEDALS;
    if (medal.hidden) return;
    setText(medal, String(place));
    medal.dataset.rank = String(place);
    medal.setAttribute("aria-label", RANKS[rank].medals[place - 1]);
  };
  return medal;
}

/**
 * What is next to someone's name: medals and their role.
 * @param {() => boolean} hasMedals whether ranks are shown here
 */
export function makeBadges(hasMedals = () => true) {
  const [giver, fan] = [makeMedal("givers"), makeMedal("fans")];
  const word = h("span.badge.quiet", { hidden: true });
  return {
    medals: [giver, fan],
    word,
    /**
     * @param {import("./audience.js").Audience} audience
     * @param {{ id: string, role: "host" | "speaker" | "viewer", isModerator?: boolean }} person
     */
    update(audience, { id, role, isModerator }) {
      giver.update(hasMedals() ? audience.rankOf(id) : 0);
      fan.update(hasMedals() ? audience.rankOf(id, "fans") : 0);
      const words = role === "host" ? "Host" : isModerator ? "Moderator" : role === "speaker" ? "On stage" : "";
      word.hidden = words === "";
      setText(word, words);
    },
  };
}

/**
 * Named people who are here: the host, people on stage, then viewers by rank.
 * @param {import("./audience.js").Audience} audience
 */
export function peopleHere({ sync, givers, fans }) {
  const { speakers = {}, viewers = {} } = sync.known ?? {};
  const onStage = Object.entries(speakers).filter(([, { present }]) => present)
    .map(([id, { name, role, since }]) => ({ id, name, role, since, isModerator: false }))
    .sort((one, other) => Number(other.role === "host") - Number(one.role === "host") || one.since.localeCompare(other.since));
  return [...onStage, ...inOrder(Object.entries(viewers), { givers, fans }).map(([id, { name, moderator }]) => ({
    id, name, role: /** @type {const} */ ("viewer"), isModerator: moderator === true,
  }))];
}

/**
 * Viewers by rank: top givers, top fans, then others by name.
 * @template {{ name: string | null }} Viewer
 * @param {[string, Viewer][]} viewers
 * @param {{ givers: import("./audience.js").Rank[], fans: import("./audience.js").Rank[] }} ranks
 */
export function inOrder(viewers, { givers, fans }) {
  /** @type {Map<string, number>} */
  const places = new Map();
  for (const { participant } of [...givers, ...fans]) if (!places.has(participant)) places.set(participant, places.size);
  const placeOf = (/** @type {string} */ id) => places.get(id) ?? places.size;
  return [...viewers].sort(([one, { name: left }], [other, { name: right }]) =>
    placeOf(one) - placeOf(other) || callName(one, left).localeCompare(callName(other, right)));
}

/**
 * The top three, to press for more: givers, or fans until there are gifts.
 * @param {import("./talk.js").Part} part
 */
export function makeLeaders(part) {
  const { audience } = part;
  const list = h("span.top-givers");
  const root = h("button.leaders", { type: "button", hidden: true, title: "Ranks", onclick: () => openPeople(part, shown) }, list);
  /** @type {RankName} */
  let shown = "givers";
  /** @param {string} key */
  const make = (key) => {
    const medal = makeMedal(key.startsWith("fans ") ? "fans" : "givers");
    const name = h("b", { dir: "auto" });
    const line = h("span", {}, medal, name);
    /** @param {import("./audience.js").Rank & { place: number }} rank */
    line.update = (rank) => {
      medal.update(rank.place + 1);
      setText(name, callName(rank.participant, rank.name));
    };
    return line;
  };
  const unfollow = follow(audience, () => {
    shown = audience.givers.length > 0 ? "givers" : "fans";
    const ranks = audience[shown].slice(0, MEDALS);
    root.hidden = ranks.length === 0 || !part.shows("ranks");
    reconcile(list, ranks.map((rank, place) => [`${shown} ${rank.participant}`, { ...rank, place }]), make);
  });
  return {
    root,
    stop() {
      unfollow();
      root.remove();
    },
  };
}

/** The first ten of both, for a host. @param {import("./talk.js").Part} part */
export function makeRankLists(part) {
  const { audience } = part;
  const lists = /** @type {const} */ (["givers", "fans"]).map((rank) => {
    const list = h("ol.top-givers", { "aria-label": RANKS[rank].title });
    return { rank, list, root: h("div", { hidden: true }, h("h3", {}, RANKS[rank].title), list) };
  });
  const more = h("button.button.small#show-ranks", { type: "button", onclick: () => openPeople(part, "givers") }, "All ranks…");
  const root = h("div.rank-lists", {}, ...lists.map((each) => each.root), more);
  const unfollow = follow(audience, () => {
    for (const { rank, list, root: group } of lists) {
      group.hidden = audience[rank].length === 0;
      reconcile(list, entriesOf(audience[rank]), () => makeLine(audience, rank));
    }
    more.hidden = lists.every(({ root: group }) => group.hidden);
  });
  return {
    root,
    stop() {
      unfollow();
      root.remove();
    },
  };
}

/** @param {import("./audience.js").Rank[]} ranks @returns {[string, import("./audience.js").Rank & { place: number }][]} */
const entriesOf = (ranks) => ranks.map((rank, place) => [rank.participant, { ...rank, place }]);

/** @param {import("./audience.js").Audience} audience @param {RankName} rank */
function makeLine(audience, rank) {
  const [medal, number, name, value] = [makeMedal(rank), h("span.place"), h("b", { dir: "auto" }), h("span.value")];
  const line = h("li", {}, medal, number, name, value);
  /** @param {import("./audience.js").Rank & { place: number }} entry */
  line.update = (entry) => {
    medal.update(entry.place + 1);
    number.hidden = !medal.hidden;
    setText(number, String(entry.place + 1));
    setText(name, callName(entry.participant, entry.name));
    setText(value, rank === "givers" ? formatPrice(entry.value, audience.gifts?.currency ?? "")
      : entry.value === 1 ? "1 point" : `${entry.value} points`);
  };
  return line;
}

/** @param {import("./talk.js").Part} part */
function makePresent({ audience, shows }) {
  const list = h("ol.people-list", { "aria-label": "Here now" });
  const rest = h("p.muted.small", { role: "status" });
  /** @param {string} _id */
  const make = (_id) => {
    const badges = makeBadges(() => shows("ranks"));
    const name = h("b", { dir: "auto" });
    const line = h("li", {}, ...badges.medals, name, badges.word);
    /** @param {ReturnType<typeof peopleHere>[number]} person */
    line.update = (person) => {
      setText(name, callName(person.id, person.name));
      badges.update(audience, person);
    };
    return line;
  };
  return {
    elements: [list, rest],
    show() {
      const people = peopleHere(audience);
      reconcile(list, people.map((person) => [person.id, person]), make);
      const named = people.filter(({ role }) => role === "viewer").length;
      const others = Math.max((audience.sync.known?.counts.viewers ?? 0) - named, 0);
      setText(rest, others === 0 ? people.length === 0 ? "No one here has a name yet." : ""
        : others === 1 ? "And one more person." : `And ${others} more people.`);
    },
  };
}

/**
 * People who are here, top givers and top fans, in a dialog.
 * @param {import("./talk.js").Part} part
 * @param {"here" | RankName} first what is seen first
 */
export async function openPeople(part, first) {
  const { audience } = part;
  /** @type {"here" | RankName} */
  let shown = part.shows("ranks") ? first : "here";
  /** @type {Period} */
  let period = "stream";
  /** Which lists these are. */
  let loaded = "";
  const present = makePresent(part);
  const ranks = h("ol.people-list.ranked");
  const words = h("p.muted.small", { role: "status" });
  /** @type {[string, string][]} */
  const lists = [["here", "Here now"], ["givers", "Givers"], ["fans", "Fans"]];
  const tabs = makeTabs("people-tab", "List", lists, shown, (value) => {
    shown = /** @type {"here" | RankName} */ (value);
    show();
  });
  /** @type {[string, string][]} */
  const times = [["stream", "Whole stream"], ["day", "Today"]];
  const periods = makeTabs("people-period", "Period", times, period, (value) => {
    period = /** @type {Period} */ (value);
    show();
  });

  async function load() {
    if (shown === "here") return;
    const [rank, asked] = [shown, `${shown} ${period}`];
    try {
      const { ranks: entries } = await audience.api.rank(rank, period);
      if (asked !== `${shown} ${period}`) return;
      loaded = asked;
      reconcile(ranks, entriesOf(entries), () => makeLine(audience, rank));
      setText(words, entries.length > 0 ? period === "day" ? "Since midnight, UTC." : ""
        : period === "day" ? "No one yet today, since midnight UTC." : RANKS[rank].nobody);
    } catch (error) {
      if (asked !== `${shown} ${period}`) return;
      setText(words, error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
    }
  }

  function show() {
    const isHere = shown === "here";
    // Until the server has answered, nothing stands under the name of another list.
    if (!isHere && loaded !== `${shown} ${period}`) {
      loaded = "";
      ranks.replaceChildren();
      setText(words, "");
    }
    for (const element of present.elements) element.hidden = !isHere;
    periods.hidden = ranks.hidden = words.hidden = isHere;
    if (isHere) return present.show();
    ranks.setAttribute("aria-label", RANKS[shown].title);
    load();
  }
  /** @type {unknown[]} */
  let known = [audience.givers, audience.fans];
  const changed = () => {
    const now = [audience.givers, audience.fans];
    const isNews = now.some((list, index) => list !== known[index]);
    known = now;
    if (shown === "here") present.show();
    else if (isNews) load();
  };
  audience.addEventListener("change", changed);
  audience.sync.addEventListener("change", changed);
  show();
  await ask({
    name: "people", title: "People", body: [...part.shows("ranks") ? [tabs] : [], periods, ...present.elements, ranks, words],
    choices: [{ value: "close", label: "Close" }],
  });
  audience.removeEventListener("change", changed);
  audience.sync.removeEventListener("change", changed);
}

/**
 * @param {string} name
 * @param {string} title for screen readers
 * @param {[string, string][]} choices value, label
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
function makeTabs(name, title, choices, chosen, choose) {
  return h("fieldset.tabs", { "data-name": name, "aria-label": title },
    ...choices.map(([value, label]) => h("label", {},
      h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }), h("span", {}, label))));
}
