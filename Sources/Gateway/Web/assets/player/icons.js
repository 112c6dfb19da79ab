// @ts-check

/** The icons of the player. Those of the pages are in an SVG file, which pages of other origins cannot use. */

/** Outlines and filled shapes in a square of 24. @type {Record<string, { line?: string, fill?: string }>} */
const SHAPES = {
  play: { fill: "M8 5.2v13.6a.9.9 0 0 0 1.4.7l10-6.8a.9.9 0 0 0 0-1.4l-10-6.8A.9.9 0 0 0 8 5.2z" },
  pause: { fill: "M7.5 5h2A1 1 0 0 1 10.5 6v12a1 1 0 0 1-1 1h-2a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM14.5 5h2a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1h-2a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z" },
  sound: { fill: "M11 5 6.5 9H3v6h3.5L11 19z", line: "M15 9.2a4 4 0 0 1 0 5.6M17.8 6.5a8 8 0 0 1 0 11" },
  quiet: { fill: "M11 5 6.5 9H3v6h3.5L11 19z", line: "M15 9.2a4 4 0 0 1 0 5.6" },
  muted: { fill: "M11 5 6.5 9H3v6h3.5L11 19z", line: "M15.5 9.5l5 5M20.5 9.5l-5 5" },
  quality: { line: "M4 7h9M17 7h3M4 17h3M11 17h9M17 7a2 2 0 1 1-4 0 2 2 0 0 1 4 0M11 17a2 2 0 1 1-4 0 2 2 0 0 1 4 0" },
  pip: { line: "M10 18.5H5A1.5 1.5 0 0 1 3.5 17V7A1.5 1.5 0 0 1 5 5.5h14A1.5 1.5 0 0 1 20.5 7v4", fill: "M13.5 13.5h6a1.5 1.5 0 0 1 1.5 1.5v3.5a1.5 1.5 0 0 1-1.5 1.5h-6a1.5 1.5 0 0 1-1.5-1.5V15a1.5 1.5 0 0 1 1.5-1.5z" },
  full: { line: "M4 9V5a1 1 0 0 1 1-1h4M20 9V5a1 1 0 0 0-1-1h-4M4 15v4a1 1 0 0 0 1 1h4M20 15v4a1 1 0 0 1-1 1h-4" },
  small: { line: "M9 4v4a1 1 0 0 1-1 1H4M15 4v4a1 1 0 0 0 1 1h4M9 20v-4a1 1 0 0 0-1-1H4M15 20v-4a1 1 0 0 1 1-1h4" },
  people: { line: "M12.5 8a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0M2.5 20c.4-3.9 3-6 6.5-6s6.1 2.1 6.5 6M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14.5c2 .8 3.2 2.6 3.5 5.5" },
  weak: { line: "M4 19v-3M9 19v-6M14 19v-1M19 19v-1" },
  chosen: { line: "M5 12.5l4.5 4.5L19 7.5" },
  lock: { line: "M7.5 11V8a4.5 4.5 0 0 1 9 0v3M6 11h12a1.5 1.5 0 0 1 1.5 1.5v6A1.5 1.5 0 0 1 18 20H6a1.5 1.5 0 0 1-1.5-1.5v-6A1.5 1.5 0 0 1 6 11z" },
  warning: { line: "M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1" },
};

const SVG = "http://www.w3.org/2000/svg";

/** @param {keyof typeof SHAPES} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  draw(svg, name);
  return svg;
}

/** Changes an icon. @param {SVGSVGElement} svg @param {keyof typeof SHAPES} name */
export function draw(svg, name) {
  if (svg.dataset.name === name) return;
  svg.dataset.name = name;
  svg.replaceChildren(...Object.entries(SHAPES[name]).map(([look, shape]) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", look);
    path.setAttribute("d", shape);
    return path;
  }));
}
