// @ts-check
// Where the chart's words stand: each label takes the first of its places that lies inside the frame and on no other label
// or point. Pure arithmetic in pixels of the frame; charts.mjs assigns what comes out.

import { t } from "./i18n.mjs";

/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

/** About how wide a text is in a sans-serif face [px]; East Asian characters are square. @param {string} text @param {number} size */
export function textWidth(text, size) {
  let width = 0;
  for (const c of text) width += /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]/.test(c) ? 1 : /[iljtfr.,:;'|!()[\] \u2009/]/.test(c) ? 0.31 : /[A-Zmw%@]/.test(c) ? 0.69 : 0.57;
  return size * width;
}

/** @type {CanvasRenderingContext2D | null} */ let pen = null;
/** How wide a text is in the font of the charts [px], where there is a canvas to ask. @param {string} text @param {number} size */
export function measured(text, size) {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return textWidth(text, size);
  pen.font = `${size > 12.5 ? "bold " : ""}${size}px system-ui, sans-serif`;
  return pen.measureText(text).width;
}

/** The words in the two fields, in the reader's language. @param {any} labels */
export const fieldWords = (labels) => ({ ...labels, text: labels.color.map((/** @type {string} */ role, /** @type {number} */ i) => (i ? `${t(`legend.${role}`)} →` : `← ${t(`legend.${role}`)}`)) });

/** Area two boxes share [px²]. @param {Box} a @param {Box} b */
const shared = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

/** @param {number} x anchor @param {number} middle @param {number} width @param {number} height @param {string} align @returns {Box} */
function boxAt(x, middle, width, height, align) {
  const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
  return { left, right: left + width, top: middle - height / 2, bottom: middle + height / 2 };
}

/**
 * Give every label of the roofline chart its place.
 * @param {any} sources columns of the chart, words translated @param {{x0: number, x1: number, y0: number, y1: number}} range
 * @param {number} width of the frame [px] @param {number} height @param {(text: string, size: number) => number} [wide] width of a text
 * @returns {any} new columns for phase_labels, roof_labels, field_labels and ridges
 */
