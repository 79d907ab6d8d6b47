// @ts-check
// Serving: what users and the whole deployment get, queues, chunks, drafts, pools, the engine's memory, money and energy,
// the best layouts, experts and turning points. Every number comes written from roofline/view_serving.py.

import { bound } from "../answer.mjs";
import { debounce, fill, h, toast } from "../dom.mjs";
import { worked } from "../explain.mjs";
import { cite, named, point, rich, say, t, turning } from "../i18n.mjs";
import { segmented, table } from "../tabs.mjs";
import { bar, failed, fields, figure, facts, newest, partOf } from "./common.mjs";
import { Curve, apart, around } from "./curve.mjs";

/** Which working a number opens, by the words and the key of its row. */
const WORKING = /** @type {Record<string, Record<string, string>>} */ ({
  "serving.figure": { ttft_s: "ttft", tpot_s: "tpot", tokens_per_s_per_user: "user", tokens_per_s: "total", tokens_per_s_per_device: "per_chip", requests_per_s: "requests" },
  money: { usd_per_million_input_tokens: "price.input", usd_per_million_cached_input_tokens: "price.cached", usd_per_million_output_tokens: "cost", usd_per_million_output_tokens_all_in: "all_in" },
  "serving.pool": { ttft: "ttft" },
  told: { utilisation: "arrivals.utilisation", capacity: "arrivals.capacity", batch: "arrivals.batch", prefill_share: "arrivals.prefill_share" },
  drafts: { speedup: "speedup", tokens: "accepted", draft: "draft", plain: "plain", tpot: "tpot", verify: "phase.decode" },
  pools: { prefill_instances: "pool.ratio", decode_instances: "pool.ratio", chips: "pool.chips" }, even: { rate: "even.rate", share: "even.share" }, energy: { output: "energy.output", watts: "energy.watts" },
});
/** The rest are named alike. */
const NAMED = /** @type {Record<string, string>} */ ({ "serving.wait": "arrivals", "serving.mixed": "mixed", "serving.pool": "pool" });
const workingOf = (/** @type {string} */ words, /** @type {string} */ key) => WORKING[words]?.[key] ?? (NAMED[words] ? `${NAMED[words]}.${key}` : "");

