/**
 * A story feed without a page: the list of live streams, the viewer's position in it, and one peer connection whose two
 * slots always carry the story in view and the next one.
 */

import type { MediaSession } from "./session.js";

export type Direction = "forward" | "backward";

export interface Preview {
  /** An image taken at `capturedAt`. */
  url?: string;
  /** In pixels. */
  width: number;
  height: number;
  /** ISO 8601. */
  capturedAt?: string;
  blurHash?: string;
}

/** One live stream. */
export interface Story {
  id: string;
  title?: string | null;
  /** The host's identity. */
  host?: string | null;
  hostName?: string | null;
  /** ISO 8601. */
  startedAt?: string | null;
  viewers?: number;
  paused?: boolean;
  /** Whether the stream can be watched over HLS, if the server offers it. */
  hls?: "on" | "off";
  preview?: Preview | null;
}

export interface Slot {
  index: 0 | 1;
  /** Sound and picture. Stays the same object for the whole session, whatever the slot carries. */
  media: MediaStream;
  /** The stream it carries; null while it is empty. */
  stream: string | null;
  /** `full`: the focus, with sound. */
  quality: "full" | "preview" | null;
  /** Frames received before this time belong to another stream; by `performance.now()`. */
  since: number;
  /** The RTP timestamp at which a stream's picture begins, once known. */
  begun: { stream: string; timestamp: number } | null;
  /**
   * Numbers of requests to the server, the same for both slots: the last one sent, and the last one whose outcome for
   * the slots is known. While `answered` is lower, a slot may already carry something else.
   */
  requests: { said: number; answered: number };
}

/**
 * `empty`: no one is live; the next stream to go live will be shown. `missing`: the story to begin with is not live.
 * `replaced`: the same viewer is watching elsewhere; `play()` resumes here. `failed`: the server refused for good.
 */
export type FeedState =
  "idle" | "connecting" | "playing" | "reconnecting" | "empty" | "missing" | "replaced" | "failed";

/** The `detail` of the `turn` event. */
export interface Turn {
  from: string | null;
  to: string | null;
  direction: Direction;
  reason: "swipe" | "ended" | "not-permitted" | "jump";
}

/** A story that was asked for but is not live. */
export interface Missing {
  id: string;
  /** `unknown`: there is no such stream; `forbidden`: the token is for another stream. */
  why: "ended" | "backstage" | "unknown" | "forbidden";
  title?: string | null;
  hostName?: string | null;
  /** ISO 8601. */
  startsAt?: string | null;
}

export interface StoryFeedOptions {
  /** The server's origin; by default the page's. */
  origin?: string;
  /** The story to begin with; by default the first one. */
  stream?: string | null;
  /** Whether to load the next story as soon as one has settled, or only when a swipe begins, which saves data. */
  preload?: "eager" | "on-swipe";
  /** Runs an action with a viewer token; by default the one in the page's address, if any. */
  withToken?: <T>(action: (token: string | null) => Promise<T>) => Promise<T>;
}

export interface StoryFeedEvents {
  /** The list, a story's texts or numbers, the current story or the state changed. */
  change: Event;
  /** A slot carries another stream, or the slots belong to a new connection. */
  slots: Event;
  /** The current story changed. */
  turn: CustomEvent<Turn>;
  /** The gate of a story changed; `detail` is the story's id. */
  gate: CustomEvent<string>;
}

/** A tier the story requires and the viewer does not have. */
export interface Gate {
  stream: string | null;
  /** `free`: the free preview is running. `shut`: it is over, and nothing is sent. */
  state: "free" | "shut";
  tier: string;
  /** Where viewers can get the tier. */
  unlock: string | null;
  /** When the free preview ends, by `performance.now()`. */
  endsAt: number;
}

export declare class StoryFeed extends EventTarget {
  constructor(options?: StoryFeedOptions);

  /** Why it `failed`, or why the last attempt did not succeed. */
  error: Error | null;
  preload: "eager" | "on-swipe";
  get state(): FeedState;
  /** The story to begin with if it is not live; null if it is, or if none was given. */
  get missing(): Missing | null;
  /** The two slots of the current connection; empty before the first one. */
  get slots(): Slot[];
  /** The slot that carries a story; null if none does. */
  slotOf(id: string | null | undefined): Slot | null;
  /** The gate of a story; null if it has none, or if the story has not been requested yet. */
  gateOf(id: string | null | undefined): Gate | null;
  /**
   * Applies a new token: what it opens arrives on the existing connection. If the last one let the viewer see nothing,
   * it begins anew.
   */
  showToken(): Promise<void>;