export function placeLabels(sources, range, width, height, wide = textWidth) {
  const X = (/** @type {number} */ v) => (Math.log(v / range.x0) / Math.log(range.x1 / range.x0)) * width;
  const Y = (/** @type {number} */ v) => (1 - Math.log(v / range.y0) / Math.log(range.y1 / range.y0)) * height;
  const back = (/** @type {number} */ px) => range.x0 * (range.x1 / range.x0) ** (px / width);
  const taken = /** @type {(Box & {weight?: number})[]} */ ([]);
  const cost = (/** @type {Box[]} */ boxes) => boxes.reduce((sum, b) => {
    const area = (b.right - b.left) * (b.bottom - b.top), inside = shared(b, { left: 0, top: 0, right: width, bottom: height });
    return sum + 3 * (area - inside) + taken.reduce((s, other) => s + (other.weight ?? 1) * shared(b, other), 0);
  }, 0);
  /** The first free place, else the one that covers least; a place may ask for more room than its words take. @template {{boxes: Box[], clear?: Box}} P @param {P[]} places */
  const best = (places) => {
    let found = places[0], least = Infinity;
    for (const place of places) {
      const c = cost(place.boxes) + (place.clear ? taken.reduce((s, other) => s + 0.2 * (other.weight ?? 1) * shared(/** @type {Box} */ (place.clear), other), 0) : 0);
      if (c < least - 1e-6) [found, least] = [place, c];
      if (!c) break;
    }
    taken.push(...found.boxes.map((box) => ({ ...box, weight: 3 }))); // words over words are worse than words over a line
    return { ...found, cost: least };
  };

  const { phases, phase_labels, roof_labels, field_labels, ridges, expected, operators } = sources;
  const around = (/** @type {any} */ points, /** @type {string} */ y, /** @type {(i: number) => number} */ size, weight = 1) =>
    points?.x.forEach((/** @type {number} */ x, /** @type {number} */ i) => taken.push({ ...boxAt(X(x), Y(points[y][i]), size(i), size(i), "center"), weight }));
  around(phases, "y", () => 20);
  around(expected, "expected", () => 14);
  expected?.x.forEach((/** @type {number} */ x, /** @type {number} */ i) => taken.push({ left: X(x) - 4, right: X(x) + 4, top: Y(expected.high[i]), bottom: Y(expected.low[i]), weight: 0.5 }));
  around(operators, "y", (i) => 0.7 * operators.size[i], 0.4);
  sources.roofs?.xs.forEach((/** @type {number[]} */ [x0, x1], /** @type {number} */ i) => {
    const [y0, y1] = sources.roofs.ys[i]; // the sloping roof is in the way of labels; a flat one has its label on top
    if (y0 !== y1) for (let k = 0; k <= 50; k++) taken.push({ ...boxAt(X(x0) + ((X(x1) - X(x0)) * k) / 50, Y(y0) + ((Y(y1) - Y(y0)) * k) / 50, 6, 6, "center"), weight: 1.5 });
  });

  const slope = Math.atan2(height / Math.log(range.y1 / range.y0), width / Math.log(range.x1 / range.x0));
  const used = (/** @type {number} */ i) => (sources.roofs?.width[i] ?? 0) > 2;
  const roofs = /** @type {any[]} */ ([]);
  const placeRoof = (/** @type {number} */ i) => {
    const text = roof_labels.text[i], x = X(roof_labels.x[i]), y = Y(roof_labels.y[i]);
    if (roof_labels.color[i] === "memory") {
      // Along its line, drawn as a row of small boxes above it; further up the line where the start is taken.
      const w = wide(text, 12), across = Math.cos(slope), up = Math.sin(slope);
      return best([-1, 1].flatMap((side) => [0, 0.15, 0.3, 0.45].map((share) => {
        const start = x + share * width * 0.6, rise = (start - x) * Math.tan(slope), below = side > 0 ? 20 : 0;
        const boxes = Array.from({ length: Math.ceil(w / 14) }, (_, k) => boxAt(start + 14 * k * across + 10 * side * up, y - rise - 14 * k * up + 10 * side * across, 14, 14, "center"));
        return { text, align: "left", angle: slope, x: back(start + below * up), lift: rise - below * across, boxes };
      })));
    }
    if (roof_labels.color[i] === "network") {
      // At either end of its dashed piece, above it or below.
      const w = wide(text, 12), end = X(sources.ceilings.xs[i - sources.roofs.xs.length][1]);
      return best([["left", x, 0], ["right", Math.min(end, width - 4), 0], ["left", x, -21], ["right", Math.min(end, width - 4), -21]]
        .map(([align, at, lift]) => ({ text, align, angle: 0, x: back(Number(at)), lift: Number(lift), boxes: [boxAt(Number(at), y - 10 - Number(lift), w, 14, String(align))] })));
    }
    // "BF16, FP16 990 TFLOP/s" where there is room, else "BF16 990 TFLOP/s", else "BF16".
    const short = text.replace(/^([^,]+),.*\s([\d.,]+\s\S+)$/u, "$1 $2");
    const places = (used(i) && y > 18 ? [0] : [0, 20]).flatMap((below) => [...new Set([text, short, short.split(" ")[0]])].flatMap((words) => {
      const w = wide(words, 12), away = below ? 4 : 16; // above its line a label keeps clear of the next word on it
      return [["left", x], ["right", width - 4], ...[0.25, 0.5, 0.75].map((part) => ["left", x + part * (width - x)]), ["left", Math.max(4, x - w / 2)]]
        .map(([align, at]) => ({ text: words, align, angle: 0, x: back(Number(at)), lift: -below, boxes: [boxAt(Number(at), y - 10 + below, w, 14, String(align))], clear: boxAt(Number(at), y - 10 + below, w + away, 14, String(align)) }));
    }));
    return best(places);
  };
  // The roofs in use have the first choice, then the phases, then the other roofs.
  const ids = [...roof_labels.text.keys()];
  for (const i of ids.filter(used)) roofs[i] = placeRoof(i);
  sources.roofs?.xs.forEach((/** @type {number[]} */ [x0, x1], /** @type {number} */ i) => { // no phase is struck through
    const [y0, y1] = sources.roofs.ys[i];
    if (y0 === y1) taken.push({ left: X(x0), right: X(x1), top: Y(y0) - 2, bottom: Y(y0) + 2, weight: 0.8 });
  });
  const phase = phase_labels.text.map((/** @type {string} */ text, /** @type {number} */ i) => {
    const x = X(phase_labels.x[i]), y = Y(phase_labels.y[i]), w = wide(text, 13);
    const first = phase_labels.align[i] === "right" ? [["right", -14], ["left", 14]] : [["left", 14], ["right", -14]];
    const places = [...first.flatMap(([align, dx]) => [16, -15, 0].map((dy) => ({ align, dx, dy }))), { align: "center", dx: 0, dy: 26 }, { align: "center", dx: 0, dy: -25 }];
    return best(places.map((p) => ({ ...p, boxes: [boxAt(x + Number(p.dx), y + p.dy, w, 16, String(p.align))] })));
  });

  for (const i of ids.filter((each) => !used(each))) roofs[i] = placeRoof(i);

  const field = field_labels.text.map((/** @type {string} */ text, /** @type {number} */ i) => {
    const w = wide(text, 12), found = best([{ boxes: [boxAt(X(field_labels.x[i]) + field_labels.dx[i], height - 12, w, 14, field_labels.align[i])] }]);
    return found.cost > 0.03 * w * 14 ? "" : text;
  });
  // "ridge 412 FLOP/byte" where there is room, else "ridge 412", else nothing: the sentence below says it too.
  const label = ridges.label.map((/** @type {string} */ text, /** @type {number} */ i) => [text, text.replace(/\s*FLOP\S*$/u, ""), ""].find((words) => X(ridges.x[i]) + 6 + wide(words, 12) <= width + 4));
  return {
    phase_labels: { ...phase_labels, align: phase.map((/** @type {any} */ p) => p.align), dx: phase.map((/** @type {any} */ p) => p.dx), dy: phase.map((/** @type {any} */ p) => p.dy) },
    roof_labels: {
      ...roof_labels, x: roofs.map((/** @type {any} */ r) => r.x), align: roofs.map((/** @type {any} */ r) => r.align), angle: roofs.map((/** @type {any} */ r) => r.angle),
      y: roofs.map((/** @type {any} */ r, /** @type {number} */ i) => roof_labels.y[i] * (range.y1 / range.y0) ** (r.lift / height)),
      text: roofs.map((/** @type {any} */ r, /** @type {number} */ i) => (r.cost > 0.05 * wide(r.text, 12) * 14 && !used(i) ? "" : r.text)),
    },
    field_labels: { ...field_labels, text: field },
    ridges: { ...ridges, label },
  };
}
