// @ts-check

/** What participants can ask of a stream, over HTTP; the answers show in sync. */

import { SignallingError } from "./session.js";
import { keepToken, withToken } from "./tokens.js";

/** Longest time an answer may take, in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * @typedef {object} Details of a stream, as far as its host decides on them
 * @property {string} [id]
 * @property {string | null} [title]
 * @property {string | null} [startsAt] ISO 8601
 * @property {number} [joinAheadSeconds]
 * @property {number} [maxSpeakers] on stage beside the host at once
 * @property {string} [programme]
 * @property {string} [recording] `manual` or `automatic`
 * @property {string} [clips] who may make them: `off`, `moderators` or `everybody`
 * @property {string} [hls] `on` or `off`
 * @property {number} [dvrSeconds] how far viewers by HLS can go back
 * @property {string[]} [layers]
 * @property {{ tier: string, freeSeconds?: number, unlock?: string | null } | null} [gate] what watching takes
 */

/**
 * @typedef {object} Encoder what comes of one by RTMP or SRT; bit rates are in bits a second
 * @property {string} participant
 * @property {{ codec: string, profile: number | null, width: number | null, height: number | null,
 *   framesPerSecond: number, bitrate: number, keyFrameInterval: number | null, converted: boolean } | null} video
 * @property {{ codec: string, sampleRate: number | null, channels: number | null, bitrate: number } | null} audio
 * @property {{ roundTrip: number, latency: number, received: number, lost: number, retransmitted: number,
 *   dropped: number } | null} link by SRT: milliseconds, and packets since the connection began
 * @property {{ code: string, text: string }[]} advice
 *
 * @typedef {object} Ingest
 * @property {{ server: string, plainServer: string | null, key: string, expiresAt: string } | null} rtmp
 * @property {{ server: string, streamId: string | null, url: string | null, passphrase: boolean,
 *   expiresAt: string } | null} srt
 * @property {{ server: string }} whip
 * @property {Encoder[]} encoders
 *
 * @typedef {object} Restream a target to which the programme is sent; never with its key
 * @property {number} number
 * @property {string} url
 * @property {"waiting" | "connecting" | "live" | "failed"} state
 * @property {string} since ISO 8601, of the state
 * @property {string | null} reason why it failed, for programs
 * @property {string | null} detail the same for people
 * @property {string | null} nextTryAt ISO 8601
 * @property {number} droppedPictures those that were left out because the target is too slow
 */

/**
 * A path that names somebody. Servers on the way may take doubled slashes and dots out of a path, so an identity with
 * such goes into the query.
 * @param {string} path
 * @param {string} participant
 * @param {string} [rest] of the path
 * @param {Record<string, string>} [query]
 */
function named(path, participant, rest = "", query = {}) {
  const isPlain = participant.split("/").every((part) => part && !/^\.+$/.test(part));
  const items = new URLSearchParams(isPlain ? query : { participant, ...query }).toString();
  return `${path}/${isPlain ? encodeURIComponent(participant) : "-"}${rest}${items && `?${items}`}`;
}

export class StageAPI {
  /**
   * @param {string} stream
   * @param {import("./tokens.js").Role} role what this page's token is kept as
   */
  constructor(stream, role) {
    this.stream = stream;
    this.role = role;
  }

