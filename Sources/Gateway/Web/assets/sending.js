// @ts-check

/** Puts one's own tracks on a peer connection, and others in their place. */

import { useOnlyCodec } from "./session.js";

/**
 * @typedef {object} SendingOptions
 * @property {MediaStream} media
 * @property {boolean} [simulcast] three sizes at once, where the codec allows
 * @property {string | null} [codec] send only this one, such as `vp9`
 * @property {number} [maxBitrate] of the largest picture, in bit/s
 */

/**
 * With a single size the server can still spare whoever does not look yet: every second picture is one that no other
 * needs but its like.
 */
const SINGLE = { scaleResolutionDownBy: 1, share: 1, scalabilityMode: "L1T2" };

/** Layers from small to large; `f` is the picture as captured. */
const LAYERS = [
  { rid: "q", scaleResolutionDownBy: 4, share: 0.08 },
  { rid: "h", scaleResolutionDownBy: 2, share: 0.3 },
  { rid: "f", scaleResolutionDownBy: 1, share: 1 },
];

/**
 * Sends other tracks in the place of the ones of their kinds; nothing is negotiated. A kind that is missing
 * falls silent, a kind that was never offered stays absent.
 * @param {import("./session.js").MediaSession} session
 * @param {MediaStream} media
 * @param {RTCRtpSender | null} [kept] is for something else
 */
export async function replaceMedia(session, media, kept = null) {
  for (const { sender, receiver, direction } of session.peer.getTransceivers()) {
    if (direction !== "sendonly" || sender === kept) continue;
    const kind = sender.track?.kind ?? receiver.track.kind;
    await sender.replaceTrack(media.getTracks().find((track) => track.kind === kind) ?? null);
  }
}

/**
 * Adds an m-line that sends a track, or that can send one of this kind later.
 * @param {RTCPeerConnection} peer
 * @param {MediaStreamTrack | "audio" | "video"} track
 * @param {SendingOptions} options
 */
export function addTrack(peer, track, options) {
  if ((typeof track === "string" ? track : track.kind) === "audio") {
    peer.addTransceiver(track, { direction: "sendonly", streams: [options.media] });
    return;
  }
  const maxBitrate = options.maxBitrate ?? 2_500_000;
  const encodings = (options.simulcast ? LAYERS : [SINGLE]).map(({ share, ...encoding }) => ({
    ...encoding, maxBitrate: Math.round(maxBitrate * share),
  }));
  const transceiver = addVideo(peer, track, options.media, encodings);
  useOnlyCodec(transceiver, RTCRtpSender.getCapabilities("video"), options.codec);
}

/**
 * @param {RTCPeerConnection} peer
 * @param {MediaStreamTrack | "audio" | "video"} track
 * @param {MediaStream} media
 * @param {(RTCRtpEncodingParameters & { scalabilityMode?: string })[]} sendEncodings
 */
function addVideo(peer, track, media, sendEncodings) {
  const init = { direction: /** @type {const} */ ("sendonly"), streams: [media], sendEncodings };
  try {
    return peer.addTransceiver(track, init);
  } catch (error) {
    // A browser that knows of temporal layers and has none.
    if (!sendEncodings.some(({ scalabilityMode }) => scalabilityMode)) throw error;
    return peer.addTransceiver(track, {
      ...init, sendEncodings: sendEncodings.map(({ scalabilityMode, ...encoding }) => encoding),
    });
  }
}
