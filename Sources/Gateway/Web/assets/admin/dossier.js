// @ts-check

/** The panel of a session: how it joined, where packets are lost, what it is sent and why, and its events. */

import { closeBeside } from "../dialog.js";
import { callName, copyFrom, h, icon } from "../dom.js";
import { ask, Refusal, save } from "./access.js";
import { age, bits, bytes, clock, count, percent, seconds } from "./format.js";
import { kindOf, wayOf } from "./lists.js";

/** @typedef {Record<string, any>} Dossier the answer to `GET /v1/sessions/{id}` */

/** In the order in which they come, with what each is measured to. */
const PHASES = [["answer", "Answer"], ["check", "First check"], ["dtls", "DTLS"], ["media", "First packet"]];

/** Of a capture. */
const CAPTURE_SECONDS = 10;

const CAUSES = {
  delay: "the path’s queue grows when more is sent", loss: "the path loses too many packets",
  application: "nothing more was requested", publisher: "nothing better is available", pinned: "the viewer chose it",
};

export class DossierPanel {
  #dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dossier"));
  #body = h("div.body");
  #title = h("h2#dossier-title", { tabIndex: -1 });
  #end;
  #capture;
  #say;
  /** @type {string | null} */
  #id = null;
  /** The session whose packets are being recorded; of others, nothing is meanwhile. @type {string | null} */
  #captured = null;
  /** Whether the session is over, so that nothing changes anymore. */
  #isOver = false;
  #shown = "";
  /** What each part says, as it was made. @type {WeakMap<Element, string>} */
  #said = new WeakMap();

  /** @param {(id: string) => Promise<void>} end @param {(text: string) => void} say */
  constructor(end, say) {
    this.#say = say;
    this.#end = h("button.button.small.danger", {
      type: "button", onclick: () => this.#id && end(this.#id),
    }, "End session…");
    this.#capture = h("button.button.small", {
      type: "button", onclick: () => this.#id && this.#save(this.#id),
      title: `Record RTP packet headers for ${CAPTURE_SECONDS} seconds, for Wireshark. Payloads aren’t included.`,
    }, "Capture");
    const close = h("button.button.round", { type: "button", "aria-label": "Close", onclick: () => this.#dialog.close() },
      icon("close"));
    this.#dialog.append(h("header", {}, this.#title, this.#capture, this.#end, close), this.#body);
    this.#dialog.addEventListener("close", () => (this.#id = null));
    closeBeside(this.#dialog);
  }

  get isOpen() {
    return this.#id !== null;
  }

  /** @param {string} id */
  async open(id) {
    [this.#id, this.#isOver, this.#shown] = [id, false, ""];
    this.#title.textContent = id;
    this.#end.hidden = this.#capture.hidden = true;
    this.#body.replaceChildren(h("p.muted", {}, "Loading…"));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#title.focus();
    await this.refresh();
  }

  async refresh() {
    const id = this.#id;
    if (!id || this.#isOver) return;
    try {
      const dossier = await ask(`/v1/sessions/${encodeURIComponent(id)}`);
      if (this.#id === id) this.#show(dossier);
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 404)) throw error;
      // Another session may have been opened meanwhile.
      if (this.#id !== id) return;
      this.#isOver = this.#end.hidden = this.#capture.hidden = true;
      this.#body.replaceChildren(h("p.empty", {}, "This session ended more than 10 minutes ago, or never existed."));
    }
  }

  /** Records the headers of a session's packets, and downloads them. @param {string} id */
  async #save(id) {
    // Not disabled, which would lose the focus; a second press does nothing.
    if (this.#captured !== null) return;
    this.#showCapture(id);
    try {
      const path = `/v1/sessions/${encodeURIComponent(id)}/capture?seconds=${CAPTURE_SECONDS}`;
      await save(path, `${id}.pcap`, { patience: (CAPTURE_SECONDS + 10) * 1000 });
    } catch (error) {
      const reason = error instanceof Refusal ? error.message : "The server isn’t responding. Try again in a moment.";
      this.#say(`Session ${id} wasn’t captured: ${reason}`);
    } finally {
      this.#showCapture(null);
    }
  }

  /** @param {string | null} id of the session that is being captured */
  #showCapture(id) {
    this.#captured = id;
    this.#capture.textContent = id === null ? "Capture" : "Capturing…";
    this.#capture.setAttribute("aria-disabled", String(id !== null));
  }

  /** @param {Dossier} dossier */
  #show(dossier) {
    this.#isOver = dossier.state === "ended";
    this.#end.hidden = this.#capture.hidden = this.#isOver;
    this.#title.replaceChildren(dossier.id, " ", h("small.muted", {}, kindOf(dossier)));
    const text = JSON.stringify(dossier);
    // Unchanged parts keep open details, selections and scroll positions.
    if (text === this.#shown) return;
    this.#shown = text;
    const place = this.#dialog.scrollTop;
    this.#put([
      summary(dossier), joining(dossier), hops(dossier), ...pictures(dossier), ...lines(dossier), addresses(dossier),
      events(dossier), description("offer", "Offer", dossier.offer),
      description("answer", "Answer", dossier.answer),
    ]);
    this.#dialog.scrollTop = place;
  }

  /**
   * Shows these parts. Those that say the same as before stay, and the others take over what the reader did with the
   * part before them: a live session changes with each look, and would take the focus of whoever reads by keys.
   * @param {HTMLElement[]} parts
   */
  #put(parts) {
    /** @type {Element[]} */
    const shown = [...this.#body.children];
    const before = new Map(shown.map((part) => [keyOf(part), part]));
    /** @type {Element | null} */
    let last = null;
    for (const part of parts) {
      const old = before.get(keyOf(part));
      before.delete(keyOf(part));
      this.#said.set(part, part.outerHTML);
      const isSame = old !== undefined && this.#said.get(old) === this.#said.get(part);
      const next = isSame ? old : part;
      if (!isSame && last) last.after(part);
      else if (!isSame) this.#body.prepend(part);
      if (!isSame && old) takeOver(old, part);
      last = next;
    }
    for (const part of before.values()) {
      if (part.contains(document.activeElement)) this.#title.focus({ preventScroll: true });
      part.remove();
    }
  }
}

