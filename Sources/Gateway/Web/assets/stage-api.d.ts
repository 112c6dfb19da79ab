/** What participants can ask of a stream, over HTTP. Each throws a `SignallingError` when the server refuses; its `rule` says why. */

export type Role = "host" | "speaker" | "viewer";

/** Of a stream, as far as its host decides on them; what is left out stays as it is, null deletes. */
export interface Details {
  id?: string;
  title?: string | null;
  /** ISO 8601. */
  startsAt?: string | null;
  joinAheadSeconds?: number;
  /** On stage beside the host at once. */
  maxSpeakers?: number;
  programme?: "host" | "active-speaker" | "composed" | (string & {});
  recording?: "manual" | "automatic" | (string & {});
  /** Who may make them. */
  clips?: "off" | "moderators" | "everybody" | (string & {});
  /** Whether it may be watched by HLS, where the server makes it. */
  hls?: "on" | "off" | (string & {});
  /** How far viewers by HLS can go back, in seconds. */
  dvrSeconds?: number;
  layers?: string[];
  /** What watching takes beside being let in. */
  gate?: { tier: string; freeSeconds?: number; unlock?: string | null } | null;
}

/** One file. */
export interface Recording {
  id: string;
  /** A clip is what somebody kept of a live stream's last seconds. */
  kind?: "recording" | "clip";
  /** Of a clip. */
  title?: string | null;
  part: number;
  state: "recording" | "ended";
  /** In seconds. */
  duration: number;
  /** In bytes. */
  size: number;
  url: string | null;
  /** Its HLS playlist; null while it goes on, and for WebM. */
  hls?: string | null;
  /** ISO 8601. */
  startedAt: string;
  endReason?: string | null;
}

/** A comment, by the time of a recording. */
export interface RecordedComment {
  number: number;
  author: string;
  name: string | null;
  role: Role;
  text: string;
  /** In milliseconds from the recording's beginning. */
  at: number;
}

export interface StreamComment {
  number: number;
  /** By its author's client. */
  id: string;
  author: string;
  name: string | null;
  role: Role;
  /** Whether the author could take away what others wrote, beside the host. */
  moderator: boolean;
  text: string;
  at: string;
}

export interface Poll {
  number: number;
  question: string;
  /** Of a quiz with what is right: for hosts, and for others when it is over. */
  options: { text: string; votes?: number; right?: boolean }[];
  multiple: boolean;
  results: "live" | "closed";
  voters: number;
  /** Whether it has a right answer. */
  quiz: boolean;
  /** Of a quiz: for hosts, and for others when it is over. */
  rightVoters?: number;
  /** Of a quiz, the first who were right: for hosts, and for others when it is over. */
  winners?: { participant: string; name: string | null; at: string }[];
  /** ISO 8601. */
  openedAt: string;
  closesAt: string | null;
  closedAt: string | null;
}

/** What is talked about; `data` is the app's own. */
export interface Card {
  title: string;
  link: string;
  picture?: string | null;
  data?: unknown;
}

export interface DuelSide {
  stream: string;
  /** The host's. */
  name: string | null;
  score: number;
}

/** Two live streams against each other; times are ISO 8601, by the server's clock. */
export interface Duel {
  id: string;
  state: "invited" | "off" | "countdown" | "running" | "settling" | "penalty" | "over";
  /** Whose host invited. */
  from: DuelSide;
  to: DuelSide;
  seconds: number;
  penaltySeconds: number;
  expiresAt: string;
  startsAt: string | null;
  endsAt: string | null;
  /** When both part; null as long as that is open. */
  overAt: string | null;
  /** The stream that won; null also for a draw. */
  winner: string | null;
  reason: string | null;
  at: string;
}

export interface DuelTerms {
  /** 30 to 900. */
  seconds?: number;
  /** 0 to 600. */
  penaltySeconds?: number;
  /** Points for the smallest unit of the currency, and for a tap. */
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
  /** Which of a token's tiers commenting takes; null where it takes none. */
  commentTier: string | null;
  gifts: GiftCatalogue | null;
  /** Whether other hosts may invite to a duel. */
  duels: boolean;
  /** What viewers' pages show. */
  widgets: Widget[];
}