/** @param {any} page */
export function view(page) {
  const { state, engine } = page;
  const ask = newest(engine), askLayouts = newest(engine), askQueue = newest(engine);
  const places = /** @type {Record<string, any>} */ ({}), charts = /** @type {Record<string, any>} */ ({});
  /** @type {HTMLElement} */ let panel;
  /** @type {any} */ let bound_fields;
  let part = "load", goal = "throughput", asked = state.form; // the question of the answer on show
  /** The last answer of each part, and the queue's: said at once where the language changes. */
  const held = /** @type {Record<string, any>} */ ({}), turned = turning();

  const place = (/** @type {string} */ name) => (places[name] = h("div"));
  const chart = (/** @type {string} */ name) => {
    charts[name] ??= { ...figure(`serving-${name}`) };
    charts[name].curve ??= new Curve(page, charts[name].box, name);
    fill(charts[name].finding, t("view.loading"));
    return charts[name].whole;
  };
  const num = (/** @type {any} */ value) => h("span", { class: "num" }, String(value));
  const nums = (/** @type {any} */ values) => Object.fromEntries(Object.entries(values ?? {}).filter(([, v]) => typeof v !== "object").map(([k, v]) => [k, num(v)]));
  /** Numbers of a sentence that open their working. @param {any} values @param {string} words @param {string} [basis] */
  const opening = (values, words, basis = "expected") => ({ ...nums(values), ...Object.fromEntries(Object.entries(WORKING[words]).filter(([k]) => values[k] !== undefined && !(k.endsWith("_instances") && values[k] === "1")).map(([k, key]) => [k, worked(key, String(values[k]), { form: asked, basis })])) });
  const section = (/** @type {string} */ id, /** @type {any[]} */ ...content) => h("section", { class: "piece", id: `serving-${id}-section` }, h("h3", {}, t(`serving.${id}`)), content);
  const twoColumns = (/** @type {any[]} */ rows, /** @type {string} */ prefix, /** @type {string} */ caption, gloss = true) => {
    const expected = rows.some((r) => r.expected !== "–");
    return table({ caption, rows, columns: [{ key: "key", label: h("span", { class: "sr" }, t("serving.name")) }, { key: "limit", label: t("at_most"), num: true }, ...(expected ? [{ key: "expected", label: t("row.expected"), num: true }] : [])],
      cell: (row, key) => (key === "key" ? h("span", { class: "wide" }, ...rich(`${prefix}.${row.key}`), gloss && h("small", { class: "block" }, t(`${prefix}.${row.key}.gloss`))) : worked(workingOf(prefix, row.key), row[key], { form: asked, basis: key })) });
  };
  const small = (/** @type {any[]} */ rows, /** @type {string} */ prefix) => facts(rows.map((r) => [h("span", {}, ...rich(`${prefix}.${r.key}`)), worked(workingOf(prefix, r.key), r.value, { form: asked, basis: "limit" })]));

  // What stands still is built once per opening, so that a field keeps its focus while answers come in.
  const BUILD = /** @type {Record<string, () => any>} */ ({
    load: () => [section("figures", place("figures")),
      section("arrivals", h("p", { class: "hint" }, t("serving.arrivals.hint")), h("div", { class: "row" }, bound_fields.text("rate", t("none"))), place("arrivals"), chart("queue"), place("queue")),
      h("div", { class: "two-tables" },
        section("mixed", h("p", { class: "hint" }, ...rich("serving.mixed.hint")), h("div", { class: "row" }, bound_fields.text("chunk", "0")), place("mixed")),
        section("speculation", h("p", { class: "hint" }, ...rich("serving.speculation.hint")), h("div", { class: "row" }, bound_fields.text("draft", "0"), bound_fields.text("acceptance", "0.7"), bound_fields.choice("draft_model", "model")), place("speculation")),
        section("pools", h("p", { class: "hint" }, ...rich("serving.pools.hint")), h("div", { class: "row" }, bound_fields.choice("prefill_hardware", "hardware"), bound_fields.text("prefill_devices", t("auto"))), place("pools")))],
    memory: () => [section("reserve", h("p", { class: "hint" }, t("serving.reserve.hint")), h("div", { class: "row" }, bound_fields.text("utilisation", "0.9"), bound_fields.text("block", "16"), bound_fields.text("overhead", t("auto"))), place("reserve"))],
    money: () => [section("money", h("div", { class: "row" }, [["usd_per_hour", ""], ["purchase_usd", t("none")], ["years", "3"], ["usd_per_kwh", "0"], ["pue", "1"], ["api_usd_per_million", t("none")]].map(([name, empty]) => bound_fields.text(name, empty))), place("money")), section("energy", place("energy"))],
    layouts: () => [section("layouts", place("layouts"))],
    experts: () => [section("experts", place("experts"), h("div", { class: "two-charts" }, chart("experts"), chart("placement")), place("expert-rows"))],
    turns: () => [section("turns", place("turns"))],
  });

  const DRAW = /** @type {Record<string, (r: any) => void>} */ ({
    load(r) {
      fill(places.figures, r.timed ? null : h("p", { class: "hint" }, t("serving.untimed")), twoColumns(r.figures, "serving.figure", t("serving.figures")));
      const a = r.arrivals;
      fill(places.arrivals, !a ? null : !a.stable ? h("p", { class: "error" }, ...rich("serving.arrivals.unstable", opening(a, "told")))
        : [h("p", {}, ...rich("serving.arrivals.told", opening(a, "told"))), twoColumns(a.rows, "serving.wait", t("serving.arrivals"), false)]);
      fill(places.mixed, r.mixed ? [h("p", {}, ...rich("serving.mixed.told", { ...nums(r.mixed), bound: bound(r.mixed.bound, false) })), small(r.mixed.rows, "serving.mixed")] : null);
      const s = r.speculation, e = s?.expected;
      fill(places.speculation, s ? [h("p", {}, ...rich(s.pays ? "serving.speculation.pays" : "serving.speculation.loses", opening(s, "drafts", "limit"))), e ? h("p", {}, ...rich(e.pays ? "serving.speculation.expected.pays" : "serving.speculation.expected.loses", { ...opening(e, "drafts"), verify: num(e.verify) })) : null,
        h("p", { class: "hint" }, ...rich("serving.speculation.assumed", nums({ acceptance: s.acceptance, fed: s.fed }))),
        table({ caption: t("serving.speculation"), rows: s.rows.map((/** @type {any} */ row) => ({ ...row, className: row.here ? "here" : "" })), columns: [{ key: "batch", label: t("field.batch"), num: true }, { key: "speedup", label: t("serving.speculation.speed"), num: true }, ...(e ? [{ key: "expected", label: t("serving.speculation.speed.expected"), num: true }] : [])],
          cell: (row, key) => (key === "batch" ? row.batch : h("span", { class: row[key === "speedup" ? "pays" : "expected_pays"] ? "better" : "worse" }, worked("speedup", row[key], { form: { ...asked, batch: row.batch.replaceAll(",", ""), rate: "", chunk: "" }, basis: key === "speedup" ? "limit" : "expected" }))) })]
        : h("button", { type: "button", class: "quiet", onclick: () => attempt({ draft: "4" }, () => t("field.draft")) }, t("serving.speculation.try")));
      const p = r.pools;
      fill(places.pools, !p ? null : [h("p", {}, ...rich(p.fits ? "serving.pools.told" : "serving.pools.misfit", { ...opening(p, "pools", "limit"), hardware: page.question.nameOf("chips", p.hardware) })), p.fits ? small(p.rows, "serving.pool") : null]);
      charts.queue.whole.hidden = !r.timed;
      queueSoon();
    },
    memory(r) {
      const m = r.reserve;
      fill(places.reserve, !m ? h("p", {}, t("serving.reserve.unknown")) : [
        h("p", {}, ...rich(m.fits ? "serving.reserve.fits" : "serving.reserve.misfit", nums(m))), bar(m.parts, (key) => t(`reserve.${key}`), "part"),
        h("div", { class: "two-tables" }, table({ caption: t("serving.reserve"), rows: m.parts, columns: [{ key: "key", label: t("memory.part") }, { key: "text", label: t("memory.size"), num: true }, { key: "share", label: t("op.share"), num: true }],
          cell: (row, key) => (key === "key" ? h("span", {}, h("i", { class: `swatch part-${row.key}`, "aria-hidden": "true" }), " ", t(`reserve.${row.key}`)) : row[key]) }), small(m.facts, "reserve.fact")),
        h("p", { class: "hint" }, t("serving.assumed")), h("ul", { class: "hint plain" }, m.assumptions.map((/** @type {string} */ text) => h("li", {}, say(text))))]);
    },
    money(r) {
      const m = r.money, e = r.energy;
      document.getElementById("v-usd_per_hour")?.setAttribute("placeholder", m.price);
      fill(places.money, m.rows.length ? twoColumns(m.rows, "money", t("serving.money")) : h("p", { class: "hint" }, t(m.known ? "serving.untimed" : "explain.cost.unknown")),
        h("div", { class: "two-tables" }, facts([[t("money.per_hour"), worked("hour", m.per_hour, { form: asked })], [t("money.flops"), worked("bought.flops", m.flops, { form: asked })], [t("money.bytes"), worked("bought.bytes", m.bytes, { form: asked })]]),
          m.even ? h("p", {}, ...rich(m.even.reachable ? "money.even" : "money.never", opening(m.even, "even"))) : h("p", { class: "hint" }, t("money.even.hint"))),
        m.source ? h("p", { class: "hint" }, t("fact.source"), point(":"), m.source === "given" ? t("money.given") : cite(m.source)) : null);
      fill(places.energy, !e.known ? h("p", { class: "hint" }, t("energy.unknown")) : [h("p", {}, ...rich("energy.told", opening(e, "energy"))), bar(e.parts, (key) => t(`energy.${key}`), "energy"),
        h("div", { class: "two-tables" }, table({ caption: t("serving.energy"), rows: e.parts, columns: [{ key: "key", label: t("memory.part") }, { key: "text", label: t("energy.per_token"), num: true }, { key: "share", label: t("op.share"), num: true }],
          cell: (row, key) => (key === "key" ? h("span", {}, h("i", { class: `swatch energy-${row.key}`, "aria-hidden": "true" }), " ", t(`energy.${row.key}`)) : key === "text" ? worked(`energy.${row.key}`, row.text, { form: asked, basis: "expected" }) : row[key]) }),
        facts([[t("energy.input"), worked("energy.input", e.input, { form: asked, basis: "expected" })], [t("energy.watts"), worked("energy.watts", e.watts, { form: asked })], [t("energy.flops"), worked("per_joule.flops", e.flops, { form: asked })], [t("energy.bytes"), worked("per_joule.bytes", e.bytes, { form: asked })], [t("energy.pj"), `${e.pj_per_byte} pJ/B`]])),
        table({ caption: t("energy.groups"), rows: e.groups, columns: [{ key: "group", label: t("op.group") }, { key: "dram", label: t("energy.dram"), num: true }, { key: "compute", label: t("energy.compute"), num: true }], cell: (row, key) => (key === "group" ? named("group", row.group) : worked(`energy.${key}.${row.group}`, row[key], { form: asked })) }),
        h("p", { class: "hint" }, t("fact.source"), point(":"), [e.dram_source, e.compute_source].filter(Boolean).flatMap((text, i) => [i ? point(";") : "", cite(text)]))]);
    },
    experts(r) {
      for (const name of ["experts", "placement"]) charts[name].whole.hidden = !r.experts;
      if (r.experts) return experts(r.experts);
      fill(places.experts, h("p", { class: "hint" }, t("experts.none")));
      fill(places["expert-rows"]);
    },
    turns(r) {
      const f = r.flips;
      fill(places.turns, h("p", { class: "hint" }, t("turns.hint")), table({ caption: t("flips"), rows: f.groups, columns: [{ key: "group", label: t("op.group") }, { key: "batch", label: t("turns.batch"), num: true }], cell: (row, key) => (key === "group" ? named("group", row.group) : row[key]) }),
        h("ul", { class: "flips" }, f.kv_context ? h("li", {}, ...rich("flips.kv", { context: num(f.kv_context) })) : null, h("li", {}, ...rich(`turns.speculation.${f.speculation.state}`, nums(f.speculation)))));
    },
  });

  /** @param {Record<string, string>} change @param {() => string} what */
  const attempt = (change, what) => { state.set(change, { push: true }); toast(() => t("applied", { what: what() }), () => t("undo"), () => state.undo()); };

  async function layouts() {
    try {
      const form = state.form, result = await askLayouts("layouts", { form, goal });
      if (!result || part !== "layouts" || panel.hidden) return;
      asked = form;
      showLayouts(result);
    } catch (error) { failed(places.layouts, error); }
  }

  /** @param {any} result */
  function showLayouts(result) {
    const goals = ["throughput", "tpot", "ttft", "cost"], names = ["tp", "pp", "ep", "dp", "batch"];
    const written = (/** @type {any} */ row) => names.slice(0, 4).filter((n, i) => row[n] !== "1" || (!i && names.slice(1, 4).every((m) => row[m] === "1"))).map((n) => `${named("short", n)} ${row[n]}`).join(", ");
    held.layouts = result;
    for (const note of panel.querySelectorAll(".wait")) note.remove();
    fill(places.layouts, h("div", { class: "panel-top" }, segmented(t("levers.goal"), goals.map((id) => ({ id, text: t(`goal.${id}`) })), goal, (id) => { goal = id; layouts(); }), h("p", { class: "hint" }, t("layouts.hint", result))), table({
        caption: t("layouts"), rows: result.rows.map((/** @type {any} */ row) => ({ ...row, className: names.every((n) => String(page.latest().view.facts.layout[n] ?? state.get(n)) === row[n]) ? "here" : "" })),
        columns: [{ key: "layout", label: t("fleet.column.layout") }, { key: "bound", label: t("op.bound") }, ...["tpot", "ttft", "user", "total"].map((key) => ({ key, label: t(`figure.${key}`), num: true })), { key: "batch", label: named("short", "batch"), num: true }],
        cell: (row, key) => (key === "bound" ? bound(row.bound) : key === "layout" ? h("button", { type: "button", class: "link", title: t("apply"), "aria-label": `${t("apply")}: ${names.map((n) => `${named("short", n)} ${row[n]}`).join(", ")}`,
          onclick: () => attempt({ devices: result.devices, ...Object.fromEntries(names.map((n) => [n, row[n]])) }, () => written(row)) }, written(row)) : worked(key === "batch" ? "" : key, row[key], { form: { ...asked, devices: result.devices, ...Object.fromEntries(names.map((n) => [n, row[n]])) }, basis: "expected" })) }));
  }

  const queueSoon = debounce(async () => {
    const form = state.form, rows = /** @type {any[]} */ ([]);
    try {
      for (let start = /** @type {number | null} */ (0); start !== null;) {
        const found = await askQueue("queue", { form, start });
        if (!found || state.form !== form || part !== "load" || panel.hidden) return;
        rows.push(...found.rows);
        start = found.next;
        held.queue = { rows: rows.sort((a, b) => a.x - b.x), capacity: found.capacity };
        drawQueue(rows, found.capacity);
      }
    } catch (error) { failed(charts.queue.finding, error); }
  }, 250);

  /** @param {any[]} rows @param {string} capacity */
  function drawQueue(rows, capacity) {
    charts.queue.whole.hidden = !rows.length;
    if (!rows.length) return fill(places.queue);
    const keys = ["p50", "p90", "p99", "tpot"], colors = ["ink", "accent", "memory", "muted"], here = rows.find((r) => r.here), xs = rows.map((r) => r.x), last = rows.at(-1);
    const range = around(xs, rows.flatMap((r) => keys.map((k) => r[k])), 1.2, charts.queue.box.clientWidth < 500 ? 8 : 2.4);
    fill(charts.queue.finding, ...rich("queue.finding", { capacity: num(capacity) }));
    charts.queue.curve.draw({
      range, x: t("queue.x"), y: t("queue.y"), lines: [...keys.map((k, i) => ({ xs, ys: rows.map((r) => r[k]), color: colors[i], dash: k === "tpot" ? "dashed" : "solid" })), ...(here ? [{ xs: [here.x, here.x], ys: [range.y0, range.y1], color: "muted", dash: "dotted", width: 1.5 }] : [])],
      points: keys.flatMap((k, i) => rows.map((r) => ({ x: r.x, y: r[k], color: colors[i], size: r.here ? 10 : 5, title: `${r.label} ${t("queue.unit")}`, tip: `${t(`queue.${k}`)} ${r.text[k]}` }))),
      labels: apart(keys.map((k, i) => ({ x: last.x, y: last[k], text: t(`queue.${k}.short`), color: colors[i], dx: 8 })), range),
    });
    fill(places.queue, h("details", { class: "table-behind" }, h("summary", {}, t("chart.table")), table({ caption: t("serving.arrivals"), rows: rows.map((r) => ({ x: r.x, label: r.label, ...r.text, className: r.here ? "here" : "" })),
      columns: [{ key: "label", label: t("queue.x"), num: true }, { key: "utilisation", label: t("queue.busy"), num: true }, { key: "batch", label: t("queue.batch"), num: true }, ...keys.map((key) => ({ key, label: t(`queue.${key}`), num: true }))],
      cell: (row, key) => (key === "label" ? row.label : worked(`arrivals.${key}`, row[key], { form: { ...state.form, rate: String(row.x), prefill_hardware: "" }, than: state.form, basis: "expected" })) })));
  }

  /** @param {any} e */
  function experts(e) {
    fill(places.experts, h("p", {}, ...rich("experts.told", nums({ experts: e.experts, active: e.active }))));
    fill(charts.experts.finding, ...rich("experts.finding", nums(e)));
    fill(charts.placement.finding, ...rich("placement.finding"));
    const end = e.batch.at(-1), lines = [{ xs: e.batch, ys: e.least, color: "muted", dash: "dashed" }, ...(e.skewed ? [{ xs: e.batch, ys: e.uniform, color: "muted" }] : []), { xs: e.batch, ys: e.routing, color: "memory", width: 2.5 }];
    charts.experts.curve.draw({ range: { x0: 0.8, x1: end * 1.3, y0: e.least[0] / 1.5, y1: Math.max(...e.uniform) * 1.5 }, x: t("experts.x"), y: t("experts.y"), lines,
      points: e.batch.map((/** @type {number} */ b, /** @type {number} */ i) => ({ x: b, y: e.routing[i], color: "memory", size: i === e.at ? 12 : 6, title: `${t("field.batch")} ${e.rows[i].batch}`, tip: `${e.rows[i].routing} / ${e.experts}` })),
      labels: [{ x: end, y: e.least[0], text: t("experts.ideal"), color: "muted", align: "right", dy: 12 }, { x: 1, y: e.routing[0], text: t("experts.actual"), color: "memory", dx: 10, dy: -14 }] });
    const [x0, x1] = [e.range[0] / 2, e.range[1] * 2], at = e.at, both = ["ideal", "actual"];
    charts.placement.curve.draw({ range: { x0, x1, y0: x0 * e.memory, y1: e.peak * 2 }, x: t("chart.x.short"), y: t("chart.y"),
      lines: [{ xs: [x0, e.ridge], ys: [x0 * e.memory, e.peak], color: "memory" }, { xs: [e.ridge, Math.max(x1, e.ridge)], ys: [e.peak, e.peak], color: "compute" }, ...both.map((k) => ({ xs: e.points[k].x, ys: e.points[k].y, color: k === "ideal" ? "muted" : "accent", width: 1, alpha: 0.6, dash: "dotted" }))],
      points: both.flatMap((k) => e.batch.map((/** @type {number} */ b, /** @type {number} */ i) => ({ x: e.points[k].x[i], y: e.points[k].y[i], color: k === "ideal" ? "muted" : "accent", marker: k === "ideal" ? "diamond" : "circle", size: i === at ? 14 : 6, alpha: i === at ? 0.95 : 0.5, title: `${t(`experts.${k}`)}, ${t("field.batch")} ${e.rows[i].batch}`, tip: `${e.rows[i][k]} FLOP/byte` }))),
      labels: both.map((k) => ({ x: e.points[k].x[at], y: e.points[k].y[at], text: t(`experts.${k}`), color: k === "ideal" ? "muted" : "accent", align: k === "ideal" || at < 2 ? "left" : "right", dx: k === "ideal" || at < 2 ? 12 : -12, dy: k === "ideal" && at < 2 ? 20 : 6 })) });
    fill(places["expert-rows"], h("details", { class: "table-behind" }, h("summary", {}, t("chart.table")), table({ caption: t("serving.experts"), rows: e.rows.map((/** @type {any} */ r) => ({ ...r, className: r.here ? "here" : "" })),
      columns: [{ key: "batch", label: t("field.batch"), num: true }, { key: "routing", label: t("experts.read"), num: true }, { key: "least", label: t("experts.least"), num: true }, { key: "bytes", label: t("experts.bytes"), num: true }, { key: "actual", label: t("experts.actual.x"), num: true }, { key: "ideal", label: t("experts.ideal.x"), num: true }] })));
  }

  async function update() {
    bound_fields.show();
    if (!engine.ready) return;
    if (part === "layouts") return layouts();
    const form = state.form;
    panel.classList.add("busy");
    try {
      const result = await ask("serving", { form, part });
      if (!result || panel.hidden || form !== state.form || result.part !== part) return;
      panel.classList.remove("busy");
      for (const note of panel.querySelectorAll(".wait")) note.remove();
      asked = form;
      DRAW[part](held[part] = result);
    } catch (error) {
      panel.classList.remove("busy");
      if (/** @type {any} */ (error).kind !== "input") return failed(panel, error);
      for (const note of panel.querySelectorAll(".wait")) fill(note, say(/** @type {Error} */ (error).message)); // where an answer stands already, it stays
    }
  }
  const soon = debounce(update, 80);

  /** @param {HTMLElement} target */
  function open(target) {
    panel = target;
    part = partOf(page, Object.keys(BUILD));
    bound_fields = fields(page);
    fill(panel, h("div", { class: "panel-top" }, segmented(t("tab.serving"), Object.keys(BUILD).map((id) => ({ id, text: t(`serving.part.${id}`) })), part, (id) => { part = state.page.part = id; state.writeAddress(); open(panel); /** @type {any} */ (panel.querySelector("[aria-pressed=true]"))?.focus(); })), BUILD[part](), h("p", { class: "hint wait" }, t("waiting")));
    if (turned() && held[part]) {
      panel.querySelector(".wait")?.remove();
      if (part === "layouts") showLayouts(held.layouts);
      else DRAW[part](held[part]);
      if (part === "load" && held.queue) drawQueue(held.queue.rows, held.queue.capacity);
    }
    update();
  }
  return { open, update: soon };
}
