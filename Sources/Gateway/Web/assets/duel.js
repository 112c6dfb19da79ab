// @ts-check

/**
 * A duel of this stream with another one: the bar that everyone sees over the picture, and the host's controls. All of
 * it follows the server; only the time left is counted here.
 */

import { ask } from "./dialog.js";
import { follow, formatDuration, h, isolate, setText } from "./dom.js";
import { SignallingError } from "./session.js";

/** The lengths of a duel to choose from, in seconds. */
const LENGTHS = [60, 180, 300, 600, 900];
const USUAL_LENGTH = 300;
/** Between two looks at the clock, in milliseconds. */
const TICK_MS = 200;

/**
 * @typedef {{ stream: string, name: string | null, score: number }} DuelSide
 *
 * @typedef {object} Duel
 * @property {string} id
 * @property {"invited" | "off" | "countdown" | "running" | "settling" | "penalty" | "over"} state
 * @property {DuelSide} from whose host invited
 * @property {DuelSide} to
 * @property {number} seconds
 * @property {number} penaltySeconds
 * @property {string} expiresAt ISO 8601, as all times
 * @property {string | null} startsAt
 * @property {string | null} endsAt
 * @property {string | null} overAt
 * @property {string | null} winner a stream's name
 * @property {string | null} reason
 * @property {string} at the server's clock
 */

/** @param {Duel} duel @param {string} stream */
export function sidesOf(duel, stream) {
  return duel.from.stream === stream ? { own: duel.from, other: duel.to } : { own: duel.to, other: duel.from };
}

/** @param {DuelSide} side */
function nameOf(side) {
  return side.name || side.stream;
}

/**
 * What became of it, in words.
 * @param {Duel} duel
 * @param {string} stream whose page it is
 */
export function resultOf(duel, stream) {
  const { own, other } = sidesOf(duel, stream);
  if (!duel.reason) return duel.state === "over" ? "No result: the other stream didn’t respond" : "";
  if (!duel.winner) return "It’s a draw";
  const [winner, loser] = duel.winner === own.stream ? [own, other] : [other, own];
  const why = {
    left: `${isolate(nameOf(loser))} left`, "host-gone": `${isolate(nameOf(loser))} disconnected`,
    "stream-ended": `${isolate(nameOf(loser))}’s stream ended`,
  }[duel.reason];
  return `${isolate(nameOf(winner))} wins${why ? `: ${why}` : ""}`;
}

/** Why an invitation came to nothing, in words. @param {Duel} duel @param {string} stream */
function refusalOf(duel, stream) {
  const other = isolate(nameOf(sidesOf(duel, stream).other));
  switch (duel.reason) {
    case "declined": return duel.to.stream === stream ? "" : `${other} declined.`;
    case "busy": return `${other} is in another duel.`;
    case "not-live": return `${other} isn’t live.`;
    case "duels-off": return `${other} doesn’t accept duel invitations.`;
    case "declined-before": return `${other} declined. You can ask again in ten minutes.`;
    case "other-gate": return "For a duel, both streams must require the same tier.";
    case "expired": return duel.to.stream === stream ? "The duel invitation has expired." : `${other} didn’t answer.`;
    case "cancelled": return duel.to.stream === stream ? `${other} withdrew the invitation.` : "";
    default: return "The duel was called off.";
  }
}

