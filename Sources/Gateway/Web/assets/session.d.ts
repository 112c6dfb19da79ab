/** A peer connection and its HTTP resource on the server: what WHIP and WHEP have in common. */

/** The server refused a request. */
export declare class SignallingError extends Error {
  constructor(status: number, message: string, retryAfter: number | null, problem?: Problem);
  /** Reads problem+json (RFC 9457) and Retry-After. */
  static from(response: Response): Promise<SignallingError>;
  status: number;
  /** How many milliseconds the server asks to wait; null if it does not say. */
  retryAfter: number | null;
  /** The rest of the answer. */
  problem: Problem;
  /** The name of the rule that forbids the request, such as `not-host`. */
  get rule(): string | null;
  /** Whether the same request may succeed later, unchanged. */
  get isTemporary(): boolean;
}

export interface Problem {
  rule?: string;
  [member: string]: unknown;
}

export interface SessionOptions {
  /** The address to send the offer to. */
  endpoint: string;
  /** Sent as `Authorization: Bearer`. */
  token?: string | null;
}

/** `interrupted`: the other side does not answer, and a repair is under way. `lost`: only a new session can help. */
export type SessionState = "connecting" | "connected" | "interrupted" | "lost" | "closed";

export interface Preferences {
  /** In pixels; null for no limit. */
  maxHeight: number | null;
  /** `high`: the best picture or none. `low`: the smallest. Null leaves the choice to the server. */
  pin: "high" | "low" | null;
  audioOnly: boolean;
}

export interface Layer {
  /** In pixels. */
  height: number | null;
  /** In bit/s. */
  bitrate: number;
}

/** What the server sends, and why it does not send more. */
export interface Quality {
  /** What the connection can carry, in bit/s. */
  estimate: number | null;
  cause: "delay" | "loss" | "application" | "publisher" | "pinned" | null;
  preferences: Preferences;
  pictures: { mid: string; wanted: Layer | null; served: Layer | null; paused: boolean; preview: boolean }[];
}

/** Fires `statechange`. `lost` and `closed` are final. */
export declare class MediaSession extends EventTarget {
  /** @param peer with its transceivers already added */
  constructor(peer: RTCPeerConnection, options: SessionOptions);
  state: SessionState;
  /** The absolute address of the session's resource, once the server has given one. */
  resource: string | null;
  peer: RTCPeerConnection;
  options: SessionOptions;
  /** Sends the offer and applies the server's answer; throws a {@link SignallingError} if the server refuses. */
  open(signal?: AbortSignal): Promise<void>;
  /** Whether the server still knows this session. Network errors count as no. */
  exists(): Promise<boolean>;
  /** Sets preferences for the pictures; any left out stay as they are (RFC 7396). */
  prefer(preferences: Partial<Preferences>): Promise<void>;
  /** What the server sends here, and why it does not send more; null if it does not say. */
  quality(): Promise<Quality | null>;
  /** The state of the watched stream's gate; null if the server does not say. */
  gate(): Promise<any>;
  /** Presents another token; what it opens arrives on this connection. */
  openGate(token: string): Promise<any>;
  /** Gives up a session that is known to be dead. */
  abandon(): void;
  /** Ends the session here and on the server; works while the page is being unloaded, too. */
  close(): void;
  /** Restarts ICE with new credentials and candidates; media and keys stay. If this fails, the session is lost. */
  restartIce(): Promise<void>;
}

/** The earlier answer with the ICE credentials and candidates from a restart's fragment. */
export declare function withNewTransport(answer: string, fragment: string): string;
/** `Link: <turn:…>; rel="ice-server"` (RFC 9725 §4.6). */
export declare function parseIceServers(header: string | null): RTCIceServer[];
/**
 * Offers to receive, with each packet, which layers its picture has, if the browser lets pages choose. Without this,
 * Chromium decodes no AV1 in several sizes.
 */
export declare function offerDescriptors(transceiver: RTCRtpTransceiver): void;
/** Keeps only one codec; throws if this browser does not support it. */
export declare function useOnlyCodec(
  transceiver: RTCRtpTransceiver, capabilities: RTCRtpCapabilities | null, name: string | null | undefined,
): void;
