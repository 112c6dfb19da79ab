// @ts-check

/** The microphone level as a bar: people see that they will be heard before anyone hears them. */

import { h, icon, setText } from "./dom.js";

/** How often the bar moves, in milliseconds. */
const PAUSE_MS = 100;
/** Amplitudes at which the bar is empty and full, in decibels relative to full scale. */
const QUIETEST_DB = -60;
const LOUDEST_DB = -6;
/** Silence after which a hint is shown, in milliseconds: something may be wrong, or no one has spoken yet. */
const SILENCE_MS = 4000;

/**
 * @param {import("./own-media.js").OwnMedia} own
 * @returns {{ element: HTMLElement, stop: () => void }}
 */
export function levelMeter(own) {
  const bar = h("span.bar");
  const words = h("span.muted", { role: "status" });
  const element = h("div.level", { hidden: true },
    h("div.row", { role: "img", "aria-label": "Microphone level" }, icon("microphone"), h("span.track", {}, bar)),
    words);
  /** @type {MediaStreamTrack | null} */
  let track = null;
  /** @type {AudioContext | null} */
  let context = null;
  /** @type {AnalyserNode | null} */
  let ear = null;
  let heardAt = 0;
  const samples = new Float32Array(2048);

  const listen = () => {
    const wanted = own.source?.media.getAudioTracks()[0] ?? null;
    element.hidden = own.source === null;
    element.dataset.hasMicrophone = String(wanted !== null);
    setText(words, own.source && !wanted ? "No microphone. No one will hear you." : "");
    if (wanted === track) return;
    track = wanted;
    close();
    bar.style.scale = "1 1";
    if (!track) return;
    context = new AudioContext();
    ear = context.createAnalyser();
    context.createMediaStreamSource(new MediaStream([track])).connect(ear);
    heardAt = performance.now();
  };
  const close = () => {
    context?.close();
    context = ear = null;
  };
  const look = () => {
    if (!ear || !context) return;
    ear.getFloatTimeDomainData(samples);
    const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    const share = (20 * Math.log10(loudest || 1e-9) - QUIETEST_DB) / (LOUDEST_DB - QUIETEST_DB);
    bar.style.scale = `${(1 - Math.min(1, Math.max(0, share))).toFixed(2)} 1`;
    // Before a user gesture, the audio context does not run.
    if (share > 0.15 || context.state !== "running") heardAt = performance.now();
    const isSilent = performance.now() - heardAt > SILENCE_MS;
    setText(words, own.muted.audio ? "Your microphone is off." : isSilent ? "No sound from your microphone." : "");
  };
  // Browsers let the audio context run after a user gesture.
  const wake = () => void context?.resume();
  own.addEventListener("change", listen);
  own.addEventListener("source", listen);
  addEventListener("pointerdown", wake);
  addEventListener("keydown", wake);
  const timer = setInterval(look, PAUSE_MS);
  listen();
  return {
    element,
    stop() {
      clearInterval(timer);
      own.removeEventListener("change", listen);
      own.removeEventListener("source", listen);
      removeEventListener("pointerdown", wake);
      removeEventListener("keydown", wake);
      close();
    },
  };
}
