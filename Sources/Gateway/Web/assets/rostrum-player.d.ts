/** A player as an element of any page, on any site: `<rostrum-player src="https://host/watch/demo">`. */

/**
 * `idle`: nobody plays it. `waiting`: there is no such stream yet. `backstage`: it has not begun. `away`: it is live, and
 * its host is not there for the moment. `gated`: it takes a tier, see `gate`. `refused`, `failed`: `problem` says why.
 */
export type PlayerState =
  "idle" | "connecting" | "waiting" | "backstage" | "live" | "away" | "gated" | "reconnecting" | "ended" | "refused"
  | "failed";

export type Reason =
  "no-address" | "unsupported" | "token-needed" | "token-refused" | "link-revoked" | "banned" | "removed" | "not-permitted"
  | "failed";

export interface Problem {
  reason: Reason;
  /** The server's, in English. */
  message: string;
}

/** What stands between a viewer and a stream that takes a tier. */
export interface Gate {
  /** `free`: what everybody may watch. `shut`: nothing comes. */
  state: "free" | "shut";
  tier: string;
  /** Where the tier is to be had. */
  unlock: string | null;
  /** In seconds, of what is free. */
  remaining: number;
}

/** The best that the connection takes; the best or none; the smallest; none. */
export type Quality = "auto" | "high" | "low" | "sound";

/** What the server tells of a stream; openapi.json describes all of it. */
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
  /** A clip is what somebody kept of a live stream's last seconds. */
  kind: "recording" | "clip";
  /** Of a clip. */
  title: string | null;
  /** In seconds. */
  duration: number;
  /** In bytes. */
  size: number;
  /** ISO 8601. */
  startedAt: string;
  /** Where it can be played from, with the token that this takes. */
  url: string;
}

/** What a player says; `{…}` is filled in. */
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
  /** It is refused or failed. */
  error: CustomEvent<Problem>;
  /** `volume` or `muted` is another one. */
  volumechange: Event;
}

export declare class RostrumPlayer extends HTMLElement {
  static observedAttributes: string[];

  /** The address of the stream's page, or of its WHEP endpoint; a link with `#token=…` will do. */
  get src(): string;
  set src(value: string | null);
  /** A viewer's token or an invitation, where watching takes one; a new one begins anew, or opens the gate that is shown. */
  get token(): string | null;
  set token(value: string | null);
  /** A picture to begin with, in place of the stream's preview. */
  get poster(): string;
  set poster(value: string | null);
  /** Plays by itself, without sound where the browser wants a tap for that. */
  autoplay: boolean;
  /** Shows what there is to press, and listens to keys. */
  controls: boolean;
  /** As it is now; the attribute says how it begins. */
  muted: boolean;
  /** 0 to 1. */
  volume: number;
  quality: Quality;
  /** What it says: those that are given replace the English ones. */
  get strings(): Strings;
  set strings(value: Partial<Strings>);

  get state(): PlayerState;
  /** Nothing plays, nor will by itself. */
  get paused(): boolean;
  /** Why nothing plays, and will not by itself; null while that is not so. */
  get problem(): Problem | null;
  /** How late it plays, in seconds, where it comes by HLS; null while it comes by WebRTC, or nobody knows. */
  get delay(): number | null;
  /** How far behind what is live is shown because somebody went back, in seconds; null while that is what is shown. */
  get behind(): number | null;
  /** How far back `goBack` can go, in seconds; 0 for not at all. */
  get reach(): number;
  /** What stands between the viewer and the stream, and what opens it; null where nothing does. */
  get gate(): Gate | null;
  /** Null until the server has told. */
  get stream(): StreamInfo | null;
  /** What was recorded of a stream that has ended. */
  get recordings(): PlayerRecording[];

  /** Plays, or goes on; also before there is anything to play. */
  play(): void;
  /** Ends the session until somebody plays again, where the stream is then. */
  pause(): void;
  /** Plays what was live so long ago, in seconds, as far as the stream's host lets the server keep that. */
  goBack(seconds: number): void;
  /** Back to what is live. */
  goLive(): void;
  /** Plays one of `recordings`. */
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
