// @ts-check

/**
 * The styles of the player. Text over pictures is white on a dark veil; otherwise colors follow the page's
 * `color-scheme`. Apps can set the custom properties and style the parts.
 */

const TEXT = `
:host {
  --accent: var(--rostrum-accent, #e0294a);
  --on-accent: var(--rostrum-on-accent, #fff);
  --ground: var(--rostrum-ground, light-dark(#e8eaf1, #0b0c11));
  --surface: var(--rostrum-surface, light-dark(#fff, #1a1d29));
  --text: var(--rostrum-text, light-dark(#171923, #f3f3f8));
  --muted: var(--rostrum-muted, light-dark(#565b70, #a6a9bd));
  --control: var(--rostrum-control, #fff);
  --veil: var(--rostrum-veil, rgb(8 9 14));
  --focus: var(--rostrum-focus, light-dark(#2463eb, #8fb7ff));
  display: block;
  position: relative;
  aspect-ratio: 16 / 9;
  min-width: 0;
  overflow: hidden;
  border-radius: var(--rostrum-radius, 12px);
  background: var(--ground);
  color: var(--text);
  font: 400 15px/1.4 var(--rostrum-font, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif);
  -webkit-tap-highlight-color: transparent;
}
:host([hidden]) { display: none; }
:host(:fullscreen) { border-radius: 0; aspect-ratio: auto; width: 100%; height: 100%; }
[hidden] { display: none !important; }
*, *::before, *::after { box-sizing: border-box; }
p, ul { margin: 0; padding: 0; list-style: none; }
svg { width: 24px; height: 24px; flex: none; }
.line { fill: none; stroke: currentColor; stroke-width: 1.9; stroke-linecap: round; stroke-linejoin: round; }
.fill { fill: currentColor; }
button { margin: 0; padding: 0; border: 0; background: none; color: inherit; font: inherit; cursor: pointer; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }

.player { position: absolute; inset: 0; overflow: hidden; color: var(--text); container-type: size; outline: none; user-select: none; }
.player:focus-visible::after { content: ""; position: absolute; inset: 0; border: 3px solid var(--focus); border-radius: inherit; pointer-events: none; }
.player.still-pointer { cursor: none; }
video, .ambient, .still, .preview { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: var(--rostrum-fit, contain); }
[data-picture="video"], [data-picture="still"] { background: #000; }
.ambient { object-fit: fill; opacity: 0.65; }
.backdrop { position: absolute; inset: 0; transition: opacity 0.25s; }
[data-picture="video"] .backdrop { opacity: 0; }
/* What was seen last is out of date, and looks like it. */
[data-dim] .still, [data-dim] .preview { filter: blur(14px); scale: 1.06; }
[data-state="gated"] video { visibility: hidden; }
.shade { position: absolute; inset: 0; pointer-events: none; background: var(--veil); opacity: 0; transition: opacity 0.25s; }
[data-picture="still"] .shade { opacity: 0.3; }
[data-picture="still"][data-dim] .shade { opacity: 0.62; }
[data-picture="video"][data-dim] .shade { opacity: 0.62; }
[data-picture="still"], [data-picture="video"] { --text: #fff; --muted: rgb(255 255 255 / 0.8); }

.head {
  position: absolute; inset: 0 0 auto; padding: 14px 18px 34px; pointer-events: none;
  display: flex; align-items: baseline; gap: 10px; min-width: 0; color: var(--control);
  background: linear-gradient(rgb(0 0 0 / 0.6), transparent); transition: opacity 0.25s;
}
[data-picture="none"] .head { background: none; color: var(--text); }
.head span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.head .stream { font-weight: 650; }
.head .host { opacity: 0.8; font-size: 0.9em; }

.free {
  position: absolute; inset: 12px 12px auto auto; z-index: 2; display: flex; align-items: center; gap: 10px; min-height: 34px;
  padding: 0 14px; border-radius: 999px; background: rgb(8 9 14 / 0.72); color: #fff; font-size: 0.9rem; font-weight: 600;
  font-variant-numeric: tabular-nums;
}
.free a { color: #fff; text-underline-offset: 3px; }

.middle {
  position: absolute; inset: 0; z-index: 1; padding: 44px 20px 64px; overflow: auto; pointer-events: none;
  display: flex; flex-direction: column; align-items: center; justify-content: safe center; gap: 14px; text-align: center;
}
.middle > * { flex: none; }
.middle :is(button, a) { pointer-events: auto; }
.status { display: grid; gap: 4px; max-width: 34em; }
.status:not(:has(p:not(:empty))) { display: none; }
.title { font-size: clamp(1.05rem, 3.4cqi, 1.5rem); font-weight: 650; line-height: 1.25; text-wrap: balance; }
.hint { color: var(--muted); text-wrap: balance; }
.hint:empty { display: none; }
.sign { display: grid; place-items: center; width: 56px; height: 56px; border-radius: 50%; background: color-mix(in srgb, var(--text) 12%, transparent); }
.spinner { width: 44px; height: 44px; border: 4px solid color-mix(in srgb, var(--text) 22%, transparent); border-top-color: var(--text); border-radius: 50%; animation: turn 0.9s linear infinite; }
.countdown { display: grid; gap: 2px; }
.countdown-label { color: var(--muted); font-size: 0.85rem; }
.digits { font-size: clamp(2rem, 9cqi, 4rem); font-weight: 700; line-height: 1.05; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.when { color: var(--muted); font-size: 0.9rem; }
.pill {
  display: inline-flex; align-items: center; gap: 10px; min-height: 44px; padding: 0 20px; border-radius: 999px;
  background: var(--surface); color: light-dark(#171923, #f3f3f8); font-weight: 650; box-shadow: 0 2px 14px rgb(0 0 0 / 0.25);
  text-decoration: none;
}
.pill.unlock { background: var(--accent); color: var(--on-accent); }
@container (max-height: 250px) {
  [data-state="gated"] .sign { display: none; }
  [data-state="gated"] .middle { padding-block: 30px 52px; gap: 8px; }
}
.big {
  display: grid; place-items: center; width: clamp(60px, 15cqmin, 88px); aspect-ratio: 1; border-radius: 50%;
  background: var(--accent); color: var(--on-accent); box-shadow: 0 6px 28px rgb(0 0 0 / 0.35); transition: scale 0.15s;
}
.big svg { width: 46%; height: 46%; }
.big:hover { scale: 1.06; }
.sound-on { position: absolute; inset: auto auto 68px 50%; translate: -50% 0; background: rgb(255 255 255 / 0.96); color: #14161f; white-space: nowrap; }
.no-controls .sound-on { inset-block-end: 16px; }
.recordings { display: flex; flex-wrap: wrap; justify-content: center; gap: 10px; max-width: 40em; pointer-events: auto; }
.recording {
  display: flex; align-items: center; gap: 10px; min-height: 48px; padding: 0 18px 0 12px; border-radius: 999px;
  background: var(--accent); color: var(--on-accent); transition: filter 0.15s;
}
.recording:hover { filter: brightness(1.1); }
.recording .name { font-weight: 650; }
.recording .about { opacity: 0.85; font-size: 0.87rem; font-variant-numeric: tabular-nums; }

.bar {
  position: absolute; inset: auto 0 0; padding: 40px 10px 6px; color: var(--control);
  background: linear-gradient(transparent, rgb(0 0 0 / 0.28) 38%, rgb(0 0 0 / 0.72)); transition: opacity 0.25s; pointer-events: none;
}
[data-picture="none"] .bar { background: none; color: var(--text); }
.bar > * { pointer-events: auto; }
.row { display: flex; align-items: center; gap: 2px; }
.space { flex: 1; }
.button { display: grid; place-items: center; width: 44px; height: 44px; border-radius: 50%; flex: none; transition: background 0.15s; }
.button[aria-pressed="true"] { color: var(--accent); }
.sound { display: flex; align-items: center; }
.live {
  display: inline-flex; align-items: center; gap: 7px; margin-inline: 8px 4px; padding: 2px 9px; border-radius: 6px;
  background: var(--accent); color: var(--on-accent); font-size: 0.78rem; font-weight: 750; letter-spacing: 0.05em; text-transform: uppercase;
}
.live::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: currentColor; }
.to-live {
  min-height: 32px; margin-inline: 8px 4px; padding: 2px 10px; border-radius: 6px; border: 1px solid currentColor; font-size: 0.78rem;
  font-weight: 750; white-space: nowrap;
}
.delay { margin-inline-start: 6px; padding: 1px 8px; border-radius: 6px; background: color-mix(in srgb, currentColor 18%, transparent); font-size: 0.8rem; font-weight: 600; white-space: nowrap; }
.delay .short { display: none; }
.viewers { display: inline-flex; align-items: center; gap: 5px; margin-inline-start: 6px; font-size: 0.9rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.viewers svg { width: 18px; height: 18px; }
.time { margin-inline-start: 8px; font-size: 0.9rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.weak { display: grid; place-items: center; width: 36px; color: #ffc861; }

input[type="range"] {
  appearance: none; height: 24px; margin: 0; background: none; cursor: pointer; border-radius: 6px;
  --track: linear-gradient(to right, var(--fill) var(--share, 0%), color-mix(in srgb, currentColor 32%, transparent) var(--share, 0%));
}
input.volume { --fill: currentColor; width: 0; opacity: 0; color: inherit; transition: width 0.18s, opacity 0.18s; }
.sound:hover .volume, .volume:focus-visible, .sound:focus-within .volume { width: 76px; opacity: 1; margin-inline: 2px 6px; }
input.position { --fill: var(--accent); display: block; width: calc(100% - 16px); margin: 0 8px; color: inherit; }
input[type="range"]::-webkit-slider-runnable-track { height: 4px; border-radius: 2px; background: var(--track); }
input[type="range"]::-moz-range-track { height: 4px; border-radius: 2px; background: var(--track); }
input[type="range"]::-webkit-slider-thumb { appearance: none; width: 14px; height: 14px; margin-top: -5px; border: 0; border-radius: 50%; background: var(--fill); }
input[type="range"]::-moz-range-thumb { width: 14px; height: 14px; border: 0; border-radius: 50%; background: var(--fill); }

.menu {
  position: absolute; z-index: 2; inset: auto 10px 58px auto; width: min(312px, calc(100% - 20px)); max-height: calc(100% - 68px); overflow: auto; padding: 6px;
  border-radius: 14px; background: var(--surface); color: light-dark(#171923, #f3f3f8); box-shadow: 0 8px 34px rgb(0 0 0 / 0.4); user-select: none;
}
.menu-title { padding: 6px 12px 4px; font-size: 0.8rem; font-weight: 650; opacity: 0.72; }
.item { display: flex; align-items: center; gap: 10px; width: 100%; min-height: 44px; padding: 4px 12px; border-radius: 9px; text-align: start; }
.item:focus-visible { outline-offset: -3px; }
.item svg { width: 20px; height: 20px; color: var(--accent); visibility: hidden; }
.item[aria-checked="true"] svg { visibility: visible; }
.words { display: grid; }
.words small { font-size: 0.82rem; opacity: 0.72; }

/* Nobody moves: only the picture is left. */
.still-pointer .bar:not(:focus-within), .still-pointer .head { opacity: 0; }
.still-pointer .bar:not(:focus-within) > * { pointer-events: none; }

@media (hover: hover) {
  .button:hover { background: color-mix(in srgb, currentColor 18%, transparent); }
  .item:hover { background: color-mix(in srgb, currentColor 10%, transparent); }
}
/* A finger has the telephone's own keys for the volume. */
@media (hover: none) { input.volume { display: none; } }
@container (max-width: 420px) {
  .middle { gap: 10px; padding: 36px 14px 56px; font-size: 14px; }
  .head { padding: 10px 14px 28px; }
  .row { gap: 0; }
  .live:has(+ .delay:not([hidden])), .delay .long { display: none; }
  .delay .short { display: inline; }
  .spinner { width: 36px; height: 36px; }
  .when { display: none; }
}
@container (max-width: 300px) { .viewers, .live::before, .weak, .delay:not([hidden]) ~ [part~="pip-button"] { display: none; } }
@container (max-height: 240px) {
  .middle { gap: 8px; padding-block: 30px 50px; }
  .sign { width: 40px; height: 40px; }
  .hint + .hint { display: none; }
  .menu { inset-block-end: 52px; max-height: calc(100% - 58px); }
  .item { min-height: 31px; padding-block: 2px; }
  .words small, .menu-title { display: none; }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { transition-duration: 0s !important; }
  .spinner { animation-duration: 4s; }
  .live::before { animation: none; }
  .big:hover { scale: none; }
}
@supports not (color: light-dark(#000, #fff)) {
  :host { --ground: var(--rostrum-ground, #0b0c11); --surface: var(--rostrum-surface, #1a1d29); --text: var(--rostrum-text, #f3f3f8); --muted: var(--rostrum-muted, #a6a9bd); --focus: var(--rostrum-focus, #8fb7ff); }
  .pill, .menu { color: var(--text); }
}
@media (forced-colors: active) {
  .big, .live, .recording, .pill { border: 1px solid; }
}
@keyframes turn { to { rotate: 1turn; } }
`;

/** Shared by all players of a page. @type {CSSStyleSheet | null} */
let sheet = null;

export function style() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(TEXT);
  }
  return sheet;
}
