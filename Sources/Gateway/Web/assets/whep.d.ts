/** A WHEP player (draft-ietf-wish-whep): receives one audio and one video track from an endpoint. */

import type { MediaSession } from "./session.js";

export interface PlayOptions {
  /** With `?wait=SECONDS`, the server holds a session until the stream is live; otherwise it answers 409 and Retry-After. */
  endpoint: string;
  token?: string | null;
  onTrack: (track: MediaStreamTrack) => void;
  /** Accept only this codec, such as `vp9`. */
  codec?: string | null;
  signal?: AbortSignal;
}

/** Offers to receive and resolves once the server has answered; throws a `SignallingError` if it refuses. */
export declare function play(options: PlayOptions): Promise<MediaSession>;