/** Names, scores and the clock, for everyone. @param {import("./talk.js").Part} part */
export function makeDuelBar({ audience, shows }) {
  const clock = h("b.duel-clock", { role: "timer" });
  const sides = ["own", "other"].map((name) => ({
    root: h(`p.duel-${name}`), name: h("span", { dir: "auto" }), score: h("b"),
  }));
  for (const { root, name, score } of sides) root.append(name, score);
  const share = h("i", { "aria-hidden": "true" });
  const words = h("p.duel-words", { role: "status", dir: "auto" });
  const root = h("section.duel-bar", { "aria-label": "Duel", hidden: true },
    h("div.duel-head", {}, sides[0].root, clock, sides[1].root), h("div.duel-share", {}, share), words);
  /** @type {number | undefined} */
  let timer;

  const tick = () => {
    const { duel } = audience;
    if (!duel) return;
    const until = { countdown: duel.startsAt, running: duel.endsAt, penalty: duel.overAt }[/** @type {"running"} */ (duel.state)];
    const left = until ? Math.max(Date.parse(until) - audience.serverNow(), 0) : 0;
    setText(clock, duel.state === "countdown" ? String(Math.max(Math.ceil(left / 1000), 1)) : until ? formatDuration(left + 999) : "–");
  };

  const unfollow = follow(audience, () => {
    const { duel } = audience;
    const isShown = duel !== null && duel.state !== "invited" && duel.state !== "off" && shows("duel");
    root.hidden = !isShown;
    clearInterval(timer);
    if (!isShown) return;
    timer = setInterval(tick, TICK_MS);
    const { own, other } = sidesOf(duel, audience.api.stream);
    [own, other].forEach((side, index) => {
      setText(sides[index].name, nameOf(side));
      setText(sides[index].score, String(side.score));
    });
    root.dataset.state = duel.state;
    root.dataset.result = !duel.reason ? "" : !duel.winner ? "draw" : duel.winner === own.stream ? "won" : "lost";
    const sum = own.score + other.score;
    share.style.width = `${sum === 0 ? 50 : Math.round(own.score / sum * 1000) / 10}%`;
    const result = resultOf(duel, audience.api.stream);
    setText(words, duel.state === "countdown" ? "The duel is starting" : duel.state === "settling" ? "Counting…"
      : duel.state === "penalty" ? `${result} · penalty` : result);
    tick();
  });
  return {
    root,
    stop() {
      clearInterval(timer);
      unfollow();
      root.remove();
    },
  };
}

