// @ts-check
// The still chart of the HTML: its labels are put where there is room, in the reader's language, until Bokeh's chart stands.

import { phrases, t } from "./i18n.mjs";
import { fieldWords, measured, placeLabels } from "./labels.mjs";

/** @param {HTMLElement} box @param {any} chart the answer that is drawn in the HTML */
export function keepStill(box, chart) {
  const frame = /** @type {HTMLElement | null} */ (box.querySelector(".still"));
  if (!frame) return;
  const watcher = new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (box.classList.contains("live")) watcher.disconnect();
    else if (width && height) arrange(frame, chart, width, height);
  });
  watcher.observe(frame);
  new MutationObserver(() => arrange(frame, chart, frame.clientWidth, frame.clientHeight)).observe(document.documentElement, { attributeFilter: ["lang"] });
}

/** @param {HTMLElement} frame @param {any} chart @param {number} width @param {number} height */
function arrange(frame, chart, width, height) {
  if (!width || !height) return;
  const { range, ...sources } = chart, k = parseFloat(getComputedStyle(frame).fontSize) / 12;
  const X = (/** @type {number} */ v) => (100 * Math.log(v / range.x0)) / Math.log(range.x1 / range.x0);
  const Y = (/** @type {number} */ v) => 100 - (100 * Math.log(v / range.y0)) / Math.log(range.y1 / range.y0);
  const placed = placeLabels({ ...sources, phase_labels: { ...sources.phase_labels, text: sources.phase_labels.text.map((/** @type {string} */ n) => t(`phase.${n}`)) }, field_labels: fieldWords(sources.field_labels), ridges: { ...sources.ridges, label: sources.ridges.label.map(phrases) } }, range, width / k, height / k, measured);
  const put = (/** @type {string} */ name, /** @type {string} */ text, /** @type {Record<string, any>} */ attributes = {}) => {
    const element = frame.querySelector(`[data-still=${name}]`);
    if (!element) return;
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  };
  const anchor = /** @type {Record<string, string>} */ ({ left: "start", center: "middle", right: "end" });
  const { roof_labels: roofs, phase_labels: phases, ridges, field_labels: fields } = placed;
  roofs.text.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
    const x = `${X(roofs.x[i])}%`, y = `${Y(roofs.y[i])}%`;
    put(`roof${i}`, text, { x, y, "text-anchor": anchor[roofs.align[i]], ...(roofs.angle[i] && { style: `transform-box:view-box;transform-origin:${x} ${y};rotate:${-roofs.angle[i]}rad` }) });
  });
  phases.text.forEach((/** @type {string} */ text, /** @type {number} */ i) => put(`phase${i}`, text, { dx: `${phases.dx[i] / 13}em`, dy: `${(phases.dy[i] + 5) / 13}em`, "text-anchor": anchor[phases.align[i]] }));
  ridges.label.forEach((/** @type {string} */ text, /** @type {number} */ i) => put(`ridge${i}`, text));
  fields.text.forEach((/** @type {string} */ text, /** @type {number} */ i) => put(`field${i}`, text));
  put("x", t(width < 480 * k ? "chart.x.short" : "chart.x"));
  put("y", t("chart.y"));
}
