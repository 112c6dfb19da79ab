// @ts-check

/** A plot of the last minutes on a canvas: lines or stacked areas, with the values at the pointer. */

import { h, setText } from "../dom.js";
import { SPAN } from "./series.js";

/**
 * @typedef {object} Line
 * @property {string} key of the value in a sample
 * @property {string} label
 *
 * @typedef {object} Plan
 * @property {string} name marks the element
 * @property {string} title
 * @property {Line[]} lines
 * @property {(value: number | null) => string} format
 * @property {boolean} [isStacked]
 * @property {number} [least] lower bound for the end of the scale
 * @property {number} [most] upper bound for the end of the scale
 */

/** Margins in CSS pixels: for the numbers of the scale, and above and below. */
const TOP = 8;
const BOTTOM = 18;

export class Plot {
  /** @type {Plan} */
  plan;
  /** @type {any} */
  element;
  #canvas;
  #values;
  /** @type {import("./series.js").Sample[]} */
  #samples = [];
  /** Position of the pointer, in CSS pixels from the left; null if it is elsewhere. @type {number | null} */
  #pointer = null;

  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    this.#canvas = h("canvas", { role: "img", tabIndex: 0 });
    this.#values = h("ul.legend");
    this.element = h("figure.card.plot", { "data-name": plan.name },
      h("figcaption", {}, h("h3", {}, plan.title), this.#values), this.#canvas);
    this.#list();
    this.#canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.#point(event.offsetX));
    this.#canvas.addEventListener("pointerleave", () => this.#point(null));
    this.#canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#step(event));
    this.#canvas.addEventListener("blur", () => this.#point(null));
  }

  /** @param {Line[]} lines */
  setLines(lines) {
    if (lines.length === this.plan.lines.length) return;
    this.plan.lines = lines;
    this.#list();
  }

  #list() {
    this.#values.replaceChildren(...this.plan.lines.map((line, index) =>
      h("li", { className: `line-${index % 6}` }, h("span.name", {}, line.label), h("span.value"))));
  }

  /** @param {import("./series.js").Sample[]} samples */
  draw(samples) {
    this.#samples = samples;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale) || this.#canvas.height !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
    }
    const context = this.#canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const chosen = this.#chosen(width);
    this.#tell(chosen);
    const top = ceiling(Math.max(this.plan.least ?? 0, ...samples.map((sample) => this.#highest(sample) * 1.05)));
    this.#paint(context, width, height, Math.min(top, this.plan.most ?? Infinity) || 1, chosen);
  }

  /** @param {import("./series.js").Sample} sample */
  #highest({ values }) {
    const numbers = this.plan.lines.map(({ key }) => values[key] ?? 0);
    return this.plan.isStacked ? numbers.reduce((one, other) => one + other, 0) : Math.max(...numbers);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {number} top
   * @param {import("./series.js").Sample | undefined} chosen */
  #paint(context, width, height, top, chosen) {
    const style = getComputedStyle(this.element);
    const end = this.#samples.at(-1)?.seconds ?? 0;
    /** @param {number} seconds */
    const x = (seconds) => width - (end - seconds) / SPAN * width;
    /** @param {number} value */
    const y = (value) => TOP + (1 - Math.min(value, top) / top) * (height - TOP - BOTTOM);
    context.font = `11px ${style.fontFamily}`;
    context.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      context.strokeStyle = style.getPropertyValue("--line");
      context.beginPath();
      context.moveTo(0, Math.round(y(top * part)) + 0.5);
      context.lineTo(width, Math.round(y(top * part)) + 0.5);
      context.stroke();
    }
    context.fillStyle = style.getPropertyValue("--muted");
    context.textBaseline = "bottom";
    const colours = this.plan.lines.map((_, index) => style.getPropertyValue(`--line-${index % 6}`));
    if (this.plan.isStacked) this.#paintAreas(context, x, y, colours);
    else this.#paintLines(context, x, y, colours, height - BOTTOM);
    context.fillStyle = style.getPropertyValue("--muted");
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillText(this.plan.format(top), 2, y(top) + 3);
    context.textBaseline = "bottom";
    context.fillText("5 min ago", 0, height);
    context.textAlign = "right";
    context.fillText("now", width, height);
    if (!chosen) return;
    context.strokeStyle = style.getPropertyValue("--text");
    context.beginPath();
    context.moveTo(Math.round(x(chosen.seconds)) + 0.5, TOP);
    context.lineTo(Math.round(x(chosen.seconds)) + 0.5, height - BOTTOM);
    context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context @param {(seconds: number) => number} x @param {(value: number) => number} y
   * @param {string[]} colours @param {number} floor */
  #paintLines(context, x, y, colours, floor) {
    this.plan.lines.forEach(({ key }, index) => {
      context.strokeStyle = context.fillStyle = colours[index];
      context.lineWidth = 1.75;
      context.lineJoin = "round";
      context.beginPath();
      let isOpen = false;
      let first = 0;
      let last = 0;
      for (const { seconds, values } of this.#samples) {
        const value = values[key] ?? null;
        if (value === null) {
          isOpen = false;
          continue;
        }
        last = x(seconds);
        if (isOpen) context.lineTo(last, y(value));
        else context.moveTo(first = last, y(value));
        isOpen = true;
      }
      context.stroke();
      if (this.plan.lines.length > 1 || !isOpen) return;
      context.lineTo(last, floor);
      context.lineTo(first, floor);
      context.globalAlpha = 0.12;
      context.fill();
      context.globalAlpha = 1;
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {(seconds: number) => number} x @param {(value: number) => number} y
   * @param {string[]} colours */
  #paintAreas(context, x, y, colours) {
    const base = this.#samples.map(() => 0);
    this.plan.lines.forEach(({ key }, index) => {
      const below = [...base];
      this.#samples.forEach(({ values }, place) => (base[place] += values[key] ?? 0));
      if (base.every((value, place) => value === below[place])) return;
      context.fillStyle = context.strokeStyle = colours[index];
      context.beginPath();
      this.#samples.forEach(({ seconds }, place) => context.lineTo(x(seconds), y(base[place])));
      context.lineWidth = 1.5;
      context.stroke();
      for (let place = this.#samples.length - 1; place >= 0; place--) {
        context.lineTo(x(this.#samples[place].seconds), y(below[place]));
      }
      context.globalAlpha = 0.35;
      context.fill();
      context.globalAlpha = 1;
    });
  }

  /** The sample at the pointer. @param {number} width */
  #chosen(width) {
    const end = this.#samples.at(-1)?.seconds;
    if (this.#pointer === null || end === undefined) return undefined;
    const wanted = end - (1 - this.#pointer / width) * SPAN;
    return this.#samples.reduce((best, sample) =>
      Math.abs(sample.seconds - wanted) < Math.abs(best.seconds - wanted) ? sample : best);
  }

  /** Shows the values at the pointer, or the latest. @param {import("./series.js").Sample | undefined} chosen */
  #tell(chosen) {
    const { values } = chosen ?? this.#samples.at(-1) ?? { values: {} };
    const texts = this.plan.lines.map(({ key }) => this.plan.format(values[key] ?? null));
    [...this.#values.children].forEach((item, index) => setText(item.lastElementChild, texts[index]));
    const end = this.#samples.at(-1)?.seconds ?? 0;
    const when = chosen ? `${Math.round(end - chosen.seconds)} seconds ago` : "now";
    const said = this.plan.lines.map(({ label }, index) => `${label} ${texts[index]}`).join(", ");
    this.#canvas.setAttribute("aria-label", `${this.plan.title}, ${when}: ${said}`);
  }

  /** @param {number | null} place */
  #point(place) {
    this.#pointer = place;
    this.draw(this.#samples);
  }

  /** @param {KeyboardEvent} event */
  #step(event) {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const width = this.#canvas.clientWidth;
    this.#point(Math.max(0, Math.min(width, (this.#pointer ?? width) + direction * width / 60)));
  }
}

/** The next larger round number. @param {number} value */
function ceiling(value) {
  if (value <= 0) return 0;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= value * 0.999) ?? value;
}
