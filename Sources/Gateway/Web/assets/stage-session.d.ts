/** Takes part in a stage: sends your tracks, and receives the others in slots that the server fills with active speakers. */

import { MediaSession, type SessionOptions } from "./session.js";

export interface Slot {
  mid: string;
  kind: "audio" | "video";
  /** The participant's stream; absent while the slot is empty. */
  stream?: string;
  /** Absent while the slot is empty. */
  participant?: string;
  name?: string;
  /** Whether this is a shared screen instead of a camera. */
  screen?: boolean;
  /** Everyone in it, if the slot carries a composition; `participant` is then absent. */
  participants?: string[];
}

export interface SendingOptions {
  media: MediaStream;
  /** Send three sizes at once, if the codec allows it. */
  simulcast?: boolean;
  /** Send only this codec, such as `vp9`. */
  codec?: string | null;
  /** The limit for the largest picture, in bit/s. */
  maxBitrate?: number;
}

/** Fires `slots` when someone enters or leaves a slot, in addition to the events of `MediaSession`. */
export declare class StageSession extends MediaSession {
  constructor(peer: RTCPeerConnection, options: SessionOptions);
  /** Voices to play, one stream per slot; it does not matter who speaks in which. */
  voices: MediaStream[];
  /** Sends a shared screen in addition to the picture; sends nothing until there is one. */
  screenSender: RTCRtpSender | null;
  control: RTCDataChannel;
  /** Reports that the network limits what is sent. The server forgets this unless it is repeated. */
  sayUplinkIsWeak(): void;
  /** Adjusts the layers that are sent. Call it once a second with the peer connection's statistics. */
  lookAtLayers(report: RTCStatsReport, maxBitrate?: number): void;
  /** Handles one message from the control channel. */
  receive(message: any): void;
  /** A participant's picture or shared screen; null while it is not received. */
  pictureOf(participant: string, isScreen?: boolean): MediaStream | null;
  /**
   * Hosts of other streams who are here for a duel, under the names they have on this stage.
   * @param stream the id of this stream
   */
  guests(stream: string): Slot[];
  /** Sends a shared screen; null stops it. */
  showScreen(track: MediaStreamTrack | null): Promise<void>;
  /** Keeps a participant visible no matter who speaks; null unpins. */
  pin(participant: string | null): void;
  /**
   * Requests no larger picture than can be seen.
   * @param height of the tile, in device pixels
   */
  show(participant: string, height: number, isScreen?: boolean): void;
}

/** Offers your tracks and asks for slots; resolves once the server has answered. */
export declare function joinStage(
  options: SendingOptions & SessionOptions & { signal?: AbortSignal },
): Promise<StageSession>;