/** What a part is about: its name or its heading. @param {Element} part */
function keyOf(part) {
  return part.getAttribute("data-name") ?? part.querySelector("h3")?.textContent ?? part.localName;
}

/**
 * Removes a part, and does with the one after it what the reader did with it: opens, scrolls, focuses.
 * @param {Element} old
 * @param {Element} part
 */
function takeOver(old, part) {
  if (old instanceof HTMLDetailsElement && part instanceof HTMLDetailsElement) part.open = old.open;
  const all = "[tabindex], summary, button";
  const [places, others] = [old, part].map((each) => [...each.querySelectorAll(all)]);
  for (const [index, place] of places.entries()) {
    const other = /** @type {HTMLElement | undefined} */ (others[index]);
    if (!other) continue;
    [other.scrollLeft, other.scrollTop] = [place.scrollLeft, place.scrollTop];
    if (place === document.activeElement) other.focus({ preventScroll: true });
  }
  old.remove();
}

/** @param {[string, string | Node][]} facts */
function list(facts) {
  return h("dl.facts", {}, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value))));
}

/** @param {Dossier} dossier */
function summary(dossier) {
  const { quality, dataChannel } = dossier;
  const end = Date.parse(dossier.endedAt ?? new Date().toISOString());
  /** @type {[string, string | Node][]} */
  const facts = [
    ["State", dossier.state === "ended" ? `ended: ${dossier.reason}` : dossier.state],
    ["Stream", dossier.stream ?? "feed"],
    ["Participant", dossier.participant ? callName(dossier.participant, dossier.name) : "no token"],
    ["Started", clock(dossier.since)],
    [dossier.state === "ended" ? "Lasted" : "Running for", age(end - Date.parse(dossier.since))],
    ["Media address", dossier.mediaAddress ? wayOf(dossier) : "–"],
    ["Worker", String(dossier.worker)],
  ];
  if (quality) {
    facts.push(
      ["Round trip", seconds(quality.roundTripSeconds)],
      ["Estimated bandwidth", bits(quality.estimate)],
      ["Received", `${count(dossier.received.packets)} packets, ${bytes(dossier.received.bytes)}`],
      ["Sent", `${count(dossier.sent.packets)} packets, ${bytes(dossier.sent.bytes)}`],
      ["Data channel", !dataChannel ? "not offered" : dataChannel.control ? "control open" : dataChannel.open ? "open" : "not open"],
    );
  }
  return list(facts);
}

