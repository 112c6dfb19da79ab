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
 * Adds an m-line that sends a track.
 * @param {RTCPeerConnection} peer
 * @param {MediaStreamTrack} track
 * @param {SendingOptions} options
 */
export function addTrack(peer, track, options) {
  if (track.kind === "audio") {
    peer.addTransceiver(track, { direction: "sendonly", streams: [options.media] });
    return;
  }
  const maxBitrate = options.maxBitrate ?? 2_500_000;
  const layers = options.simulcast ? LAYERS : LAYERS.slice(-1).map((layer) => ({ ...layer, rid: undefined }));
  const transceiver = peer.addTransceiver(track, {
    direction: "sendonly",
    streams: [options.media],
    sendEncodings: layers.map(({ rid, scaleResolutionDownBy, share }) => ({
      ...(rid && { rid }), scaleResolutionDownBy, maxBitrate: Math.round(maxBitrate * share),
    })),
  });
  useOnlyCodec(transceiver, RTCRtpSender.getCapabilities("video"), options.codec);
}
