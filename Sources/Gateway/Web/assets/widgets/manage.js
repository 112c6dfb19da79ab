// @ts-check

import { ask, confirm } from "../dialog.js";
import { callName, isolate } from "../dom.js";
import { memberOf } from "../sync.js";

/**
 * A dialog with what a host can do about a person.
 * @param {import("../room.js").Room} room
 * @param {string} id
 */
export async function manage(room, id) {
  const { known } = room.sync;
  const member = memberOf(known?.speakers, id);
  const inAudience = memberOf(known?.viewers, id)?.name || memberOf(known?.raisedHands, id)?.name;
  const name = callName(id, member?.name || inAudience);
  const choices = member
    ? [
      ...(member.audioMuted ? [] : [{ value: "mute-audio", label: "Mute microphone" }]),
      ...(member.videoMuted ? [] : [{ value: "mute-video", label: "Turn camera off" }]),
      { value: "move", label: "Move to the audience" },
    ]
    : [{ value: "invite", label: "Invite to the stage" }, ...waitingChoices(room, id)];
  const answer = await ask({
    name: "manage",
    title: name,
    choices: /** @type {import("../dialog.js").Choice[]} */ ([
      ...choices,
      { value: "remove", label: "Remove from the stream", look: "danger" },
      { value: "ban", label: "Remove and keep out", look: "danger" },
      { value: "nothing", label: "Cancel" },
    ]),
  });
  switch (answer) {
    case "mute-audio": return room.attempt(() => room.api.requestMute(id, "audio"));
    case "mute-video": return room.attempt(() => room.api.requestMute(id, "video"));
    case "move": return room.attempt(() => room.api.leaveStage(id));
    case "invite": return room.attempt(() => room.api.invite(id));
    case "first": return room.attempt(() => room.api.arrangeHand(id, { place: 1 }));
    case "up": return room.attempt(() => room.api.arrangeHand(id, { place: placeOf(room, id) - 1 }));
    case "down": return room.attempt(() => room.api.arrangeHand(id, { place: placeOf(room, id) + 1 }));
    case "hold": return room.attempt(() => room.api.arrangeHand(id, { held: true }));
    case "release": return room.attempt(() => room.api.arrangeHand(id, { held: false }));
    case "remove": return remove(room, id, name, false);
    case "ban": return remove(room, id, name, true);
  }
}

/** Those waiting with a raised hand, the next one first. @param {import("../room.js").Room} room */
function waiting({ sync: { known } }) {
  return Object.entries(known?.raisedHands ?? {}).filter(([, { held }]) => !held)
    .sort(([, one], [, other]) => one.order - other.order || one.since.localeCompare(other.since)).map(([id]) => id);
}

/** From 1 on; 0 for a hand that is held or not raised. @param {import("../room.js").Room} room @param {string} id */
function placeOf(room, id) {
  return waiting(room).indexOf(id) + 1;
}

/** What can be done with a person's raised hand. @param {import("../room.js").Room} room @param {string} id */
function waitingChoices(room, id) {
  const hand = memberOf(room.sync.known?.raisedHands, id);
  if (!hand) return [];
  if (hand.held) return [{ value: "release", label: "Put back in line" }];
  const [place, count] = [placeOf(room, id), waiting(room).length];
  return [
    ...place > 1 ? [{ value: "first", label: "Move to the front" }] : [],
    ...place > 2 ? [{ value: "up", label: "Move up" }] : [],
    ...place < count ? [{ value: "down", label: "Move down" }] : [],
    { value: "hold", label: "Put on hold" },
  ];
}

/**
 * Removes a person, once the host confirms.
 * @param {import("../room.js").Room} room
 * @param {string} id
 * @param {string} name
 * @param {boolean} ban whether they cannot come back
 */
export async function remove(room, id, name, ban) {
  const text = ban ? "They can’t come back to this stream." : "They can come back with the link they have.";
  if (!(await confirm({ name: "remove", title: `Remove ${isolate(name)}?`, text, yes: "Remove" }))) return;
  if (!(await room.attempt(() => room.api.remove(id, { ban })))) return;
  room.say(`${isolate(name)} was removed.`);
  if (ban) await room.askForBans();
}
