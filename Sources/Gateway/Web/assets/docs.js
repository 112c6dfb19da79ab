// @ts-check

/**
 * The documentation: a guide, which stands in the page, and the API and its messages, drawn from the server's own
 * documents. What is shown stands in the address: `#tokens`, `#group/Streams`, `#api/createStream`, `#socket/feed`,
 * `#message/feed/watch`, `#webhook/receiveEvent`.
 */

import { Documents } from "./docs/documents.js";
import { messageSection, methodChip, operationSection } from "./docs/operation.js";
import { Finder } from "./docs/search.js";
import { codeBlock, prose, tabs } from "./docs/text.js";
import { $, h } from "./dom.js";

/** @typedef {import("./docs/documents.js").Documents} Loaded */

const guide = $("guide");
const reference = $("reference");
const finder = new Finder($("search"), $("results"), $("found"));
/** @type {Loaded | null} */
let documents = null;
/** What the reference shows, so that it is not drawn again for another place in it. */
let drawn = "";

/** @param {string} name */
const groupTarget = (name) => `#group/${encodeURIComponent(name)}`;

/** @param {string} target @param {string} title @param {(Node | string)[]} before */
function link(target, title, ...before) {
  return h("li", {}, h("a", { href: target }, ...before, title));
}

// The guide.

/** Code of the guide becomes blocks that can be copied; examples are files, so that tests can run them. */
async function prepareGuide() {
  const made = new Map();
  await Promise.all([...guide.querySelectorAll("pre")].map(async (pre) => {
    const { source, title, language } = pre.dataset;
    const text = source ? await (await fetch(source)).text() : pre.textContent ?? "";
    const name = title ?? (source ? source.split("/").pop() : language) ?? "";
    made.set(pre, { title: name, block: codeBlock(text.replaceAll("{server}", location.origin), name) });
  }));
  for (const group of guide.querySelectorAll("[data-tabs]")) {
    const entries = [...group.children].map((pre) => made.get(pre));
    group.replaceWith(tabs(group.dataset.tabs, entries));
  }
  for (const [pre, { block }] of made) if (pre.isConnected) pre.replaceWith(block);
  for (const section of guide.querySelectorAll("section")) {
    const title = section.querySelector("h2");
    title.tabIndex = -1;
    $("guide-contents").append(link(`#${section.id}`, title.textContent));
    title.append(h("a.anchor", { href: `#${section.id}`, "aria-label": `Link to ${title.textContent}` }, "#"));
  }
}

// The reference.

/** @param {Loaded} loaded */
function fillContents(loaded) {
  const operations = loaded.operations;
  for (const { name } of loaded.tags) {
    const own = operations.filter(({ tag }) => tag === name);
    $("api-contents").append(h("details", { "data-group": name },
      h("summary", {}, name),
      h("ul", {}, link(groupTarget(name), "Overview"),
        ...own.map(({ id, method, spec }) => link(`#api/${id}`, spec.summary, methodChip(method))))));
  }
  for (const { key, spec } of loaded.channels) $("socket-contents").append(link(`#socket/${key}`, spec.title));
  for (const { id, spec } of loaded.webhooks) $("socket-contents").append(link(`#webhook/${id}`, spec.summary));
}

/** @param {Loaded} loaded */
function fillFinder(loaded) {
  const sections = [...guide.querySelectorAll("section")].map((section) => ({
    title: section.querySelector("h2").firstChild.textContent, kind: "Guide", text: section.textContent, target: `#${section.id}`,
  }));
  const operations = loaded.operations.map(({ id, method, path, spec }) => ({
    title: spec.summary, kind: `${method} ${path}`, target: `#api/${id}`,
    text: `${id} ${spec.description ?? ""} ${JSON.stringify(spec)}`,
  }));
  const messages = loaded.channels.flatMap(({ key, spec, messages }) => messages.map((message) => ({
    title: message.spec.title, kind: `${message.spec.name} – ${spec.title}`, target: `#message/${key}/${message.key}`,
    text: JSON.stringify(message.spec),
  })));
  const webhooks = loaded.webhooks.map(({ id, spec }) => ({
    title: spec.summary, kind: "Webhook", target: `#webhook/${id}`, text: JSON.stringify(spec),
  }));
  finder.fill([...sections, ...operations, ...messages, ...webhooks]);
}

