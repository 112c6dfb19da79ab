// @ts-check

import { follow, h, icon, isolate, reconcile, setText } from "../dom.js";
import { manage } from "./manage.js";

/** @typedef {import("../room.js").Room} Room */

/** Who wants to speak, who is invited, who watches. Hosts act on it; speakers see it. */
export const people = {
  name: "people",
  layer: /** @type {const} */ ("float"),
  /** @param {Room} room @param {HTMLElement} layer */
  mount(room, layer) {
    const hands = section("Raised hands", "hands", "Nobody wants to speak.");
    const invited = section("Invited", "invitations", "");
    const viewers = section("Watching", "viewer-list", "Nobody with a name watches.");
    const banned = section("Kept out", "bans", "");
    const root = h("section.card.people#people", { "aria-label": "People", hidden: true },
      hands.root, invited.root, viewers.root, banned.root);
    layer.append(root);
    let count = 0;
    const unfollow = follow(room, () => {
      const { known } = room.sync;
      root.hidden = !known || !room.isOpen || !room.isOnStage;
      if (root.hidden || !known) return;
      const bySince = (/** @type {[string, any]} */ [, a], /** @type {[string, any]} */ [, b]) =>
        a.since.localeCompare(b.since);
      // A hand stays up until its owner has answered; here they show as invited.
      const raised = Object.entries(known.raisedHands).filter(([id]) => !(id in known.invitations)).sort(bySince);
      hands.show(raised, (id) => row(room, id, [
        ["Invite", "invite", () => room.api.invite(id)], ["Lower", "lower", () => room.api.lowerHand(id)],
      ]));
      // The last hand that went up is news; that one went down is not.
      if (raised.length > count && room.isHost) {
        const [id, entry] = raised[raised.length - 1];
        room.say(`${isolate(entry.name || id)} wants to speak.`);
      }
      count = raised.length;
      invited.show(Object.entries(known.invitations).sort(bySince), (id) => row(room, id, [
        ["Withdraw", "withdraw", () => room.api.endInvitation(id)],
      ]));
      const isElsewhere = (/** @type {string} */ id) => id in known.raisedHands || id in known.invitations;
      const named = Object.entries(known.viewers).filter(([id]) => !isElsewhere(id))
        .sort(([a, { name: left }], [b, { name: right }]) => (left || a).localeCompare(right || b));
      viewers.show(named, (id) => row(room, id, []), known.counts.viewers);
      const kept = room.isHost ? Object.entries(room.bans).sort(bySince) : [];
      banned.show(kept, (id) => row(room, id, [["Let in again", "unban", async () => {
        await room.api.unban(id);
        await room.askForBans();
        room.say(`${isolate(id)} may come back.`);
      }]], false));
    });
    return () => {
      unfollow();
      root.remove();
    };
  },
};

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
     */
    show(entries, make, total = entries.length) {
      setText(heading, total ? `${title} · ${total}` : title);
      empty.hidden = entries.length > 0;
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
  const name = h("span.who", { dir: "auto" });
  const buttons = actions.map(([label, action, act]) => h("button.button.small", {
    type: "button", "data-action": action, onclick: () => room.attempt(act),
  }, label));
  const more = h("button.button.round.small", { type: "button", onclick: () => manage(room, id) }, icon("more"));
  const root = h("li", { "data-participant": id }, name, ...buttons, more);
  root.update = (/** @type {{ name: string | null }} */ entry) => {
    const shown = entry.name || id;
    setText(name, shown);
    for (const [index, button] of buttons.entries()) {
      button.hidden = !room.isHost;
      button.setAttribute("aria-label", `${actions[index][0]}: ${shown}`);
    }
    more.hidden = !room.isHost || !isHere;
    more.setAttribute("aria-label", `More about ${shown}`);
  };
  return root;
}
