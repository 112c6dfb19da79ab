// @ts-check

/** One operation of the API, and one message of a socket, as they are read. */

import { h } from "../dom.js";
import { curl } from "./curl.js";
import { member, members, typeName } from "./schema.js";
import { codeBlock, prose, tabs } from "./text.js";

/** @typedef {import("./documents.js").Documents} Documents */
/** @typedef {import("./documents.js").Operation} Operation */

/** Whose token an operation takes, by `x-token`. @type {Record<string, string>} */
const TOKENS = {
  host: "Needs a token, such as the host’s.",
  viewer: "Needs a token, such as a viewer’s.",
  shop: "Needs a token, such as a shop’s with the give-gifts capability.",
  admin: "Needs a token, such as an admin’s.",
};

/** @param {any} value */
function shown(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A heading that leads to itself. @param {string} title @param {string} target */
function heading(title, target) {
  return h("h3", { tabIndex: -1 }, title, h("a.anchor", { href: target, "aria-label": `Link to ${title}` }, "#"));
}

/** @param {string} method */
export function methodChip(method) {
  return h("span.method", { "data-method": method }, method);
}

/**
 * @param {Documents} documents
 * @param {Operation} operation
 * @param {string} [prefix] of its address within the page
 */
export function operationSection(documents, operation, prefix = "api") {
  const { id, method, path, spec } = operation;
  const isWebhook = prefix === "webhook";
  const section = h("section.operation", { id: `${prefix}/${id}` },
    heading(spec.summary, `#${prefix}/${id}`),
    h("p.route", {}, methodChip(method), h("code", {}, path)));
  if (spec.description) section.append(prose(spec.description));
  if (TOKENS[spec["x-token"]]) section.append(h("p.token", {}, TOKENS[spec["x-token"]]));
  const text = h("div.text");
  const examples = h("div.examples");
  if (!isWebhook) examples.append(codeBlock(curl(operation, location.origin), "curl"));
  appendParameters(text, documents, operation);
  appendBody(text, examples, documents, spec, !isWebhook);
  appendAnswers(text, examples, documents, spec);
  section.append(h("div.columns", {}, text, examples));
  return section;
}

/** @param {HTMLElement} text @param {Documents} documents @param {Operation} operation */
function appendParameters(text, documents, { parameters }) {
  if (!parameters.length) return;
  const list = h("dl.members");
  for (const one of parameters) {
    const schema = { ...one.schema, description: one.description ?? one.schema?.description };
    list.append(member(one.name, documents.openAPI.at(schema), Boolean(one.required), one.in));
  }
  text.append(h("h4", {}, "Parameters"), list);
}

/**
 * @param {HTMLElement} text
 * @param {HTMLElement} examples
 * @param {Documents} documents
 * @param {any} spec
 * @param {boolean} hasLine whether there is a line for a terminal, which has the first body in JSON
 */
function appendBody(text, examples, documents, spec, hasLine) {
  const contents = Object.entries(spec.requestBody?.content ?? {});
  if (!contents.length) return;
  text.append(h("h4", {}, "Body", ...(spec.requestBody.required ? [] : [h("small", {}, " optional")])));
  const blocks = [];
  for (const [type, { schema, example }] of contents) {
    const part = documents.openAPI.at(schema ?? {});
    const list = members(part);
    text.append(h("p.media", {}, h("code", {}, type), list ? "" : ` ${typeName(part)}`));
    // A merge patch has the same members.
    if (list && (contents[0][0] === type || contents[0][1].schema?.$ref !== schema?.$ref)) text.append(list);
    const isInLine = hasLine && type === "application/json" && contents[0][0] === type;
    if (example !== undefined && !isInLine) blocks.push({ title: type, block: codeBlock(shown(example), `Body: ${type}`) });
  }
  if (blocks.length > 1) examples.append(tabs(`Bodies of ${spec.operationId}`, blocks));
  else examples.append(...blocks.map(({ block }) => block));
}

/** @param {HTMLElement} text @param {HTMLElement} examples @param {Documents} documents @param {any} spec */
function appendAnswers(text, examples, documents, spec) {
  const answers = h("div.answers");
  for (const [status, answer] of Object.entries(spec.responses)) {
    const { value } = documents.openAPI.at(answer);
    const details = h("details", {}, h("summary", {}, h("span.status", { "data-class": status[0] }, status), ` ${value.description ?? ""}`));
    if (value.headers) {
      const list = h("dl.members");
      for (const [name, header] of Object.entries(value.headers)) {
        const { value: one } = documents.openAPI.at(header);
        list.append(member(name, documents.openAPI.at({ ...one.schema, description: one.description }), false, "header"));
      }
      details.append(list);
    }
    for (const [type, { schema, example }] of Object.entries(value.content ?? {})) {
      details.append(h("p.media", {}, h("code", {}, type)));
      const list = schema && members(documents.openAPI.at(schema));
      if (list) details.append(list);
      if (example !== undefined) examples.append(codeBlock(shown(example), `Response: ${status}`));
    }
    answers.append(details);
  }
  text.append(h("h4", {}, "Responses"), answers);
}

/**
 * @param {Documents} documents
 * @param {string} channel
 * @param {import("./documents.js").Message} message
 */
export function messageSection(documents, channel, { key, spec }) {
  const target = `message/${channel}/${key}`;
  const section = h("section.message", { id: target }, heading(spec.title, `#${target}`), h("p.route", {}, h("code", {}, spec.name)));
  if (spec.summary) section.append(prose(spec.summary));
  const list = members(documents.asyncAPI.at(spec.payload));
  const examples = (spec.examples ?? []).map((/** @type {any} */ { payload }) => codeBlock(shown(payload), "Message"));
  section.append(h("div.columns", {}, h("div.text", {}, list ?? ""), h("div.examples", {}, ...examples)));
  return section;
}