  /** @param {Details} details */
  create(details) {
    return this.#send("POST", "/v1/streams", { id: this.stream, ...details }, {
      "Idempotency-Key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`,
    });
  }

  /** @param {Details} details only what changes; null deletes */
  edit(details) {
    return this.#ask("PATCH", "", details);
  }

  goLive() {
    return this.#ask("POST", "/live");
  }

  end() {
    return this.#ask("POST", "/end");
  }

  startRecording() {
    return this.#ask("POST", "/recording");
  }

  /** Resolves when the file is complete. */
  stopRecording() {
    return this.#ask("DELETE", "/recording");
  }

  /**
   * Keeps the last seconds of a live stream; the answer comes before the file is complete.
   * @param {{ seconds?: number, title?: string | null }} [wishes]
   * @returns {Promise<import("./recordings.js").Recording>}
   */
  makeClip(wishes = {}) {
    return this.#ask("POST", "/clips", wishes);
  }

  /** Details of one file. @param {string} recording @returns {Promise<import("./recordings.js").Recording>} */
  recording(recording) {
    return this.#ask("GET", `/recordings/${encodeURIComponent(recording)}`);
  }

  /** @returns {Promise<{ recordings: import("./recordings.js").Recording[] }>} */
  recordings() {
    return this.#ask("GET", "/recordings");
  }

  /**
   * What was written while a recording was made, the oldest first.
   * @param {string} recording @param {number} [after] the number of a comment
   * @returns {Promise<{ comments: import("./recorded-comments.js").RecordedComment[], more: boolean }>}
   */
  recordedComments(recording, after = 0) {
    return this.#ask("GET", `/recordings/${encodeURIComponent(recording)}/comments?limit=200&after=${after}`);
  }

  /** @param {string} recording */
  removeRecording(recording) {
    return this.#ask("DELETE", `/recordings/${encodeURIComponent(recording)}`);
  }

  /** Joins the stream, on stage if the token allows it. */
  join() {
    return this.#ask("POST", "/participants");
  }

  /** @param {string} participant @param {{ ban?: boolean }} [options] */
  remove(participant, { ban = false } = {}) {
    return this.#ask("DELETE", named("/participants", participant, "", ban ? { ban: "true" } : {}));
  }

  /**
   * Banned people; for hosts.
   * @returns {Promise<{ bans: Record<string, { since: string }> }>}
   */
  bans() {
    return this.#ask("GET", "/bans");
  }

  /** Lets someone in again. @param {string} participant */
  unban(participant) {
    return this.#ask("DELETE", named("/bans", participant));
  }

  /**
   * What was said before a comment, the oldest first.
   * @param {number} before its number
   * @returns {Promise<{ comments: import("./audience.js").StreamComment[], more: boolean }>} `more` before those
   */
  comments(before) {
    return this.#ask("GET", `/comments?limit=50&before=${before}`);
  }

  /**
   * @param {string} id by which the same comment, sent again, is known
   * @param {string} text
   * @returns {Promise<import("./audience.js").StreamComment>}
   */
  writeComment(id, text) {
    return this.#ask("POST", "/comments", { id, text });
  }

  /** @param {number} comment */
  deleteComment(comment) {
    return this.#ask("DELETE", `/comments/${comment}`);
  }

  /** @param {number} comment */
  pinComment(comment) {
    return this.#ask("PUT", `/comments/${comment}/pin`);
  }

  unpinComment() {
    return this.#ask("DELETE", "/pin");
  }

  /**
   * @param {{
   *   question: string, options: string[], multiple: boolean, results?: "live" | "closed", right?: number[], seconds?: number,
   * }} poll with right, it is a quiz
   * @returns {Promise<import("./poll.js").Poll>}
   */
  openPoll(poll) {
    return this.#ask("POST", "/polls", poll);
  }

  /**
   * A poll and your own choice.
   * @param {number} poll
   * @returns {Promise<import("./poll.js").Poll & { vote: number[] | null }>}
   */
  poll(poll) {
    return this.#ask("GET", `/polls/${poll}`);
  }

  /** @param {number} poll @param {number[]} options @returns {Promise<import("./poll.js").Poll>} */
  vote(poll, options) {
    return this.#ask("PUT", `/polls/${poll}/vote`, { options });
  }

  /** @param {number} poll @returns {Promise<import("./poll.js").Poll>} */
  closePoll(poll) {
    return this.#ask("POST", `/polls/${poll}/close`);
  }

  /** @param {import("./card.js").Card} card */
  showCard(card) {
    return this.#ask("PUT", "/card", card);
  }

  removeCard() {
    return this.#ask("DELETE", "/card");
  }

  /**
   * Blocks someone's comments for a while, or with `shadow` shows them only to their author.
   * @param {string} participant
   * @param {number} seconds
   * @param {boolean} [shadow]
   */
  silence(participant, seconds, shadow = false) {
    return this.#ask("PUT", named("/silences", participant), { seconds, shadow });
  }

  /** Lets someone comment again, visible to everyone. @param {string} participant */
  unsilence(participant) {
    return this.#ask("DELETE", named("/silences", participant));
  }

  /**
   * What hosts and moderators did, latest last; for hosts.
   * @returns {Promise<{ entries: import("./moderation.js").AuditEntry[] }>}
   */
  audit() {
    return this.#ask("GET", "/audit");
  }

  /**
   * Who is first, at most a hundred.
   * @param {"givers" | "fans"} rank
   * @param {"stream" | "day"} period since the stream was made, or since midnight, UTC
   * @returns {Promise<{ ranks: import("./audience.js").Rank[], period: string, currency: string | null }>}
   */
  rank(rank, period) {
    return this.#ask("GET", `/ranks/${rank}?period=${period}`);
  }

  /**
   * What the audience may do. Hosts and moderators also see the blocked words and who is silenced.
   * @returns {Promise<import("./audience.js").AudienceSettings
   *   & { words?: string[], silenced?: Record<string, import("./moderation.js").Silence> }>}
   */
  interaction() {
    return this.#ask("GET", "/interaction");
  }

  /** @param {Partial<import("./audience.js").AudienceSettings & { words: string[] }>} settings */
  editInteraction(settings) {
    return this.#ask("PATCH", "/interaction", settings);
  }

  /**
   * Live streams that you can watch: the first hundred.
   * @returns {Promise<import("./sync.js").StreamInfo[]>}
   */
  async liveStreams() {
    return (await this.#send("GET", "/v1/streams?state=live&limit=100", undefined, {})).streams;
  }

  /**
   * Invites another stream to a duel; followers are told the outcome.
   * @param {string} rival the other stream
   * @param {{ seconds?: number, penaltySeconds?: number, weights?: { gifts?: number, reactions?: number } }} [terms]
   * @returns {Promise<import("./duel.js").Duel>}
   */
  inviteToDuel(rival, terms = {}) {
    return this.#send("POST", "/v1/duels", { from: this.stream, to: rival, ...terms }, {});
  }

  /** @param {string} duel @returns {Promise<import("./duel.js").Duel>} */
  acceptDuel(duel) {
    return this.#duel(duel, "accept");
  }

  /** @param {string} duel @returns {Promise<import("./duel.js").Duel>} */
  declineDuel(duel) {
    return this.#duel(duel, "decline");
  }

  /** Withdraws an invitation. @param {string} duel @returns {Promise<import("./duel.js").Duel>} */
  cancelDuel(duel) {
    return this.#duel(duel, "cancel");
  }

  /** Leaving while the duel runs means losing it. @param {string} duel @returns {Promise<import("./duel.js").Duel>} */
  leaveDuel(duel) {
    return this.#duel(duel, "leave", { stream: this.stream });
  }

  /** Invites the same opponent again. @param {string} duel @returns {Promise<import("./duel.js").Duel>} */
  rematchDuel(duel) {
    return this.#duel(duel, "rematch", { stream: this.stream });
  }

  /** @param {string} duel @param {string} verb @param {object} [body] */
  #duel(duel, verb, body) {
    return this.#send("POST", `/v1/duels/${encodeURIComponent(duel)}/${verb}`, body, {});
  }

  raiseHand() {
    return this.#ask("POST", "/hands");
  }

  /** @param {string} participant */
  lowerHand(participant) {
    return this.#ask("DELETE", named("/hands", participant));
  }

  /**
   * Gives a raised hand another place, or none for a while.
   * @param {string} participant
   * @param {{ place: number } | { held: boolean }} change
   */
  arrangeHand(participant, change) {
    return this.#ask("PATCH", named("/hands", participant), change);
  }

  /** @param {string} participant */
  invite(participant) {
    return this.#ask("POST", "/invitations", { participant });
  }

  /** Withdraws someone's invitation, or declines your own. @param {string} participant */
  endInvitation(participant) {
    return this.#ask("DELETE", named("/invitations", participant));
  }

  /** @param {string} me @param {{ videoMuted?: boolean }} [options] whether one comes with sound alone */
  accept(me, { videoMuted = false } = {}) {
    return this.#ask("POST", named("/invitations", me, "/accept"), { videoMuted });
  }

  /** Tells everyone the state of your microphone and camera. @param {string} me @param {object} state */
  describe(me, state) {
    return this.#ask("PATCH", named("/speakers", me), state);
  }

  /** Moves someone to the audience, or leaves the stage yourself. @param {string} participant */
  leaveStage(participant) {
    return this.#ask("DELETE", named("/speakers", participant));
  }

  /** @param {string} participant @param {"audio" | "video"} kind */
  requestMute(participant, kind) {
    return this.#ask("POST", named("/speakers", participant, "/mute"), { kind });
  }

  /**
   * An invitation link. Many people can use it, each as themselves.
   * @param {"speaker" | "viewer"} role
   * @returns {Promise<{ path: string, expiresAt: string }>}
   */
  makeLink(role) {
    return this.#ask("POST", "/links", { role });
  }

  /**
   * Where an encoder publishes, its key, and what arrives from encoders now.
   * @returns {Promise<Ingest>}
   */
  showIngest() {
    return this.#ask("GET", "/ingest");
  }

  /** Makes a new key for encoders; earlier keys stop working. @returns {Promise<Ingest>} */
  replaceIngestKey() {
    return this.#ask("POST", "/ingest/key");
  }

  /** Where the programme is sent, and the state of each target. @returns {Promise<{ restreams: Restream[] }>} */
  listRestreams() {
    return this.#ask("GET", "/restreams");
  }

  /**
   * Starts sending the programme to another target.
   * @param {string} url without the key
   * @param {string} key never shown again
   * @returns {Promise<Restream>}
   */
  addRestream(url, key) {
    return this.#ask("POST", "/restreams", { url, key });
  }

  /** Stops sending to a target. @param {number} number */
  removeRestream(number) {
    return this.#ask("DELETE", `/restreams/${number}`);
  }

  /** No one can come in by the links made so far; people who are here stay. */
  revokeLinks() {
    return this.#ask("DELETE", "/links");
  }

  /** Text of up to 1,000 bytes as a QR code (SVG image). @param {string} text @returns {Promise<Blob>} */
  qrCode(text) {
    return this.#request("POST", "/v1/qr-codes", { text }, {}, (response) => response.blob());
  }

  /** A token for the participant's current role. @param {string} [name] another than one has */
  renewToken(name) {
    return this.#ask("POST", "/tokens", name === undefined ? undefined : { name });
  }

  /** @param {string} method @param {string} path @param {object} [body] */
  #ask(method, path, body) {
    return this.#send(method, `/v1/streams/${encodeURIComponent(this.stream)}${path}`, body, {});
  }

  /**
   * @param {string} method
   * @param {string} address
   * @param {object | undefined} body
   * @param {Record<string, string>} more headers
   * @throws {SignallingError} when the server refuses; its `rule` says why
   */
  async #send(method, address, body, more) {
    const answer = await this.#request(method, address, body, more,
      (response) => response.status === 204 ? {} : response.json());
    // That of a link is for others.
    if (answer.token && !answer.path) keepToken(this.stream, this.role, answer);
    return answer;
  }

  /**
   * @template T
   * @param {string} method
   * @param {string} address
   * @param {object | undefined} body
   * @param {Record<string, string>} more headers
   * @param {(response: Response) => T | Promise<T>} read takes what the server answers
   * @throws {SignallingError} when the server refuses; its `rule` says why
   */
  #request(method, address, body, more, read) {
    return withToken(this.stream, this.role, async (token) => {
      const response = await fetch(address, {
        method,
        headers: {
          ...(token && { Authorization: `Bearer ${token}` }),
          ...(body && { "Content-Type": "application/json" }),
          ...more,
        },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      if (!response.ok) throw await SignallingError.from(response);
      return read(response);
    });
  }
}