export type Widget = "comments" | "barrage" | "composer" | "reactions" | "gifts" | "ranks" | "poll" | "card" | "duel";

/** Of somebody who cannot write for now, or whom nobody else sees. */
export interface Silence {
  /** ISO 8601. */
  until: string;
  /** Whether they can write, and only they see it. */
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
  /** Whom it is about. */
  participant: string | null;
  /** The number of the comment. */
  comment: number | null;
  /** How the comment begins, or the card's title. */
  text: string | null;
  /** ISO 8601. */
  until: string | null;
}

/** One of those who are first. */
export interface Rank {
  participant: string;
  name: string | null;
  /** In the currency's smallest unit, or points. */
  value: number;
}

/** A token for what one is now. */
export interface FreshToken {
  token: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** What comes of an encoder by RTMP or SRT; bit rates are in bits a second. */
export interface Encoder {
  participant: string;
  video: {
    codec: string; profile: number | null; width: number | null; height: number | null; framesPerSecond: number;
    bitrate: number; keyFrameInterval: number | null; converted: boolean;
  } | null;
  audio: { codec: string; sampleRate: number | null; channels: number | null; bitrate: number } | null;
  /** By SRT: milliseconds, and packets since the connection began. */
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

/** A target to which the programme is sent; never with its key. */
export interface Restream {
  number: number;
  url: string;
  state: "waiting" | "connecting" | "live" | "failed";
  /** ISO 8601, of the state. */
  since: string;
  /** Why it failed, for programs. */
  reason: string | null;
  /** The same for people. */
  detail: string | null;
  /** ISO 8601. */
  nextTryAt: string | null;
  /** Pictures that were left out because the target is too slow. */
  droppedPictures: number;
}

export declare class StageAPI {
  /** @param role what this page's token is kept as */
  constructor(stream: string, role: Role);
  stream: string;
  role: Role;

  create(details: Details): Promise<unknown>;
  edit(details: Details): Promise<unknown>;
  goLive(): Promise<unknown>;
  end(): Promise<unknown>;

  startRecording(): Promise<unknown>;
  /** The answer comes when the file is complete. */
  stopRecording(): Promise<unknown>;
  /** Keeps the last seconds of a live stream, 30 by default; the answer comes before the file is complete. */
  makeClip(wishes?: { seconds?: number; title?: string | null }): Promise<Recording>;
  /** What is known of one file. */
  recording(recording: string): Promise<Recording>;
  recordings(): Promise<{ recordings: Recording[] }>;
  /** What was written while a recording was made, the oldest first; `after` is the number of a comment. */
  recordedComments(recording: string, after?: number): Promise<{ comments: RecordedComment[]; more: boolean }>;
  removeRecording(recording: string): Promise<unknown>;

  /** Comes in; whose token allows it comes onto the stage. */
  join(): Promise<unknown>;
  remove(participant: string, options?: { ban?: boolean }): Promise<unknown>;
  /** Who is kept out; hosts may ask. */
  bans(): Promise<{ bans: Record<string, { since: string }> }>;
  /** Lets somebody in again. */
  unban(participant: string): Promise<unknown>;

  /** What was said before the comment of that number, the oldest first; `more` before those. */
  comments(before: number): Promise<{ comments: StreamComment[]; more: boolean }>;
  /** @param id by which the same comment, sent again, is known */
  writeComment(id: string, text: string): Promise<StreamComment>;
  deleteComment(comment: number): Promise<unknown>;
  pinComment(comment: number): Promise<unknown>;
  unpinComment(): Promise<unknown>;

  openPoll(poll: {
    question: string; options: string[]; multiple: boolean; results?: "live" | "closed"; seconds?: number;
    /** Places in `options`; makes it a quiz. */
    right?: number[];
  }): Promise<Poll>;
  /** A poll, and what we chose. */
  poll(poll: number): Promise<Poll & { vote: number[] | null }>;
  vote(poll: number, options: number[]): Promise<Poll>;
  closePoll(poll: number): Promise<Poll>;

