/** A player element for any page, on any site: `<rostrum-player src="https://host/watch/demo">`. */

/**
 * `idle`: not playing. `waiting`: the stream does not exist yet. `backstage`: it has not started. `away`: it is live, but
 * the host has stepped away. `gated`: it requires a tier, see `gate`. `refused`, `failed`: `problem` says why.
 */
export type PlayerState =
  "idle" | "connecting" | "waiting" | "backstage" | "live" | "away" | "gated" | "reconnecting" | "ended" | "refused"
  | "failed";

export type Reason =
  "no-address" | "unsupported" | "token-needed" | "token-refused" | "link-revoked" | "banned" | "removed" | "not-permitted"
  | "failed";

export interface Problem {
  reason: Reason;
  /** From the server, in English. */
  message: string;
}

/** A tier the stream requires and the viewer does not have. */
export interface Gate {
  /** `free`: the free preview is running. `shut`: it is over, and nothing is sent. */
  state: "free" | "shut";
  tier: string;
  /** Where viewers can get the tier. */
  unlock: string | null;
  /** Seconds left of the free preview. */
  remaining: number;
}

/** The best picture the connection allows; always the best, or none; the smallest; no picture. */
export type Quality = "auto" | "high" | "low" | "sound";

/** What the server says about a stream. See openapi.json for all members. */
export interface StreamInfo {
  id: string;
  state: "waiting" | "backstage" | "live" | "ended";
  viewers: number;
  title?: string | null;
  host?: string | null;
  hostName?: string | null;
  /** ISO 8601. */
  startsAt?: string | null;
  startedAt?: string | null;
  endedAt?: string | null;
  [member: string]: unknown;
}

export interface PlayerRecording {
  id: string;
  /** A clip is a short part that someone saved while the stream was live. */
  kind: "recording" | "clip";
  /** Clips only. */
  title: string | null;
  /** In seconds. */
  duration: number;
  /** In bytes. */
  size: number;
  /** ISO 8601. */
  startedAt: string;
  /** Where to play it from, including the token that this requires. */
  url: string;
}

/** The player's texts; `{…}` is filled in. */
export interface Strings {
  player: string;
  play: string;
  pause: string;
  mute: string;
  unmute: string;
  volume: string;
  volumeValue: string;
  live: string;
  goLive: string;
  behind: string;
  delayed: string;
  delayedBy: string;
  delayedShort: string;
  delayedHint: string;
  viewers: string;
  oneViewer: string;
  quality: string;
  qualityAuto: string;
  qualityAutoHint: string;
  qualityHigh: string;
  qualityHighHint: string;
  qualityLow: string;
  qualityLowHint: string;
  qualitySound: string;
  qualitySoundHint: string;
  pictureInPicture: string;
  fullScreen: string;
  leaveFullScreen: string;
  position: string;
  positionValue: string;
  connecting: string;
  connectingHint: string;
  waiting: string;
  waitingHint: string;
  backstage: string;
  backstageHint: string;
  backstagePaused: string;
  startsIn: string;
  waitingPeople: string;
  waitingOne: string;
  away: string;
  awayHint: string;
  gated: string;
  gatedHint: string;
  gatedNoLinkHint: string;
  unlock: string;
  freeLeft: string;
  reconnecting: string;
  reconnectingHint: string;
  ended: string;
  endedHint: string;
  recorded: string;
  watchRecording: string;
  recordingPart: string;
  clip: string;
  soundOnly: string;
  tryAgain: string;
  tryNow: string;
  refused: string;
  tokenNeeded: string;
  tokenRefused: string;
  linkRevoked: string;
  banned: string;
  removed: string;
  notPermitted: string;
  failed: string;
  noAddress: string;
  unsupported: string;
  troubleServer: string;
  troubleServerHint: string;
  troubleBusy: string;
  troubleBusyHint: string;
  troubleBlocked: string;
  troubleBlockedHint: string;
  troubleNothing: string;
  troubleNothingHint: string;
  troubleWeak: string;
  troubleWeakHint: string;
  weakHigh: string;
  weakPicture: string;
  weakSize: string;
}

export interface RostrumPlayerEvents {
  statechange: CustomEvent<{ state: PlayerState; previous: PlayerState }>;
  /** Playback was refused or failed. */
  error: CustomEvent<Problem>;
  /** `volume` or `muted` changed. */
  volumechange: Event;
}

export declare class RostrumPlayer extends HTMLElement {
  static observedAttributes: string[];

  /** The URL of the stream's page or of its WHEP endpoint. Links with `#token=…` work too. */
  get src(): string;
  set src(value: string | null);
  /** A viewer token or an invitation, if the stream requires one. Setting a new one reconnects, or opens the current gate. */
  get token(): string | null;
  set token(value: string | null);
  /** An image to show before playback instead of the stream's preview. */
  get poster(): string;
  set poster(value: string | null);
  /** Starts playing automatically, muted if the browser requires a tap for sound. */
  autoplay: boolean;
  /** Shows the controls and enables keyboard shortcuts. */
  controls: boolean;
  /** The current state; the attribute sets the initial one. */
  muted: boolean;
  /** From 0 to 1. */
  volume: number;
  quality: Quality;
  /** The player's texts. Those you set replace the English ones. */
  get strings(): Strings;
  set strings(value: Partial<Strings>);

  get state(): PlayerState;
  /** Whether nothing is playing and nothing will start automatically. */
  get paused(): boolean;
  /** Why nothing plays and nothing will start automatically; otherwise null. */
  get problem(): Problem | null;
  /** The delay in seconds when playing over HLS; null over WebRTC, or while the delay is unknown. */
  get delay(): number | null;
  /** How many seconds behind live the viewer is after going back; null while live. */
  get behind(): number | null;
  /** How many seconds back `goBack` can go; 0 if going back is not possible. */
  get reach(): number;
  /** The tier the viewer needs and where to get it; null if none is needed. */
  get gate(): Gate | null;
  /** Null until the server has answered. */
  get stream(): StreamInfo | null;
  /** The recordings of a stream that has ended. */
  get recordings(): PlayerRecording[];

  /** Starts or resumes playback. Works before the stream is live, too. */
  play(): void;
  /** Ends the session. Playing again resumes at the live position. */
  pause(): void;
  /** Goes back that many seconds, as far as the host lets the server keep the stream. */
  goBack(seconds: number): void;
  /** Returns to live. */
  goLive(): void;
  /** Plays one of the `recordings`. */
  playRecording(id: string): void;

  connectedCallback(): void;
  disconnectedCallback(): void;
  attributeChangedCallback(name: string, before: string | null, after: string | null): void;

  addEventListener<Type extends keyof RostrumPlayerEvents>(
    type: Type, listener: (this: RostrumPlayer, event: RostrumPlayerEvents[Type]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener<Type extends Exclude<keyof HTMLElementEventMap, keyof RostrumPlayerEvents>>(
    type: Type, listener: (this: RostrumPlayer, event: HTMLElementEventMap[Type]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions,
  ): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "rostrum-player": RostrumPlayer;
  }
}