/** Bars on a common timeline. @param {Dossier} dossier */
function joining({ phases }) {
  const whole = Math.max(0.001, ...Object.values(phases).map((value) => value ?? 0));
  let before = 0;
  const bars = PHASES.map(([key, label]) => {
    const at = phases[key];
    const bar = h("span.bar");
    if (at !== null) {
      bar.style.insetInlineStart = `${before / whole * 100}%`;
      bar.style.width = `${Math.max(0, at - before) / whole * 100}%`;
      before = at;
    }
    return h("li", { className: at === null ? "missing" : "" }, h("span.name", {}, label), h("span.track", {}, bar),
      h("span.value", {}, at === null ? "not yet" : seconds(at)));
  });
  return h("section", {}, h("h3", {}, "Joining, from the offer"), h("ol.phases", {}, ...bars));
}

/** @param {Dossier} dossier */
function hops({ loss }) {
  if (!loss) return h("section", {}, h("h3", {}, "Loss"), h("p.muted", {}, "The worker didn’t respond."));
  const { publisherToServer: up, serverToViewer: down } = loss;
  const first = up && arrow(up.lost / Math.max(1, up.expected), `${count(up.lost)} of ${count(up.expected)} lost`,
    up.missing ? `${count(up.missing)} never arrived` : up.lost ? "all recovered" : "");
  const second = down && arrow(down.lately ?? down.missing / Math.max(1, down.sent),
    down.lately === null ? `${count(down.missing)} of ${count(down.sent)} missing` : "of the latest packets",
    `${count(down.resent)} resent`);
  return h("section", {}, h("h3", {}, "Loss by hop"), h("ol.hops", {},
    ...(first ? [h("li.end", {}, "Publisher"), first] : []), h("li.end", {}, "Server"),
    ...(second ? [second, h("li.end", {}, "Viewer")] : [])));
}

/** @param {number} part @param {string} what @param {string} more */
function arrow(part, what, more) {
  const look = part >= 0.05 ? "bad" : part >= 0.01 ? "poor" : "good";
  return h("li.hop", { className: `hop ${look}` }, h("strong", {}, percent(part)), h("small", {}, what), h("small", {}, more));
}

/** @param {Dossier} dossier */
function pictures({ quality, stepsUp, stepsDown }) {
  if (!quality?.pictures.length) return [];
  const rows = quality.pictures.map((/** @type {any} */ picture) => [
    picture.mid + (picture.preview ? " (preview)" : ""), layer(picture.wanted),
    picture.paused ? "sound only" : layer(picture.served),
  ]);
  const why = quality.cause ? `Limited because ${CAUSES[/** @type {keyof typeof CAUSES} */ (quality.cause)] ?? quality.cause}. ` : "";
  return [h("section", {}, h("h3", {}, "Pictures"), table("Pictures", ["m-line", "Wanted", "Served"], rows),
    h("p.muted", {}, `${why}Quality went up ${stepsUp} times and down ${stepsDown} times.`))];
}

/** @param {any} value */
function layer(value) {
  if (!value) return "none";
  const size = value.width ? `${value.width}×${value.height}` : "size unknown";
  return `${value.rid ? `${value.rid}: ` : ""}${size}, ${bits(value.bitrate)}`;
}

