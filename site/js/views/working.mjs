// @ts-check
// The working of a figure: of which question, formula by formula with its values, and the constants with their sources.

import { $, h, number } from "../dom.mjs";
import { openExplanation } from "../explain.mjs";
import { cite, has, named, point, rich, say, t } from "../i18n.mjs";
import { table } from "../tabs.mjs";

/** Figures that the views name already. */
const TITLES = /** @type {Record<string, string>} */ ({
  per_chip: "serving.figure.tokens_per_s_per_device", requests: "serving.figure.requests_per_s", served: "explore.column.throughput",
  "arrivals.mean": "serving.wait.mean", "arrivals.p50": "serving.wait.p50", "arrivals.p90": "serving.wait.p90", "arrivals.p99": "serving.wait.p99", "arrivals.tpot": "serving.wait.tpot", "arrivals.e2e": "serving.wait.e2e",
  "mixed.chunk": "serving.mixed.chunk", "mixed.decode": "serving.mixed.decode", "mixed.step": "serving.mixed.step", "mixed.saved": "serving.mixed.saved", "mixed.ttft": "serving.mixed.ttft",
  "pool.prefill": "serving.pool.prefill", "pool.transfer": "serving.pool.transfer", "pool.hidden": "serving.pool.hidden", "pool.per_device": "serving.pool.per_device", "pool.rate": "serving.pool.rate",
  "price.input": "money.usd_per_million_input_tokens", "price.cached": "money.usd_per_million_cached_input_tokens", all_in: "money.usd_per_million_output_tokens_all_in", hour: "money.per_hour",
  "bought.flops": "money.flops", "bought.bytes": "money.bytes", "energy.input": "energy.input", "energy.watts": "energy.watts", "energy.dram": "energy.dram", "energy.compute": "energy.compute", "energy.rest": "energy.rest",
  "per_joule.flops": "energy.flops", "per_joule.bytes": "energy.bytes",
});

/** What a working is called: by its own words, or those of what it is a part of. @param {string} key */
function titleOf(key) {
  const [whole] = key.split(".");
  return TITLES[key] ?? [`figure.${key}`, `figure.${whole}`].find(has) ?? "figure.open";
}

/** A field that a question changes, with its value. @param {{field: string, value: string}} row */
const change = ({ field, value }) => `${t({ model: "measured.model", hardware: "measured.chip" }[field] ?? `field.${field}`)} ${value === "true" ? t("explain.yes") : value === "false" ? t("explain.no") : value || t("none")}`;

/**
 * @param {any} page @param {HTMLElement} place @param {string} key
 * @param {import("../explain.mjs").Of | (() => Promise<import("../explain.mjs").Of>)} of @param {{name: string, go: () => void}} [back]
 */
export async function working(page, place, key, of, back) {
  const { form = page.state.form, basis = "", than = page.state.form, how = "", title = "" } = typeof of === "function" ? await of() : of, name = title || t(titleOf(key));
  const gloss = [`figure.${key}.gloss`, `${titleOf(key)}.gloss`, `figure.${key.split(".")[0]}.gloss`].find(has);
  const { steps, constants, differs } = await page.engine.ask("explain", { form, key, basis, than, how });
  if (!place.isConnected) return; // another one was opened since
  $("sheet-title").textContent = name;
  const again = { name, go: () => openExplanation(page, key, of, back) };
  /** A value; one that has a working of its own opens it. @param {any} s @param {string} k @param {any} v */
  const value = (s, k, v) => {
    const inner = s.opens?.[k], text = ["bound", "group", "kind"].includes(k) ? named(k, String(v)) : String(v);
    if (!inner) return h("span", { class: "num" }, text);
    const button = number("", text, t("figure.open"));
    delete button.dataset.explain; // opened from here, with the way back
    button.addEventListener("click", () => openExplanation(page, inner, k === "before" ? { form: than, basis } : { form, basis, than }, again));
    return button;
  };
  const way = back && h("button", { type: "button", class: "link", onclick: back.go }, t("explain.back", { name: back.name }));
  place.replaceChildren(
    ...(gloss ? [h("p", {}, t(gloss))] : []),
    ...(differs.length ? [h("p", { class: "of" }, ...rich("explain.of", { changes: h("strong", {}, differs.map(change).join(point(","))) }))] : []),
    h("ol", { class: "steps" }, steps.map((/** @type {any} */ s) => h("li", { class: s.key.startsWith("head.") ? "head" : null }, ...rich(`explain.${s.key}`, Object.fromEntries(Object.entries(s.values).map(([k, v]) => [k, value(s, k, v)])))))),
    h("h3", {}, t("explain.constants")),
    table({
      caption: t("explain.constants"), rows: constants, columns: [{ key: "name", label: t("explain.name") }, { key: "value", label: t("explain.value"), num: true }, { key: "source", label: t("fact.source") }, { key: "grade", label: t("fact.grade") }],
      cell: (row, column) => (column === "source" ? h("span", {}, row.url ? h("a", { href: row.url, rel: "noopener noreferrer", target: "_blank" }, cite(row.source || row.url)) : row.source === "given" ? t("explain.given") : cite(row.source || "–"), row.date ? [point(","), h("span", { class: "num" }, row.date)] : "")
        : column === "name" ? constant(row.name) : column === "grade" ? `${named("grade", row.grade) || "–"}${row.unsure ? ` (${t("explain.unsure")})` : ""}` : row[column]),
    }),
    h("p", { class: "hint" }, t("explain.grades")));
  if (way) { place.prepend(h("p", {}, way)); way.focus(); }
}

/** What a constant is called. @param {string} name */
function constant(name) {
  const [what, format] = name.split(" ");
  return what === "peak" ? t("fact.peak", { format: name.slice(5) }) : what === "pj_per_flop" ? t("fact.pj_per_flop", { format }) : named("fact", name);
}
