/** Takes part in a stage: sends one's own tracks, and receives the others in slots that the server fills with who speaks. */

import { MediaSession, type SessionOptions } from "./session.js";

export interface Slot {
  mid: string;
  kind: "audio" | "video";
  /** Whose participant it is; absent while it is empty. */
  stream?: string;
  /** Absent while it is empty. */
  participant?: string;
  name?: string;
  /** A shared screen, not a camera. */
  screen?: boolean;
  /** Everybody in it, where it carries a composition; then nobody alone. */
  participants?: string[];
}

export interface SendingOptions {
  media: MediaStream;
  /** Three sizes at once, where the codec allows. */
  simulcast?: boolean;
  /** Send only this one, such as `vp9`. */
  codec?: string | null;
  /** Of the largest picture, in bit/s. */
  maxBitrate?: number;
}

/** Fires `slots` when somebody came into a slot or left one, besides what a `MediaSession` fires. */
export declare class StageSession extends MediaSession {
  constructor(peer: RTCPeerConnection, options: SessionOptions);
  /** Voices to play, one stream a slot; who speaks in which does not matter. */
  voices: MediaStream[];
  /** Sends a shared screen beside the picture; nothing until there is one. */
  screenSender: RTCRtpSender | null;
  control: RTCDataChannel;
  /** Less is sent than could be, for the sake of the network. The server forgets it unless it is said again. */
  sayUplinkIsWeak(): void;
  /** Looks after the layers that are sent, once a second: with statistics of the peer connection. */
  lookAtLayers(report: RTCStatsReport, maxBitrate?: number): void;
  /** Learns from one message on the control channel. */
  receive(message: any): void;
  /** Somebody's picture, or the screen they share; null while it does not come here. */
  pictureOf(participant: string, isScreen?: boolean): MediaStream | null;
  /**
   * Hosts of other streams who are here in a duel, under the names that they have on this stage.
   * @param stream this one
   */
  guests(stream: string): Slot[];
  /** Sends a shared screen, or nothing. */
  showScreen(track: MediaStreamTrack | null): Promise<void>;
  /** Keeps somebody in sight whoever speaks; null for nobody. */
  pin(participant: string | null): void;
  /**
   * Asks for no more than can be seen.
   * @param height of the tile, in device pixels
   */
  show(participant: string, height: number, isScreen?: boolean): void;
}

/** Offers one's tracks and asks for slots; returns once the server has answered. */
export declare function joinStage(
  options: SendingOptions & SessionOptions & { signal?: AbortSignal },
): Promise<StageSession>;
