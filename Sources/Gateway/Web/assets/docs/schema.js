// @ts-check

/** Shows a JSON Schema: each member with its type, constraints and description. */

import { h } from "../dom.js";
import { prose } from "./text.js";

/** @typedef {import("./documents.js").Part} Part */

/** Constraints of a schema, in words. @type {[string, (value: any) => string][]} */
const LIMITS = [
  ["minimum", (value) => `at least ${value}`], ["maximum", (value) => `at most ${value}`],
  ["minLength", (value) => value === 1 ? "not empty" : `at least ${value} characters`],
  ["maxLength", (value) => `up to ${value} characters`],
  ["minItems", (value) => `at least ${value} items`], ["maxItems", (value) => `up to ${value} items`],
  ["multipleOf", (value) => `a multiple of ${value}`], ["pattern", (value) => `matches ${value}`],
  ["default", (value) => `default ${JSON.stringify(value)}`],
];

/** The schema without `allOf`, and whether it may be null. @param {Part} part */
function flatten(part) {
  const { value } = part;
  const choices = (value.anyOf ?? value.oneOf ?? []).filter((/** @type {any} */ one) => one.type !== "null");
  const isNullable = choices.length < (value.anyOf ?? value.oneOf ?? []).length;
  if (choices.length === 1) {
    const inner = part.at(choices[0]);
    return { part: inner, isNullable, description: value.description ?? inner.value.description };
  }
  if (value.allOf) {
    // Members may come from several documents, in which their references are resolved.
    const parts = value.allOf.map((/** @type {any} */ one) => part.at(one));
    const main = parts.find((/** @type {Part} */ one) => one.value.properties) ?? parts[0];
    const required = parts.flatMap((/** @type {Part} */ one) => one.value.required ?? []);
    const merged = { ...main.value, required, description: value.description ?? main.value.description };
    const result = main.at(merged);
    result.name = main.name;
    return { part: result, isNullable, description: merged.description };
  }
  const types = [value.type ?? []].flat();
  return { part, isNullable: isNullable || types.includes("null"), description: value.description };
}

/** @param {Part} original @returns {string} */
export function typeName(original) {
  const { part, isNullable } = flatten(original.at(original.value));
  const { value } = part;
  const orNull = isNullable && !value.enum?.includes(null) ? " or null" : "";
  if ("const" in value) return JSON.stringify(value.const) + orNull;
  if (value.enum) return value.enum.map((/** @type {any} */ one) => JSON.stringify(one)).join(" | ") + orNull;
  if (value.items) return `list of ${typeName(part.at(value.items))}${orNull}`;
  if (value.properties || value.type === "object") return `${part.name || "object"}${orNull}`;
  const types = [value.type ?? []].flat().filter((type) => type !== "null");
  const format = value.format === "date-time" ? "time (RFC 3339)" : "";
  return (format || types.join(" or ") || (value.contentMediaType ? "bytes" : "anything")) + orNull;
}

/** @param {any} value */
function limits(value) {
  return LIMITS.filter(([name]) => value[name] !== undefined).map(([name, text]) => text(value[name])).join("; ");
}

/**
 * The schema with the members: of an object itself, of a list that of its items.
 * @param {Part} original
 * @returns {Part | null}
 */
function inside(original) {
  const { part } = flatten(original.at(original.value));
  if (part.value.properties) return part;
  if (part.value.items) return inside(part.at(part.value.items));
  if (typeof part.value.additionalProperties === "object") return inside(part.at(part.value.additionalProperties));
  return null;
}

/**
 * The members of an object; those of nested objects are rendered when they are opened, because schemas may be
 * recursive.
 * @param {Part} original
 * @returns {HTMLElement | null} null if it has none
 */
export function members(original) {
  const part = inside(original);
  if (!part) return null;
  const required = new Set(part.value.required ?? []);
  const list = h("dl.members");
  for (const [name, schema] of Object.entries(part.value.properties)) {
    list.append(member(name, part.at(schema), required.has(name)));
  }
  return list;
}

/**
 * @param {string} name
 * @param {Part} part
 * @param {boolean} isRequired
 * @param {string} [where] of parameters: path, query or header
 */
export function member(name, part, isRequired, where = "") {
  const flat = flatten(part);
  const row = h("div", {},
    h("dt", {}, h("code", {}, name), h("span.type", {}, typeName(part)),
      ...where ? [h("span.where", {}, where)] : [], ...isRequired ? [h("span.required", {}, "required")] : []));
  const description = h("dd");
  if (flat.description) description.append(prose(flat.description));
  const bounds = limits(flat.part.value);
  if (bounds) description.append(h("p.limits", {}, bounds));
  const inner = inside(part);
  if (inner) description.append(later(inner));
  if (description.childNodes.length) row.append(description);
  return row;
}

/** @param {Part} part */
function later(part) {
  const details = h("details", {}, h("summary", {}, part.name ? `Members of ${part.name}` : "Members"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(members(part) ?? "");
  });
  return details;
}
