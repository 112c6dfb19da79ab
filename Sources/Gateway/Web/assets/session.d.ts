/** One peer connection and its HTTP resource on the server: what WHIP and WHEP have in common. */

/** The server refused a request. */
export declare class SignallingError extends Error {
  constructor(status: number, message: string, retryAfter: number | null, problem?: Problem);
  /** Reads problem+json (RFC 9457) and Retry-After. */
  static from(response: Response): Promise<SignallingError>;
  status: number;
  /** Milliseconds that the server asks to wait; null when it does not say. */
  retryAfter: number | null;
  /** What else the answer says. */
  problem: Problem;
  /** The name of the rule that forbids it, such as `not-host`. */
  get rule(): string | null;
  /** Whether the same request may succeed later without anybody changing it. */
  get isTemporary(): boolean;
}

export interface Problem {
  rule?: string;
  [member: string]: unknown;
}

export interface SessionOptions {
  /** Address that takes the offer. */
  endpoint: string;
  /** Goes into `Authorization: Bearer`. */
  token?: string | null;
}

/** `interrupted`: no answers from the other side, being mended. `lost`: only a new session can help. */
export type SessionState = "connecting" | "connected" | "interrupted" | "lost" | "closed";

export interface Preferences {
  /** In pixels; null for no limit. */
  maxHeight: number | null;
  /** The best picture or none, or the smallest; null leaves it to the server. */
  pin: "high" | "low" | null;
  audioOnly: boolean;
}

export interface Layer {
  /** In pixels. */
  height: number | null;
  /** In bit/s. */
  bitrate: number;
}

/** What the server sends, and why not more. */
export interface Quality {
  /** What the connection takes, in bit/s. */
  estimate: number | null;
  cause: "delay" | "loss" | "application" | "publisher" | "pinned" | null;
  preferences: Preferences;
  pictures: { mid: string; wanted: Layer | null; served: Layer | null; paused: boolean; preview: boolean }[];
}

/** Fires `statechange`. Once `lost` or `closed` it stays so. */
export declare class MediaSession extends EventTarget {
  /** @param peer with its transceivers already added */
  constructor(peer: RTCPeerConnection, options: SessionOptions);
  state: SessionState;
  /** Absolute address of the session's resource, once the server gave one. */
  resource: string | null;
  peer: RTCPeerConnection;
  options: SessionOptions;
  /** Offers, and applies the server's answer; throws a {@link SignallingError} when the server refuses. */
  open(signal?: AbortSignal): Promise<void>;
  /** Whether the server still knows this session. Network errors count as no. */
  exists(): Promise<boolean>;
  /** Says what is wanted of the pictures; what is not named stays as it is (RFC 7396). */
  prefer(preferences: Partial<Preferences>): Promise<void>;
  /** What the server sends here, and why not more; null where it does not say. */
  quality(): Promise<Quality | null>;
  /** How it stands with the gate of what is watched; null where the server does not say. */
  gate(): Promise<any>;
  /** Shows another token: what it opens comes on this connection. */
  openGate(token: string): Promise<any>;
  /** Gives a session up that others know to be dead. */
  abandon(): void;
  /** Ends the session here and on the server; also while the page is being left. */
  close(): void;
  /** Asks both sides for new ICE credentials and candidates; media and keys stay. Without success it is lost. */
  restartIce(): Promise<void>;
}

/** The earlier answer with the ICE credentials and candidates of a restart's fragment. */
export declare function withNewTransport(answer: string, fragment: string): string;
/** `Link: <turn:…>; rel="ice-server"` (RFC 9725 §4.6). */
export declare function parseIceServers(header: string | null): RTCIceServer[];
/**
 * Offers to be told of each packet which layers its picture has, where the browser lets pages choose; for AV1 in several
 * sizes, of which Chromium decodes nothing without it.
 */
export declare function offerDescriptors(transceiver: RTCRtpTransceiver): void;
/** Puts one codec first and drops the other ones; throws when this browser does not have it. */
export declare function useOnlyCodec(
  transceiver: RTCRtpTransceiver, capabilities: RTCRtpCapabilities | null, name: string | null | undefined,
): void;
