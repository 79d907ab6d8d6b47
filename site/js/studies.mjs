// @ts-check
// The panels that ask Python for more than the answer: Sweep and Compare.

import { bound } from "./answer.mjs";
import { Chart } from "./charts.mjs";
import { h, fill } from "./dom.mjs";
import { worked } from "./explain.mjs";
import { named, point, rich, say, t, turning } from "./i18n.mjs";
import { PRESETS, presetOf } from "./presets.mjs";
import { segmented, table } from "./tabs.mjs";

/** @typedef {{state: import("./state.mjs").State, engine: import("./engine.mjs").Engine, figures: any, charts: Chart[], latest: () => any, describe: (form?: Record<string, string> | null) => string}} Page */

/** Ask when Python is up, draw if the panel still wants it; a failure is said in the panel. @param {Page} page @param {HTMLElement} panel @param {string} method @param {object} params @param {(result: any) => void} draw */
async function study(page, panel, method, params, draw) {
  const key = JSON.stringify([method, params]);
  panel.dataset.asked = key;
  panel.classList.add("busy");
  if (!page.engine.ready && !panel.childElementCount) fill(panel, h("p", { class: "hint" }, t("waiting")));
  try {
    const result = await page.engine.ask(method, params);
    if (panel.dataset.asked === key && !panel.hidden) draw(result);
  } catch (error) {
    if (panel.dataset.asked === key) fill(panel, h("p", { class: "error" }, say(/** @type {Error} */ (error).message)));
  }
  if (panel.dataset.asked === key) panel.classList.remove("busy");
}

const AXES = ["batch", "prompt", "devices"], SCALES = ["log", "linear"];

