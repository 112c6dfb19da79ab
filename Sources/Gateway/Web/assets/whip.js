// @ts-check

/**
 * A WHIP publisher (RFC 9725): sends one audio and one video track to an endpoint.
 *
 *     const session = await publish({ endpoint: "/whip/demo", token, media: stream });
 *     session.addEventListener("statechange", () => console.log(session.state));
 *     session.close();
 */

import { MediaSession, useOnlyCodec } from "./session.js";

/**
 * @typedef {object} PublishOptions
 * @property {string} endpoint
 * @property {string | null} [token]
 * @property {MediaStream} media
 * @property {boolean} [simulcast] three sizes at once, where the codec allows
 * @property {string | null} [codec] send only this one, such as `vp9`
 * @property {number} [maxBitrate] of the largest picture, in bit/s
 * @property {AbortSignal} [signal]
 */

/** Layers from small to large; `f` is the picture as captured. */
const LAYERS = [
  { rid: "q", scaleResolutionDownBy: 4, share: 0.08 },
  { rid: "h", scaleResolutionDownBy: 2, share: 0.3 },
  { rid: "f", scaleResolutionDownBy: 1, share: 1 },
];

/**
 * Offers the tracks and returns once the server has answered.
 * @param {PublishOptions} options
 * @returns {Promise<MediaSession>}
 */
export async function publish(options) {
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  const session = new MediaSession(peer, options);
  try {
    for (const track of options.media.getTracks()) addTrack(peer, track, options);
  } catch (error) {
    session.close();
    throw error;
  }
  await session.open(options.signal);
  return session;
}

/**
 * Sends other tracks in the place of the ones of their kinds; nothing is negotiated. A kind that is missing
 * falls silent, a kind that was never offered stays absent.
 * @param {MediaSession} session
 * @param {MediaStream} media
 */
export async function replaceMedia(session, media) {
  for (const transceiver of session.peer.getTransceivers()) {
    const { sender, receiver } = transceiver;
    const kind = sender.track?.kind ?? receiver.track.kind;
    await sender.replaceTrack(media.getTracks().find((track) => track.kind === kind) ?? null);
  }
}

/**
 * @param {RTCPeerConnection} peer
 * @param {MediaStreamTrack} track
 * @param {PublishOptions} options
 */
function addTrack(peer, track, options) {
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
