// @ts-check

/**
 * The ways in which media reach a player. Each is an object; the player uses the first one that the browser supports.
 */

import { playsHLS } from "../fallback.js";
import { PictureChoice } from "../picture-choice.js";
import { Viewing } from "../viewing.js";

/**
 * @typedef {object} Transport
 * @property {string} name
 * @property {boolean} isSupported whether this browser supports it
 * @property {(stream: import("./watched.js").WatchedStream) => Reception} open prepares playback, without starting it
 *
 * Playback of a stream by a transport: plays in a `<video>` from `attach` to `detach`, recovers from errors, and fires
 * `change`, and `picture` when there is a new picture.
 * @typedef {Pick<Viewing, "attach" | "detach" | "play" | "retry" | "state" | "trouble" | "video" | "isBlocked"
 *   | "isDelayed" | "delay" | "weakness" | "choice" | "quality" | "numbers" | "rewind"
 *   | "addEventListener"> & { connection: { error: Error | null } }} Reception
 */

/** WHEP, with next to no delay, and HLS while that cannot connect. @type {Transport} */
const live = {
  name: "live",
  isSupported: "RTCPeerConnection" in globalThis || playsHLS(),
  // The choice is not stored: several players of a page, and other visits, are independent of each other.
  open: (stream) => new Viewing(stream, new PictureChoice(null)),
};

/** Best first. */
export const TRANSPORTS = [live];
