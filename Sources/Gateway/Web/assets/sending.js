// @ts-check

/** Sends local tracks over a peer connection, and replaces them. */

import { useOnlyCodec } from "./session.js";

/**
 * @typedef {object} SendingOptions
 * @property {MediaStream} media
 * @property {boolean} [simulcast] whether to send several sizes at once, if the codec supports it
 * @property {string | null} [codec] the only one to send, such as `vp9`
 * @property {number} [maxBitrate] of the largest picture, in bit/s
 */

/**
 * A single size with two temporal layers: the server can leave out every second picture for viewers who do not see it
 * yet, as no picture of the base layer depends on those.
 */
const SINGLE = { scaleResolutionDownBy: 1, scalabilityMode: "L1T2" };

/** RIDs of the layers, smallest first. Small pictures do not use the last ones: see `sizesOf`. */
const RIDS = ["q", "h", "f"];
/**
 * Full, half and quarter size, with their shares of the bitrate: for 720p at 2.5 Mbit/s, the smaller ones have 600 and
 * 150 kbit/s, which connections with 1 Mbit/s and 300 kbit/s can carry beside the sound.
 */
const SIZES = [
  { scaleResolutionDownBy: 1, share: 1 },
  { scaleResolutionDownBy: 2, share: 0.24 },
  { scaleResolutionDownBy: 4, share: 0.06 },
];
/** The fewest pixels of a picture for which browsers make three sizes, and two. */
const THREE_SIZES = 960 * 540;
const TWO_SIZES = 480 * 270;

/**
 * The number of sizes in which a track is sent. Chromium makes fewer of a small picture, whatever was requested, and
 * leaves out the largest (libwebrtc, `LimitSimulcastLayerCount`): viewers would see it at half its size.
 * @param {MediaStreamTrack | null} track
 */
export function sizesOf(track) {
  const { width, height } = track?.getSettings?.() ?? {};
  if (!width || !height) return RIDS.length;
  const pixels = width * height;
  return pixels >= THREE_SIZES ? 3 : pixels >= TWO_SIZES ? 2 : 1;
}

/**
 * The parameters of a layer.
 * @param {number} index 0 for the smallest
 * @param {number} sizes
 * @param {number} maxBitrate of the largest, in bit/s
 */
export function encodingOf(index, sizes, maxBitrate) {
  const { share, ...size } = SIZES[Math.max(sizes - 1 - index, 0)];
  return { ...size, maxBitrate: Math.round(maxBitrate * share), active: index < sizes };
}

/**
 * Replaces the tracks of each kind, without renegotiation. Nothing is sent of a missing kind, or of one that was never
 * offered.
 * @param {import("./session.js").MediaSession} session
 * @param {MediaStream} media
 * @param {RTCRtpSender | null} [kept] not to be changed
 */
export async function replaceMedia(session, media, kept = null) {
  for (const { sender, receiver, direction } of session.peer.getTransceivers()) {
    if (direction !== "sendonly" || sender === kept) continue;
    const kind = sender.track?.kind ?? receiver.track.kind;
    await sender.replaceTrack(media.getTracks().find((track) => track.kind === kind) ?? null);
  }
}

/**
 * Adds a transceiver that sends a track, or can send one of this kind later.
 * @param {RTCPeerConnection} peer
 * @param {MediaStreamTrack | "audio" | "video"} track
 * @param {SendingOptions} options
 */
export function addTrack(peer, track, options) {
  if ((typeof track === "string" ? track : track.kind) === "audio") {
    const transceiver = peer.addTransceiver(track, { direction: "sendonly", streams: [options.media] });
    preferRedundancy(transceiver, RTCRtpSender.getCapabilities("audio"));
    return;
  }
  const maxBitrate = options.maxBitrate ?? 2_500_000;
  const sizes = sizesOf(typeof track === "string" ? null : track);
  const encodings = options.simulcast
    ? RIDS.map((rid, index) => ({ rid, ...encodingOf(index, sizes, maxBitrate) })) : [{ ...SINGLE, maxBitrate }];
  const transceiver = addVideo(peer, track, options.media, encodings);
  useOnlyCodec(transceiver, RTCRtpSender.getCapabilities("video"), options.codec);
}

/**
 * Prefers redundant audio (RED), in which each packet repeats the one before: everyone misses what a speaker's
 * connection loses, and browsers do not retransmit audio.
 * @param {RTCRtpTransceiver} transceiver
 * @param {RTCRtpCapabilities | null} capabilities
 */
export function preferRedundancy(transceiver, capabilities) {
  const codecs = capabilities?.codecs ?? [];
  /** @param {{ mimeType: string }} codec */
  const isRedundant = ({ mimeType }) => mimeType.toLowerCase() === "audio/red";
  const redundant = codecs.filter(isRedundant);
  if (!redundant.length || !transceiver.setCodecPreferences) return;
  transceiver.setCodecPreferences([...redundant, ...codecs.filter((codec) => !isRedundant(codec))]);
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
    // The browser knows `scalabilityMode`, but not this mode.
    if (!sendEncodings.some(({ scalabilityMode }) => scalabilityMode)) throw error;
    return peer.addTransceiver(track, {
      ...init, sendEncodings: sendEncodings.map(({ scalabilityMode, ...encoding }) => encoding),
    });
  }
}
