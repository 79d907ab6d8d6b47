// @ts-check
// A chart of lines, points, arrows and labels: rows in, whole columns out. See roofline/charts_views.py for its sources.

import { Chart } from "../charts.mjs";
import { measured } from "../labels.mjs";

/** @typedef {{xs: number[], ys: number[], color: string, width?: number, alpha?: number, dash?: string}} Line */
/** @typedef {{x: number, y: number, color: string, title: string, tip: string, size?: number, marker?: string, alpha?: number}} Point */
/** @typedef {{x: number, y: number, text: string, color: string, align?: string, dx?: number, dy?: number}} Label */
/** @typedef {{x0: number, y0: number, x1: number, y1: number, color: string}} Arrow */

const DEFAULTS = {
  lines: { xs: [], ys: [], color: "ink", width: 2, alpha: 1, dash: "solid" },
  points: { x: 1, y: 1, size: 8, marker: "circle", color: "ink", alpha: 0.85, title: "", tip: "" },
  arrows: { x0: 1, y0: 1, x1: 1, y1: 1, color: "ink" },
  labels: { x: 1, y: 1, text: "", color: "ink", align: "left", dx: 0, dy: 0 },
};

/** @param {keyof typeof DEFAULTS} kind @param {any[]} rows */
const columns = (kind, rows) => Object.fromEntries(Object.entries(DEFAULTS[kind]).map(([name, value]) => [name, rows.map((row) => row[name] ?? value)]));

export class Curve extends Chart {
  /** @param {any} page @param {HTMLElement} box @param {string} name */
  constructor(page, box, name) {
    super(box, page.figures[name], name);
    this.page = page;
    /** @type {Promise<void> | null} */ this.soon = null;
    this.arrows = name === "arrows";
    /** @type {Record<string, number[]> | undefined} */ this.every = undefined;
  }

  /**
   * @param {{range: {x0: number, x1: number, y0: number, y1: number}, x: string, y: string, lines?: Line[], points?: Point[], labels?: Label[], arrows?: Arrow[]}} what
   */
  async draw({ range, x, y, lines = [], points = [], labels = [], arrows = [] }) {
    this.wanted = arguments[0];
    if (!this.doc) {
      if (!this.box.isConnected || !this.box.offsetParent) return; // the reader is elsewhere already; the next opening draws it
      this.soon ??= this.embed().catch(() => { this.soon = null; this.box.replaceChildren(); });
      await this.soon;
      if (!this.doc) return;
      if (!this.page.charts.includes(this)) this.page.charts.push(this);
      if (this.wanted !== arguments[0]) return;
    }
    this.range(range);
    const width = this.plot.inner_width / this.k, height = this.plot.inner_height / this.k;
    this.ticks("below", range.x0, range.x1, width);
    this.ticks("left", range.y0, range.y1);
    this.label(short(x, width), short(y, height));
    this.assign({ lines: columns("lines", lines), points: columns("points", points), labels: columns("labels", inside(labels, range, width)), ...(this.arrows && { arrows: columns("arrows", arrows) }) });
  }

  /** Label as many ticks of each decade as the range has room for. @param {string} side @param {number} low @param {number} high @param {number} [width] of the frame [px]: a label that would be cut off at its end is left out */
  ticks(side, low, high, width = 0) {
    const axis = this.model(side), every = (this.every ??= {})[side] ??= [...axis.major_label_overrides.keys()].filter((v) => typeof v === "number"), decades = Math.log10(high / low);
    const leading = decades > 3.3 ? [1] : decades > 0.8 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const cut = (/** @type {number} */ v) => width && v < high && measured(axis.major_label_overrides.get(v), 12) / 2 > 8 + width * (1 - Math.log(v / low) / Math.log(high / low));
    const ticks = every.filter((/** @type {number} */ v) => leading.includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))) && !cut(v));
    if (String(axis.ticker.ticks) !== String(ticks)) axis.ticker.ticks = ticks;
  }

  /** Call with the indices of the points that were picked with a tap or a drawn rectangle. @param {(indices: number[]) => void} work */
  onPick(work) { this.model("points").selected.properties.indices.change.connect(() => work([...this.model("points").selected.indices])); }
}

/** What an axis is of, without what follows a comma or stands in brackets where there is no room for that. @param {string} text @param {number} room [px] */
const short = (text, room) => (measured(text, 12) > room ? text.split(/[,，(（]/)[0].trim() : text);

/** Labels that would leave the frame at its right stand left of their points, or as far left as they must. @param {Label[]} labels @param {{x0: number, x1: number}} range @param {number} width [px] */
function inside(labels, { x0, x1 }, width) {
  return labels.map((label) => {
    const { x, text, align = "left", dx = 0 } = label, at = (width * Math.log(x / x0)) / Math.log(x1 / x0), wide = measured(text, 12), over = at + dx + wide - width;
    if (align !== "left" || over <= 0) return label;
    return at - dx - wide >= 0 ? { ...label, align: "right", dx: -dx } : { ...label, dx: dx - over };
  });
}

/** The height of a chart's frame [px]; before it stands, about. @param {HTMLElement} box */
export const roomOf = (box) => (box.clientHeight ? box.clientHeight / (parseFloat(getComputedStyle(box).fontSize) / 12) - 56 : 300);

/** A range around values, on a log axis, with room at the ends. @param {number[]} xs @param {number[]} ys @param {number} [left] @param {number} [right] */
export function around(xs, ys, left = 1.25, right = 1.5) {
  const low = (/** @type {number[]} */ v) => v.reduce((a, b) => Math.min(a, b), Infinity), high = (/** @type {number[]} */ v) => v.reduce((a, b) => Math.max(a, b), 0);
  return { x0: low(xs) / left, x1: high(xs) * right, y0: low(ys) / 1.5, y1: high(ys) * 1.6 };
}

/** Move labels up or down so that none stands on another, on a log axis of some height. @template {Label} T @param {T[]} labels @param {{y0: number, y1: number}} range @param {number} [height] [px] @returns {T[]} */
export function apart(labels, { y0, y1 }, height = 280) {
  const at = (/** @type {T} */ label) => (height * Math.log(label.y / y0)) / Math.log(y1 / y0);
  let floor = -Infinity;
  for (const label of [...labels].sort((a, b) => a.y - b.y)) {
    const y = Math.max(at(label), floor + 15);
    label.dy = at(label) - y;
    floor = y;
  }
  return labels;
}
