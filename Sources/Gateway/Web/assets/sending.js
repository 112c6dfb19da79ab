// @ts-check

/** Puts one's own tracks on a peer connection, and others in their place. */

import { useOnlyCodec } from "./session.js";

/**
 * @typedef {object} SendingOptions
 * @property {MediaStream} media
 * @property {boolean} [simulcast] several sizes at once, where the codec allows
 * @property {string | null} [codec] send only this one, such as `vp9`
 * @property {number} [maxBitrate] of the largest picture, in bit/s
 */

/**
 * With a single size the server can still spare whoever does not look yet: every second picture is one that no other
 * needs but its like.
 */
const SINGLE = { scaleResolutionDownBy: 1, scalabilityMode: "L1T2" };

/** Layers from small to large. Of a small picture the last are not sent: see `sizesOf`. */
const RIDS = ["q", "h", "f"];
/**
 * The picture as captured, its half and its quarter, with their shares of the bitrate: of 720p at 2.5 Mbit/s 600 and
 * 150 kbit/s, which links of 1 Mbit/s and of 300 kbit/s take beside sound.
 */
const SIZES = [
  { scaleResolutionDownBy: 1, share: 1 },
  { scaleResolutionDownBy: 2, share: 0.24 },
  { scaleResolutionDownBy: 4, share: 0.06 },
];
/** Pixels from which on a browser makes three sizes of a picture, and two. */
const THREE_SIZES = 960 * 540;
const TWO_SIZES = 480 * 270;

/**
 * How many sizes of a track are sent. Of a picture with fewer pixels Chromium makes fewer, whatever it was asked for, and
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
 * What an encoding is of a picture that is sent in so many sizes.
 * @param {number} index 0 is the smallest
 * @param {number} sizes
 * @param {number} maxBitrate of the largest, in bit/s
 */
export function encodingOf(index, sizes, maxBitrate) {
  const { share, ...size } = SIZES[Math.max(sizes - 1 - index, 0)];
  return { ...size, maxBitrate: Math.round(maxBitrate * share), active: index < sizes };
}

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
 * Sends each packet of sound once more in the next one (RED), where the browser can: what a speaker's link loses is missed
 * by everybody, and browsers are not asked for sound again.
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
    // A browser that knows of temporal layers and has none.
    if (!sendEncodings.some(({ scalabilityMode }) => scalabilityMode)) throw error;
    return peer.addTransceiver(track, {
      ...init, sendEncodings: sendEncodings.map(({ scalabilityMode, ...encoding }) => encoding),
    });
  }
}
