// @ts-check
// Levers: each is this very question with one change, drawn as an arrow from the old point to the new one, with its gains and its price.

import { bound } from "../answer.mjs";
import { debounce, fill, h, toast } from "../dom.mjs";
import { worked } from "../explain.mjs";
import { named, phrases, point, rich, say, t } from "../i18n.mjs";
import { segmented, table } from "../tabs.mjs";
import { failed, figure, newest } from "./common.mjs";
import { Curve, apart, roomOf } from "./curve.mjs";

/** Which working a gain of each goal opens. */
const WORKING = /** @type {Record<string, string>} */ ({ tpot: "tpot", ttft: "ttft", throughput: "sustained", per_chip: "sustained_per_chip", cost: "bill", memory: "chip_memory" });
const GOALS = ["tpot", "ttft", "throughput", "per_chip", "cost", "memory"];

/** @param {any} page */
export function view(page) {
  const { state, engine } = page, ask = newest(engine), chart = figure("levers-chart", ""), curve = new Curve(page, chart.box, "arrows"), place = h("div");
  /** @type {HTMLElement} */ let panel;
  let goal = GOALS[0], held = /** @type {any} */ (null), asked = state.form; // the last answer, and its question

  const attempt = (/** @type {any} */ row) => { state.set(row.change, { push: true }); toast(() => t("applied", { what: phrases(row.title) }), () => t("undo"), () => state.undo()); };
  const gain = (/** @type {any} */ row, /** @type {string} */ key) => h("span", { class: row.good[key] > 0 ? "better" : row.good[key] < 0 ? "worse" : "" }, worked(WORKING[key], row.gain[key], { form: { ...asked, ...row.change }, than: asked, how: "gain", basis: "expected" }));

  /** @param {any} result */
  function show(result) {
    held = result;
    const goals = [goal, ...GOALS.filter((g) => g !== goal)]; // what they are ranked by comes first: a phone shows only that
    const rows = result.rows.map((/** @type {any} */ r) => ({ ...r, className: r.arrow ? "drawn" : "" })), flips = result.flips, best = rows.find((/** @type {any} */ r) => r.arrow);
    chart.whole.hidden = !result.chart?.arrows.length;
    if (!chart.whole.hidden) draw(result.chart, best);
    fill(place,
      table({ caption: t("tab.levers"), rows, columns: [{ key: "title", label: t("levers.change") }, ...goals.flatMap((g, i) => [{ key: g, label: t(`goal.${g}`), num: true }, ...(i ? [] : [{ key: "bound", label: t("levers.then") }])])],
        cell: (row, key) => (key === "title" ? h("span", { class: "wide" }, row.arrow && h("b", { class: "arrow-number", title: t("levers.arrow") }, row.arrow), say(row.title), h("small", { class: "block" }, row.price === "none" || row.price === "none besides" ? "" : [say(row.price), " "],
          h("button", { type: "button", class: "link", "aria-label": `${t("lever.try")}: ${phrases(row.title)}`, onclick: () => attempt(row) }, t("lever.try")))) : key === "bound" ? bound(row.bound) : gain(row, key)) }),
      result.in_use.length ? [h("h3", {}, t("levers.in_use")), h("p", { class: "hint" }, t("levers.in_use.hint")), table({ caption: t("levers.in_use"), rows: result.in_use, columns: [{ key: "title", label: t("levers.change") }, ...goals.map((g) => ({ key: g, label: t(`goal.${g}`), num: true }))], cell: (row, key) => (key === "title" ? h("span", { class: "wide" }, say(row.title)) : gain(row, key)) })] : null,
      h("h3", {}, t("flips")), h("ul", { class: "flips" }, [...new Set(flips.groups.map((/** @type {any} */ f) => f.batch))].map((batch) => h("li", {}, ...rich("flips.group", { group: flips.groups.filter((/** @type {any} */ f) => f.batch === batch).map((/** @type {any} */ f) => named("group", f.group)).join(point(",")), batch: h("span", { class: "num" }, batch) }))),
        flips.kv_context ? h("li", {}, ...rich("flips.kv", { context: h("span", { class: "num" }, flips.kv_context) })) : null));
  }

  /** Arrows that end in one place have one label, "5, 6". @param {any} c */
  function together({ arrows, range: r }) {
    const near = (/** @type {any} */ a, /** @type {any} */ b) => Math.abs(Math.log(a.x1 / b.x1) / Math.log(r.x1 / r.x0)) < 0.02 && Math.abs(Math.log(a.y1 / b.y1) / Math.log(r.y1 / r.y0)) < 0.04;
    const firsts = arrows.filter((/** @type {any} */ a, /** @type {number} */ i) => !arrows.slice(0, i).some((/** @type {any} */ b) => near(a, b)));
    return firsts.map((/** @type {any} */ a) => ({ ...a, n: arrows.filter((/** @type {any} */ b) => firsts.find((/** @type {any} */ f) => near(f, b)) === a).map((/** @type {any} */ b) => b.n).join(point(",")) }));
  }

  /** @param {any} c @param {any} best */
  function draw(c, best) {
    fill(chart.finding, ...rich("levers.finding", { phase: t(`phase.${c.phase}.the`), title: h("strong", {}, say(best.title)), gain: h("span", { class: "num" }, best.gain[goal]), goal: t(`goal.${goal}`).toLowerCase() }));
    curve.draw({ range: c.range, x: t("chart.x.short"), y: t("chart.y"),
      lines: c.lines.map((/** @type {any} */ l) => ({ xs: l.xs, ys: l.ys, color: l.color, width: l.own ? 2.5 : 1.2, alpha: l.own ? 1 : 0.55, dash: l.own ? "solid" : "dashed" })),
      arrows: c.arrows.map((/** @type {any} */ a) => ({ ...a, color: "accent" })),
      points: [{ x: c.x, y: c.y, color: c.role, size: 16, marker: c.phase === "prefill" ? "square" : "circle", title: t("levers.now"), tip: phrases(c.at) }, ...c.arrows.map((/** @type {any} */ a) => ({ x: a.x1, y: a.y1, color: a.color, size: 7, title: `${a.n}. ${phrases(a.title)}`, tip: phrases(a.tip) }))],
      labels: [...apart(together(c).map((/** @type {any} */ a) => ({ x: a.x1, y: a.y1, text: a.n, color: "accent", dx: 9, along: Math.abs(Math.log(a.x1 / a.x0)) > 0.02 })), c.range, roomOf(chart.box))
        .map((/** @type {any} */ l) => ({ ...l, dy: l.dy + (l.along ? 12 : 0) })), // a number stands below the roof that its arrow lies on
        ...c.lines.filter((/** @type {any} */ l) => l.own && l.color === "compute").map((/** @type {any} */ l) => ({ x: l.xs[1], y: l.ys[1], text: l.label, color: l.color, align: "right", dx: -4, dy: -9 }))] });
  }

  async function update() {
    if (!engine.ready) return fill(place, h("p", { class: "hint" }, t("waiting")));
    const form = state.form, wanted = goal;
    panel.classList.add("busy");
    try {
      const result = await ask("levers", { form, goal, chart: true });
      if (!result || panel.hidden || form !== state.form || wanted !== goal) return;
      panel.classList.remove("busy");
      asked = form;
      show(result);
    } catch (error) {
      panel.classList.remove("busy");
      if (/** @type {any} */ (error).kind !== "input" || !place.querySelector("table")) failed(place, error); // the last good answer stays
    }
  }

  /** @param {HTMLElement} target */
  function open(target) {
    panel = target;
    goal = GOALS.includes(state.page["levers.goal"]) ? state.page["levers.goal"] : GOALS[0];
    chart.whole.hidden = true;
    fill(panel, h("div", { class: "panel-top" }, segmented(t("levers.goal"), GOALS.map((id) => ({ id, text: t(`goal.${id}`) })), goal, (id) => { state.keep("levers.goal", id === GOALS[0] ? "" : id); open(panel); /** @type {any} */ (panel.querySelector("[aria-pressed=true]"))?.focus(); }), h("p", { class: "hint" }, t("levers.hint"))), chart.whole, place);
    if (held) show(held);
    update();
  }
  return { open, update: debounce(update, 80) };
}
