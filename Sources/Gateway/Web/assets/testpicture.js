// @ts-check

/** A generated picture with a clock and a tone, for people without a camera and for measurements. */

import { drawTimeCode, timeCodeNow } from "./timecode.js";

/** The drawing is laid out for this size. */
const WIDTH = 1280;
const HEIGHT = 720;
const BARS = ["#e8e8f0", "#e6c229", "#2bb8c4", "#3da35d", "#b24fb8", "#d1405a", "#3f57c9"];

/**
 * @typedef {object} TestPicture
 * @property {MediaStream} media one video and one audio track
 * @property {() => void} stop
 */

/**
 * Starts drawing. The tone needs a user's gesture before it sounds.
 * @param {{ height: number, frameRate: number }} wishes in pixels, and pictures a second
 * @returns {TestPicture}
 */
export function makeTestPicture({ height, frameRate }) {
  const canvas = document.createElement("canvas");
  // Codecs require even widths and heights.
  canvas.width = 2 * Math.round(height / HEIGHT * WIDTH / 2);
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  const background = drawBackground(canvas);

  const draw = () => {
    const now = new Date();
    context.drawImage(background, 0, 0);
    context.scale(canvas.width / WIDTH, height / HEIGHT);
    drawClock(context, now);
    context.resetTransform();
    drawTimeCode(context, timeCodeNow());
  };
  draw();
  const ticker = new Worker(new URL("./ticker.js", import.meta.url), { type: "module" });
  ticker.addEventListener("message", () => {
    draw();
    ticker.postMessage(null);
  });
  ticker.postMessage(1000 / frameRate);

  const video = canvas.captureStream(frameRate).getVideoTracks()[0];
  const tone = makeTone();
  return {
    media: new MediaStream([video, tone.track]),
    stop() {
      ticker.terminate();
      video.stop();
      tone.stop();
    },
  };
}

/**
 * The parts that are the same in all frames, drawn once.
 * @param {{ width: number, height: number }} size in pixels
 */
function drawBackground({ width, height }) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  context.scale(width / WIDTH, height / HEIGHT);
  BARS.forEach((colour, i) => {
    context.fillStyle = colour;
    context.fillRect(Math.round(i * WIDTH / BARS.length), 0, Math.ceil(WIDTH / BARS.length), HEIGHT);
  });
  const shade = context.createLinearGradient(0, 0, 0, HEIGHT);
  shade.addColorStop(0, "rgb(0 0 0 / 0)");
  shade.addColorStop(1, "rgb(0 0 0 / 0.55)");
  context.fillStyle = shade;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = "#0d0e14";
  context.beginPath();
  context.roundRect(WIDTH / 2 - 330, 210, 660, 260, 36);
  context.fill();
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Date} now
 */
function drawClock(context, now) {
  /** @param {number} value @param {number} width */
  const pad = (value, width) => String(value).padStart(width, "0");
  const time = `${pad(now.getHours(), 2)}:${pad(now.getMinutes(), 2)}:${pad(now.getSeconds(), 2)}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = "#fff";
  context.font = "700 96px ui-monospace, 'DejaVu Sans Mono', monospace";
  context.fillText(time, WIDTH / 2 - 290, 318);
  context.font = "400 44px ui-monospace, 'DejaVu Sans Mono', monospace";
  context.fillStyle = "#ff6a76";
  context.fillText(`.${pad(now.getMilliseconds(), 3)}`, WIDTH / 2 + 180, 330);
  context.fillStyle = "#a9abbd";
  context.font = "500 34px system-ui, 'DejaVu Sans', sans-serif";
  context.fillText("Test picture", WIDTH / 2 - 288, 412);

  // A bar that fills within the second, full when the tone beeps.
  const part = now.getMilliseconds() / 1000;
  context.fillStyle = "#ff4d5e";
  context.fillRect(WIDTH / 2 - 40, 404, 320 * part, 16);
}

/** A quiet hum, so that there is always sound, and a short higher tone at each full second. */
function makeTone() {
  const audio = new AudioContext();
  const output = audio.createMediaStreamDestination();
  const hum = new OscillatorNode(audio, { frequency: 220 });
  const beep = new OscillatorNode(audio, { frequency: 880 });
  const loudness = new GainNode(audio, { gain: 0 });
  hum.connect(new GainNode(audio, { gain: 0.04 })).connect(output);
  beep.connect(loudness).connect(output);
  hum.start();
  beep.start();
  /** @type {number | undefined} */
  let timer;
  const schedule = () => {
    const wait = 1000 - Date.now() % 1000;
    const at = audio.currentTime + wait / 1000;
    loudness.gain.setValueAtTime(0, at);
    loudness.gain.linearRampToValueAtTime(0.25, at + 0.01);
    loudness.gain.setValueAtTime(0.25, at + 0.08);
    loudness.gain.linearRampToValueAtTime(0, at + 0.1);
    timer = setTimeout(schedule, wait + 200);
  };
  schedule();
  // Browsers play no sound before a user gesture; the picture may start before that.
  const begin = () => void audio.resume();
  const gestures = ["pointerdown", "pointerup", "keydown", "click"];
  for (const gesture of gestures) addEventListener(gesture, begin);
  audio.addEventListener("statechange", () => {
    if (audio.state === "running") for (const gesture of gestures) removeEventListener(gesture, begin);
  });
  begin();
  return {
    track: output.stream.getAudioTracks()[0],
    stop() {
      for (const gesture of gestures) removeEventListener(gesture, begin);
      clearTimeout(timer);
      audio.close();
    },
  };
}
