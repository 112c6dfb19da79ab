// @ts-check

import { callName, follow, h, icon, isolate, reconcile, setText } from "../dom.js";
import { inOrder, makeBadges } from "../ranks.js";
import { memberOf } from "../sync.js";
import { manage } from "./manage.js";

/** @typedef {import("../room.js").Room} Room */

/** What viewers can rewind is kept a second or two after it is live; past this, the server has no room, in ms. */
const KEEPING_MS = 5000;

/** For hosts: who wants to speak and who is invited. For everyone on stage: who is watching. */
export const people = {
  name: "people",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const hands = section("Raised hands", "hands", "No one wants to speak.");
    const invited = section("Invited", "invitations", "");
    const viewers = section("Watching", "viewer-list", "No one is watching yet.");
    const banned = section("Kept out", "bans", "");
    // Guests are invited to be seen; a host might not notice that they are not.
    const alone = h("div.group.alone#alone", { hidden: true },
      h("p", { role: "status" }, "Viewers see and hear only you, even when others are on stage."),
      h("p.actions", {}, h("button.button.small#show-everybody", {
        type: "button", onclick: () => room.attempt(() => room.edit({ programme: "composed" })),
      }, "Show everyone on stage")));
    const unkept = h("p.group#unkept", { role: "status", hidden: true },
      "Viewers can’t rewind this stream: the server has no room to keep it. They can once another stream ends.");
    /** Since when it is to be kept, and is not. @type {number | null} */
    let unkeptSince = null;
    const root = h("section.card.people#people", { "aria-label": "People", hidden: true },
      alone, unkept, hands.root, invited.root, viewers.root, banned.root);
    layer.append(root);
    let count = 0;
    const unfollow = follow(room, () => {
      const { known } = room.sync;
      root.hidden = !known || !room.isOpen || !room.isOnStage;
      if (root.hidden || !known) return;
      alone.hidden = !room.isHost || room.info?.programme !== "host"
        || Object.keys(known.speakers).length < 2 && !Object.keys(known.invitations).length;
      const isUnkept = room.isHost && room.info?.state === "live" && room.info.hls !== "off"
        && Boolean(room.info.dvrSeconds) && room.info.isKept === false;
      unkeptSince = isUnkept ? unkeptSince ?? performance.now() : null;
      unkept.hidden = unkeptSince === null || performance.now() - unkeptSince < KEEPING_MS;
      const bySince = (/** @type {[string, any]} */ [, a], /** @type {[string, any]} */ [, b]) =>
        a.since.localeCompare(b.since);
      // A hand stays up until its owner has answered; here they show as invited.
      const raised = Object.entries(known.raisedHands).filter(([id]) => !memberOf(known.invitations, id));
      hands.show(room.isHost ? waitingList(raised) : [], (id) => row(room, id, [
        ["Invite", "invite", () => room.api.invite(id)], ["Lower", "lower", () => room.api.lowerHand(id)],
      ]));
      // What only the host can act upon.
      hands.root.hidden = !room.isHost;
      // The last hand that went up is news; that one went down is not.
      if (raised.length > count && room.isHost) {
        const [id, entry] = raised.sort(bySince)[raised.length - 1];
        room.say(`${isolate(callName(id, entry.name))} wants to speak.`);
      }
      count = raised.length;
      invited.show(room.isHost ? Object.entries(known.invitations).sort(bySince) : [], (id) => row(room, id, [
        ["Withdraw", "withdraw", () => room.api.endInvitation(id)],
      ]));
      const isElsewhere = (/** @type {string} */ id) =>
        memberOf(known.raisedHands, id) || memberOf(known.invitations, id);
      const named = inOrder(Object.entries(known.viewers).filter(([id]) => !isElsewhere(id)), room.audience);
      // Of those who are counted, some have their place above, and some have said no name.
      const elsewhere = Object.keys(known.viewers).length - named.length;
      const total = Math.max(known.counts.viewers ?? 0, named.length + elsewhere);
      viewers.show(named, (id) => row(room, id, []), total, restWords(room, total - named.length, elsewhere));
      const kept = room.isHost ? Object.entries(room.bans).sort(bySince) : [];
      banned.show(kept, (id) => row(room, id, [["Let back in", "unban", async () => {
        await room.api.unban(id);
        await room.askForBans();
        room.say(`${isolate(id)} can come back.`);
      }]], false));
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};

/**
 * Raised hands as the host means to invite them; those that are held come last and have no place.
 * @param {[string, import("../sync.js").Hand][]} hands
 * @returns {[string, import("../sync.js").Hand & { place: number }][]}
 */
function waitingList(hands) {
  const sorted = hands.sort(([, one], [, other]) => Number(one.held) - Number(other.held) || one.order - other.order
    || one.since.localeCompare(other.since));
  return sorted.map(([id, entry], index) => [id, { ...entry, place: entry.held ? 0 : index + 1 }]);
}

/**
 * What there is to say of viewers whom the list does not name.
 * @param {Room} room
 * @param {number} count those who are counted and not in the list
 * @param {number} elsewhere how many of them are in a list above
 */
function restWords(room, count, elsewhere) {
  const waiting = room.sync.known?.counts.waiting ?? 0;
  if (room.info?.state === "backstage" && waiting) return waiting === 1 ? "1 person is waiting." : `${waiting} people are waiting.`;
  const unnamed = count - elsewhere;
  if (unnamed > 0) return unnamed === 1 ? "1 person without a name." : `${unnamed} people without a name.`;
  return elsewhere === 1 ? "1 person, listed above." : elsewhere > 1 ? `${elsewhere} people, listed above.` : "";
}

/** @param {string} title @param {string} id @param {string} nobody said while it is empty; "" hides it then */
function section(title, id, nobody) {
  const heading = h("h2");
  const list = h(`ul#${id}`, { "aria-label": title });
  const empty = h("p.muted", {}, nobody);
  const root = h("div.group", {}, heading, list, empty);
  return {
    root,
    /**
     * @param {[string, any][]} entries
     * @param {(id: string) => any} make
     * @param {number} [total]
     * @param {string} [rest] about those who are not in the list
     */
    show(entries, make, total = entries.length, rest = "") {
      setText(heading, total ? `${title} · ${total}` : title);
      setText(empty, rest || nobody);
      empty.hidden = entries.length > 0 && !rest;
      root.hidden = !entries.length && !nobody;
      reconcile(list, entries, make);
    },
  };
}

/**
 * @param {Room} room
 * @param {string} id
 * @param {[string, string, () => Promise<unknown>][]} actions for hosts: label, name, what it does
 * @param {boolean} [isHere] whether more can be done about them
 */
function row(room, id, actions, isHere = true) {
  const badges = makeBadges();
  const place = h("span.place", { hidden: true });
  const called = h("span", { dir: "auto" });
  const name = h("span.who", {}, place, ...badges.medals, called, badges.word);
  const buttons = actions.map(([label, action, act]) => h("button.button.small", {
    type: "button", "data-action": action, onclick: () => room.attempt(act),
  }, label));
  const more = h("button.button.round.small", { type: "button", onclick: () => manage(room, id) }, icon("more"));
  const root = h("li", { "data-participant": id }, name, ...buttons, more);
  /** @param {{ name: string | null, moderator?: boolean, place?: number, held?: boolean }} entry */
  root.update = (entry) => {
    const shown = callName(id, entry.name);
    setText(called, shown);
    badges.update(room.audience, { id, role: "viewer", isModerator: entry.moderator === true });
    place.hidden = entry.place === undefined;
    setText(place, entry.held ? "On hold" : String(entry.place ?? ""));
    root.classList.toggle("held", entry.held === true);
    for (const [index, button] of buttons.entries()) {
      button.hidden = !room.isHost;
      button.setAttribute("aria-label", `${actions[index][0]}: ${shown}`);
    }
    more.hidden = !room.isHost || !isHere;
    more.setAttribute("aria-label", `More options for ${shown}`);
  };
  return root;
}
