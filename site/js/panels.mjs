// @ts-check
// The panels that show the current answer in other ways: Operators, Time, Memory, Method. They ask Python nothing.

import { bound } from "./answer.mjs";
import { h, fill, number } from "./dom.mjs";
import { cite, named, point, rich, say, t } from "./i18n.mjs";
import { lazyPart } from "./lazy.mjs";
import { segmented, table } from "./tabs.mjs";

/** @typedef {() => any} Latest gives the last good answer */

/** @param {Latest} latest @param {any} build @param {import("./state.mjs").State} state */
export function operatorsTab(latest, build, state) {
  const one = (/** @type {string} */ name, /** @type {string[]} */ choices) => { const said = state.page[`operators.${name}`]; return choices.includes(said) ? said : choices[0]; };
  let phase = "decode", as = "table", by = 6, up = false;
  /** @type {any} the module that draws the graph, once it is here */ let drawing = null;
  const sorted = (/** @type {HTMLElement} */ panel, /** @type {any[]} */ all) => {
    const rows = [...all].sort((a, b) => (a.sort[by] < b.sort[by] ? -1 : a.sort[by] > b.sort[by] ? 1 : 0) * (up ? 1 : -1));
    const columns = [["name", 0], ["bound", 5], ["time"], ["share", 6], ["intensity", 4], ["flops", 2], ["bytes", 3], ["count", 1]]; // what matters first: a phone shows only that
    return table({
      caption: t("tab.operators"), rows, sorted: { by, up }, onsort: (next) => { up = next === by ? !up : next === 0; by = next; draw(panel); },
      columns: columns.map(([key, sort]) => ({ key: String(key), sort: sort === undefined ? undefined : Number(sort), num: key !== "name" && key !== "bound", label: t(`op.${key}`) })),
      cell: (row, key) => (key === "name" ? h("span", {}, [say(row.name)].flat().map((piece) => (piece.split ? piece.split(/(?<=\.)/).map((/** @type {string} */ part) => [part, h("wbr")]) : piece)), " ", h("small", {}, named("group", row.group))) : key === "bound" ? bound(row.bound)
        : key === "share" ? h("span", { class: "share" }, h("i", { class: row.bound, style: { width: `${100 * row.width}%` } }), h("span", {}, row.share)) : key === "time" ? number(`op.${phase}.${row.order}`, row.time, t("figure.open")) : row[key]),
    });
  };
  const drawn = (/** @type {HTMLElement} */ panel, /** @type {any[]} */ all) => {
    if (drawing) return drawing.graph(all);
    lazyPart(build, "graph").then((module) => { drawing = module; if (as === "graph") draw(panel); })
      .catch((error) => { if (as === "graph") fill(panel.querySelector(".drawn"), h("p", { class: "error" }, ...rich("view.failed", { why: say(error.message) }))); });
    return h("p", { class: "hint" }, t("view.loading"));
  };
  const draw = (/** @type {HTMLElement} */ panel) => {
    const keep = (/** @type {string} */ name, /** @type {string} */ id, /** @type {string} */ usual) => { state.keep(`operators.${name}`, id === usual ? "" : id); draw(panel); };
    phase = one("phase", ["decode", "prefill"]);
    as = one("as", ["table", "graph"]);
    const all = latest().view.operators[phase];
    fill(panel,
      h("div", { class: "panel-top" }, segmented(t("phase"), ["prefill", "decode"].map((id) => ({ id, text: t(`phase.${id}`) })), phase, (id) => keep("phase", id, "decode")),
        segmented(t("operators.as"), ["table", "graph"].map((id) => ({ id, text: t(`operators.${id}`) })), as, (id) => keep("as", id, "table")),
        h("p", { class: "hint" }, t(`operators.hint.${latest().view.time[phase]?.basis ?? "limit"}`))),
      as === "table" ? sorted(panel, all) : h("div", { class: "drawn" }, drawn(panel, all)));
  };
  return { id: "operators", open: draw };
}

/** @param {Latest} latest */
export function timeTab(latest) {
  const draw = (/** @type {HTMLElement} */ panel) => fill(panel, h("p", { class: "hint" }, t("time.hint")), ["decode", "prefill"].map((name) => {
    const time = latest().view.time[name];
    if (!time) return null;
    return h("section", { class: "bars" }, h("h3", {}, ...rich(`time.${name}`, { total: h("span", { class: "num" }, time.total) }), " ", h("small", {}, t(`time.${time.basis}`))),
      h("div", { class: "stack", "aria-hidden": "true" }, time.groups.map((/** @type {any} */ g) => h("i", { class: g.bound || "part-overhead", style: { width: `${100 * g.width}%` }, title: `${named("group", g.group)} ${g.share}` }, g.width > 0.07 ? named("group", g.group) : ""))),
      table({ caption: t(`phase.${name}`), rows: time.groups, columns: [{ key: "group", label: t("op.group") }, { key: "bound", label: t("op.bound") }, { key: "time", label: t("op.time"), num: true }, { key: "share", label: t("op.share"), num: true }],
        cell: (row, key) => (key === "group" ? named("group", row.group) : key === "bound" ? (row.bound ? bound(row.bound) : "–") : key === "time" ? number(name === "prefill" ? "ttft" : "tpot", row.time, t("figure.open")) : row[key]) }),
      time.parts.length ? h("p", { class: "hint parts" }, t("time.parts"), " ", time.parts.flatMap((/** @type {any} */ p) => [bound(p.key), " ", h("span", { class: "num" }, p.time), " "])) : null);
  }));
  return { id: "time", open: draw };
}

