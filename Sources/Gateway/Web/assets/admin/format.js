// @ts-check

/** Formats numbers for people. */

/** @param {number} value @param {string} unit */
function scaled(value, unit) {
  const steps = ["", "k", "M", "G", "T"];
  let step = 0;
  while (Math.abs(value) >= 999.5 && step < steps.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${short(value)} ${steps[step]}${unit}`.trimEnd();
}

/** Three digits at most. @param {number} value */
function short(value) {
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 99.5 ? 0 : Math.abs(value) >= 9.95 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** @param {number | null} value */
export const bits = (value) => value === null ? "–" : scaled(value, "bit/s");

/** @param {number | null} value */
export const bytes = (value) => value === null ? "–" : scaled(value, "B");

/** @param {number | null} value */
export const count = (value) => value === null ? "–" : scaled(value, "");

/** @param {number | null} value */
export const rate = (value) => value === null ? "–" : `${scaled(value, "")}/s`;

/** A share from 0 to 1. @param {number | null} value */
export const percent = (value) => value === null ? "–" : `${short(value * 100)}%`;

/** @param {number | null | undefined} value */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return `${short(value * 1e6)} µs`;
  if (value < 1) return `${short(value * 1e3)} ms`;
  return `${short(value)} s`;
}

/** How long ago, in two units at most. @param {number} milliseconds */
export function age(milliseconds) {
  const total = Math.max(0, Math.floor(milliseconds / 1000));
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => total >= Number(size));
  if (first < 0) return "0 s";
  let rest = total;
  return units.slice(first, first + 2).map(([name, size]) => {
    const number = Math.floor(rest / Number(size));
    rest %= Number(size);
    return number ? `${number} ${name}` : "";
  }).filter(Boolean).join(" ");
}

/** @param {string | null} text RFC 3339 */
export function clock(text) {
  return text ? new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }) : "–";
}
