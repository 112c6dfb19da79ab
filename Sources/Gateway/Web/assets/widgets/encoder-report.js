// @ts-check

import { callName, h, icon, isolate } from "../dom.js";
import { formatBitrate } from "../stats.js";
import { memberOf } from "../sync.js";

/** @typedef {import("../stage-api.js").Encoder} Encoder */

/** The profiles of H.264 that people know. @type {Record<number, string>} */
const PROFILES = { 66: "baseline", 77: "main", 100: "high", 110: "high 10", 122: "high 4:2:2", 244: "high 4:4:4" };

/** @param {Encoder} encoder */
function describe({ video, audio, link }) {
  const parts = [];
  if (video) {
    const profile = video.codec === "H.264" && video.profile ? ` ${PROFILES[video.profile] ?? video.profile}` : "";
    parts.push(`${video.codec}${profile}`);
    if (video.width) parts.push(`${video.width}×${video.height}`);
    if (video.framesPerSecond) parts.push(`${Math.round(video.framesPerSecond)} fps`);
    if (video.bitrate) parts.push(formatBitrate(video.bitrate));
    if (video.keyFrameInterval) parts.push(`key frame every ${video.keyFrameInterval.toFixed(1)} s`);
  }
  if (audio) {
    parts.push(audio.codec);
    if (audio.sampleRate) parts.push(`${audio.sampleRate / 1000} kHz`);
    if (audio.bitrate) parts.push(formatBitrate(audio.bitrate));
  }
  if (link) {
    parts.push(`round trip ${Math.round(link.roundTrip)} ms`);
    if (link.lost) parts.push(`${link.lost} of ${link.received} packets lost, ${link.dropped} not recovered`);
  }
  return parts.join(", ");
}

/**
 * What arrives from encoders by RTMP and SRT, and what to change in their settings.
 * @param {import("../room.js").Room} room
 */
export function encoderReport(room) {
  // Not a live region: its numbers change every few seconds, and what needs attention is said as a message.
  const element = h("div#encoder-report");
  /** By who publishes. @type {Map<string, Encoder>} */
  const encoders = new Map();
  /** What was said aloud, so that it is said once. @type {Set<string>} */
  const said = new Set();
  /** Why the last one ended, where that needs words. */
  let end = "";

  /** @param {string} id */
  const nameOf = (id) => isolate(callName(id, memberOf(room.sync.known?.speakers, id)?.name));

  const show = () => {
    const lines = [...encoders].map(([participant, encoder]) => {
      const who = participant === room.you?.id ? "" : `${nameOf(participant)}: `;
      return h("p", { "data-participant": participant }, `${who}${describe(encoder)}`);
    });
    const advice = [...encoders.values()].flatMap((encoder) => encoder.advice)
      .map(({ code, text }) => h("p.warning", { "data-code": code }, icon("warning"), h("span", {}, text)));
    if (end) advice.push(h("p.warning", { "data-code": "end" }, icon("warning"), h("span", {}, end)));
    element.replaceChildren(...lines, ...advice);
  };

  /** @param {Event} event */
  const take = (event) => {
    const { participant, encoder, end: reason } = /** @type {CustomEvent} */ (event).detail;
    if (encoder) {
      encoders.set(participant, encoder);
      end = "";
      for (const { code, text } of encoder.advice) {
        if (!said.has(`${participant} ${code}`)) room.say(text);
        said.add(`${participant} ${code}`);
      }
    } else {
      encoders.delete(participant);
      for (const known of said) if (known.startsWith(`${participant} `)) said.delete(known);
      const needsWords = ["refused", "unsupported", "stalled", "malformed", "timed-out"].includes(reason?.reason);
      end = needsWords && reason.detail ? `The encoder was disconnected. ${reason.detail}` : "";
      if (end) room.say(end);
    }
    show();
  };
  room.sync.addEventListener("encoder", take);
  return {
    element,
    /** @param {Encoder[]} known */
    set(known) {
      encoders.clear();
      for (const encoder of known) encoders.set(encoder.participant, encoder);
      show();
    },
    unmount: () => room.sync.removeEventListener("encoder", take),
  };
}