/** @param {Loaded} loaded @param {string} name */
function drawGroup(loaded, name) {
  const { description } = loaded.tags.find((tag) => tag.name === name) ?? { description: "" };
  reference.replaceChildren(
    h("h1", { tabIndex: -1 }, name), prose(description),
    ...loaded.operations.filter(({ tag }) => tag === name).map((operation) => operationSection(loaded, operation)));
}

/** @param {Loaded} loaded @param {string} key */
function drawChannel(loaded, key) {
  const channel = loaded.channels.find((one) => one.key === key);
  if (!channel) return;
  const { spec, messages } = channel;
  const query = spec.bindings?.ws?.query;
  const part = (/** @type {"send" | "receive"} */ action) =>
    messages.filter((one) => one.action === action).map((one) => messageSection(loaded, key, one));
  reference.replaceChildren(
    h("h1", { tabIndex: -1 }, spec.title),
    h("p.route", {}, h("span.method", {}, query ? "WebSocket" : "Data channel"), h("code", {}, spec.address)),
    prose(spec.summary), prose(spec.description),
    ...query ? [h("ul.query", {}, ...Object.entries(query.properties).map(([name, { description }]) =>
      h("li", {}, h("code", {}, `?${name}=`), ` ${description}`)))] : [],
    h("h2", {}, "Messages from the server"), ...part("send"), h("h2", {}, "Messages from clients"), ...part("receive"));
}

/** @param {Loaded} loaded */
function drawWebhooks(loaded) {
  reference.replaceChildren(
    h("h1", { tabIndex: -1 }, "Webhooks"), prose("The server posts events to your service."),
    ...loaded.webhooks.map((operation) => operationSection(loaded, operation, "webhook")));
}

/** What an address names, and what has to be drawn for it. @param {Loaded} loaded @param {string} hash */
function placeOf(loaded, hash) {
  const [kind, name] = hash.split("/");
  if (kind === "group") return { view: hash, draw: () => drawGroup(loaded, name) };
  if (kind === "api") {
    const operation = loaded.operations.find(({ id }) => id === name);
    return operation && { view: `group/${operation.tag}`, draw: () => drawGroup(loaded, operation.tag) };
  }
  if (kind === "socket" || kind === "message") return { view: `socket/${name}`, draw: () => drawChannel(loaded, name) };
  if (kind === "webhook") return { view: "webhook", draw: () => drawWebhooks(loaded) };
  return null;
}

// Where the reader is.

/** The part of an address behind the `#`; whoever made it may have encoded it badly. @param {string} hash */
function decoded(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

function show() {
  if (!documents) return;
  const hash = decoded(location.hash);
  const place = placeOf(documents, hash);
  if (place && place.view !== drawn) {
    place.draw();
    drawn = place.view;
  }
  guide.hidden = Boolean(place);
  reference.hidden = !place;
  const target = document.getElementById(hash);
  const title = target?.querySelector("h1, h2, h3") ?? (place ? reference : guide).querySelector("h1");
  document.title = `${title?.firstChild?.textContent ?? "Documentation"} – Rostrum`;
  markContents(hash, place?.view ?? "");
  openMenu(false);
  if (!hash) return;
  (target ?? reference).scrollIntoView({ block: "start" });
  title?.focus({ preventScroll: true });
}

/** @param {string} hash @param {string} view */
function markContents(hash, view) {
  for (const anchor of $("contents").querySelectorAll("a")) {
    const own = decoded(anchor.hash);
    const isHere = own !== "" && (own === hash || (own === view && hash.startsWith("message/")));
    if (isHere) anchor.setAttribute("aria-current", "true");
    else anchor.removeAttribute("aria-current");
  }
  for (const group of $("contents").querySelectorAll("details")) {
    if (view === `group/${group.dataset.group}`) group.open = true;
  }
  $("contents").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/** @param {boolean} isOpen */
function openMenu(isOpen) {
  document.body.toggleAttribute("data-menu", isOpen);
  $("menu").setAttribute("aria-expanded", String(isOpen));
}

$("menu").addEventListener("click", () => openMenu(!document.body.hasAttribute("data-menu")));
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape" || !document.body.hasAttribute("data-menu")) return;
  openMenu(false);
  $("menu").focus();
});
addEventListener("hashchange", show);

try {
  const [loaded] = await Promise.all([Documents.load(), prepareGuide()]);
  fillContents(loaded);
  fillFinder(loaded);
  documents = loaded;
  show();
  document.body.dataset.state = "ready";
} catch (error) {
  document.body.dataset.state = "failed";
  $("toast").textContent = `The documentation couldn’t be loaded: ${/** @type {Error} */ (error).message}`;
}