  showCard(card: Card): Promise<unknown>;
  removeCard(): Promise<unknown>;

  /** Takes no comments of somebody for a while, or as a shadow shows them to nobody else. */
  silence(participant: string, seconds: number, shadow?: boolean): Promise<unknown>;
  /** Lets somebody write again, and others see it. */
  unsilence(participant: string): Promise<unknown>;
  /** Who took what away or showed it, the latest last; hosts may ask. */
  audit(): Promise<{ entries: AuditEntry[] }>;
  /** Who is first since the stream was made, or since midnight, UTC; at most a hundred. */
  rank(rank: "givers" | "fans", period: "stream" | "day"): Promise<{
    ranks: Rank[]; period: string; currency: string | null;
  }>;
  /** What the audience may do; hosts and moderators see also the words that nobody may write, and who is silenced. */
  interaction(): Promise<AudienceSettings & { words?: string[]; silenced?: Record<string, Silence> }>;
  editInteraction(settings: Partial<AudienceSettings & { words: string[] }>): Promise<unknown>;

  /** Streams that are live and that we may watch: the first hundred. */
  liveStreams(): Promise<{ id: string; title?: string | null; hostName?: string | null }[]>;
  /** Invites another stream to a duel; what comes of it followers are told. */
  inviteToDuel(rival: string, terms?: DuelTerms): Promise<Duel>;
  acceptDuel(duel: string): Promise<Duel>;
  declineDuel(duel: string): Promise<Duel>;
  /** Takes an invitation back. */
  cancelDuel(duel: string): Promise<Duel>;
  /** While it runs, who leaves loses. */
  leaveDuel(duel: string): Promise<Duel>;
  /** Asks the same opponent once more. */
  rematchDuel(duel: string): Promise<Duel>;

  raiseHand(): Promise<unknown>;
  lowerHand(participant: string): Promise<unknown>;
  /** Gives a raised hand another place, from 1 on, or none for a while. */
  arrangeHand(participant: string, change: { place: number } | { held: boolean }): Promise<unknown>;
  invite(participant: string): Promise<unknown>;
  /** Withdraws another's invitation, or declines one's own. */
  endInvitation(participant: string): Promise<unknown>;
  /** @param options whether one comes with sound alone */
  accept(me: string, options?: { videoMuted?: boolean }): Promise<unknown>;
  /** Tells all what one's microphone and camera do. */
  describe(me: string, state: { audioMuted?: boolean; videoMuted?: boolean; paused?: boolean }): Promise<unknown>;
  /** Moves somebody to the viewers, or steps down oneself. */
  leaveStage(participant: string): Promise<unknown>;
  requestMute(participant: string, kind: "audio" | "video"): Promise<unknown>;

  /** An invitation as a link: many may use it, each as a person of their own. */
  makeLink(role: "speaker" | "viewer"): Promise<{ path: string; expiresAt: string }>;
  /** Where an encoder publishes to, a key for it, and what comes of encoders now. */
  showIngest(): Promise<Ingest>;
  /** Another key for an encoder; those before are good for nothing. */
  replaceIngestKey(): Promise<Ingest>;
  /** Where the programme is sent to, and how that goes. */
  listRestreams(): Promise<{ restreams: Restream[] }>;
  /**
   * Sends the programme to a target, too, from now on.
   * @param url without the key
   * @param key never shown again
   */
  addRestream(url: string, key: string): Promise<Restream>;
  /** Sends nothing to a target any more. */
  removeRestream(number: number): Promise<unknown>;
  /** Nobody comes in any more by the links that were made so far; those who are here stay. */
  revokeLinks(): Promise<unknown>;
  /** A text of up to 1,000 bytes as a QR code: a picture (SVG). */
  qrCode(text: string): Promise<Blob>;
  /** @param name another than one has */
  renewToken(name?: string): Promise<FreshToken>;
}
