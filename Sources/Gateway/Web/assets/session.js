// @ts-check

/**
 * One peer connection and its HTTP resource on the server, which WHIP and WHEP have in common: one offer, one answer,
 * then PATCH for candidates and ICE restarts, and DELETE at the end.
 *
 * Sources: RFC 9725 §4.2 to §4.4, draft-ietf-wish-whep §4, RFC 8840 (SDP fragments).
 */

/** How long a connection may take to recover before ICE is restarted, in milliseconds. */
const HEAL_MS = 1500;
/** Longest time from an offer or an ICE restart to a connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** The same without TURN, if there are TURN servers to try next: well before the server gives the session up. */
const DIRECT_MS = 2000;
/** Longest time the server may take to answer a request, in milliseconds. */
const ANSWER_MS = 10_000;
/**
 * Pause before preferences that did not arrive are sent again, in milliseconds; doubled each time, up to the longest.
 */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 8000;
/** Candidates found within this time are sent in one PATCH, in milliseconds. */
const TRICKLE_MS = 50;

/** The server refused a request; carries its reasons. */
export class SignallingError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {number | null} retryAfter milliseconds the server asks to wait, null when it does not say
   * @param {{ rule?: string, [member: string]: unknown }} [problem] what else the answer says, such as the rule
   */
  constructor(status, message, retryAfter, problem = {}) {
    super(message);
    this.name = "SignallingError";
    this.status = status;
    this.retryAfter = retryAfter;
    this.problem = problem;
  }

  /** The name of the rule that forbids the request, such as `not-host`. */
  get rule() {
    return this.problem.rule ?? null;
  }

  /**
   * Reads problem+json (RFC 9457) and Retry-After.
   * @param {Response} response
   */
  static async from(response) {
    let message = response.statusText || `status ${response.status}`;
    let problem = {};
    if (response.headers.get("Content-Type")?.startsWith("application/problem+json")) {
      problem = await response.json().catch(() => ({}));
      message = problem.detail || problem.title || message;
    }
    const after = response.headers.get("Retry-After");
    const seconds = after === null ? NaN : Number(after);
    return new SignallingError(response.status, message, Number.isFinite(seconds) ? seconds * 1000 : null, problem);
  }

  /** Whether the same request may succeed later, unchanged. */
  get isTemporary() {
    return this.status === 404 || this.status === 408 || this.status === 409 || this.status === 429
      || this.status >= 500;
  }
}

/**
 * @typedef {object} SessionOptions
 * @property {string} endpoint address that takes the offer
 * @property {string | null} [token] goes into `Authorization: Bearer`
 *
 * @typedef {"connecting" | "connected" | "interrupted" | "lost" | "closed"} SessionState `interrupted`: the other side
 *   does not answer, and the connection is being repaired. `lost`: only a new session helps.
 */

/** Fires `statechange`, and `answer` (detail: headers) when the offer is answered. `lost` and `closed` are final. */
export class MediaSession extends EventTarget {
  /** @type {SessionState} */
  state = "connecting";
  /** The absolute address of the session's resource, once the server has given one. @type {string | null} */
  resource = null;

  /** Whether the server was told that this session is over. */
  #isGivenBack = false;
  /** @type {string | null} */
  #etag = null;
  /** @type {RTCIceCandidate[]} */
  #candidates = [];
  #gatheringEnded = false;
  #trickles = true;
  /** @type {number | undefined} */
  #trickleTimer;
  /** @type {number | undefined} */
  #patience;
  #restarted = false;
  /**
   * Preferences that the server does not know yet.
   * @type {Partial<import("./picture-choice.js").Preferences> | null}
   */
  #unheard = null;
  /** While they are being sent. @type {Promise<void> | null} */
  #saying = null;

