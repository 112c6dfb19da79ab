// @ts-check

/** The lists of streams and of sessions, which the server searches page by page; they are kept up to date. */

import { callName, h, reconcile, setText } from "../dom.js";
import { ask } from "./access.js";
import { age, clock, count } from "./format.js";

/** @typedef {Record<string, any>} Stream @typedef {Record<string, any>} Session */

const PAGE = 50;
/** A search starts this long after the last key, in milliseconds. */
const TYPING_MS = 250;

/** One of the two lists. */
class List {
  #parts;
  #path;
  #make;
  /** The number of rows to show. */
  #wanted = PAGE;
  /** Counts requests, so that a late answer does not replace a newer one. */
  #turn = 0;

  /**
   * @param {string} name of its elements
   * @param {string} path
   * @param {(key: string) => any} make a row
   */
  constructor(name, path, make) {
    const find = (/** @type {string} */ part) => /** @type {any} */ (document.getElementById(`${name}${part}`));
    this.#parts = {
      body: find(""), count: find("-count"), search: find("-search"), state: find("-state"), empty: find("-empty"),
      more: find("-more"),
    };
    [this.#path, this.#make] = [path, make];
    let typing = 0;
    this.#parts.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.#restart(), TYPING_MS);
    });
    this.#parts.state.addEventListener("change", () => this.#restart());
    this.#parts.more.addEventListener("click", () => {
      this.#wanted += PAGE;
      this.refresh().catch(() => {});
    });
  }

  #restart() {
    this.#wanted = PAGE;
    this.refresh().catch(() => {});
  }

  async refresh() {
    const turn = ++this.#turn;
    const query = new URLSearchParams();
    if (this.#parts.search.value.trim()) query.set("search", this.#parts.search.value.trim());
    if (this.#parts.state.value) query.set("state", this.#parts.state.value);
    const limit = Math.min(this.#wanted, 200);
    query.set("limit", String(limit));
    /** @type {any[]} */
    const rows = [];
    let total = null;
    let next = null;
    do {
      const page = await ask(`${this.#path}?${query}`);
      rows.push(...(page.streams ?? page.sessions));
      total ??= page.total ?? null;
      next = page.next;
      query.set("cursor", next ?? "");
    } while (next && rows.length < this.#wanted);
    if (turn !== this.#turn) return;
    reconcile(this.#parts.body, rows.map((row) => [row.id, row]), this.#make);
    setText(this.#parts.count, total === null ? `${rows.length}${next ? "+" : ""}` : count(total));
    this.#parts.empty.hidden = rows.length > 0;
    this.#parts.body.closest(".table").hidden = rows.length === 0;
    this.#parts.more.hidden = !next;
  }
}

/** @param {(stream: Stream) => void} place @param {(stream: Stream) => void} end */
export function streamList(place, end) {
  return new List("streams", "/v1/streams", (key) => streamRow(key, place, end));
}

/** @param {(id: string) => void} open */
export function sessionList(open) {
  return new List("sessions", "/v1/sessions", (key) => sessionRow(key, open));
}

/** @param {string} key @param {(stream: Stream) => void} place @param {(stream: Stream) => void} end */
function streamRow(key, place, end) {
  /** @type {Stream} */
  let stream = {};
  const title = h("a", { href: `/watch/${encodeURIComponent(key)}`, target: "_blank", rel: "noopener", dir: "auto" });
  const name = h("small.muted");
  const [state, host, viewers, since] = [h("span.chip"), h("td", { dir: "auto" }), h("td.number"), h("td")];
  const order = h("button.button.small", { type: "button", onclick: () => place(stream) }, "Position…");
  const stop = h("button.button.small.danger", { type: "button", onclick: () => end(stream) }, "End…");
  const row = h("tr", {}, h("th.title", { scope: "row" }, title, name), h("td", {}, state), host, viewers, since,
    h("td.deeds", {}, order, stop));
  row.update = (/** @type {Stream} */ now) => {
    stream = now;
    setText(title, now.title || now.id);
    setText(name, now.title ? now.id : "");
    setText(state, now.state);
    state.dataset.state = now.state;
    setText(host, now.host ? callName(now.host, now.hostName) : "–");
    setText(viewers, String(now.viewers));
    setText(since, clock(now.startedAt ?? now.startsAt ?? now.createdAt));
    stop.hidden = order.hidden = now.state === "ended";
    order.setAttribute("aria-label", `Position of ${now.title || now.id} in the feed`);
    stop.setAttribute("aria-label", `End ${now.title || now.id}`);
  };
  return row;
}

/** The purpose of a session, in words. @param {Session} session */
export function kindOf({ purpose, watching }) {
  return {
    publish: "publisher", play: "player", feed: "feed", stage: watching ? "viewer" : "on stage",
  }[/** @type {string} */ (purpose)] ?? purpose;
}

/** The remote address of a session's media, and how it is connected, in words. @param {Session} session */
export function wayOf({ mediaAddress, protocol, relay }) {
  if (relay) return `${mediaAddress} TURN ${relay.toUpperCase()}`;
  return protocol === "tcp" ? `${mediaAddress} TCP` : mediaAddress;
}

/** @param {string} key @param {(id: string) => void} open */
function sessionRow(key, open) {
  const button = h("button.link", { type: "button", onclick: () => open(key), "aria-haspopup": "dialog" }, key);
  const cells = ["kind", "stream", "who", "address"].map(() => h("td", { dir: "auto" }));
  const state = h("span.chip");
  const old = h("td.number");
  const row = h("tr", { onclick: (/** @type {Event} */ event) => event.target !== button && open(key) },
    h("th", { scope: "row" }, button), ...cells, h("td", {}, state), old);
  row.update = (/** @type {Session} */ now) => {
    const texts = [
      kindOf(now), now.stream ?? "–", now.participant ? callName(now.participant, now.name) : "–",
      now.mediaAddress ? wayOf(now) : now.clientAddress ?? "–",
    ];
    cells.forEach((cell, index) => setText(cell, texts[index]));
    setText(state, now.state === "ended" ? now.reason : now.state);
    state.dataset.state = now.state;
    setText(old, age(Date.parse(now.endedAt ?? new Date().toISOString()) - Date.parse(now.since)));
  };
  return row;
}
