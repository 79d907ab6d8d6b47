// @ts-check
// What a search found: the answer in a sentence, the fronts with what is picked in them, the table of the best, and why not the others.

import { bound } from "../answer.mjs";
import { fill, h } from "../dom.mjs";
import { worked } from "../explain.mjs";
import { phrases, rich, say, t } from "../i18n.mjs";
import { table } from "../tabs.mjs";
import { facts, figure, save } from "./common.mjs";
import { Curve, around } from "./curve.mjs";

const COLUMNS = ["cost", "user", "tpot", "ttft_alone", "throughput", "per_hour", "energy", "memory"];
/** Which working each figure opens. */
const WORKING = /** @type {Record<string, string>} */ ({ cost: "all_in", user: "user", tpot: "tpot", ttft_alone: "ttft_alone", throughput: "served", per_hour: "all_hour", energy: "energy.all_in", memory: "memory_share" });
/** What an objective says already. */
const SAID = /** @type {Record<string, string>} */ ({ cost: "cost", throughput: "throughput", latency: "tpot", "ttft-alone": "ttft_alone", energy: "energy" });

/**
 * @param {any} page
 * @param {{open: (at: number[]) => void, csv: () => Promise<string>, choose: (cell: number) => void, form: (at: number[]) => Promise<Record<string, string>>}} acts form: of a configuration
 */