/** @param {Page} page */
export function sweepTab(page) {
  const { state } = page, of = (/** @type {string} */ name, /** @type {string[]} */ choices) => { const said = state.page[`sweep.${name}`]; return choices.includes(said) ? said : choices[0]; };
  let axis = "batch", scale = "log", held = /** @type {any} */ (null), asked = state.form;
  const turned = turning();
  /** Each scale has its own figure, embedded when it is first wanted. @type {Record<string, {box: HTMLElement, chart: Chart | null, soon: Promise<void> | null}>} */
  const drawings = Object.fromEntries(["log", "linear"].map((id) => [id, { chart: null, soon: null, box: h("div", { id: id === "log" ? "sweep" : "sweep-linear", class: "plot short", role: "img", "aria-labelledby": "sweep-finding" }) }]));
  const finding = h("p", { id: "sweep-finding", class: "caption" }, t("waiting")), rows = h("div"), top = h("div", { class: "panel-top" });

  async function draw(/** @type {any} */ result, /** @type {Record<string, string>} */ form) {
    held = result;
    asked = form;
    const fitting = result.rows.filter((/** @type {any} */ r) => r.fits), here = result.rows.find((/** @type {any} */ r) => r.here);
    fill(finding, ...rich(`sweep.${axis}`), point(""), h("span", {}, fitting.length < result.rows.length ? t("sweep.unfit", { n: result.rows.length - fitting.length }) : ""));
    fill(rows, table({ caption: t(`sweep.axis.${axis}`), rows: result.rows.map((/** @type {any} */ r) => ({ ...r, ...r.text, className: r.here ? "here" : "" })),
      columns: [{ key: "label", label: t(`sweep.axis.${axis}`), num: true }, { key: "bound", label: t("op.bound") }, { key: "user", label: t("figure.user"), num: true }, { key: "total", label: t("figure.total"), num: true }, { key: "ttft", label: t("figure.ttft"), num: true }, { key: "tpot", label: t("figure.tpot"), num: true }, { key: "utilisation", label: t("row.compute"), num: true }, { key: "memory", label: t("figure.memory"), num: true }],
      cell: (row, key) => (key === "bound" ? bound(row.fits ? row.bound : "misfit") : key === "label" ? h("button", { type: "button", class: "link num", onclick: () => page.state.set({ [axis]: String(row.x) }) }, row.label) : worked(key, row[key] ?? "–", { form: { ...form, [axis]: String(row.x), ...(axis === "devices" ? { tp: "", dp: "" } : {}) }, basis: "limit" })) }));
    const drawing = drawings[scale], { box } = drawing;
    for (const each of Object.values(drawings)) each.box.hidden = each !== drawing;
    const chart = (drawing.chart ??= new Chart(box, scale === "log" ? page.figures.sweep : page.figures.sweep_linear, scale === "log" ? "sweep" : "sweep_linear"));
    await (drawing.soon ??= chart.embed().then(() => { page.charts.push(chart); }, (error) => { drawing.soon = null; throw error; }));
    const ys = fitting.flatMap((/** @type {any} */ r) => [r.user, r.total]), xs = [...fitting, result.rows.find((/** @type {any} */ r) => !r.fits)].filter(Boolean).map((r) => r.x);
    if (!ys.length) return;
    // Room for the words at the ends of the lines, which take as many pixels on a phone as on a wide screen.
    const room = Math.min(0.4, 80 / Math.max(120, box.clientWidth - 76)), last = fitting.at(-1).x, most = Math.max(...xs);
    const span = scale === "linear" ? { x0: 0, x1: Math.max(last * 1.04, last / (1 - room)), y0: 0, y1: Math.max(...ys) * 1.1 }
      : { x0: Math.min(...xs) / 1.25, x1: Math.max(most * 1.25, (Math.min(...xs) / 1.25) * (last / (Math.min(...xs) / 1.25)) ** (1 / (1 - room))), y0: Math.min(...ys) / 1.6, y1: Math.max(...ys) * 1.8 };
    chart.range(span);
    chart.label(t(`sweep.axis.${axis}`), t("unit.rate"));
    const line = (/** @type {string} */ key, /** @type {string} */ role) => ({
      [key]: { x: fitting.map((/** @type {any} */ r) => r.x), y: fitting.map((/** @type {any} */ r) => r[key]), color: fitting.map((/** @type {any} */ r) => r.bound), title: fitting.map((/** @type {any} */ r) => `${t(`sweep.axis.${axis}`)} ${r.label}`), tip: fitting.map((/** @type {any} */ r) => `${r.text[key]} ${t("unit.rate")}`) },
      [`${key}_line`]: { xs: [fitting.map((/** @type {any} */ r) => r.x)], ys: [fitting.map((/** @type {any} */ r) => r[key])], color: [role] },
    });
    const end = fitting.at(-1);
    chart.assign({ ...line("user", "muted"), ...line("total", "ink"), here: { x: [here?.x ?? 1], y0: [span.y0], y1: [span.y1], color: ["muted"] },
      labels: { x: [end.x, end.x], y: [end.user, end.total], text: [t("sweep.user"), t("sweep.total")], color: ["muted", "ink"] } });
  }
  const open = (/** @type {HTMLElement} */ panel) => {
    const choose = (/** @type {string} */ name, /** @type {string} */ id, /** @type {string} */ usual) => { state.keep(`sweep.${name}`, id === usual ? "" : id); open(panel); };
    axis = of("axis", AXES);
    scale = of("scale", SCALES);
    fill(top, segmented(t("sweep.of"), AXES.map((id) => ({ id, text: t(`sweep.axis.${id}`) })), axis, (id) => choose("axis", id, AXES[0])),
      segmented(t("sweep.scale"), SCALES.map((id) => ({ id, text: t(`sweep.${id}`) })), scale, (id) => choose("scale", id, SCALES[0])));
    const boxes = Object.values(drawings).map(({ box }) => box);
    if (!panel.contains(boxes[0])) fill(panel, top, h("figure", { class: "chart" }, boxes, h("figcaption", {}, finding)), rows);
    if (turned()) {
      if (held?.axis === axis) draw(held, asked);
      else { fill(finding, t("waiting")); fill(rows); }
    }
    const form = state.form;
    study(page, panel, "sweep", { form, axis }, (result) => draw(result, form));
  };
  return { id: "sweep", open };
}

/** Which working a row of Compare opens. */
const COMPARED = /** @type {Record<string, string>} */ ({ ttft_s: "ttft", tpot_s: "tpot", tokens_per_s: "total", tokens_per_s_per_device: "per_chip", usd_per_million_output_tokens: "cost", total_bytes: "memory", max_batch: "max_batch" });

