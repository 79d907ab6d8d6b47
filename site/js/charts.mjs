// @ts-check
// The only file that knows Bokeh. Figures come from Python as JSON and are embedded once; afterwards whole columns are assigned.
// Python's colour columns hold roles ("memory"); here they become colours of the theme.

import { reducedMotion } from "./dom.mjs";
import { fieldWords, measured, placeLabels } from "./labels.mjs";
import { language, phrases, point, t } from "./i18n.mjs";

const COLOURS = ["color", "paper"], LENGTHS_PX = ["size", "dx", "dy"];
const SIZED = /^((major_label_|axis_label_)?text_font_size|size|[xy]_offset|min_border_\w+)$/; // in pixels of a figure with texts of 12 px
/** @param {any} value @param {number} k @returns {any} */
const scaled = (value, k) => (typeof value === "number" ? value * k : /^[\d.]+px$/.test(value) ? `${parseFloat(value) * k}px` : value?.value ? { value: scaled(value.value, k) } : value);
/** @type {Record<string, string>} */ let palette = {};

/** Read the theme's colours out of the style sheet. */
export function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = {};
  for (const role of ["memory", "compute", "network", "host", "misfit", "plain", "ink", "muted", "rule", "paper", "accent", "good", "hue1", "hue2", "hue3", "hue4", "hue5", "hue6", "hue7"]) palette[role] = style.getPropertyValue(`--${role}`).trim();
}

/** @param {Record<string, any[]>} columns @param {number} k */
function painted(columns, k) {
  const result = { ...columns };
  for (const name of COLOURS) if (result[name]) result[name] = result[name].map((role) => palette[role] ?? role);
  if (k !== 1) for (const name of LENGTHS_PX) if (result[name]) result[name] = result[name].map((px) => px * k);
  return result;
}

/** @type {Promise<any> | null} */ let library = null;
/** Bokeh, brought in when the first chart is wanted; a failed download is tried again by the next. @param {string} url @returns {Promise<any>} */
export function bokeh(url) {
  library ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: url, async: true });
    script.onload = () => resolve(/** @type {any} */ (globalThis).Bokeh);
    script.onerror = () => { library = null; script.remove(); reject(new Error(`${url} did not load`)); };
    document.head.append(script);
  });
  return library;
}

/** Take Bokeh's elements out of the tab order, through their shadow roots. @param {Element} element */
function noStops(element) {
  if (element.hasAttribute("tabindex")) /** @type {HTMLElement} */ (element).tabIndex = -1;
  for (const child of [...element.children, ...(element.shadowRoot?.children ?? [])]) noStops(child);
}

export class Chart {
  /** @param {HTMLElement} box @param {any} item a json_item, or a function that fetches it @param {string} name prefix of its named models */
  constructor(box, item, name) {
    this.box = box;
    this.item = item;
    this.name = name;
    /** @type {Record<string, any>} columns with roles, as last shown */ this.shown = {};
    /** @type {any} */ this.doc = null;
    this.frame = 0;
    this.k = 1;
  }

  /** Embed (once). Resolves when the figure stands in its box. */
  async embed() {
    const [Bokeh, item] = await Promise.all([bokeh(document.documentElement.dataset.bokeh ?? ""), typeof this.item === "function" ? this.item() : this.item]);
    const holder = document.createElement("div");
    holder.className = "bokeh";
    this.box.append(holder);
    const views = await Bokeh.embed.embed_item({ ...item, target_id: null }, holder);
    this.view = [...views][0];
    this.doc = this.view.model.document;
    this.plot = this.model("plot");
    this.fit();
    this.restyle();
    this.onResize(() => this.fit());
    noStops(this.view.el); // a picture (role "img") is no stop of the Tab key; its table is
    this.box.classList.add("live");
  }

  /** @param {string} name */
  model(name) { return this.doc.get_model_by_name(`${this.name}.${name}`); }

  /** Texts and points grow with the text of the page. */
  fit() {
    const k = parseFloat(getComputedStyle(this.box).fontSize) / 12;
    if (!k || k === this.k) return;
    this.k = k;
    this.made ??= [...this.plot.references()].flatMap((model) => Object.keys(model.properties).filter((name) => SIZED.test(name)).map((name) => [model, name, model[name]]));
    for (const [model, name, value] of this.made) model[name] = scaled(value, k);
    this.restyle();
  }

  /** Put the theme's colours on axes, grids and all that was shown. */
  restyle() {
    if (!this.doc) return;
    for (const side of ["below", "left"]) {
      this.model(side).setv({ axis_line_color: palette.rule, major_tick_line_color: palette.rule, major_label_text_color: palette.muted, axis_label_text_color: palette.muted });
      this.model(`grid_${side}`).setv({ grid_line_color: palette.rule });
    }
    for (const [name, columns] of Object.entries(this.shown)) this.model(name).data = painted(columns, this.k);
  }

  /** @param {string} below @param {string} left */
  label(below, left) {
    this.model("below").axis_label = below;
    this.model("left").axis_label = left;
  }

  /** Assign columns of several sources, skipping those that did not change. @param {Record<string, any>} sources */
  assign(sources) {
    for (const [name, columns] of Object.entries(sources)) {
      if (JSON.stringify(columns) === JSON.stringify(this.shown[name])) continue;
      this.shown[name] = columns;
      this.model(name).data = painted(columns, this.k);
    }
  }