export function found(page, { open, csv, choose, form }) {
  const chart = figure("explore-front", ""), curve = new Curve(page, chart.box, "front");
  const place = h("div", { class: "found" }), rows = h("div"), why = h("div"), one = h("div", { class: "picked", "aria-live": "polite" });
  /** @type {any} */ let answer = null;
  /** @type {any[]} */ let marks = [];
  /** @type {number[]} points picked in the chart */ let picked = [];
  let order = "over", up = true, wanted = "", listens = false, brushing = false;

  const brush = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => { brushing = !brushing; brush.setAttribute("aria-pressed", String(brushing)); if (curve.doc) curve.model("brush").active = brushing; } });
  const num = (/** @type {any} */ v) => h("span", { class: "num" }, String(v));
  /** A configuration's name, which opens it in the calculator. @param {string} title @param {number[]} at */
  const opener = (title, at) => h("button", { type: "button", class: "link wide", title: t("explore.open"), "aria-label": `${t("explore.open")}: ${phrases(title)}`, onclick: () => open(at) }, phrases(title));
  /** A figure of a configuration opens its working there. @param {string} key @param {string} text @param {number[]} at */
  const figureOf = (key, text, at) => {
    const { basis, question, rows: [best] } = answer;
    return worked(key === "over" || key === "goal" ? WORKING[SAID[question.objective]] : WORKING[key], text, async () => ({ form: await form(at), basis, ...(key === "over" ? { than: await form(best.at), how: "ratio" } : {}) }));
  };
  /** The figure that the search went for. @param {any} row */
  const goalOf = (row) => figureOf("goal", row.text.goal, row.at);
  const headed = (/** @type {string} */ text) => h("span", { class: "sr" }, text);

  /** @param {any} now */
  function show(now) {
    if (answer !== now) picked = [];
    answer = now;
    const none = !answer.rows.length;
    fill(place, cells(), none ? nothing() : winner(), h("p", { class: "hint" }, ...rich("explore.counts", Object.fromEntries(Object.entries(answer.counts).map(([k, v]) => [k, num(v)])))));
    chart.whole.hidden = brush.hidden = none;
    if (!none) draw();
    showRows();
    fill(why, answer.why_not.length ? h("details", { class: "fold", open: none }, h("summary", {}, t("explore.why", { n: answer.why_not.length })), whyTable()) : null,
      answer.refused.length ? h("details", { class: "fold" }, h("summary", {}, t("explore.refused")), table({ caption: t("explore.refused"), rows: answer.refused, columns: [{ key: "why", label: t("explore.reason") }, { key: "n", label: t("explore.configurations"), num: true }], cell: (row, k) => (k === "why" ? say(row.why) : row[k]) })) : null);
  }

  /** Each model and load has an answer of its own. */
  function cells() {
    if (answer.cells.length < 2) return null;
    const name = (/** @type {any} */ c) => t(c.cached === "0" ? "explore.cell" : "explore.cell.cached", { ...c, model: page.question.nameOf("models", c.model) });
    return h("div", { class: "field" }, h("label", { for: "explore-cell" }, t("explore.cells", { n: answer.cells.length })), h("select", { id: "explore-cell", onchange: (/** @type {any} */ e) => choose(Number(e.target.value)) }, answer.cells.map((/** @type {any} */ c, /** @type {number} */ i) => h("option", { value: i, selected: i === answer.cell }, name(c)))));
  }

  /** Nothing meets the limits: what comes nearest. */
  function nothing() {
    const near = answer.why_not[0];
    return [h("p", { class: "lead" }, h("strong", {}, t("explore.nothing"))), near ? h("p", {}, ...rich("explore.near", { name: h("strong", {}, near.name), why: say(near.why) })) : null];
  }

  /** The best configuration, its figures and the one after it. */
  function winner() {
    const [best, next] = answer.rows, text = best.text, keys = ["user", "tpot", "ttft_alone", "throughput", "cost", "per_hour", "energy"].filter((k) => k !== SAID[answer.question.objective] && text[k] !== "–");
    return [h("p", { class: "lead" }, ...rich(`explore.best.${answer.question.objective}`, { title: h("strong", {}, phrases(text.title)), goal: h("strong", { class: "num" }, goalOf(best)) })),
      facts([...keys.map((k) => /** @type {[any, any]} */ ([t(`explore.column.${k}`), figureOf(k, text[k], best.at)])), [t("op.bound"), bound(best.bound)]]),
      h("p", { class: "next" }, h("button", { type: "button", class: "solid", onclick: () => open(best.at) }, t("explore.open")), next ? h("span", {}, ...rich("explore.next", { title: phrases(next.text.title), goal: h("span", { class: "num" }, goalOf(next)), over: figureOf("over", next.text.over, next.at) })) : null)];
  }

  function draw() {
    const { points, lines, front, question, rows: all } = answer, chosen = new Set(picked), colors = Object.fromEntries(lines.map((/** @type {any} */ l) => [l.name, l.color]));
    // After the points of the fronts come the best of each drawn chip, which need not lie on its front.
    marks = [...points, ...all.slice(0, lines.length).map((/** @type {any} */ r) => ({ ...r.text, x: r.x, y: r.y, at: r.at, color: colors[r.name], best: true })).reverse()];
    const range = around(marks.map((p) => p.x), marks.map((p) => p.y), 1.4, 1.4), limit = question.limits.tpot ? 1 / question.limits.tpot : question.limits.user, least = limit > range.x0 ? limit : null;
    const legend = lines.slice(0, 7).map((/** @type {any} */ l) => h("span", {}, h("span", { class: l.color, "aria-hidden": "true" }, "━"), ` ${l.name}`));
    fill(chart.finding, ...rich("explore.finding", { what: t(`explore.objective.${question.objective}`).toLowerCase() }), h("span", { class: "legend" }, legend, lines.length > 7 ? h("span", {}, h("span", { class: "grey", "aria-hidden": "true" }, "━"), ` ${t("explore.others")}`) : null));
    curve.draw({ range, x: t("explore.x"), y: t("explore.y"),
      lines: [{ xs: front.x, ys: front.y, color: "ink", width: 9, alpha: 0.12 }, ...[...lines].reverse().map((/** @type {any} */ l) => ({ xs: l.x, ys: l.y, color: l.color, width: l.color === "plain" ? 1 : 2 })), ...(least ? [{ xs: [least, least], ys: [range.y0, range.y1], color: "muted", dash: "dashed", width: 1.5 }] : [])],
      points: marks.map((p, i) => ({ x: p.x, y: p.y, color: p.color, marker: p.best ? "diamond" : "circle", size: chosen.has(i) ? 15 : p.best ? (p.color === "plain" ? 9 : 14) : p.color === "plain" ? 4 : 6, title: phrases(p.title), tip: t("explore.tip", p) })),
      labels: [...(least ? [{ x: least, y: range.y0 * 1.12, text: t("explore.slowest"), color: "muted", dx: 6 }] : []), { x: all[0].x, y: all[0].y, text: t("explore.here"), color: colors[all[0].name], dx: 10, dy: -8 }] })
      .then(() => {
        if (listens || !curve.doc) return;
        listens = true;
        curve.onPick((at) => { picked = at; draw(); showRows(); });
      });
  }

  function unpick() {
    curve.model("points").selected.indices = [];
    picked = [];
    draw();
    showRows();
  }

  function showRows() {
    const some = picked.map((i) => marks[i]).filter(Boolean), many = some.length > 1;
    fill(one, many ? h("p", { class: "hint" }, t("explore.brushed", { n: some.length }), " ", h("button", { type: "button", class: "link", onclick: unpick }, t("explore.unbrush")))
      : some.length ? h("p", {}, opener(some[0].title, some[0].at), " ", t("explore.tip", some[0])) : answer.points.length ? h("p", { class: "hint" }, t("explore.pick")) : null);
    if (!answer.rows.length) return fill(rows);
    if (many) return fill(rows, table({ caption: t("explore.brushed", { n: some.length }), rows: some, columns: [{ key: "title", label: t("explore.title") }, { key: "user", label: t("explore.column.user"), num: true }, { key: "throughput", label: t("explore.column.throughput"), num: true }], cell: (row, k) => (k === "title" ? opener(row.title, row.at) : figureOf(k, row[k], row.at)) }));
    if (!rows.querySelector("#explore-filter")) fill(rows, h("h3", {}, t("explore.best")), h("div", { class: "row end" }, h("div", { class: "field" }, h("label", { for: "explore-filter" }, t("explore.filter")), h("input", { id: "explore-filter", type: "text", value: wanted, oninput: (/** @type {any} */ e) => { wanted = e.target.value; showBest(); } })), h("button", { type: "button", class: "chip", id: "explore-csv", onclick: async () => save("roofline-explore.csv", await csv(), "text/csv") }, t("explore.csv"))), h("div", { class: "best" }));
    showBest();
  }

  function showBest() {
    const match = (/** @type {any} */ r) => !wanted || `${r.text.title} ${r.vendor} ${r.name}`.toLowerCase().includes(wanted.toLowerCase());
    const compare = (/** @type {any} */ a, /** @type {any} */ b) => (a === null ? 1 : b === null ? -1 : (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1)); // what is unknown stands last
    const shown = answer.rows.filter(match).sort((/** @type {any} */ a, /** @type {any} */ b) => compare(a.sort[order], b.sort[order]));
    const keys = ["title", ...COLUMNS, "over"];
    fill(/** @type {Element} */ (rows.querySelector(".best")), table({ caption: t("explore.best"), rows: shown, sorted: { by: keys.indexOf(order), up }, onsort: (by) => { up = keys[by] === order ? !up : !["user", "throughput"].includes(keys[by]); order = keys[by]; showBest(); },
      columns: keys.flatMap((k, i) => [{ key: k, label: t(`explore.column.${k}`), num: k !== "title", sort: i }, ...(i ? [] : [{ key: "bound", label: t("op.bound"), num: false, sort: undefined }])]),
      cell: (row, k) => (k === "bound" ? bound(row.bound) : k === "title" ? opener(row.text.title, row.at) : figureOf(k, row.text[k], row.at)) }));
  }

  /** Why chips are absent, with a field to find one. */
  function whyTable() {
    const all = answer.why_not, holder = h("div"), input = h("input", { id: "explore-why", type: "text", oninput: () => redraw() });
    const redraw = () => fill(holder, table({ caption: t("explore.why", { n: all.length }), rows: all.filter((/** @type {any} */ r) => `${r.name} ${r.hardware}`.toLowerCase().includes(input.value.toLowerCase())),
      columns: [{ key: "name", label: t("measured.chip") }, { key: "why", label: t("explore.reason") }, { key: "open", label: headed(t("explore.nearest")) }],
      cell: (row, k) => (k === "why" ? h("span", { class: "wide" }, say(row.why)) : k === "open" ? row.at && h("button", { type: "button", class: "link", "aria-label": `${t("explore.nearest")}: ${row.name}`, onclick: () => open(row.at) }, t("explore.nearest")) : row[k]) }));
    redraw();
    return h("div", {}, h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "explore-why" }, t("explore.which")), input)), holder);
  }

  /** The parts of the panel. */
  function build() {
    fill(brush, t("explore.brush"));
    chart.whole.hidden = brush.hidden = !answer?.rows.length;
    fill(rows);
    return [place, chart.whole, h("div", { class: "row under" }, brush, one), rows, why];
  }
  return { build, show, get answer() { return answer; } };
}
