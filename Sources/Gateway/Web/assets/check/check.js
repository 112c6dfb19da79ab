// @ts-check

/** The page that tests whether live video gets through, for operators and for viewers who see nothing. */

import { h, setText } from "../dom.js";
import { tryAll } from "./ways.js";

/** @typedef {import("./ways.js").Finding} Finding */

/** @type {Record<import("./ways.js").Verdict, string>} */
const WORDS = { trying: "Testing…", ok: "OK", warn: "Limited", fail: "Failed", none: "Off" };

const verdict = /** @type {HTMLElement} */ (document.getElementById("verdict"));
const list = /** @type {HTMLElement} */ (document.getElementById("ways"));
const again = /** @type {HTMLButtonElement} */ (document.getElementById("again"));
const copied = /** @type {HTMLElement} */ (document.getElementById("copied"));
/** Findings by name, in the order of the first attempts. @type {Map<string, { finding: Finding, row: HTMLElement }>} */
const rows = new Map();

/** @param {Finding} finding */
function show(finding) {
  const row = rows.get(finding.name)?.row ?? list.appendChild(h("li"));
  rows.set(finding.name, { finding, row });
  row.dataset.verdict = finding.verdict;
  row.replaceChildren(
    h("span.word", {}, WORDS[finding.verdict]), h("strong", {}, finding.name),
    ...(finding.text ? [h("p", {}, finding.text)] : []), ...(finding.remedy ? [h("p.remedy", {}, finding.remedy)] : []));
}

let isRunning = false;

async function run() {
  // Not disabled, which would lose the focus; a second press does nothing.
  if (isRunning) return;
  isRunning = true;
  again.setAttribute("aria-disabled", "true");
  rows.clear();
  list.replaceChildren();
  delete verdict.dataset.verdict;
  setText(verdict, "Testing…");
  setText(copied, "");
  const result = await tryAll(show);
  verdict.dataset.verdict = result.verdict;
  setText(verdict, [result.text, result.remedy].filter(Boolean).join(" "));
  again.setAttribute("aria-disabled", "false");
  isRunning = false;
}

/** The findings as text, for an email to the people who run the server. */
function report() {
  const lines = [...rows.values()].map(({ finding: { name, verdict, text, remedy } }) =>
    [`${verdict.padEnd(5)} ${name}: ${text}`, remedy].filter(Boolean).join(" "));
  return [`${location.origin}, ${new Date().toISOString()}`, verdict.textContent, ...lines, navigator.userAgent].join("\n");
}

again.addEventListener("click", run);
document.getElementById("copy")?.addEventListener("click", async () => {
  // Otherwise the same words would not be read aloud the second time.
  setText(copied, "");
  const isCopied = await navigator.clipboard?.writeText(report()).then(() => true, () => false);
  setText(copied, isCopied ? "Copied." : "This browser blocked copying. Select and copy the lines above.");
});
run();
