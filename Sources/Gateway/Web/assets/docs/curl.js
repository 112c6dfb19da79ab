// @ts-check

/** A request as a curl command. */

/** Example file names for bodies that are not text. */
const FILES = { "image/jpeg": "picture.jpg", "image/webp": "picture.webp", "image/png": "picture.png" };

/** Longest body on a single line, in characters. */
const LONGEST = 56;

/** @param {any} example */
function json(example) {
  const short = JSON.stringify(example);
  return short.length > LONGEST ? JSON.stringify(example, null, 2) : short;
}

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The address with example values for its parameters.
 * @param {import("./documents.js").Operation} operation
 */
export function exampleTarget({ path, parameters }) {
  const example = (/** @type {any} */ one) => encodeURIComponent(one.example ?? one.schema?.example ?? one.name);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    example(parameters.find((one) => one.in === "path" && one.name === name) ?? { name }));
  const query = parameters.filter((one) => one.in === "query" && (one.required || one.example !== undefined))
    .map((one) => `${one.name}=${example(one)}`).join("&");
  return query ? `${filled}?${query}` : filled;
}

/**
 * @param {import("./documents.js").Operation} operation
 * @param {string} origin
 */
export function curl(operation, origin) {
  const { method, spec, parameters } = operation;
  const lines = [];
  const token = spec["x-token"];
  if (token) lines.push(`-H "Authorization: Bearer $${token.toUpperCase()}"`);
  for (const one of parameters) {
    if (one.in === "header" && one.required) lines.push(`-H ${quoted(`${one.name}: ${one.example ?? ""}`)}`);
  }
  const [type, content] = Object.entries(spec.requestBody?.content ?? {})[0] ?? [];
  if (type) {
    lines.push(`-H 'Content-Type: ${type}'`);
    if (type === "application/json" && content?.example !== undefined) lines.push(`-d ${quoted(json(content.example))}`);
    else lines.push(`--data-binary @${FILES[/** @type {keyof typeof FILES} */ (type)] ?? (type.includes("sdpfrag") ? "fragment.txt" : "offer.sdp")}`);
  }
  const isUsual = method === "GET" || (method === "POST" && lines.some((line) => line.startsWith("-d ") || line.startsWith("--data")));
  const start = `curl ${isUsual ? "" : `-X ${method} `}'${origin}${exampleTarget(operation)}'`;
  return [start, ...lines].join(" \\\n  ");
}