/** Which working a number of the Memory panel opens; the rest open that of the whole. */
const WORKING = /** @type {Record<string, string>} */ ({ weights: "weights", max_batch: "max_batch", max_context: "max_context", kv_per_token: "kv_token" });

/** @param {Latest} latest */
export function memoryTab(latest) {
  const draw = (/** @type {HTMLElement} */ panel) => {
    const m = latest().view.memory;
    const facts = [["total", m.total], ["available", m.available], [m.fits === false ? "short" : "free", m.free ?? "–"], ["max_batch", m.max_batch], ["max_context", m.max_context], ["min_devices", m.min_devices], ["kv_per_token", m.kv_per_token]];
    fill(panel, h("p", { class: "hint" }, t(m.capacity !== null && m.capacity < 1 ? "memory.hint" : "memory.hint.fits")),
      h("div", { class: `stack tall ${m.fits === false ? "over" : ""}`, "aria-hidden": "true" }, m.parts.map((/** @type {any} */ p) => h("i", { class: `part-${p.key}`, style: { width: `${100 * p.width}%` } }, p.width > 0.08 ? t(`memory.${p.key}`) : "")),
        m.capacity !== null && m.capacity < 1 ? h("b", { class: "capacity", style: { left: `${100 * m.capacity}%` } }) : null),
      h("div", { class: "two-tables" },
        table({ caption: t("memory.parts"), rows: m.parts, columns: [{ key: "key", label: t("memory.part") }, { key: "text", label: t("memory.size"), num: true }, { key: "share", label: t("op.share"), num: true }],
          cell: (row, key) => (key === "key" ? h("span", {}, h("i", { class: `swatch part-${row.key}`, "aria-hidden": "true" }), " ", t(`memory.${row.key}`)) : key === "text" ? number(WORKING[row.key] ?? "memory", row.text, t("figure.open")) : row[key]) }),
        h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, t(`memory.${key}`)), h("dd", {}, value === "–" ? value : number(WORKING[key] ?? "memory", value, t("figure.open"))))))));
  };
  return { id: "memory", open: draw };
}

/** @param {Latest} latest */
export function methodTab(latest) {
  const draw = (/** @type {HTMLElement} */ panel) => {
    const { facts } = latest().view, c = facts.hardware, m = facts.model;
    const pairs = (/** @type {[string, any][]} */ list) => h("dl", { class: "facts" }, list.filter(([, v]) => v && v !== "–").map(([key, value]) => h("div", {}, h("dt", {}, key.startsWith("peak ") ? t("fact.peak", { format: key.slice(5) }) : t(`fact.${key}`)), h("dd", {}, value))));
    fill(panel, h("div", { class: "prose" }, ["roof", "pass", "limit", "expected", "serving", "not"].map((key) => h("p", {}, ...rich(`method.${key}`)))),
      h("div", { class: "two-tables" },
        h("section", {}, h("h3", {}, m.name), pairs([["family", m.family], ["total", m.total], ["active", m.moe ? m.active : ""], ["layers", m.layers], ["weights", number("weights", m.weights, t("figure.open"))], ["bits", m.bits], ["kv", m.kv], ["kv_beyond", m.kv_bound?.beyond], ["state", m.state], ["max_context", m.max_context], ["source", cite(m.source)]]),
          m.assumed.length ? h("p", { class: "hint" }, t("fact.assumed"), " ", m.assumed.map((/** @type {any} */ a) => `${a.field} = ${a.value}`).join(", ")) : null),
        h("section", {}, h("h3", {}, c.name), pairs([...c.peaks.map((/** @type {any} */ p) => [`peak ${p.format.toUpperCase()}`, p.value]), ["bandwidth", c.bandwidth], ["memory", c.memory], ["ridge", number("ridge", c.ridge, t("figure.open"))], ["link", c.link === "–" || c.link === "none" ? "" : [cite(c.link), point(","), c.link_rate]], ["grade", named("grade", c.grade)],
          ["source", c.url ? h("a", { href: c.url, rel: "noopener noreferrer", target: "_blank" }, cite(c.source)) : cite(c.source)], ["retrieved", c.retrieved], ["note", say(c.note)]]))));
  };
  return { id: "method", open: draw };
}
