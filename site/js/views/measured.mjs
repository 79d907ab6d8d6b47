// @ts-check
// Measured: the shipped measurements beside what the calculator says of them, and a measurement of one's own under the roof.

import { fill, h } from "../dom.mjs";
import { cite, point, rich, say, t } from "../i18n.mjs";
import { data } from "../lazy.mjs";
import { segmented, table } from "../tabs.mjs";
import { facts, failed, figure, partOf, save } from "./common.mjs";
import { Curve, around } from "./curve.mjs";
import { own } from "./own.mjs";

const LOOKS = /** @type {Record<string, {color: string, marker: string}>} */ ({
  step: { color: "hue2", marker: "circle" }, prefill: { color: "hue1", marker: "square" }, request: { color: "hue5", marker: "triangle" }, tpot: { color: "hue3", marker: "diamond" },
  stream: { color: "hue4", marker: "inverted_triangle" }, first: { color: "hue7", marker: "hex" }, drain: { color: "hue6", marker: "star" },
});
const SIGNS = /** @type {Record<string, string>} */ ({ circle: "●", square: "■", triangle: "▲", diamond: "◆", inverted_triangle: "▼", hex: "⬢", star: "★" });
const FILTERS = ["engine", "chip", "model", "kind"];
const PAGE = 25;

