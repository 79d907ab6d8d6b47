// @ts-check
// Explore: which chips, how many, in which format and batch meet what is asked at the best price. NumPy comes when it is first opened;
// the space is tried block by block, so that there is progress, a way to stop, and room for the calculator in between.

import { bound } from "../answer.mjs";
import { debounce, fill, h } from "../dom.mjs";
import { named, phrases, rich, say, t } from "../i18n.mjs";
import { segmented, table } from "../tabs.mjs";
import { capability } from "./capability.mjs";
import { figure, newest, partOf, save } from "./common.mjs";
import { Curve, around } from "./curve.mjs";
import { form } from "./explore_form.mjs";
import { fleet } from "./fleet.mjs";

const PARTS = ["search", "tornado", "fleet", "capability"];
const COLUMNS = ["user", "throughput", "tpot", "ttft_alone", "cost", "per_hour", "energy", "memory"];

/** @param {any} page */
export function view(page) {
  const { state, engine } = page;
  const asks = form(page, () => search()), sizing = fleet(page, asks), able = capability({ ...page, redraw: () => open(panel) }), step = newest(engine), swing = newest(engine);
  const chart = figure("explore-front", ""), progress = h("progress", { max: "1", value: 0, "aria-label": t("explore.progress") }), said = h("span", { class: "hint", role: "status" });
  const bar = h("div", { class: "trying", hidden: true }, progress, said, h("button", { type: "button", class: "quiet", onclick: () => stop() }, t("explore.stop")));
  const problem = h("p", { class: "error", role: "alert" }), place = h("div"), rows = h("div"), why = h("div"), one = h("div", { class: "picked", "aria-live": "polite" }), bars = h("div");
  const curve = new Curve(page, chart.box, "front");
  /** @type {HTMLElement} */ let panel;
  /** @type {any} */ let answer = null;
  /** @type {any} */ let key = null;
  /** @type {number[]} points picked in the chart */ let picked = [];
  let part = "search", order = "over", up = true, wanted = "", objective = "cost", listens = false, brushing = false;

  async function numpy() {
    fill(said, t("explore.numpy"));
    bar.hidden = false;
    await engine.load("numpy");
  }
  const stop = () => { key = null; bar.hidden = true; fill(problem, t("explore.stopped")); };

  /** Try the space of the form, and show what it holds; a newer question ends an older one. */
  async function search() {
    const mine = (key = JSON.stringify([state.form, asks.fields()]));
    fill(problem);
    try {
      await numpy();
      for (;;) {
        if (key !== mine || panel.hidden || part !== "search") return;
        const now = await step("explore", { do: "step", form: state.form, fields: asks.fields() });
        if (!now || key !== mine) return;
        progress.value = now.share;
        fill(said, t("explore.tried", now));
        if (now.answer) { answer = now.answer; picked = []; bar.hidden = true; show(); return; }
      }
    } catch (error) {
      if (key !== mine) return;
      bar.hidden = true;
      fill(problem, say(/** @type {Error} */ (error).message));
    }
  }

  /** @param {string} fragment */
  async function openScenario(fragment) {
    const { form: wantedForm } = await engine.ask("from_link", { fragment });
    state.replace(wantedForm, { push: true });
    document.getElementById("answer")?.scrollIntoView({ block: "start" });
  }
  const opener = (/** @type {string} */ fragment, /** @type {string} */ title) => h("button", { type: "button", class: "quiet", "aria-label": `${t("explore.open")}: ${title}`, onclick: () => openScenario(fragment) }, t("measured.open.short"));
  const num = (/** @type {any} */ v) => h("span", { class: "num" }, String(v));

  function show() {
    const { counts, winner, question } = answer, none = !answer.points.length;
    fill(place, h("p", {}, ...rich("explore.counts", Object.fromEntries(Object.entries(counts).map(([k, v]) => [k, num(v)]))), " ",
      winner ? [...rich("explore.winner", { title: h("strong", {}, phrases(winner.title)), goal: num(winner.goal), what: t(`explore.objective.${question.objective}`).toLowerCase() })] : h("strong", {}, t("explore.nothing"))),
      answer.more ? h("p", { class: "hint" }, t("explore.more.cells", { n: answer.more })) : null);
    chart.whole.hidden = none;
    if (!none) draw();
    showRows();
    fill(why, answer.why_not.length ? h("details", { class: "fold", open: none }, h("summary", {}, t("explore.why", { n: answer.why_not.length })), whyTable(answer.why_not)) : null);
  }

  function draw() {
    const { points, lines, front, question } = answer, range = around(points.map((/** @type {any} */ p) => p.x), points.map((/** @type {any} */ p) => p.y), 1.4, 1.4);
    const least = question.limits.tpot ? 1 / question.limits.tpot : question.limits.user, chosen = new Set(picked);
    fill(chart.finding, ...rich("explore.finding"), h("span", { class: "legend" }, lines.slice(0, 7).map((/** @type {any} */ l) => h("span", {}, h("span", { class: l.color, "aria-hidden": "true" }, "━"), ` ${l.name}`)), lines.length > 7 ? h("span", {}, h("span", { class: "grey", "aria-hidden": "true" }, "━"), ` ${t("explore.others")}`) : null));
    curve.draw({ range, x: t("explore.x"), y: t("explore.y"),
      lines: [{ xs: front.x, ys: front.y, color: "ink", width: 9, alpha: 0.12 }, ...lines.map((/** @type {any} */ l) => ({ xs: l.x, ys: l.y, color: l.color, width: l.color === "plain" ? 1 : 2 })), ...(least ? [{ xs: [least, least], ys: [range.y0, range.y1], color: "muted", dash: "dashed", width: 1.5 }] : [])],
      points: points.map((/** @type {any} */ p, /** @type {number} */ i) => ({ x: p.x, y: p.y, color: p.color, size: chosen.has(i) ? 13 : p.color === "plain" ? 4 : 7, title: phrases(p.title), tip: t("explore.tip", p) })) })
      .then(() => {
        if (listens || !curve.doc) return;
        listens = true;
        curve.onPick((at) => { picked = at; draw(); showRows(); });
      });
  }

  function showRows() {
    const some = picked.map((i) => answer.points[i]).filter(Boolean);
    fill(one, some.length === 1 ? h("p", {}, h("strong", {}, phrases(some[0].title)), " ", t("explore.tip", some[0]), " ", opener(some[0].fragment, some[0].title)) : some.length ? h("p", { class: "hint" }, t("explore.brushed", { n: some.length }), " ", h("button", { type: "button", class: "link", onclick: () => { curve.model("points").selected.indices = []; picked = []; draw(); showRows(); } }, t("explore.unbrush"))) : answer.points.length ? h("p", { class: "hint" }, t("explore.pick")) : null);
    if (some.length > 1) return fill(rows, table({ caption: t("explore.brushed", { n: some.length }), rows: some, columns: [{ key: "title", label: t("explore.title") }, { key: "user", label: t("explore.column.user"), num: true }, { key: "throughput", label: t("explore.column.throughput"), num: true }, { key: "open", label: h("span", { class: "sr" }, t("explore.open")) }], cell: (row, k) => (k === "open" ? opener(row.fragment, row.title) : k === "title" ? phrases(row.title) : row[k]) }));
    const match = (/** @type {any} */ r) => !wanted || `${r.text.title} ${r.vendor} ${r.name}`.toLowerCase().includes(wanted.toLowerCase());
    const shown = answer.rows.filter(match).sort((/** @type {any} */ a, /** @type {any} */ b) => { const [x, y] = [a.sort[order], b.sort[order]]; return (x === null ? 1 : y === null ? -1 : x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
    const keys = ["title", ...COLUMNS, "over"];
    if (!answer.rows.length) return fill(rows);
    if (!rows.querySelector("#explore-filter")) fill(rows, h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "explore-filter" }, t("explore.filter")), h("input", { id: "explore-filter", type: "text", value: wanted, oninput: (/** @type {any} */ e) => { wanted = e.target.value; showRows(); } })), h("button", { type: "button", class: "quiet", onclick: () => save("roofline-explore.csv", csv(), "text/csv") }, "CSV")), h("div", { class: "best" }));
    fill(/** @type {Element} */ (rows.querySelector(".best")), table({ caption: t("explore.best"), rows: shown, sorted: { by: keys.indexOf(order), up }, onsort: (by) => { up = keys[by] === order ? !up : !["user", "throughput"].includes(keys[by]); order = keys[by]; showRows(); },
      columns: [...keys.map((k, i) => ({ key: k, label: t(`explore.column.${k}`), num: k !== "title", sort: i })), { key: "bound", label: t("op.bound") }, { key: "open", label: h("span", { class: "sr" }, t("explore.open")) }],
      cell: (row, k) => (k === "open" ? opener(row.fragment, row.text.title) : k === "bound" ? bound(row.bound) : k === "title" ? h("span", { class: "wide" }, phrases(row.text.title)) : row.text[k]) }));
  }

  function csv() {
    const keys = ["title", ...COLUMNS, "devices"];
    return [["configuration", "hardware", ...keys.slice(1), "fragment"].join(), ...answer.rows.map((/** @type {any} */ r) => [`"${r.text.title}"`, r.hardware, ...keys.slice(1).map((k) => r.sort[k] ?? ""), `"${r.fragment}"`].join())].join("\n") + "\n";
  }

  /** Why chips are absent, with a field to find one. @param {any[]} list */
  function whyTable(list) {
    const found = h("div"), input = h("input", { id: "explore-why", type: "text", oninput: () => redraw() });
    const redraw = () => fill(found, table({ caption: t("explore.why", { n: list.length }), rows: list.filter((r) => `${r.name} ${r.hardware}`.toLowerCase().includes(input.value.toLowerCase())), columns: [{ key: "name", label: t("measured.chip") }, { key: "why", label: t("explore.reason") }, { key: "open", label: h("span", { class: "sr" }, t("explore.nearest")) }],
      cell: (row, k) => (k === "why" ? h("span", { class: "wide" }, say(row.why)) : k === "open" ? row.fragment && h("button", { type: "button", class: "quiet", "aria-label": `${t("explore.nearest")}: ${row.name}`, onclick: () => openScenario(row.fragment) }, t("explore.nearest")) : row[k]) }));
    redraw();
    return h("div", {}, h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "explore-why" }, t("explore.which")), input)), found);
  }

  async function tornado() {
    fill(problem);
    try {
      await numpy();
      bar.hidden = true;
      const found = await swing("explore", { do: "tornado", form: state.form, objective });
      if (!found || part !== "tornado") return;
      const side = (/** @type {any} */ row, /** @type {"low" | "high"} */ which) => h("i", { class: which, style: { left: `${50 + 50 * Math.min(0, row[`${which}_at`])}%`, width: `${50 * Math.abs(row[`${which}_at`])}%` } });
      fill(bars, h("p", {}, ...rich("explore.tornado.told", { base: num(found.base), what: t(`explore.objective.${objective}`), first: found.rows[0] ? named("explore.parameter", found.rows[0].parameter) : "–", step: num(found.step) })),
        table({ caption: t("explore.part.tornado"), rows: found.rows, columns: [{ key: "parameter", label: t("explore.assumption") }, { key: "bar", label: t("explore.change") }, { key: "low", label: t("explore.less", found), num: true }, { key: "high", label: t("explore.greater", found), num: true }],
          cell: (row, k) => (k === "parameter" ? named("explore.parameter", row.parameter) : k === "bar" ? h("span", { class: "tornado", "aria-hidden": "true" }, side(row, "low"), side(row, "high")) : h("span", {}, row[k], h("small", { class: "block" }, row[`${k}_value`]))) }));
    } catch (error) { bar.hidden = true; fill(problem, say(/** @type {Error} */ (error).message)); }
  }

  /** @param {HTMLElement} target */
  function open(target) {
    panel = target;
    part = partOf(page, PARTS);
    const brush = h("button", { type: "button", class: "quiet", "aria-pressed": String(brushing), onclick: () => { brushing = !brushing; brush.setAttribute("aria-pressed", String(brushing)); if (curve.doc) curve.model("brush").active = brushing; } }, t("explore.brush"));
    const body = part === "search" ? [asks.build(), bar, problem, place, chart.whole, h("div", { class: "row" }, brush), one, rows, why]
      : part === "capability" ? [bar, problem, ...able.build()]
      : part === "fleet" ? [asks.build(["vendors", "kinds", "chips", "devices", "weights", "kv"]), bar, problem, sizing.build()]
        : [h("p", { class: "hint" }, t("explore.tornado.hint")), segmented(t("levers.goal"), ["cost", "latency", "throughput", "ttft-alone", "energy"].map((id) => ({ id, text: t(`explore.objective.${id}`) })), objective, (id) => { objective = id; open(panel); }), bar, problem, bars];
    fill(rows);
    chart.whole.hidden = !answer?.points.length;
    fill(panel, h("div", { class: "panel-top" }, segmented(t("tab.explore"), PARTS.map((id) => ({ id, text: t(`explore.part.${id}`) })), part, (id) => { part = state.page.part = id; state.writeAddress(); open(panel); /** @type {any} */ (panel.querySelector("[aria-pressed=true]"))?.focus(); })), body);
    if (answer && part === "search") show();
    again();
  }

  const again = () => {
    fill(problem, engine.ready ? null : h("span", { class: "hint" }, t("waiting")));
    if (!engine.ready) return;
    if (part === "search") search();
    else if (part === "tornado") tornado();
    else numpy().then(() => { bar.hidden = true; (part === "fleet" ? sizing : able).update(); }, (error) => { bar.hidden = true; fill(problem, String(error.message)); });
  };
  return { open, update: debounce(again, 150) };
}
