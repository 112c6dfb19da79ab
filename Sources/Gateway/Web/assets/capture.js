// @ts-check

/** Camera, microphone alone, screen or test picture as one `MediaStream`, and words for what can go wrong. */

import { makeTestPicture } from "./testpicture.js";

/**
 * @typedef {"camera" | "sound" | "screen" | "test"} SourceKind
 *
 * @typedef {object} Source
 * @property {SourceKind} kind
 * @property {MediaStream} media
 * @property {string | null} notice what is missing, such as a microphone
 * @property {() => void} stop
 *
 * @typedef {object} Wishes
 * @property {number} height of the picture, in pixels
 * @property {number} frameRate pictures a second
 * @property {string} [camera] device id
 * @property {string} [microphone] device id
 */

/** A source could not be opened; `message` is for people, `title` its heading. */
export class CaptureError extends Error {
  /**
   * @param {string} title
   * @param {string} message
   */
  constructor(title, message) {
    super(message);
    this.name = "CaptureError";
    this.title = title;
  }
}

/**
 * @param {SourceKind} kind
 * @param {Wishes} wishes
 * @returns {Promise<Source>}
 * @throws {CaptureError}
 */
export async function openSource(kind, wishes) {
  if (kind === "test") {
    const { media, stop } = makeTestPicture(wishes);
    return { kind, media, notice: null, stop };
  }
  if (!navigator.mediaDevices) {
    throw new CaptureError(
      "Camera and microphone need a secure page",
      "Open this page over https://, or as http://localhost on the same machine.");
  }
  try {
    switch (kind) {
      case "screen": return await openScreen(wishes);
      case "sound": return await openMicrophone(wishes);
      default: return await openCamera(wishes);
    }
  } catch (error) {
    throw explain(kind, /** @type {DOMException} */ (error));
  }
}

/** @param {Wishes} wishes */
async function openCamera(wishes) {
  const video = {
    ...(wishes.camera && { deviceId: { exact: wishes.camera } }),
    width: { ideal: Math.round(wishes.height * 16 / 9) },
    height: { ideal: wishes.height },
    frameRate: { ideal: wishes.frameRate },
  };
  const audio = wishes.microphone ? { deviceId: { exact: wishes.microphone } } : true;
  try {
    return source("camera", await navigator.mediaDevices.getUserMedia({ video, audio }), null);
  } catch (error) {
    if (/** @type {DOMException} */ (error).name !== "NotFoundError") throw error;
    // One of the two is missing. Without a camera, people can choose sound only.
    const media = await navigator.mediaDevices.getUserMedia({ video });
    return source("camera", media, "No microphone found. The stream has no sound.");
  }
}

/** @param {Wishes} wishes */
async function openMicrophone(wishes) {
  const audio = wishes.microphone ? { deviceId: { exact: wishes.microphone } } : true;
  return source("sound", await navigator.mediaDevices.getUserMedia({ audio }), null);
}

/** @param {Wishes} wishes */
async function openScreen(wishes) {
  const media = await navigator.mediaDevices.getDisplayMedia({
    video: { frameRate: { ideal: wishes.frameRate } },
    audio: true,
  });
  if (media.getAudioTracks().length) return source("screen", media, null);
  try {
    const audio = wishes.microphone ? { deviceId: { exact: wishes.microphone } } : true;
    const microphone = await navigator.mediaDevices.getUserMedia({ audio });
    media.addTrack(microphone.getAudioTracks()[0]);
    return source("screen", media, null);
  } catch {
    return source("screen", media, "The microphone isn’t available. The stream has no sound.");
  }
}

/**
 * @param {SourceKind} kind
 * @param {MediaStream} media
 * @param {string | null} notice
 * @returns {Source}
 */
function source(kind, media, notice) {
  for (const track of media.getVideoTracks()) track.contentHint = kind === "screen" ? "detail" : "motion";
  return { kind, media, notice, stop: () => media.getTracks().forEach((track) => track.stop()) };
}

/**
 * @param {SourceKind} kind
 * @param {DOMException} error
 */
function explain(kind, error) {
  const thing = kind === "screen" ? "screen" : kind === "sound" ? "microphone" : "camera";
  switch (error.name) {
    case "NotAllowedError":
    case "SecurityError":
      return kind === "screen"
        ? new CaptureError("Nothing was shared", "Choose a screen, window or tab to share, or pick another source.")
        : new CaptureError(
          `This page can’t use your ${thing}`,
          `Allow ${kind === "sound" ? "the microphone" : "the camera and microphone"} next to the page’s address, then try again.`);
    case "NotFoundError":
    case "OverconstrainedError":
      return new CaptureError(`No ${thing} found`, `Connect a ${thing}, or continue with ${kind === "camera" ? "sound only, or with " : ""}the test picture.`);
    case "NotReadableError":
    case "AbortError":
      return new CaptureError(
        `The ${thing} isn’t available`, "Another app may be using it. Close that app, then try again.");
    default:
      return new CaptureError(`The ${thing} didn’t start`, error.message || error.name);
  }
}

/**
 * Browsers tell names only once the person has allowed a device.
 * @param {"videoinput" | "audioinput"} kind
 */
export async function devices(kind) {
  const all = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
  return all.filter((device) => device.kind === kind && device.deviceId && device.label);
}

/**
 * Whether a camera or microphone that was chosen is gone. Browsers tell only once the person has allowed one, and some
 * name only those of the kind that was allowed.
 * @param {"videoinput" | "audioinput"} kind
 * @param {string} id
 */
export async function isGone(kind, id) {
  const all = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
  const same = all.filter((device) => device.kind === kind);
  return all.some(({ label }) => label) && same.every(({ deviceId, label }) => label && deviceId !== id);
}

/**
 * Whether the camera, or the microphone, opens without the browser asking.
 * @param {"camera" | "microphone"} [device]
 */
export async function isAllowed(device = "camera") {
  try {
    const status = await navigator.permissions.query({ name: /** @type {PermissionName} */ (device) });
    return status.state === "granted";
  } catch {
    return false;
  }
}