/** The host's controls: invite, answer, leave, and ask for a rematch. @param {import("./talk.js").Part} part */
export function makeDuelDesk(part) {
  const { audience, say } = part;
  const { api } = audience;
  const button = h("button.button.small#invite-duel", { type: "button", onclick: () => choose() }, "Duel…");
  const words = h("p", { dir: "auto" });
  const cancel = act("Withdraw", (id) => api.cancelDuel(id), "cancel-duel");
  const leave = act("Leave the duel", (id) => api.leaveDuel(id), "leave-duel");
  const rematch = act("Rematch", (id) => api.rematchDuel(id), "rematch-duel");
  const root = h("div.duel-desk", { hidden: true, role: "group", "aria-label": "Your duel" }, words, h("p.actions", {}, cancel, rematch, leave));
  /** The invitation shown to the host. @type {{ id: string, abort: AbortController } | null} */
  let question = null;
  /** The last duel reported as called off. */
  let toldOff = "";
  /** The one that a rematch would repeat. @type {Duel | null} */
  let last = null;

  /** @param {string} label @param {(id: string) => Promise<unknown>} action @param {string} name */
  function act(label, action, name) {
    return h(`button.button.small#${name}`, {
      type: "button", onclick: () => attempt(() => action((audience.duel ?? last)?.id ?? "")),
    }, label);
  }

  /** @param {() => Promise<any>} action @returns {Promise<boolean>} whether the server has decided on it */
  async function attempt(action) {
    try {
      const duel = await action();
      // It may come after what followers were told, which is never less; both can be of the same millisecond.
      const isNews = duel?.id !== audience.duel?.id && duel?.id !== toldOff;
      if (duel?.state === "invited" && isNews) audience.showDuel(duel);
      return true;
    } catch (error) {
      say(error instanceof SignallingError ? error.message : "The server isn’t responding. Try again in a moment.");
      return error instanceof SignallingError && error.status < 500;
    }
  }

  async function choose() {
    /** @type {import("./sync.js").StreamInfo[]} */
    let streams;
    try {
      streams = (await api.liveStreams()).filter(({ id }) => id !== api.stream);
    } catch {
      say("The server isn’t responding. Try again in a moment.");
      return;
    }
    if (streams.length === 0) {
      say("No one else is live right now.");
      return;
    }
    const rival = h("select", { name: "rival" }, ...streams.map(({ id, title, hostName }) =>
      new Option([hostName, title].filter(Boolean).join(" · ") || id, id)));
    const seconds = h("select", { name: "seconds" }, ...LENGTHS.map((length) =>
      new Option(length === 60 ? "1 minute" : `${length / 60} minutes`, String(length), false, length === USUAL_LENGTH)));
    const answer = await ask({
      name: "duel", title: "Invite to a duel",
      text: "Both audiences see and hear you both. Hearts and gifts score points.",
      body: [h("div.fields", {}, h("label", {}, "Opponent", rival), h("label", {}, "Length", seconds))],
      choices: [{ value: "invite", label: "Invite", look: "primary" }, { value: "no", label: "Cancel" }],
    });
    if (answer === "invite") await attempt(() => api.inviteToDuel(rival.value, { seconds: Number(seconds.value) }));
  }

  /** Asks the host, for as long as the invitation is open. @param {Duel} duel */
  async function put(duel) {
    const abort = new AbortController();
    question = { id: duel.id, abort };
    const left = h("b");
    const tick = () => setText(left, `${Math.max(Math.ceil((Date.parse(duel.expiresAt) - audience.serverNow()) / 1000), 0)} s`);
    tick();
    const timer = setInterval(tick, TICK_MS);
    const minutes = duel.seconds % 60 === 0 ? `${duel.seconds / 60} min` : `${duel.seconds} s`;
    const answer = await ask({
      name: "duel-invitation", title: `Duel with ${isolate(nameOf(duel.from))}?`,
      text: `For ${minutes}, both audiences see and hear you both. Hearts and gifts score points.`,
      body: [h("p.duel-left", {}, "Answer within ", left)],
      choices: [{ value: "accept", label: "Accept", look: "primary" }, { value: "decline", label: "Decline" }],
      isUrgent: true, isReady: true, signal: abort.signal,
    });
    clearInterval(timer);
    if (abort.signal.aborted) return;
    const isDecided = await attempt(() => answer === "accept" ? api.acceptDuel(duel.id) : api.declineDuel(duel.id));
    if (isDecided || question?.abort !== abort || Date.parse(duel.expiresAt) <= audience.serverNow()) return;
    // The answer got lost, and there is still time to give it.
    question = null;
    audience.dispatchEvent(new Event("change"));
  }

  const unfollow = follow(audience, () => {
    const { duel, isModerator } = audience;
    if (duel?.state === "penalty" || duel?.state === "over") last = duel;
    const mayInvite = !duel || duel.state === "off" || duel.state === "over";
    button.hidden = !audience.isOpen || !isModerator || !mayInvite;
    const isAsked = duel?.state === "invited" && duel.to.stream === api.stream && isModerator;
    if (question && question.id !== (isAsked ? duel.id : "")) {
      question.abort.abort();
      question = null;
    }
    if (isAsked && question?.id !== duel.id) put(duel);
    if (duel?.state === "off" && toldOff !== duel.id) {
      toldOff = duel.id;
      const text = refusalOf(duel, api.stream);
      if (text) say(text);
    }
    const isOurs = duel?.state === "invited" && duel.from.stream === api.stream;
    cancel.hidden = !isOurs;
    leave.hidden = !duel || !["countdown", "running", "penalty"].includes(duel.state);
    setText(leave, duel?.state === "penalty" ? "Leave now" : "Leave the duel");
    const again = duel ?? last;
    const hasLost = again?.winner !== null && again?.winner !== api.stream;
    rematch.hidden = !again || !(duel?.state === "over" || duel?.state === "penalty" && !hasLost);
    setText(words, isOurs ? `Waiting for ${isolate(nameOf(duel.to))}…` : "");
    words.hidden = !isOurs;
    root.hidden = !isModerator || cancel.hidden && leave.hidden && rematch.hidden;
  });
  return {
    button, root,
    stop() {
      unfollow();
      question?.abort.abort();
      button.remove();
      root.remove();
    },
  };
}
