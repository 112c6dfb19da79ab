/**
 * A story feed without a page: the list of live streams, where the viewer is in it, and one peer connection whose two
 * slots always carry the story in view and the one that comes next.
 */

import type { MediaSession } from "./session.js";

export type Direction = "forward" | "backward";

export interface Preview {
  /** A picture, as of `capturedAt`. */
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
  /** Identity. */
  host?: string | null;
  hostName?: string | null;
  /** ISO 8601. */
  startedAt?: string | null;
  viewers?: number;
  paused?: boolean;
  /** Whether it may be watched by HLS, where the server makes it. */
  hls?: "on" | "off";
  preview?: Preview | null;
}

export interface Slot {
  index: 0 | 1;
  /** Sound and picture; the same for the whole session, whatever it carries. */
  media: MediaStream;
  /** What it carries; null while it is empty. */
  stream: string | null;
  /** `full`: the focus, with sound. */
  quality: "full" | "preview" | null;
  /** Frames that were received before are another stream's; by `performance.now()`. */
  since: number;
  /** Where in RTP's time a stream's picture begins, once known. */
  begun: { stream: string; timestamp: number } | null;
  /**
   * Numbers of what was asked of the server, the same for both slots: the last one's, and up to which one it is known
   * what the slots are. Where `answered` is less, what is in a slot may be another one already.
   */
  requests: { said: number; answered: number };
}

/**
 * `empty`: nobody is live, and who goes live will be shown. `missing`: the story to begin with is not live. `replaced`:
 * the same viewer watches elsewhere; `play()` brings it back here. `failed`: the server said no for good.
 */
export type FeedState =
  "idle" | "connecting" | "playing" | "reconnecting" | "empty" | "missing" | "replaced" | "failed";

/** `detail` of the event `turn`. */
export interface Turn {
  from: string | null;
  to: string | null;
  direction: Direction;
  reason: "swipe" | "ended" | "not-permitted" | "jump";
}

/** A story that was wished for and is not live. */
export interface Missing {
  id: string;
  /** `unknown`: nobody has made it; `forbidden`: our token is for another stream. */
  why: "ended" | "backstage" | "unknown" | "forbidden";
  title?: string | null;
  hostName?: string | null;
  /** ISO 8601. */
  startsAt?: string | null;
}

export interface StoryFeedOptions {
  /** Of the server; by default the page's. */
  origin?: string;
  /** Where to begin; by default with the first one. */
  stream?: string | null;
  /** Whether the next story is loaded once one has settled, or when a swipe begins, which saves data. */
  preload?: "eager" | "on-swipe";
  /** Does something with a viewer's token; by default with the one in the page's address, if there is one. */
  withToken?: <T>(action: (token: string | null) => Promise<T>) => Promise<T>;
}

export interface StoryFeedEvents {
  /** The list, a story's words or numbers, the current story or the state is another one. */
  change: Event;
  /** A slot carries another stream, or the slots are those of a new connection. */
  slots: Event;
  /** The current story is another one. */
  turn: CustomEvent<Turn>;
  /** How we stand with the gate of a story is another; its name. */
  gate: CustomEvent<string>;
}

/** What stands between a viewer and a story that takes a tier. */
export interface Gate {
  stream: string | null;
  /** `free`: what everybody may watch. `shut`: nothing comes. */
  state: "free" | "shut";
  tier: string;
  /** Where the tier is to be had. */
  unlock: string | null;
  /** When the free time is over, by `performance.now()`. */
  endsAt: number;
}

export declare class StoryFeed extends EventTarget {
  constructor(options?: StoryFeedOptions);

  /** Why it `failed`, or why the last attempt came to nothing. */
  error: Error | null;
  preload: "eager" | "on-swipe";
  get state(): FeedState;
  /** The story to begin with, when that is not live; null when it is, or when there was none. */
  get missing(): Missing | null;
  /** The two slots of the connection there is; none before the first. */
  get slots(): Slot[];
  /** The slot that carries a story; null while none does. */
  slotOf(id: string | null | undefined): Slot | null;
  /** What stands between us and a story; null where nothing does, or nobody has asked for it yet. */
  gateOf(id: string | null | undefined): Gate | null;
  /** Another token came: what it opens comes on the connection that there is. */
  showToken(): Promise<void>;

