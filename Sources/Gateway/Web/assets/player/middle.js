// @ts-check

/** The middle of the picture: why there is nothing to see, and what the viewer can do about it. */

import { formatDuration, h, reconcile, setText } from "../dom.js";
import { showUnlock } from "../gate.js";
import { formatSize, isClip } from "../recordings.js";
import { icon } from "./icons.js";
import { fill } from "./strings.js";

/** Longer times are given in days, in milliseconds. */
const DAY_MS = 86_400_000;

/**
 * @typedef {import("./playback.js").Playback} Playback
 * @typedef {import("./strings.js").Strings} Strings
 * @typedef {import("./playback.js").Reason} Reason
 */

/** @type {Record<Reason, keyof Strings | "">} */
const REASONS = {
  "no-address": "noAddress", unsupported: "unsupported", "token-needed": "tokenNeeded", "token-refused": "tokenRefused",
  "link-revoked": "linkRevoked", banned: "banned", removed: "removed", "not-permitted": "notPermitted", failed: "",
};
/** @type {Record<import("../viewing.js").Trouble, keyof Strings>} */
const TROUBLE = {
  server: "troubleServer", busy: "troubleBusy", blocked: "troubleBlocked", nothing: "troubleNothing", weak: "troubleWeak",
};

/**
 * @typedef {object} Actions
 * @property {() => void} play
 * @property {() => void} turnSoundOn
 * @property {() => void} retry
 * @property {(recording: import("./playback.js").Recording) => void} playRecording
 */