  /** In swipe order. */
  get stories(): Story[];
  /** The current story. After the last one it stays the last one: see `isAtEnd`. */
  get current(): Story | null;
  /** The current story's index in `stories`; −1 if there is none. */
  get index(): number;
  /** How many stories there are according to the server; never fewer than are known. */
  get count(): number;
  story(id: string | null | undefined): Story | null;
  /** The story that a swipe in this direction leads to; null if there is none. */
  beside(direction: Direction): Story | null;
  /** Whether the viewer can swipe that way: after the last story comes the end. */
  mayGo(direction: Direction): boolean;
  /** The direction of the last swipe. */
  direction: Direction;
  /** Whether the viewer has swiped past the last story. */
  isAtEnd: boolean;
  /** Set while the page plays the current story another way, without a connection; `state` is then `playing`. */
  isDelayed: boolean;
  /** Where the viewer was, if the server could not bring them back there. */
  lost: { id: string; until: number } | null;
  /** The story that will be in view next. */
  get ahead(): Story | null;
  /** The connection, reconnected as needed; `session` is null while there is none. */
  readonly connection: EventTarget & { readonly state: string; readonly session: MediaSession | null };

  /** Starts, or resumes after `stop()` or after the viewer watched elsewhere. */
  play(): void;
  /** Stops sound, picture and updates. Keeps the viewer's position. */
  stop(): void;
  /** Gives up on the missing story and begins with the first one available. */
  seeOthers(): void;
  /** A swipe reveals the story in this direction: start playing it. */
  peek(direction: Direction): void;
  /** The swipe is complete: that story becomes the current one. */
  commit(direction: Direction): void;
  /** The swipe was canceled. The current story stays. */
  cancel(): void;
  /** Goes to a story in the list; does nothing and returns false for any other. */
  go(id: string): boolean;

  addEventListener<Type extends keyof StoryFeedEvents>(
    type: Type, listener: (event: StoryFeedEvents[Type]) => void, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions,
  ): void;
}

/** Which directions are open from the current story. */
export interface Way {
  forward: boolean;
  backward: boolean;
}

/** What a {@link Swipe} asks for. Each is called at most once per event. */
export interface Decisions {
  /** A swipe reveals the story in this direction. */
  peek(direction: Direction): void;
  /** That story becomes the current one. */
  commit(direction: Direction): void;
  /** The swipe was canceled. */
  cancel(): void;
  tap?(x: number, y: number): void;
}

/** A point in pixels and when it was touched, in milliseconds. */
export interface Touch {
  x: number;
  y: number;
  at: number;
}

/** A swipe as a state machine: fingers, keys and time in, progress and decisions out. */
export declare class Swipe {
  constructor(decisions: Decisions);
  state: "resting" | "held" | "dragging" | "settling";
  /** 0 at rest, 1 when the next story fills the screen, −1 for the one before. */
  progress: number;
  /** The axis along which the picture turns. */
  axis: "x" | "y";
  /** The direction of a story that was peeked and neither committed nor canceled. */
  peeked: Direction | null;
  decisions: Decisions;
  get isMoving(): boolean;
  /** A finger touches the screen. */
  press(point: Touch, size: { width: number; height: number }): void;
  /** The finger moves. */
  move(point: Touch, way: Way): void;
  /** The finger lifts: the swipe completes after a third of the screen, or after a fling. */
  lift(point: Touch): void;
  /** The browser took over the gesture, or its story is gone. */
  abandon(at: number): void;
  /** A step by key, wheel, tap or button; returns false if there is no story that way. */
  step(direction: Direction, axis: "x" | "y", at: number, way: Way): boolean;
  /** Turns to a story without asking for a decision, such as when the one before has ended. */
  turn(direction: Direction, axis: "x" | "y", at: number): void;
  /** Advances the animation and returns the progress. */
  tick(at: number): number;
}

/** Whether a value is a BlurHash that can be decoded. */
export declare function isBlurHash(hash: unknown): hash is string;
/** The image as RGBA bytes, row by row; throws a `RangeError` for anything that is not a BlurHash. */
export declare function decodeBlurHash(hash: string, width: number, height: number): Uint8ClampedArray;
