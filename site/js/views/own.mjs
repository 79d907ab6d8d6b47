// @ts-check
// Your own measurement: the output of a benchmark or profiler dropped or pasted, or one number typed; Python reads and places it.

import { bound } from "../answer.mjs";
import { debounce, fill, h } from "../dom.mjs";
import { named, phrases, rich, say, t, turning } from "../i18n.mjs";
import { table } from "../tabs.mjs";
import { SHOWN, decoded, facts, figure, newest, takeLong } from "./common.mjs";
import { Curve, apart, roomOf } from "./curve.mjs";

const LIMIT = 3_500_000; // characters; a request holds no more
const METRICS = ["user", "total", "tpot", "ttft", "prefill"];

/** @param {any} page */
export function own(page) {
  const { state, engine } = page;
  const ask = newest(engine), result = h("div", { id: "own-result" }), problem = h("p", { class: "error", id: "own-error", role: "alert" });
  const chart = { ...figure("own-chart") };
  /** @type {any} */ let curve = null;
  /** What was found, and what went wrong: said again where the language changes. @type {any} */ let answered = null, wrong = /** @type {any} */ (null);
  const turned = turning(), refuse = (/** @type {() => any} */ why) => { wrong = why; fill(problem, why()); };
  /** @type {any} what was last asked, to place it anew when the question changes */ let asked = null;
  const area = h("textarea", { id: "own-text", rows: 7, spellcheck: "false", placeholder: "| model | size | params | backend | ngl | test | t/s |", "aria-describedby": "own-error", oninput: () => { name = held = ""; } });
  const flight = h("input", { id: "own-flight", type: "text", class: "num", inputmode: "numeric", autocomplete: "off" });
  const metric = h("select", { id: "own-metric" }), value = h("input", { id: "own-value", type: "text", class: "num", autocomplete: "off", "aria-describedby": "own-error", onkeydown: (/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") number(); } });
  let name = "", held = ""; // a file's name; a text too long to be shown
  takeLong(area, (text) => hold(text, ""));

  const text = () => place({ text: held || area.value, name, in_flight: flight.value.trim() });
  const number = () => place({ metric: metric.value, value: value.value.trim() });

  /** @param {any} what */
  async function place(what) {
    asked = what;
    wrong = null;
    fill(problem);
    if (what.text && what.text.length > LIMIT) return refuse(() => t("own.large"));
    fill(result, h("p", { class: "hint" }, t("own.reading")));
    try {
      await engine.load("library");
      const found = await ask("place", { form: state.form, ...what });
      if (found && asked === what) show(found);
    } catch (error) {
      if (asked !== what) return;
      answered = null;
      fill(result);
      refuse(() => say(/** @type {Error} */ (error).message));
    }
  }

  /** @param {any} found */
  function show(found) {
    answered = found;
    const rows = found.rows.map((/** @type {any} */ r) => ({ ...r, className: r.above ? "over" : "" })), several = rows.length > 1;
    fill(result, found.tool ? h("p", {}, ...rich("own.read", { tool: h("strong", {}, found.tool), n: h("span", { class: "num" }, String(rows.length)) })) : null,
      found.assumed.length ? h("ul", { class: "notes" }, found.assumed.map((/** @type {string} */ note) => h("li", {}, say(note)))) : null,
      found.chart ? chart.whole : null,
      table({ caption: t("measured.part.own"), rows, columns: [{ key: "value", label: t("own.value"), num: true }, { key: "metric", label: t("own.metric") }, ...(several ? [{ key: "what", label: t("own.what") }] : []), { key: "verdict", label: t("own.verdict") }, { key: "of_limit", label: t("own.of_limit"), num: true }, { key: "of_expected", label: t("own.of_expected"), num: true }, { key: "bandwidth", label: t("own.bandwidth"), num: true }, { key: "flops", label: t("own.flops"), num: true }, { key: "bound", label: t("op.bound") }, { key: "open", label: h("span", { class: "sr" }, t("measured.open")) }],
        cell: (row, key) => (key === "bound" ? (row.bound === "plain" ? "–" : bound(row.bound)) : key === "metric" ? named("own.metric", row.metric) : key === "what" ? h("span", {}, row.what, row.model && h("small", { class: "block" }, row.model)) : key === "of_limit" ? h("span", { class: row.above ? "worse" : "" }, row.of_limit)
          : key === "verdict" ? h("span", { class: "wide" }, say(row.verdict), row.culprits.length ? h("details", {}, h("summary", {}, t("own.culprits")), h("ol", { class: "plain" }, row.culprits.map((/** @type {string} */ c) => h("li", {}, say(c))))) : null)
            : key === "open" ? h("button", { type: "button", class: "quiet", "aria-label": `${t("measured.open")}: ${row.value}`, onclick: () => openScenario(row.fragment) }, t("measured.open.short")) : row[key]) }),
      found.more ? h("p", { class: "hint" }, t("own.more", { n: found.more })) : null,
      found.warnings.length ? h("ul", { class: "hint plain" }, found.warnings.map((/** @type {string} */ w) => h("li", {}, say(w)))) : null,
      found.facts.length ? h("details", { class: "table-behind" }, h("summary", {}, t("own.facts")), h("div", { lang: "en" }, facts(found.facts.map((/** @type {any} */ f) => [f.name, f.value])))) : null);
    if (found.chart) draw(found.chart, rows.filter((/** @type {any} */ r) => r.x && r.y));
  }

  /** @param {any} roofs @param {any[]} rows */
  function draw(roofs, rows) {
    curve ??= new Curve(page, chart.box, "own");
    fill(chart.finding, t("own.finding", { chip: roofs.name }));
    const top = roofs.roofs.at(-1);
    curve.draw({ range: roofs.range, x: t("chart.x.short"), y: t("chart.y"),
      lines: [{ ...roofs.memory, color: "memory" }, ...roofs.roofs.map((/** @type {any} */ r) => ({ xs: r.xs, ys: r.ys, color: "compute", width: r === top ? 2 : 1, alpha: r === top ? 1 : 0.6 })), ...rows.filter((r) => r.top).map((r) => ({ xs: [r.x, r.x], ys: [r.y, r.top], color: "muted", width: 1, dash: "dotted" }))],
      points: [...rows.filter((r) => r.top).map((r) => ({ x: r.x, y: r.top, color: r.bound, size: 9, alpha: 0, marker: "circle", title: t("own.limit"), tip: `${r.limit}` })), ...rows.map((r) => ({ x: r.x, y: r.y, color: r.above ? "misfit" : r.bound, marker: r.phase === "prefill" ? "square" : r.phase === "decode" ? "circle" : "diamond", size: 12, title: `${r.value} ${r.what}`, tip: phrases(r.verdict) }))],
      labels: [...apart(roofs.roofs.map((/** @type {any} */ r) => ({ x: roofs.range.x1, y: r.ys[0], text: r.label, color: "compute", align: "right", dx: -4, dy: 0 })), roofs.range, roomOf(chart.box)).map((/** @type {any} */ l) => ({ ...l, dy: l.dy - 8 })), { x: roofs.range.x0, y: roofs.memory.ys[0], text: roofs.memory.label, color: "memory", dx: 8, dy: -10 }] });
  }

  /** @param {string} fragment */
  async function openScenario(fragment) {
    const { form } = await engine.ask("from_link", { fragment });
    state.replace(form, { push: true });
  }

  async function take(/** @type {File | undefined} */ file) {
    if (!file) return;
    document.body.classList.remove("dropping");
    if (file.size > LIMIT) return refuse(() => t("own.large"));
    hold(decoded(await file.arrayBuffer()), file.name);
  }

  /** Take a text over and place it. @param {string} whole @param {string} from */
  function hold(whole, from) {
    name = from;
    held = whole.length > SHOWN ? whole : "";
    area.value = held ? "" : whole;
    text();
  }

  function build() {
    if (turned()) {
      if (answered) show(answered);
      if (wrong) fill(problem, wrong());
    }
    const chosen = metric.value;
    fill(metric, METRICS.map((id) => h("option", { value: id }, t(`own.metric.${id}`))));
    if (chosen) metric.value = chosen;
    const file = h("input", { id: "own-file", type: "file", "aria-label": t("paste.file"), onchange: () => take(file.files[0]) });
    return [h("div", { class: "own", ondragover: (/** @type {DragEvent} */ e) => e.preventDefault(), ondrop: (/** @type {DragEvent} */ e) => { e.preventDefault(); e.stopPropagation(); take(e.dataTransfer?.files[0]); } },
      h("section", { class: "piece" }, h("h3", {}, h("label", { for: "own-text" }, t("own.paste"))), h("p", { class: "hint" }, t("own.hint")), area,
        h("div", { class: "row" }, file, h("div", { class: "field small" }, h("label", { for: "own-flight" }, t("own.flight")), flight), h("button", { type: "button", class: "solid", id: "own-place", onclick: text }, t("own.place")))),
      h("section", { class: "piece" }, h("h3", {}, t("own.number")), h("p", { class: "hint" }, t("own.number.hint")),
        h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "own-metric" }, t("own.metric")), metric), h("div", { class: "field small" }, h("label", { for: "own-value" }, t("own.value")), value), h("button", { type: "button", class: "solid", id: "own-number", onclick: number }, t("own.place"))))), problem, result];
  }
  const again = debounce(() => { if (asked && engine.ready) place(asked); }, 200);
  let form = state.form;
  return { build, update: () => { if (form !== state.form) { form = state.form; again(); } } };
}