export class Middle {
  #countdownLabel = h("span.countdown-label");
  #digits = h("span.digits");
  #when = h("span.when");
  // Outside the live region, which would read every second aloud.
  #countdown = h("div.countdown", { role: "timer", part: "countdown", hidden: true },
    this.#countdownLabel, this.#digits, this.#when);
  #sign = h("div.sign", { "aria-hidden": "true", hidden: true }, icon("lock"));
  #title = h("p.title");
  #hint = h("p.hint");
  #waiting = h("p.hint");
  #status = h("div.status", { role: "status", part: "status" }, this.#title, this.#hint, this.#waiting);
  #spinner = h("div.spinner", { "aria-hidden": "true" });
  #list = h("ul.recordings", { part: "recordings" });
  #retry = h("button.pill", { type: "button", part: "retry-button", hidden: true });
  #unlock = h("a.pill.unlock", { target: "_blank", rel: "noopener", part: "unlock", hidden: true });
  #play = h("button.big", { type: "button", part: "play", hidden: true }, icon("play"));
  #soundWords = h("span");
  #sound = h("button.pill.sound-on", { type: "button", part: "sound-button", hidden: true }, icon("muted"), this.#soundWords);
  element = h("div.middle", {},
    this.#spinner, this.#sign, this.#countdown, this.#status, this.#list, this.#unlock, this.#retry, this.#play,
    this.#sound);

  /** @param {Actions} actions */
  constructor(actions) {
    this.actions = actions;
    this.#play.addEventListener("click", actions.play);
    this.#sound.addEventListener("click", actions.turnSoundOn);
    this.#retry.addEventListener("click", actions.retry);
  }

  /**
   * @param {object} view
   * @param {Playback | null} view.playback
   * @param {import("./playback.js").PlayerState} view.state
   * @param {import("./playback.js").Problem | null} view.problem
   * @param {Strings} view.strings
   * @param {boolean} view.offersSound whether to ask for a tap that turns the sound on
   */
  update({ playback, state, problem, strings, offersSound }) {
    const isPlaying = playback?.recording != null;
    const [title, hint] = isPlaying ? ["", ""] : words(playback, state, problem, strings);
    this.#updateCountdown(playback, state, strings);
    // The countdown says the same, and when.
    setText(this.#title, this.#countdown.hidden ? title : "");
    setText(this.#hint, hint);
    this.#spinner.hidden = isPlaying || state !== "connecting" && state !== "reconnecting";
    const gate = state === "gated" && !isPlaying ? playback?.gate ?? null : null;
    showUnlock(this.#unlock, gate);
    setText(this.#unlock, strings.unlock);
    this.#sign.hidden = !gate && state !== "refused" || problem?.reason === "no-address" || problem?.reason === "unsupported";
    const count = state === "backstage" ? playback?.stream.sync.known?.counts.waiting ?? 0 : 0;
    setText(this.#waiting, count === 0 ? "" : count === 1 ? strings.waitingOne : fill(strings.waitingPeople, { count }));
    const trouble = playback?.trouble ?? null;
    this.#retry.hidden = !playback || isPlaying || state !== "failed" && state !== "reconnecting" && !trouble;
    setText(this.#retry, state === "failed" ? strings.tryAgain : strings.tryNow);
    this.#play.hidden = !(playback && playback.isPaused && (isPlaying || ["idle", "live", "away"].includes(state)));
    this.#play.setAttribute("aria-label", strings.play);
    this.#sound.hidden = !offersSound || !this.#play.hidden;
    setText(this.#soundWords, strings.unmute);
    this.#list.hidden = state !== "ended" || isPlaying || !playback?.recordings.list.length;
    this.#list.setAttribute("aria-label", strings.recorded);
    const list = this.#list.hidden ? [] : playback?.recordings.list ?? [];
    reconcile(this.#list, list.map((each) => [each.id, each]), () => row(this.actions.playRecording));
    const parts = list.filter((each) => !isClip(each)).length;
    for (const [index, item] of [...this.#list.children].entries()) {
      const part = fill(strings.recordingPart, { number: index + 1 });
      const clip = isClip(list[index]) && (list[index].title || strings.clip);
      /** @type {any} */ (item).mark(clip || (parts > 1 ? part : strings.watchRecording));
    }
  }

  /** @param {Playback | null} playback @param {string} state @param {Strings} strings */
  #updateCountdown(playback, state, strings) {
    const startsAt = Date.parse(playback?.stream.info?.startsAt ?? "");
    const left = startsAt - Date.now();
    this.#countdown.hidden = state !== "backstage" || !(left > 0);
    if (this.#countdown.hidden) return;
    setText(this.#countdownLabel, strings.startsIn);
    const days = Math.floor(left / DAY_MS);
    // Rounded up, so that it reaches 0 at the start.
    const rest = formatDuration(left % DAY_MS + 999);
    setText(this.#digits, days ? `${days} d ${rest}` : rest);
    setText(this.#when, new Date(startsAt).toLocaleString(undefined, {
      weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit",
    }));
  }
}

/**
 * @param {Playback | null} playback
 * @param {import("./playback.js").PlayerState} state
 * @param {import("./playback.js").Problem | null} problem
 * @param {Strings} strings
 * @returns {[title: string, hint: string]}
 */
function words(playback, state, problem, strings) {
  if (problem) {
    const key = REASONS[problem.reason];
    const isOurs = state === "failed" || problem.reason === "no-address" || problem.reason === "unsupported";
    return [isOurs ? strings.failed : strings.refused, key ? strings[key] : problem.message];
  }
  const trouble = playback?.trouble;
  if (trouble) return [strings[TROUBLE[trouble]], strings[/** @type {keyof Strings} */ (`${TROUBLE[trouble]}Hint`)]];
  switch (state) {
    case "live": return [playback?.isSoundAlone ? strings.soundOnly : "", ""];
    case "idle": case "refused": case "failed": return ["", ""];
    case "gated": return wordsForGate(playback?.gate ?? null, strings);
    case "backstage": return [strings.backstage, playback?.isPaused ? strings.backstagePaused : strings.backstageHint];
    case "ended": return [strings.ended, playback?.recordings.list.length ? strings.recorded : strings.endedHint];
    default: return [strings[state], strings[/** @type {keyof Strings} */ (`${state}Hint`)]];
  }
}

/**
 * Where the gate names no link, nothing here can be unlocked.
 * @param {import("../gate.js").Gate | null} gate
 * @param {Strings} strings
 * @returns {[title: string, hint: string]}
 */
function wordsForGate(gate, strings) {
  const title = fill(strings.gated, { tier: gate?.tier ?? "" });
  return [title, gate?.unlock ? strings.gatedHint : strings.gatedNoLinkHint];
}

/** @param {Actions["playRecording"]} play */
function row(play) {
  const name = h("span.name");
  const about = h("span.about");
  /** @type {import("./playback.js").Recording} */
  let recording;
  const root = h("li", {}, h("button.recording", { type: "button", part: "recording", onclick: () => play(recording) },
    icon("play"), name, about));
  root.update = (/** @type {import("./playback.js").Recording} */ each) => {
    recording = each;
    setText(about, `${formatDuration(each.duration * 1000)} · ${formatSize(each.size)}`);
  };
  root.mark = (/** @type {string} */ text) => setText(name, text);
  return root;
}
