// @ts-check
// The answer beside the sentence: key figures, warnings, the chart's finding, its legend and the table behind it.

import { $, h, fill, mark, number } from "./dom.mjs";
import { named, point, rich, say, t } from "./i18n.mjs";

/** @param {any} view @param {(key: string) => void} explain open the working of a figure */
export function showFigures(view, explain) {
  fill($("figures"), view.figures.map((/** @type {any} */ f) => {
    const label = t(`figure.${f.key}`), unit = ["user", "total"].includes(f.key) && f.value !== "–" ? h("span", { class: "unit" }, ` ${t("unit.rate")}`) : null;
    const value = h("button", { type: "button", class: "figure num", dataset: { figure: f.key }, title: t("figure.open"), onclick: () => explain(f.key) }, f.value, unit);
    // A line does not end between a number and its unit.
    const line = (/** @type {string} */ key, /** @type {any} */ values) => h("small", {}, t(key, values).replaceAll("\u2009", "\u202f"));
    const more = f.expected ? [line("figure.expected", f.expected), line("figure.range", f.expected)]
      : f.key === "memory" ? h("small", {}, f.of ? t("figure.memory.of", { of: f.of }) : t("figure.memory.unknown"))
        : h("small", {}, f.value === "–" ? [] : rich(`figure.${f.key}.note`));
    const bar = f.share !== undefined && f.share !== null ? h("span", { class: `meter ${f.role}`, "aria-hidden": "true" }, h("i", { style: { width: `${Math.min(100, 100 * f.share)}%` } })) : null;
    const alone = f.alone ? line(`figure.alone.${f.alone.basis}`, f.alone) : null;
    return h("div", { class: "cell" }, h("dt", { title: t(`figure.${f.key}.gloss`) }, label), h("dd", {}, value, bar, more, alone));
  }));
}

/** What limits or refuses this answer stands under the chart, so that neither chart nor form moves when it comes or goes. @param {{code: string, text: string}[]} warnings */
export const showNotices = (warnings) => list("notices", warnings.map((w) => ({ text: w.text, serious: w.code === "memory" || w.code === "precision" })));

/** What the page has to say of the question itself stands above: a link that could not be read, a value that does not count. @param {any[]} notices a text, or what makes it in the language of now @param {any} [why] */
export const showSaid = (notices, why = null) => list("said", [...notices.map((text) => ({ text, serious: false })), ...(why === null ? [] : [{ text: why, serious: true }])]);

/** @param {string} id @param {{text: any, serious: boolean}[]} rows */
const list = (id, rows) => fill($(id), rows.length ? h("ul", {}, rows.map((r) => h("li", { class: r.serious ? "serious" : "" }, r.serious ? [mark("misfit"), " "] : null, h("span", {}, say(typeof r.text === "function" ? r.text() : r.text))))) : null);

/** What the chart shows, as a sentence, and its legend. @param {any} view */
export function showFinding(view) {
  const { ridge, roof, phases } = view.finding;
  const open = t("figure.open");
  fill($("finding"), ...rich("finding", { ridge: number("ridge", ridge, open), roof }), point(""), ...phases.flatMap((/** @type {any} */ p) => [
    ...rich(`finding.${p.role}`, { phase: t(`phase.${p.name}.the`), x: number(`intensity.${p.name}`, p.x, open), y: number(`rate.${p.name}`, p.y, open) }), point("")]));
  const roles = [...new Set(["memory", "compute", ...phases.map((/** @type {any} */ p) => p.role)])];
  // In the chart a shape is a phase; what a phase waits for is a colour, so the key to it is a piece of roof.
  fill($("legend"), phases.map((/** @type {any} */ p) => h("span", { class: "shape" }, p.name === "decode" ? "● " : "■ ", t(`phase.${p.name}`))), view.points.some((/** @type {any} */ p) => p.expected !== "–") ? h("span", { class: "shape" }, "○ □ ", t("legend.expected")) : null,
    roles.map((role) => h("span", {}, h("i", { class: `key ${role}`, "aria-hidden": "true" }), t(`legend.${role}`))), h("span", { class: "wordy" }, t("legend.size")));
}

/** The table behind the chart. @param {any} view */
export function showChartTable(view) {
  const rows = [["bound", (/** @type {any} */ p) => bound(p.bound)], ["limit", "limit"], ["expected", "expected"], ["flops", "flops"], ["bytes", "bytes"], ["intensity", "intensity"], ["reached", "reached"], ["compute", "compute"], ["bandwidth", "bandwidth"]];
  const shown = rows.filter(([key]) => key !== "expected" || view.points.some((/** @type {any} */ p) => p.expected !== "–"));
  fill($("chart-table"), h("table", {}, h("caption", { class: "sr" }, t("chart.table")),
    h("thead", {}, h("tr", {}, h("td", {}), view.points.map((/** @type {any} */ p) => h("th", { scope: "col", class: "num" }, t(`phase.${p.phase}`))))),
    h("tbody", {}, shown.map(([key, value]) => h("tr", {}, h("th", { scope: "row" }, t(`row.${key}`)), view.points.map((/** @type {any} */ p) => h("td", { class: "num" }, typeof value === "function" ? value(p) : p[/** @type {string} */ (value)])))))));
}

/** A bound as a word with its shape; short in tables whose heading says the rest. @param {string} role @param {boolean} [short] */
export function bound(role, short = true) {
  return h("span", { class: `bound ${role}` }, mark(role), " ", named(short ? "bound.short" : "bound", role));
}
