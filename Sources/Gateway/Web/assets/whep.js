// @ts-check

/**
 * A WHEP player (draft-ietf-wish-whep): receives one audio and one video track from an endpoint.
 *
 *     const session = await play({ endpoint: "/whep/demo?wait=60", onTrack: (track) => media.addTrack(track) });
 *
 * Counter-offers (406) are not taken up: this player already offers every codec the browser has.
 */

import { MediaSession, offerDescriptors, useOnlyCodec } from "./session.js";

/**
 * @typedef {object} PlayOptions
 * @property {string} endpoint with `?wait=SECONDS` the server keeps a session for a stream yet to come,
 *   without it answers 409 and Retry-After
 * @property {string | null} [token]
 * @property {(track: MediaStreamTrack) => void} onTrack
 * @property {string | null} [codec] accept only this one, such as `vp9`
 * @property {AbortSignal} [signal]
 */

/**
 * Offers to receive and returns once the server has answered.
 * @param {PlayOptions} options
 * @returns {Promise<MediaSession>}
 */
export async function play(options) {
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  const session = new MediaSession(peer, options);
  try {
    peer.addTransceiver("audio", { direction: "recvonly" });
    const video = peer.addTransceiver("video", { direction: "recvonly" });
    offerDescriptors(video);
    useOnlyCodec(video, RTCRtpReceiver.getCapabilities("video"), options.codec);
    peer.addEventListener("track", ({ track, receiver }) => {
      // The shortest buffer the network's jitter allows; browsers without the attribute ignore it.
      if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
      options.onTrack(track);
    });
  } catch (error) {
    session.close();
    throw error;
  }
  await session.open(options.signal);
  return session;
}