  /** In the order in which they are swiped through. */
  get stories(): Story[];
  /** The story that counts now. Behind the last one it stays the last one: see `isAtEnd`. */
  get current(): Story | null;
  /** Of the current story among `stories`; −1 while there is none. */
  get index(): number;
  /** How many stories there are, as far as the server said; at least as many as are known. */
  get count(): number;
  story(id: string | null | undefined): Story | null;
  /** What a swipe in this direction leads to; null where there is nothing. */
  beside(direction: Direction): Story | null;
  /** Whether one may swipe there: behind the last story comes the end. */
  mayGo(direction: Direction): boolean;
  /** Of the last swipe. */
  direction: Direction;
  /** The viewer has swiped on behind the last story. */
  isAtEnd: boolean;
  /** The page plays the current story another way while there is no connection: the feed's state is `playing` then. */
  isDelayed: boolean;
  /** Where the viewer was before the server could not bring them back there. */
  lost: { id: string; until: number } | null;
  /** What will be looked at next. */
  get ahead(): Story | null;
  /** The connection, kept up; `session` is null while there is none. */
  readonly connection: EventTarget & { readonly state: string; readonly session: MediaSession | null };

  /** Begins, or comes back after `stop()` or after the viewer went elsewhere. */
  play(): void;
  /** Ends sound, picture and news. Where the viewer was is kept. */
  stop(): void;
  /** Gives up the story that is missing, and begins with the first there is. */
  seeOthers(): void;
  /** A swipe shows what lies in this direction: let it play there. */
  peek(direction: Direction): void;
  /** The swipe has come to its end: that story counts now. */
  commit(direction: Direction): void;
  /** The swipe was called off. What was there before it began stays. */
  cancel(): void;
  /** Goes to any story of the list; false for others, for which nothing happens. */
  go(id: string): boolean;

  addEventListener<Type extends keyof StoryFeedEvents>(
    type: Type, listener: (event: StoryFeedEvents[Type]) => void, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions,
  ): void;
}

/** What may be reached from the story that counts now. */
export interface Way {
  forward: boolean;
  backward: boolean;
}

/** What a {@link Swipe} asks for; each is called at most once for what happened once. */
export interface Decisions {
  /** A swipe shows the story in this direction. */
  peek(direction: Direction): void;
  /** That story counts now. */
  commit(direction: Direction): void;
  /** The swipe was called off. */
  cancel(): void;
  tap?(x: number, y: number): void;
}

/** A point and when it was touched, in pixels and milliseconds. */
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
  /** Along which the picture turns. */
  axis: "x" | "y";
  /** The story in this direction was asked for and neither committed nor called off. */
  peeked: Direction | null;
  decisions: Decisions;
  get isMoving(): boolean;
  /** A finger comes down. */
  press(point: Touch, size: { width: number; height: number }): void;
  /** The finger moves. */
  move(point: Touch, way: Way): void;
  /** The finger leaves: a third of the screen decides, or which way it was flung. */
  lift(point: Touch): void;
  /** The browser took the gesture away, or what it was about is gone. */
  abandon(at: number): void;
  /** A step by key, wheel, tap or button; false where there is nothing. */
  step(direction: Direction, axis: "x" | "y", at: number, way: Way): boolean;
  /** Shows a story's coming without asking anybody, such as when the one before has ended. */
  turn(direction: Direction, axis: "x" | "y", at: number): void;
  /** Moves what runs out, and returns the progress. */
  tick(at: number): number;
}

/** Whether a string can be decoded. */
export declare function isBlurHash(hash: unknown): hash is string;
/** The picture, as RGBA bytes row by row; throws a `RangeError` for anything that is no BlurHash. */
export declare function decodeBlurHash(hash: string, width: number, height: number): Uint8ClampedArray;
