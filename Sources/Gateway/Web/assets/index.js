// @ts-check

/** The front page: who is live now, and a way to go live. */

import { $, formatDuration, formatViewers, setText } from "./dom.js";
import { listLive } from "./sync.js";

/** How often the list is asked for while the page is seen, in milliseconds. */
const REFRESH_MS = 4000;

const ADJECTIVES = "amber bright calm clear golden lively mellow quiet silver sunny swift velvet".split(" ");
const NOUNS = "aurora breeze cedar comet finch harbor lantern maple otter river sparrow tide".split(" ");

/** A name that is easy to say aloud and unlikely to be taken. */
function suggestName() {
  const [a, b, c] = crypto.getRandomValues(new Uint32Array(3));
  return `${ADJECTIVES[a % ADJECTIVES.length]}-${NOUNS[b % NOUNS.length]}-${c % 90 + 10}`;
}

/** @param {import("./sync.js").StreamInfo} stream */
function card(stream) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `/watch/${encodeURIComponent(stream.id)}`;
  const row = document.createElement("div");
  row.className = "row";
  const badge = document.createElement("span");
  badge.className = "badge";
  badge.textContent = "Live";
  const viewers = document.createElement("span");
  viewers.className = "chip";
  viewers.textContent = formatViewers(stream.viewers);
  row.append(badge, viewers);
  const text = document.createElement("div");
  const title = document.createElement("h3");
  title.textContent = stream.title || stream.id;
  text.append(title);
  if (stream.startedAt) {
    const when = document.createElement("p");
    when.className = "when";
    when.textContent = `for ${formatDuration(Date.now() - Date.parse(stream.startedAt))}`;
    text.append(when);
  }
  link.append(row, text);
  item.append(link);
  return item;
}

/** @param {import("./sync.js").StreamInfo[]} streams */
function show(streams) {
  const live = streams.filter((stream) => stream.state === "live");
  $("empty").hidden = live.length > 0;
  setText($("summary"), live.length === 0 ? "" : live.length === 1 ? "1 stream" : `${live.length} streams`);
  // Keyboard users keep their place while the list is renewed.
  const focused = document.activeElement?.getAttribute("href");
  $("list").replaceChildren(...live.map(card));
  if (focused) $("list").querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

async function refresh() {
  if (document.visibilityState === "hidden") return;
  try {
    show(await listLive());
  } catch {
    setText($("summary"), "The server does not answer. Trying again…");
  }
}

$("go-live").href = `/live/${suggestName()}`;
refresh();
setInterval(refresh, REFRESH_MS);
document.addEventListener("visibilitychange", refresh);