  /**
   * @param {RTCPeerConnection} peer with its transceivers already added
   * @param {SessionOptions} options
   */
  constructor(peer, options) {
    super();
    this.peer = peer;
    this.options = options;
    peer.addEventListener("icecandidate", (event) => this.#found(event.candidate));
    peer.addEventListener("connectionstatechange", () => this.#connectionChanged());
  }

  /**
   * Sends the offer and applies the server's answer.
   * @param {AbortSignal} [signal]
   * @throws {SignallingError} if the server refuses
   */
  async open(signal) {
    try {
      await this.peer.setLocalDescription(await this.peer.createOffer());
      performance.mark("rostrum:offer");
      const response = await fetch(this.options.endpoint, {
        method: "POST",
        headers: this.#headers({ "Content-Type": "application/sdp" }),
        body: this.peer.localDescription?.sdp,
        signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(signal ? [signal] : [])]),
      });
      if (response.status !== 201) throw await SignallingError.from(response);
      performance.mark("rostrum:answer");
      const location = response.headers.get("Location");
      if (!location) throw new SignallingError(502, "The server’s answer has no Location header.", null);
      this.resource = new URL(location, response.url).href;
      this.#etag = response.headers.get("ETag");
      this.dispatchEvent(new CustomEvent("answer", { detail: response.headers }));
      await this.peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
      const hasRelays = this.#useIceServers(response.headers.get("Link"));
      this.#watchTransport();
      this.#expectConnection(hasRelays ? DIRECT_MS : CONNECT_MS);
      this.#scheduleTrickle();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Whether the server still knows this session. Network errors count as no. */
  async exists() {
    if (!this.resource) return false;
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      return (await fetch(this.resource, { headers: this.#headers(), signal })).ok;
    } catch {
      return false;
    }
  }

  /**
   * Sets preferences for the pictures; any left out stay as they are (RFC 7396). They are sent again until they arrive
   * or the session ends, one request at a time, so that the latest arrive last.
   * @param {Partial<import("./picture-choice.js").Preferences>} preferences
   * @returns {Promise<void>} once the server knows them, or the session is over
   * @throws {SignallingError} if the server refuses them
   */
  prefer(preferences) {
    this.#unheard = { ...this.#unheard, ...preferences };
    return this.#saying ??= this.#sayPreferences().finally(() => (this.#saying = null));
  }

  async #sayPreferences() {
    let pause = FIRST_PAUSE_MS;
    while (this.#unheard && this.resource && this.state !== "lost" && this.state !== "closed") {
      const preferences = this.#unheard;
      this.#unheard = null;
      try {
        await this.#patchPreferences(preferences);
        pause = FIRST_PAUSE_MS;
      } catch (error) {
        if (error instanceof SignallingError && !error.isTemporary) {
          if (this.#unheard) continue;
          throw error;
        }
        this.#unheard = { ...preferences, .../** @type {object | null} */ (this.#unheard) };
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  /** @param {Partial<import("./picture-choice.js").Preferences>} preferences */
  async #patchPreferences(preferences) {
    if (!this.resource) return;
    const response = await fetch(this.resource, {
      method: "PATCH",
      headers: this.#headers({ "Content-Type": "application/merge-patch+json" }),
      body: JSON.stringify(preferences),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (!response.ok) throw await SignallingError.from(response);
  }

  /**
   * The server's report on what it sends here, and why not more; null if it does not say.
   * @returns {Promise<import("./picture-choice.js").Quality | null>}
   */
  async quality() {
    if (!this.resource) return null;
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await fetch(`${this.resource}/quality`, { headers: this.#headers(), signal });
    return response.ok ? response.json() : null;
  }

  /**
   * The state of the watched stream's gate; null if the server does not say.
   * @returns {Promise<any>}
   */
  async gate() {
    if (!this.resource) return null;
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await fetch(`${this.resource}/gate`, { headers: this.#headers(), signal });
    return response.ok ? response.json() : null;
  }

  /**
   * Presents another token; what it opens arrives on this connection.
   * @param {string} token
   * @returns {Promise<any>} the gate's state now
   */
  async openGate(token) {
    this.options.token = token;
    if (!this.resource) return null;
    const response = await fetch(`${this.resource}/gate`, {
      method: "POST", headers: this.#headers(), signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (!response.ok) throw await SignallingError.from(response);
    return response.json();
  }

  /** Gives up a session that is known to be dead, such as one that the server forgot in a restart. */
  abandon() {
    this.#end("lost");
  }

  /** Ends the session here and on the server; works while the page is being unloaded, too. */
  close() {
    // If the answer has not arrived yet, this is done when it does.
    if (this.resource && !this.#isGivenBack) {
      this.#isGivenBack = true;
      // keepalive lets the request outlive the page.
      fetch(this.resource, { method: "DELETE", headers: this.#headers(), keepalive: true }).catch(() => {});
    }
    this.#end("closed");
  }

  /** @param {SessionState} state */
  #become(state) {
    if (this.state === state || this.state === "closed" || this.state === "lost") return;
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }

  /** @param {"lost" | "closed"} state */
  #end(state) {
    clearTimeout(this.#trickleTimer);
    clearTimeout(this.#patience);
    // Before the tracks end, which makes browsers show black: whoever keeps the last picture has to copy it now.
    this.#become(state);
    this.peer.close();
  }

  #connectionChanged() {
    switch (this.peer.connectionState) {
      case "connected":
        clearTimeout(this.#patience);
        this.#restarted = false;
        this.#become("connected");
        break;
      case "disconnected":
        this.#become("interrupted");
        clearTimeout(this.#patience);
        this.#patience = setTimeout(() => this.#mend(), HEAL_MS);
        break;
      case "failed":
        this.#become("interrupted");
        clearTimeout(this.#patience);
        this.#mend();
        break;
      case "closed":
        this.#end("lost");
    }
  }

  /** A DTLS close from the server ends the session at once, long before ICE notices. */
  #watchTransport() {
    const transport = this.peer.getTransceivers().map((t) => t.sender.transport ?? t.receiver.transport)
      .find((t) => t);
    transport?.addEventListener("statechange", () => {
      if (transport.state === "closed" || transport.state === "failed") this.#end("lost");
    });
  }

  /** @param {number} milliseconds */
  #expectConnection(milliseconds) {
    clearTimeout(this.#patience);
    // It may have connected before anyone listened.
    if (this.peer.connectionState === "connected") return this.#connectionChanged();
    this.#patience = setTimeout(() => this.#mend(), milliseconds);
  }

  /** Restarts ICE once per interruption; when that does not connect either, only a new session can help. */
  #mend() {
    if (this.#restarted) return this.#end("lost");
    this.#restarted = true;
    this.#become("interrupted");
    return this.restartIce();
  }

  /** Restarts ICE with new credentials and candidates; media and keys stay. If this fails, the session is lost. */
  async restartIce() {
    if (this.state === "closed" || this.state === "lost") return;
    const answer = this.peer.remoteDescription?.sdp;
    try {
      if (!answer) throw new Error("no answer yet");
      this.#candidates = [];
      this.#gatheringEnded = false;
      await this.peer.setLocalDescription(await this.peer.createOffer({ iceRestart: true }));
      const response = await this.#patch(this.#fragment([]), "*");
      if (response.status !== 200) throw await SignallingError.from(response);
      this.#etag = response.headers.get("ETag");
      const sdp = withNewTransport(answer, await response.text());
      await this.peer.setRemoteDescription({ type: "answer", sdp });
      this.#expectConnection(CONNECT_MS);
      this.#scheduleTrickle();
    } catch {
      this.#end("lost");
    }
  }

  /** @param {RTCIceCandidate | null} candidate null when there are no more */
  #found(candidate) {
    if (candidate?.candidate) this.#candidates.push(candidate);
    else if (!candidate) this.#gatheringEnded = true;
    this.#scheduleTrickle();
  }

  #scheduleTrickle() {
    if (!this.resource || !this.#etag || !this.#trickles || this.peer.signalingState !== "stable") return;
    clearTimeout(this.#trickleTimer);
    this.#trickleTimer = setTimeout(() => this.#trickle(), TRICKLE_MS);
  }

  async #trickle() {
    const candidates = this.#candidates.splice(0);
    if (!candidates.length) return;
    try {
      const response = await this.#patch(this.#fragment(candidates), this.#etag ?? "*");
      // A server that does not accept candidates says so once; a stale tag means that ICE was restarted.
      if (response.status === 405 || response.status === 422 || response.status === 501) this.#trickles = false;
      // It gave the session up before the two connected. Nothing else would tell, because it answers no checks.
      if (response.status === 404) this.#end("lost");
    } catch {
      // Lost candidates cost nothing: the server learns ours from the checks it receives.
    }
  }

  /**
   * @param {string} fragment
   * @param {string} tag
   */
  #patch(fragment, tag) {
    return fetch(/** @type {string} */ (this.resource), {
      method: "PATCH",
      headers: this.#headers({ "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": tag }),
      body: fragment,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  }

  /**
   * Our ICE credentials and these candidates, as the SDP fragment of RFC 8840 §9.
   * @param {RTCIceCandidate[]} candidates
   */
  #fragment(candidates) {
    const sdp = this.peer.localDescription?.sdp ?? "";
    const sections = sdp.split(/^(?=m=)/m);
    const credentials = (sections[1] ?? "").match(/^a=ice-(?:ufrag|pwd):.*$/gm) ?? [];
    const group = sdp.match(/^a=group:BUNDLE .*$/m);
    const lines = [...(group ?? []), ...credentials];
    const mid = sections[1]?.match(/^a=mid:.*$/m)?.[0];
    const media = sections[1]?.match(/^m=(\S+) \S+ (\S+)/m);
    if (media && mid) {
      // One section: everything is bundled with it.
      lines.push(`m=${media[1]} 9 ${media[2]} 0`, mid);
      for (const { candidate, usernameFragment } of candidates) {
        if (!usernameFragment || sdp.includes(`a=ice-ufrag:${usernameFragment}`)) lines.push(`a=${candidate}`);
      }
      if (this.#gatheringEnded) lines.push("a=end-of-candidates");
    }
    return lines.map((line) => `${line.trim()}\r\n`).join("");
  }

  /**
   * STUN and TURN servers that the server named; used from the next ICE restart on.
   * @param {string | null} header
   * @returns {boolean} whether there are any
   */
  #useIceServers(header) {
    const iceServers = parseIceServers(header);
    if (!iceServers.length) return false;
    this.peer.setConfiguration({ ...this.peer.getConfiguration(), iceServers });
    return true;
  }

  /** @param {Record<string, string>} [more] */
  #headers(more = {}) {
    return this.options.token ? { Authorization: `Bearer ${this.options.token}`, ...more } : more;
  }
}

/**
 * The earlier answer with the ICE credentials and candidates from a restart's fragment.
 * @param {string} answer
 * @param {string} fragment
 */
export function withNewTransport(answer, fragment) {
  const fresh = fragment.split(/\r?\n/);
  const credentials = fresh.filter((line) => /^a=ice-(ufrag|pwd):/.test(line)).slice(0, 2);
  const candidates = fresh.filter((line) => /^a=(candidate:|end-of-candidates)/.test(line));
  const result = [];
  let isFirstSection = true;
  for (const section of answer.split(/^(?=m=)/m)) {
    const lines = section.split(/\r?\n/).filter((line) => line !== "");
    const hadCredentials = lines.some((line) => line.startsWith("a=ice-ufrag:"));
    const hadCandidates = lines.some((line) => line.startsWith("a=candidate:"));
    const kept = lines.filter((line) =>
      !/^a=(ice-(ufrag|pwd):|end-of-candidates)/.test(line) && !(candidates.length && line.startsWith("a=candidate:")));
    const isMedia = section.startsWith("m=");
    result.push(...kept);
    if (hadCredentials) result.push(...credentials);
    if (isMedia && (hadCandidates || isFirstSection)) result.push(...candidates);
    if (isMedia) isFirstSection = false;
  }
  return result.map((line) => `${line}\r\n`).join("");
}

/**
 * `Link: <turn:…>; rel="ice-server"; username="u"; credential="p"` (RFC 9725 §4.6).
 *
 * Without TURN servers that have no user: browsers would refuse all servers for one of them.
 * @param {string | null} header
 * @returns {RTCIceServer[]}
 */
export function parseIceServers(header) {
  const servers = [];
  for (const [, urls, parameters] of (header ?? "").matchAll(/<([^>]+)>((?:\s*;\s*[\w-]+="(?:[^"\\]|\\.)*")*)/g)) {
    const values = Object.fromEntries([...parameters.matchAll(/([\w-]+)="((?:[^"\\]|\\.)*)"/g)]
      .map(([, name, value]) => [name, value.replace(/\\(.)/g, "$1")]));
    if (values.rel !== "ice-server" || (/^turns?:/i.test(urls) && !values.username)) continue;
    servers.push(values.username
      ? { urls, username: values.username, credential: values.credential }
      : { urls });
  }
  return servers;
}

/**
 * Offers the dependency descriptor, which says for each packet which layers its picture has: without it, Chromium
 * decodes no AV1 in several sizes, but it does not offer it by default. Browsers without this choice offer what they
 * support.
 * @param {RTCRtpTransceiver} transceiver that receives video
 */
export function offerDescriptors(transceiver) {
  if (!("setHeaderExtensionsToNegotiate" in transceiver)) return;
  const extensions = transceiver.getHeaderExtensionsToNegotiate();
  const descriptor = extensions.find(({ uri }) => uri.includes("dependency-descriptor"));
  if (!descriptor) return;
  descriptor.direction = "sendrecv";
  transceiver.setHeaderExtensionsToNegotiate(extensions);
}

/**
 * Puts one codec first and drops the other ones, with its retransmissions kept.
 * @param {RTCRtpTransceiver} transceiver
 * @param {RTCRtpCapabilities | null} capabilities
 * @param {string | null | undefined} name such as `vp9`; nothing changes when it is empty
 * @throws {Error} when this browser has no such codec
 */
export function useOnlyCodec(transceiver, capabilities, name) {
  if (!name) return;
  const wanted = `video/${name}`.toLowerCase();
  const codecs = (capabilities?.codecs ?? []).filter((codec) => codec.mimeType.toLowerCase() === wanted);
  if (!codecs.length) throw new Error(`This browser doesn’t support ${name.toUpperCase()}.`);
  const helpers = (capabilities?.codecs ?? []).filter((codec) => codec.mimeType.toLowerCase() === "video/rtx");
  transceiver.setCodecPreferences([...codecs, ...helpers]);
}
