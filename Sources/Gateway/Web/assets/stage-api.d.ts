/** What participants can do with a stream over HTTP. Each call throws a `SignallingError` if the server refuses; its `rule` says why. */

export type Role = "host" | "speaker" | "viewer";

/** A stream's settings that its host decides. Members left out stay as they are; null deletes. */
export interface Details {
  id?: string;
  title?: string | null;
  /** ISO 8601. */
  startsAt?: string | null;
  joinAheadSeconds?: number;
  /** How many can be on stage at once, besides the host. */
  maxSpeakers?: number;
  programme?: "host" | "active-speaker" | "composed" | (string & {});
  recording?: "manual" | "automatic" | (string & {});
  /** Who can make clips. */
  clips?: "off" | "moderators" | "everybody" | (string & {});
  /** Whether the stream can be watched over HLS, if the server offers it. */
  hls?: "on" | "off" | (string & {});
  /** How many seconds back HLS viewers can go. */
  dvrSeconds?: number;
  layers?: string[];
  /** What watching requires in addition to being let in. */
  gate?: { tier: string; freeSeconds?: number; unlock?: string | null } | null;
}

/** One file. */
export interface Recording {
  id: string;
  /** A clip is a short part that someone saved while the stream was live. */
  kind?: "recording" | "clip";
  /** Clips only. */
  title?: string | null;
  part: number;
  state: "recording" | "ended";
  /** In seconds. */
  duration: number;
  /** In bytes. */
  size: number;
  url: string | null;
  /** Its HLS playlist; null while recording, and for WebM. */
  hls?: string | null;
  /** ISO 8601. */
  startedAt: string;
  endReason?: string | null;
}

/** A comment, placed on the timeline of a recording. */
export interface RecordedComment {
  number: number;
  author: string;
  name: string | null;
  role: Role;
  text: string;
  /** In milliseconds from the start of the recording. */
  at: number;
}

export interface StreamComment {
  number: number;
  /** Chosen by the author's client. */
  id: string;
  author: string;
  name: string | null;
  role: Role;
  /** Whether the author could delete other people's comments, as the host can. */
  moderator: boolean;
  text: string;
  at: string;
}

export interface Poll {
  number: number;
  question: string;
  /** For a quiz, with the right answers: for hosts, and for everyone once it is over. */
  options: { text: string; votes?: number; right?: boolean }[];
  multiple: boolean;
  results: "live" | "closed";
  voters: number;
  /** Whether it has a right answer. */
  quiz: boolean;
  /** Quizzes only: for hosts, and for everyone once it is over. */
  rightVoters?: number;
  /** Quizzes only, the first to answer correctly: for hosts, and for everyone once it is over. */
  winners?: { participant: string; name: string | null; at: string }[];
  /** ISO 8601. */
  openedAt: string;
  closesAt: string | null;
  closedAt: string | null;
}

/** What the host is talking about. `data` is for your app. */
export interface Card {
  title: string;
  link: string;
  picture?: string | null;
  data?: unknown;
}

export interface DuelSide {
  stream: string;
  /** The host's name. */
  name: string | null;
  score: number;
}

/** Two live streams competing; times are ISO 8601, by the server's clock. */
export interface Duel {
  id: string;
  state: "invited" | "off" | "countdown" | "running" | "settling" | "penalty" | "over";
  /** The stream whose host sent the invitation. */
  from: DuelSide;
  to: DuelSide;
  seconds: number;
  penaltySeconds: number;
  expiresAt: string;
  startsAt: string | null;
  endsAt: string | null;
  /** When the two streams part; null until that is known. */
  overAt: string | null;
  /** The stream that won; also null for a draw. */
  winner: string | null;
  reason: string | null;
  at: string;
}

export interface DuelTerms {
  /** 30 to 900. */
  seconds?: number;
  /** 0 to 600. */
  penaltySeconds?: number;
  /** Points per smallest unit of the currency, and per tap. */
  weights?: { gifts?: number; reactions?: number };
}

export interface GiftCatalogue {
  currency: string;
  kinds: { id: string; name: string; picture: string; price: number }[];
}

/** What the audience may do. */
export interface AudienceSettings {
  comments: boolean;
  reactions: string[];
  /** In seconds. */
  slowMode: number;
  /** The tier that commenting requires; null if it requires none. */
  commentTier: string | null;
  gifts: GiftCatalogue | null;
  /** Whether other hosts can invite this one to a duel. */
  duels: boolean;
  /** What viewers' pages show. */
  widgets: Widget[];
}