/** The media that it sends and receives, by m-line. @param {Dossier} dossier */
function lines({ publishing = [], receiving = [] }) {
  const parts = [];
  if (publishing.length) {
    parts.push(h("section", {}, h("h3", {}, "Publishing"), incoming("Publishing", publishing)));
  }
  const carried = receiving.filter((/** @type {any} */ line) => line.attached || line.packets);
  if (carried.length) {
    const rows = carried.map((/** @type {any} */ line) => [
      `${line.mid} ${line.kind}`, count(line.packets), bytes(line.bytes),
      line.report ? percent(line.report.lostShare) : "–", line.report ? seconds(line.report.jitterSeconds) : "–",
      `${count(line.resent)} of ${count(line.resendsRequested)}`, line.from ? line.from.session : "the server",
    ]);
    parts.push(h("section", {}, h("h3", {}, "Receiving"),
      table("Receiving", ["m-line", "Packets", "Bytes", "Lost", "Jitter", "Resent", "From"], rows)));
    const sources = carried.map((/** @type {any} */ line) => line.from).filter(Boolean);
    if (sources.length) parts.push(h("section", {}, h("h3", {}, "Sources"), incoming("Sources", sources)));
  }
  return parts;
}

/** @param {string} name of the table @param {any[]} tracks */
function incoming(name, tracks) {
  const rows = tracks.flatMap((track) => track.layers.map((/** @type {any} */ layer) => [
    `${track.mid} ${track.kind}${layer.rid ? ` ${layer.rid}` : ""}`,
    layer.active ? bits(layer.bitrate) : "idle", layer.width ? `${layer.width}×${layer.height}` : "–",
    percent(layer.lost / Math.max(1, layer.expected)), count(layer.missing), seconds(layer.jitterSeconds),
    track.kind === "video" ? `${layer.keyFrames}, ${layer.keyFrameRequests} requested` : "–",
  ]));
  return table(name, ["m-line", "Bitrate", "Size", "Lost", "Never arrived", "Jitter", "Key frames"], rows);
}

/** @param {Dossier} dossier */
function addresses({ clientAddress, localAddresses, pairs = [], srtp }) {
  const rows = pairs.map((/** @type {any} */ pair) => [
    pair.address, pair.protocol.toUpperCase(), pair.selected ? "carries media" : "",
    pair.quietSeconds === null ? "not verified" : `last heard ${seconds(pair.quietSeconds)} ago`,
  ]);
  return h("section", {}, h("h3", {}, "Addresses"),
    rows.length ? table("Addresses", ["Client", "Protocol", "Use", "Status"], rows) : h("p.muted", {}, "No connectivity checks received."),
    h("p.muted", {}, `Requested from ${clientAddress ?? "–"}; server: ${localAddresses.join(", ") || "–"}; ${srtp ?? "no keys yet"}.`));
}

/** @param {Dossier} dossier */
function events({ events, eventsDropped }) {
  const items = events.toReversed().map((/** @type {any} */ { event, at, seconds: after, ...more }) =>
    h("li", {}, h("time", { dateTime: at, title: at }, clock(at)), h("span.after", {}, `+${seconds(after)}`),
      h("strong", {}, event), h("span.more", { dir: "auto" }, said(more))));
  const dropped = eventsDropped ? h("p.muted", {}, `${eventsDropped} earlier events were dropped.`) : "";
  return h("section", {}, h("h3", {}, "Events, newest first"),
    h("ol.events", { tabIndex: 0, "aria-label": "Events" }, ...items), dropped);
}

/** @param {Record<string, any>} members */
function said(members) {
  return Object.entries(members).filter(([, value]) => value !== null).map(([name, value]) =>
    `${name} ${typeof value === "object" ? JSON.stringify(value) : name === "estimate" ? bits(value) : value}`).join(", ");
}

/** @param {string} name @param {string} label @param {string} text */
function description(name, label, text) {
  const copy = h("button.button.small", { type: "button", onclick: () => copyFrom(copy, text) }, "Copy");
  return h("details", { "data-name": name }, h("summary", {}, label), copy, h("pre", { tabIndex: 0 }, text));
}

/**
 * A table that can be scrolled with keys, too.
 * @param {string} name for screen readers
 * @param {string[]} heads
 * @param {string[][]} rows
 */
function table(name, heads, rows) {
  return h("div.table", { role: "region", tabIndex: 0, "aria-label": name }, h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell)))))));
}