/** @param {Page} page */
export function compareTab(page) {
  const { state, engine } = page, KEY = "compare.";
  /** The pinned question, and what stands of it in the address. @type {Record<string, string> | null} */ let pinned = null;
  let name = "", written = "", wrong = "", last = /** @type {any} */ (null);
  const turned = turning();
  const said = () => Object.keys(state.page).filter((k) => k.startsWith(KEY)).sort().map((k) => `${k.slice(KEY.length)}=${encodeURIComponent(state.page[k])}`).join("&");
  /** Keep the pinned question in the address. @param {string} fragment */
  const write = (fragment) => {
    for (const k of Object.keys(state.page)) if (k.startsWith(KEY)) delete state.page[k];
    for (const [k, v] of new URLSearchParams(fragment)) if (k !== "s") state.page[KEY + k] = v;
    written = said();
    state.writeAddress();
  };
  /** Take the pinned question out of the address. @param {HTMLElement} panel */
  async function read(panel) {
    const wanted = (written = said());
    if (wanted) fill(panel, h("p", { class: "hint" }, t("waiting")));
    try {
      const form = wanted ? PRESETS.find((p) => wanted === `p=${p.id}`)?.form ?? (await engine.ask("from_link", { fragment: `s=1&${wanted}` })).form : null;
      if (wanted !== written) return;
      pinned = form;
      name = form ? page.describe(form) : "";
      open(panel);
    } catch (error) {
      if (wanted !== written) return;
      wrong = /** @type {Error} */ (error).message;
      pinned = null;
      write("");
      open(panel);
    }
  }
  /** @type {(panel: HTMLElement) => any} */ const open = (panel) => {
    const pin = () => {
      const form = (pinned = { ...state.form }), preset = presetOf(form);
      name = page.describe();
      wrong = "";
      if (preset) write(`p=${preset.id}`);
      else engine.ask("link", { form }).then(({ fragment }) => { if (pinned === form) write(fragment); }, () => {}); // a question that is refused cannot be kept
      open(panel);
    };
    if (said() !== written) return read(panel);
    if (!pinned) return fill(panel, wrong && h("p", { class: "error" }, say(wrong)), h("p", {}, t("compare.empty")), h("div", { class: "row" }, h("button", { type: "button", class: "solid", onclick: pin }, t("compare.pin"))));
    const held = pinned, form = state.form, sides = /** @type {Record<string, import("./explain.mjs").Of>} */ ({ a: { form: held, basis: "expected", than: form }, b: { form, basis: "expected" }, ratio: { form, basis: "expected", than: held, how: "ratio" } });
    /** A phase's limits, which are worked out alike on both sides. @param {string} key @param {string} side @param {string} text */
    const least = (key, side, text) => worked(key, text, { ...sides[side], basis: "limit" });
    const show = (/** @type {any} */ result) => fill(panel,
      h("div", { class: "panel-top" }, h("button", { type: "button", class: "quiet", onclick: pin }, t("compare.again")), h("button", { type: "button", class: "quiet", onclick: () => state.replace(held, { push: true }) }, t("compare.back")), h("button", { type: "button", class: "quiet", onclick: () => { pinned = null; write(""); open(panel); } }, t("compare.stop"))),
      h("dl", { class: "sides" }, [["a", name], ["b", page.describe()]].map(([side, text]) => h("div", {}, h("dt", {}, t(`compare.${side}`)), h("dd", {}, text)))),
      table({ caption: t("tab.compare"), rows: result.rows, columns: [{ key: "key", label: t(`compare.times.${page.latest().view.time.decode?.basis ?? "limit"}`) }, { key: "a", label: t("compare.a"), num: true }, { key: "b", label: t("compare.b"), num: true }, { key: "ratio", label: t("compare.ratio"), num: true }], cell: (row, key) => (key === "key" ? t(`compare.${row.key}`) : worked(COMPARED[row.key], row[key], sides[key])) }),
      result.phases.map((/** @type {any} */ p) => [h("h3", {}, t(`phase.${p.phase}`), " ", h("small", {}, t("time.limit"))), table({ caption: t(`phase.${p.phase}`), rows: [{ group: "", total: true, a: p.a, b: p.b }, ...p.groups], columns: [{ key: "group", label: t("op.group") }, { key: "a", label: t("compare.a"), num: true }, { key: "b", label: t("compare.b"), num: true }], cell: (row, key) => (key === "group" ? (row.total ? t("compare.whole") : named("group", row.group)) : least(row.total ? `phase.${p.phase}` : `group.${p.phase}.${row.group}`, key, row[key])) })]));
    if (turned()) {
      name = page.describe(held);
      if (last?.held === held) show(last.result);
    }
    study(page, panel, "compare", { a: held, b: form }, (result) => { last = { held, result }; show(result); });
    return panel;
  };
  return { id: "compare", open };
}