export type Widget = "comments" | "barrage" | "composer" | "reactions" | "gifts" | "ranks" | "poll" | "card" | "duel";

/** Someone who can't comment for now, or whose comments only they can see. */
export interface Silence {
  /** ISO 8601. */
  until: string;
  /** Whether they can still comment, but only they see it. */
  shadow: boolean;
}

/** What a host or moderator has done. */
export interface AuditEntry {
  action: "deleted" | "pinned" | "unpinned" | "silenced" | "shadowed" | "unsilenced" | "card-shown" | "card-removed" | (string & {});
  /** Who did it. */
  by: string;
  name: string | null;
  /** ISO 8601. */
  at: string;
  /** The person it is about. */
  participant: string | null;
  /** The number of the comment. */
  comment: number | null;
  /** The beginning of the comment, or the card's title. */
  text: string | null;
  /** ISO 8601. */
  until: string | null;
}

/** One entry of a ranking. */
export interface Rank {
  participant: string;
  name: string | null;
  /** In the currency's smallest unit, or points. */
  value: number;
}

/** A token for the participant's current role. */
export interface FreshToken {
  token: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** What arrives from an encoder over RTMP or SRT; bitrates are in bits per second. */
export interface Encoder {
  participant: string;
  video: {
    codec: string; profile: number | null; width: number | null; height: number | null; framesPerSecond: number;
    bitrate: number; keyFrameInterval: number | null; converted: boolean;
  } | null;
  audio: { codec: string; sampleRate: number | null; channels: number | null; bitrate: number } | null;
  /** SRT only: milliseconds, and packets since the connection began. */
  link: {
    roundTrip: number; latency: number; received: number; lost: number; retransmitted: number; dropped: number;
  } | null;
  advice: { code: string; text: string }[];
}

export interface Ingest {
  rtmp: { server: string; plainServer: string | null; key: string; expiresAt: string } | null;
  srt: {
    server: string; streamId: string | null; url: string | null; passphrase: boolean; expiresAt: string;
  } | null;
  whip: { server: string };
  encoders: Encoder[];
}

/** A target that the programme is sent to; never includes its key. */
export interface Restream {
  number: number;
  url: string;
  state: "waiting" | "connecting" | "live" | "failed";
  /** When the state began, ISO 8601. */
  since: string;
  /** Why it failed, for programs. */
  reason: string | null;
  /** The same, for people to read. */
  detail: string | null;
  /** ISO 8601. */
  nextTryAt: string | null;
  /** Pictures dropped because the target is too slow. */
  droppedPictures: number;
}

export declare class StageAPI {
  /** @param role the role under which this page keeps its token */
  constructor(stream: string, role: Role);
  stream: string;
  role: Role;

  create(details: Details): Promise<unknown>;
  edit(details: Details): Promise<unknown>;
  goLive(): Promise<unknown>;
  end(): Promise<unknown>;

  startRecording(): Promise<unknown>;
  /** Resolves when the file is complete. */
  stopRecording(): Promise<unknown>;
  /** Saves the last seconds of a live stream, 30 by default; resolves before the file is complete. */
  makeClip(wishes?: { seconds?: number; title?: string | null }): Promise<Recording>;
  /** Details of one file. */
  recording(recording: string): Promise<Recording>;
  recordings(): Promise<{ recordings: Recording[] }>;
  /** Comments written while the recording was made, oldest first; `after` is the number of a comment. */
  recordedComments(recording: string, after?: number): Promise<{ comments: RecordedComment[]; more: boolean }>;
  removeRecording(recording: string): Promise<unknown>;

  /** Joins the stream, on stage if the token allows it. */
  join(): Promise<unknown>;
  remove(participant: string, options?: { ban?: boolean }): Promise<unknown>;
  /** Banned people; for hosts. */
  bans(): Promise<{ bans: Record<string, { since: string }> }>;
  /** Lets someone in again. */
  unban(participant: string): Promise<unknown>;

  /** Comments before the one with that number, oldest first; `more` tells whether there are earlier ones. */
  comments(before: number): Promise<{ comments: StreamComment[]; more: boolean }>;
  /** @param id identifies the comment if it is sent again */
  writeComment(id: string, text: string): Promise<StreamComment>;
  deleteComment(comment: number): Promise<unknown>;
  pinComment(comment: number): Promise<unknown>;
  unpinComment(): Promise<unknown>;