/** @param {any} page */
export function view(page) {
  const { state, engine } = page;
  const parts = ["points", "errors", "own"], mine = own(page);
  /** @type {any} */ let all = null;
  /** @type {HTMLElement} */ let panel;
  const wanted = /** @type {Record<string, string>} */ ({}), charts = /** @type {Record<string, any>} */ ({});
  let part = "points", basis = "limit", residual = false, shown = PAGE, by = "unseen";
  /** @type {number | null} */ let picked = null;
  const places = { finding: h("div"), rows: h("div"), one: h("div", { class: "picked", "aria-live": "polite" }) };

  const chart = (/** @type {string} */ name) => {
    charts[name] ??= { ...figure(`measured-${name}`, "") };
    charts[name].curve ??= new Curve(page, charts[name].box, name);
    return charts[name];
  };
  const name = (/** @type {string} */ column, /** @type {string} */ value) => (column === "kind" ? t(`measured.kind.${value}`) : all.names[value] ?? value);
  const column = (/** @type {string} */ key) => all.columns[key];
  /** Rows that pass the filters. */
  const rows = () => column("id").map((/** @type {any} */ _, /** @type {number} */ i) => i).filter((/** @type {number} */ i) => FILTERS.every((f) => !wanted[f] || column(f)[i] === wanted[f]) && column(basis)[i] !== null);

  /** Take over what the address says of this view. */
  function heed() {
    const said = (/** @type {string} */ key) => state.page[`measured.${key}`] ?? "";
    for (const f of FILTERS) wanted[f] = column(f).includes(said(f)) ? said(f) : "";
    residual = said("axes") === "residuals";
    basis = said("basis") === "limit" ? "limit" : all.basis;
    by = said("by") === "unseen" || Object.hasOwn(all.tables, said("by")) ? said("by") : usual();
    const at = said("pick") ? column("id").indexOf(said("pick")) : -1;
    picked = at < 0 ? null : at;
  }
  const usual = () => (all.basis === "expected" ? "unseen" : "engine");
  const keep = (/** @type {string} */ key, /** @type {string} */ value) => state.keep(`measured.${key}`, value);

  /** Open a row's scenario in the calculator. @param {number} i */
  async function openScenario(i) {
    const { form } = await engine.ask("from_link", { fragment: column("fragment")[i] });
    state.replace(form, { push: true });
    document.getElementById("answer")?.scrollIntoView({ block: "start" });
  }

  /** @param {number} i @param {boolean} [short] the word for a source in place of its name */
  const link = (i, short) => {
    const words = short ? t("fact.source") : column("source")[i], whole = short ? `${words}${point(":")}${column("source")[i]}` : null;
    return column("url")[i] ? h("a", { href: column("url")[i], target: "_blank", rel: "noopener noreferrer", title: whole, "aria-label": whole, lang: short ? null : "en" }, words) : h("span", { lang: "en" }, column("source")[i]);
  };

  function drawPicked() {
    const i = picked;
    if (i === null) return fill(places.one, h("p", { class: "hint" }, t("measured.pick")));
    fill(places.one, h("h3", {}, `${name("model", column("model")[i])}, ${column("chips")[i]} × ${name("chip", column("chip")[i])}, ${column("engine")[i]}`), facts([
      [t("measured.said"), column("said")[i]], [t("measured.kind"), name("kind", column("kind")[i])], [t("measured.time"), column("text")[i]], [t("measured.limit"), `${column("limit_text")[i]} (${column("of_limit")[i]})`],
      ...(column("expected")[i] === null ? [] : [[t("measured.expected"), `${column("expected_text")[i]} (${column("off")[i]})`]]), [t("field.weights"), column("weights")[i]], [t("measured.batching"), cite(column("batching")[i])],
      [t("measured.version"), column("version")[i] || "–"], [t("measured.note"), [column("note")[i], column("assumed")[i]].filter(Boolean).flatMap((text, k) => [k ? point(";") : "", cite(text)])], [t("fact.source"), link(i)], [t("measured.date"), column("date")[i]]].map(([k, v]) => [k, v])),
      h("div", { class: "row" }, h("button", { type: "button", class: "quiet", id: "measured-open", onclick: () => openScenario(/** @type {number} */ (i)) }, t("measured.open"))));
  }

  function drawPoints() {
    const found = rows(), xs = found.map((/** @type {number} */ i) => column(basis)[i]), ys = found.map((/** @type {number} */ i) => column("measured")[i]);
    const main = chart(residual ? "residuals" : "measured"), what = t(`measured.${basis}.short`);
    fill(places.finding, h("p", {}, ...rich(`measured.told.${basis}`, Object.fromEntries(Object.entries(all.summary).map(([k, v]) => [k, h("span", { class: "num" }, v)])))));
    fill(main.finding, t("measured.shown", { n: found.length, of: column("id").length }), point(""), ...rich(`measured.finding.${residual ? "residuals" : "points"}.${basis}`));
    if (found.length) {
      const lines = [1, ...(basis === "limit" ? [2, 5] : [0.5, 2])], low = Math.min(...xs) / 2, high = Math.max(...xs) * 2;
      const points = found.map((/** @type {number} */ i, /** @type {number} */ k) => ({ x: residual ? ys[k] : xs[k], y: residual ? ys[k] / xs[k] : ys[k], ...LOOKS[column("kind")[i]], size: i === picked ? 14 : 7, alpha: i === picked ? 1 : 0.55,
        title: `${name("model", column("model")[i])}, ${column("chips")[i]} × ${name("chip", column("chip")[i])}`, tip: `${column("engine")[i]}, ${column("weights")[i]}: ${column("text")[i]}, ${what} ${column(`${basis}_text`)[i]}` }));
      const range = residual ? around(ys, [...points.map((/** @type {any} */ p) => p.y), 0.5, 2], 2, 2) : { x0: low, x1: high, y0: Math.min(low, ...ys) / 1.5, y1: Math.max(high, ...ys) * 1.5 };
      main.curve.draw({ range, x: residual ? t("measured.time") : t(`measured.${basis}`), y: residual ? t(`measured.ratio.${basis}`) : t("measured.time"), points,
        lines: lines.map((f) => (residual ? { xs: [range.x0, range.x1], ys: [f, f], color: f === 1 ? "ink" : "muted", width: f === 1 ? 2 : 1, dash: f === 1 ? "solid" : "dashed" } : { xs: [range.x0, range.x1], ys: [range.x0 * f, range.x1 * f], color: f === 1 ? "ink" : "muted", width: f === 1 ? 2 : 1, dash: f === 1 ? "solid" : "dashed" })),
        labels: lines.map((f) => (residual ? { x: range.x1, y: f, text: f === 1 ? what : `${f} ×`, color: f === 1 ? "ink" : "muted", align: "right", dx: -6, dy: -8 } : beside(f, range, main.box))).filter(Boolean) })
        .then(() => { if (!main.listens && main.curve.doc) { main.listens = true; main.curve.onPick((/** @type {number[]} */ at) => { if (at.length) { picked = rows()[at[0]]; keep("pick", column("id")[picked]); drawPoints(); drawPicked(); } }); } });
    }
    const kinds = [...new Set(found.map((/** @type {number} */ i) => column("kind")[i]))];
    fill(places.rows, h("div", { class: "legend" }, kinds.map((k) => h("span", {}, h("span", { class: LOOKS[k].color, "aria-hidden": "true" }, SIGNS[LOOKS[k].marker]), ` ${t(`measured.kind.${k}`)}`))),
      table({ caption: t("tab.measured"), rows: found.slice(0, shown).map((/** @type {number} */ i) => ({ i, className: i === picked ? "here" : "" })),
        columns: [{ key: "what", label: t("measured.what") }, { key: "time", label: t("measured.time"), num: true }, ...(all.basis === "expected" ? [{ key: "expected", label: t("measured.expected.short"), num: true }, { key: "off", label: t("measured.off"), num: true }] : []), { key: "limit", label: t("measured.limit.short"), num: true }, { key: "of", label: t("measured.of"), num: true }],
        cell: ({ i }, key) => ({ what: () => h("span", { class: "wide" }, `${name("model", column("model")[i])}, ${column("chips")[i]} × ${name("chip", column("chip")[i])}`, h("small", { class: "block" }, `${name("kind", column("kind")[i])} · ${column("engine")[i]}, ${column("weights")[i]} · `, link(i, true), " · ",
            h("button", { type: "button", class: "link", "aria-label": `${t("measured.open.short")}: ${column("id")[i]}`, onclick: () => openScenario(i) }, t("measured.open.short")))), time: () => column("text")[i], limit: () => column("limit_text")[i], expected: () => column("expected_text")[i],
          off: () => column("off")[i], of: () => column("of_limit")[i] })[/** @type {"what"} */ (key)]() }),
      h("div", { class: "row" }, found.length > shown ? h("button", { type: "button", class: "quiet", onclick: () => { shown += 4 * PAGE; drawPoints(); } }, t("measured.more", { n: found.length - shown })) : null,
        h("button", { type: "button", class: "quiet", onclick: () => save("roofline-measured.csv", csv(found), "text/csv") }, "CSV")));
  }

  /** The word of a slanting line, at its upper end and clear of it: left of a line that leaves at the top, below one that leaves at the right. The solid line is told in the caption. @param {number} f @param {any} r the range @param {HTMLElement} box */
  function beside(f, r, box) {
    if (f === 1) return null;
    const label = { text: `${f} ×`, color: "muted", align: "right" }, top = r.y1 / f <= r.x1;
    const slope = ((box.clientHeight - 56) * Math.log(r.x1 / r.x0)) / ((box.clientWidth - 76) * Math.log(r.y1 / r.y0));
    return top ? { ...label, x: r.y1 / f, y: r.y1, dx: -6 - 16 / slope, dy: 10 } : { ...label, x: r.x1, y: r.x1 * f, dx: -2, dy: 12 + 30 * slope };
  }

  /** @param {number[]} found */
  function csv(found) {
    const keys = Object.keys(all.columns).filter((key) => !key.endsWith("_text") && !["text", "of_limit", "off"].includes(key));
    const cell = (/** @type {any} */ v) => (v === null ? "" : /[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v));
    return [keys.join(), ...found.map((i) => keys.map((key) => cell(column(key)[i])).join())].join("\n") + "\n";
  }

  const select = (/** @type {string} */ f) => h("div", { class: "field small" }, h("label", { for: `measured-${f}` }, t(`measured.${f}`)), h("select", { id: `measured-${f}`, onchange: (/** @type {any} */ e) => { wanted[f] = e.target.value; shown = PAGE; picked = null; keep(f, wanted[f]); keep("pick", ""); drawPoints(); drawPicked(); } },
    h("option", { value: "" }, t("measured.all")), [...new Set(column(f))].sort().map((value) => h("option", { value, selected: wanted[f] === value }, name(f, String(value))))));

  /** Errors on models, chips and formats that the fit never saw. */
  const unseen = () => table({ caption: t("measured.unseen"), rows: all.unseen.map((/** @type {any} */ row) => ({ ...row, className: row.all ? "here" : "" })), columns: [{ key: "kind", label: t("measured.kind") }, { key: "engine", label: t("measured.engine") }, { key: "median", label: t("measured.median"), num: true }, { key: "p90", label: t("measured.p90"), num: true }, { key: "inside", label: t("measured.inside"), num: true }, { key: "points", label: t("measured.count"), num: true }, { key: "groups", label: t("measured.groups"), num: true }, { key: "engine_unseen", label: t("measured.engine_unseen"), num: true }],
    cell: (row, key) => (key === "kind" ? say(row.kind) : key === "engine" ? (row.all ? t("measured.every") : row.engine) : row[key]) });

  function build() {
    if (part === "own") return mine.build();
    if (part === "errors") {
      const told = all.basis === "expected";
      return [h("p", {}, ...rich(`measured.told.${all.basis}`, Object.fromEntries(Object.entries(all.summary).map(([k, v]) => [k, h("span", { class: "num" }, v)])))),
        h("div", { class: "panel-top" }, segmented(t("measured.errors.by"), [...(told ? ["unseen"] : []), ...Object.keys(all.tables)].map((id) => ({ id, text: t(`measured.${id}`) })), by, (id) => { keep("by", id === usual() ? "" : id); open(panel); })),
        by === "unseen" ? unseen() : table({ caption: t("measured.part.errors"), rows: all.tables[by], columns: [{ key: "label", label: t(`measured.${by}`) }, { key: "points", label: t("measured.count"), num: true }, { key: "reached", label: t("measured.reached"), num: true }, { key: "best", label: t("measured.best"), num: true },
          ...(told ? [{ key: "median", label: t("measured.median"), num: true }, { key: "p90", label: t("measured.p90"), num: true }, { key: "bias", label: t("measured.bias"), num: true }, { key: "inside", label: t("measured.inside"), num: true }] : [])],
          cell: (row, key) => (key === "label" ? h("button", { type: "button", class: "link", onclick: () => { for (const f of FILTERS) keep(f, f === by ? row.name : ""); part = state.page.part = "points"; open(panel); } }, by === "kind" ? t(`measured.kind.${row.name}`) : row.label) : row[key] ?? "–") }),
        h("p", { class: "hint" }, t(by === "unseen" ? "measured.unseen.hint" : told ? "measured.errors.seen" : "measured.errors.hint"))];
    }
    const options = (/** @type {string} */ label, /** @type {string[]} */ ids, /** @type {string} */ now, /** @type {(id: string) => void} */ set) => segmented(t(label), ids.map((id) => ({ id, text: t(`${label}.${id}`) })), now, (id) => { set(id); open(panel); });
    return [places.finding, h("div", { class: "row" }, FILTERS.map(select)), h("div", { class: "panel-top" }, options("measured.axes", ["points", "residuals"], residual ? "residuals" : "points", (id) => keep("axes", id === "residuals" ? id : "")), all.basis === "expected" ? options("measured.basis", ["expected", "limit"], basis, (id) => keep("basis", id === all.basis ? "" : id)) : null),
      chart(residual ? "residuals" : "measured").whole, places.one, places.rows];
  }

  /** @param {HTMLElement} target */
  async function open(target) {
    panel = target;
    part = partOf(page, parts);
    all ??= await data(`${engine.build.views}measured.json`);
    heed();
    if (panel.hidden) return;
    fill(panel, h("div", { class: "panel-top" }, segmented(t("tab.measured"), parts.map((id) => ({ id, text: t(`measured.part.${id}`) })), part, (id) => { part = state.page.part = id; state.writeAddress(); open(panel).then(() => /** @type {any} */ (panel.querySelector("[aria-pressed=true]"))?.focus()); })), build());
    if (part === "points") { drawPoints(); drawPicked(); }
    if (part === "own") mine.update();
  }
  return { open: (/** @type {HTMLElement} */ target) => { open(target).catch((error) => failed(target, error)); }, update: () => { if (part === "own") mine.update(); } };
}