  /** @param {{x0: number, x1: number, y0: number, y1: number}} range */
  range({ x0, x1, y0, y1 }) {
    const x = this.model("x_range"), y = this.model("y_range");
    if (x.start !== x0 || x.end !== x1) x.setv({ start: x0, end: x1, reset_start: x0, reset_end: x1 });
    if (y.start !== y0 || y.end !== y1) y.setv({ start: y0, end: y1, reset_start: y0, reset_end: y1 });
  }

  /** Call back when the frame's size changes. @param {() => void} work */
  onResize(work) { this.plot.properties.inner_width.change.connect(work); this.plot.properties.inner_height.change.connect(work); }
}

/** A point's name in its hover: "decode: gate_proj", "decode, at most". @param {string} title */
const worded = (title) => {
  const [, phase, mark, what] = /^(\w+)(: |, )(.+)$/.exec(title) ?? [];
  return mark && language !== "en" ? `${t(`phase.${phase}`)}${point(/** @type {any} */ (mark.trim()))}${mark === ", " ? t(what === "expected" ? "row.expected" : "at_most") : phrases(what)}` : title;
};
const MOVING = ["phases", "phase_labels", "operators", "expected"];
/** The most points of a trail. */
const TRAIL = 200;
const LENGTHS = new Set(["x", "y", "expected", "low", "high"]);

/** The roofline chart: moves its points smoothly from one answer to the next. */
export class RooflineChart extends Chart {
  /** @param {HTMLElement} box @param {any} item */
  constructor(box, item) {
    super(box, item, "roofline");
    this.last = 0;
    /** @type {any} the answer on show, words translated */ this.sources = null;
    /** @type {Map<string, {xs: number[], ys: number[], color: string}>} where each point has been */ this.path = new Map();
  }

  async embed() {
    await super.embed();
    this.onResize(() => { this.words(); if (this.sources) this.assign(this.placed()); });
  }

  words() { this.label(t(this.box.clientWidth < 560 * this.k ? "chart.x.short" : "chart.x"), t("chart.y")); }

  /** The labels, where there is room for them in the frame as it is now. */
  placed() { return placeLabels(this.sources, this.span, this.plot.inner_width / this.k, this.plot.inner_height / this.k, measured); }

  /** Where the points have been, as the columns of their lines. @param {any} phases @param {boolean} on whether the line goes on */
  trail(phases, on) {
    if (!on) this.path.clear();
    phases.title.forEach((/** @type {string} */ name, /** @type {number} */ i) => {
      const line = this.path.get(name) ?? { xs: [], ys: [], color: "" }, x = phases.x[i], y = phases.y[i];
      line.color = phases.color[i];
      if (x !== line.xs.at(-1) || y !== line.ys.at(-1)) { line.xs.push(x); line.ys.push(y); }
      if (line.xs.length > TRAIL) { line.xs.shift(); line.ys.shift(); }
      this.path.set(name, line);
    });
    const lines = [...this.path.values()].filter((line) => line.xs.length > 1);
    return { xs: lines.map((line) => [...line.xs]), ys: lines.map((line) => [...line.ys]), color: lines.map((line) => line.color) };
  }

  /** Show an answer's columns. @param {any} chart @param {boolean} [on] only the load has changed: the points' trail goes on */
  show(chart, on = false) {
    const { range, ...sources } = chart;
    sources.trail = this.trail(sources.phases, on);
    sources.phase_labels = { ...sources.phase_labels, text: sources.phase_labels.text.map((/** @type {string} */ n) => t(`phase.${n}`)) };
    for (const name of ["phases", "expected", "operators"]) if (sources[name]) sources[name] = { ...sources[name], title: sources[name].title.map(worded), tip: sources[name].tip.map(phrases) };
    sources.field_labels = fieldWords(sources.field_labels);
    sources.ridges = { ...sources.ridges, label: sources.ridges.label.map(phrases) };
    sources.roof_labels = { ...sources.roof_labels, text: sources.roof_labels.text.map((/** @type {string} */ n) => (n.includes("unified") ? phrases(n) : n)) };
    this.sources = { ...sources };
    this.span = range;
    Object.assign(sources, this.placed());
    cancelAnimationFrame(this.frame);
    const before = this.shown, now = performance.now(), quick = now - this.last < 250;
    this.last = now;
    this.range(range);
    const still = Object.fromEntries(Object.entries(sources).filter(([name]) => !MOVING.includes(name)));
    this.assign(still);
    const moving = Object.fromEntries(MOVING.map((name) => [name, sources[name]]));
    const movable = MOVING.every((n) => before[n]?.x?.length === moving[n].x.length) && before.phases?.x.length;
    if (quick || !movable || reducedMotion()) return this.assign(moving);
    const from = Object.fromEntries(MOVING.map((n) => [n, before[n]]));
    const step = (/** @type {number} */ at) => {
      const part = Math.min(1, Math.max(0.15, (at - now) / 160)), eased = 1 - (1 - part) ** 3;
      this.assign(part === 1 ? moving : Object.fromEntries(MOVING.map((n) => [n, between(from[n], moving[n], eased)])));
      if (part < 1) this.frame = requestAnimationFrame(step);
    };
    step(now + 24);
  }
}

/** Columns part of the way from one to another, along log axes. @param {any} from @param {any} to @param {number} part */
function between(from, to, part) {
  const result = { ...to };
  for (const name of Object.keys(to)) {
    if (LENGTHS.has(name)) result[name] = to[name].map((/** @type {number} */ v, /** @type {number} */ i) => Math.exp(Math.log(from[name][i]) * (1 - part) + Math.log(v) * part));
    else if (name === "size") result[name] = to[name].map((/** @type {number} */ v, /** @type {number} */ i) => from[name][i] * (1 - part) + v * part);
  }
  return result;
}