  openPoll(poll: {
    question: string; options: string[]; multiple: boolean; results?: "live" | "closed"; seconds?: number;
    /** Indexes into `options`; makes it a quiz. */
    right?: number[];
  }): Promise<Poll>;
  /** A poll and your own choice. */
  poll(poll: number): Promise<Poll & { vote: number[] | null }>;
  vote(poll: number, options: number[]): Promise<Poll>;
  closePoll(poll: number): Promise<Poll>;

  showCard(card: Card): Promise<unknown>;
  removeCard(): Promise<unknown>;

  /** Blocks someone's comments for a while, or with `shadow` shows them only to their author. */
  silence(participant: string, seconds: number, shadow?: boolean): Promise<unknown>;
  /** Lets someone comment again, visible to everyone. */
  unsilence(participant: string): Promise<unknown>;
  /** What hosts and moderators did, latest last; for hosts. */
  audit(): Promise<{ entries: AuditEntry[] }>;
  /** The ranking since the stream was created, or since midnight UTC; up to a hundred people. */
  rank(rank: "givers" | "fans", period: "stream" | "day"): Promise<{
    ranks: Rank[]; period: string; currency: string | null;
  }>;
  /** What the audience may do. Hosts and moderators also see the blocked words and who is silenced. */
  interaction(): Promise<AudienceSettings & { words?: string[]; silenced?: Record<string, Silence> }>;
  editInteraction(settings: Partial<AudienceSettings & { words: string[] }>): Promise<unknown>;

  /** Live streams that you can watch: the first hundred. */
  liveStreams(): Promise<{ id: string; title?: string | null; hostName?: string | null }[]>;
  /** Invites another stream to a duel; followers are told the outcome. */
  inviteToDuel(rival: string, terms?: DuelTerms): Promise<Duel>;
  acceptDuel(duel: string): Promise<Duel>;
  declineDuel(duel: string): Promise<Duel>;
  /** Withdraws an invitation. */
  cancelDuel(duel: string): Promise<Duel>;
  /** Leaving while the duel runs means losing it. */
  leaveDuel(duel: string): Promise<Duel>;
  /** Invites the same opponent again. */
  rematchDuel(duel: string): Promise<Duel>;

  raiseHand(): Promise<unknown>;
  lowerHand(participant: string): Promise<unknown>;
  /** Moves a raised hand to another place, starting at 1, or puts it on hold. */
  arrangeHand(participant: string, change: { place: number } | { held: boolean }): Promise<unknown>;
  invite(participant: string): Promise<unknown>;
  /** Withdraws someone's invitation, or declines your own. */
  endInvitation(participant: string): Promise<unknown>;
  /** @param options whether to join with sound only */
  accept(me: string, options?: { videoMuted?: boolean }): Promise<unknown>;
  /** Tells everyone the state of your microphone and camera. */
  describe(me: string, state: { audioMuted?: boolean; videoMuted?: boolean; paused?: boolean }): Promise<unknown>;
  /** Moves someone to the audience, or leaves the stage yourself. */
  leaveStage(participant: string): Promise<unknown>;
  requestMute(participant: string, kind: "audio" | "video"): Promise<unknown>;

  /** An invitation link. Many people can use it, each as themselves. */
  makeLink(role: "speaker" | "viewer"): Promise<{ path: string; expiresAt: string }>;
  /** Where an encoder publishes, its key, and what arrives from encoders now. */
  showIngest(): Promise<Ingest>;
  /** Makes a new key for encoders; earlier keys stop working. */
  replaceIngestKey(): Promise<Ingest>;
  /** Where the programme is sent, and the state of each target. */
  listRestreams(): Promise<{ restreams: Restream[] }>;
  /**
   * Starts sending the programme to another target.
   * @param url without the key
   * @param key never shown again
   */
  addRestream(url: string, key: string): Promise<Restream>;
  /** Stops sending to a target. */
  removeRestream(number: number): Promise<unknown>;
  /** No one can come in by the links made so far; people who are here stay. */
  revokeLinks(): Promise<unknown>;
  /** Text of up to 1,000 bytes as a QR code (SVG image). */
  qrCode(text: string): Promise<Blob>;
  /** @param name a new name, if it is to change */
  renewToken(name?: string): Promise<FreshToken>;
}
