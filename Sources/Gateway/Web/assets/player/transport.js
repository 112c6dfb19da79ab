// @ts-check

/**
 * The ways by which a stream's media reach a player. Each is one object, and the player takes the first that the
 * browser can do.
 */

import { playsHLS } from "../fallback.js";
import { PictureChoice } from "../picture-choice.js";
import { Viewing } from "../viewing.js";

/**
 * @typedef {object} Transport
 * @property {string} name
 * @property {boolean} isSupported by this browser
 * @property {(stream: import("./watched.js").WatchedStream) => Reception} open plays nothing yet
 *
 * What a transport makes of one stream: it plays into a `<video>` from `attach` to `detach`, mends what breaks, and
 * fires `change`, and `picture` when a new one was seen.
 * @typedef {Pick<Viewing, "attach" | "detach" | "play" | "retry" | "state" | "trouble" | "video" | "isBlocked"
 *   | "isDelayed" | "delay" | "weakness" | "choice" | "quality" | "numbers" | "rewind"
 *   | "addEventListener"> & { connection: { error: Error | null } }} Reception
 */

/** By WHEP, with next to no delay, and by HLS where that does not connect. @type {Transport} */
const live = {
  name: "live",
  isSupported: "RTCPeerConnection" in globalThis || playsHLS(),
  // Several players of one page, and its other visits, have nothing to do with each other.
  open: (stream) => new Viewing(stream, new PictureChoice(null)),
};

/** The best first. */
export const TRANSPORTS = [live];
