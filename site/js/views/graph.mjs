// @ts-check
// One layer of the model as a graph: what feeds what, from the token's vector at the top to the next layer's at the bottom.
// It draws the rows of the Operators table; nothing is computed anew.

import { bound } from "../answer.mjs";
import { h } from "../dom.mjs";
import { named, say, t } from "../i18n.mjs";

/** @typedef {{name: string, group: string, count: string, bound: string, time: string, share: string, width: number, order: number}} Operator */
/** @typedef {{kind: "step" | "thin" | "sum", rows: Operator[]}} Step */

/** The last matrix of a block, which brings its result back to the width of the residual stream. */
const OUT = /(^|[._])(o_proj|out_proj|out|wo|o|dense|c_proj|down_proj|down|w2|fc2|dense_4h_to_h|output_linear|wo_b)$/;
const FEED = ["mlp", "experts", "shared_experts", "router"], MIX = ["attention_projection", "attention_core", "recurrent"];

/** The steps of a layer in the order in which they run, and what stands before and after all layers. @param {Operator[]} rows */
export function layer(rows) {
  const of = (/** @type {(row: Operator) => boolean} */ wanted) => rows.filter(wanted);
  const inner = (/** @type {Operator} */ row) => Number(row.count.replace(/\D/g, "")) > 1;
  const norms = of((r) => r.group === "norm"), sums = of((r) => r.group === "elementwise"), talk = of((r) => r.group === "collective" && inner(r));
  const core = (/** @type {Operator} */ r) => r.group === "attention_core" || (r.group === "recurrent" && !r.name.includes("."));
  const first = (/** @type {string[]} */ groups) => of((r) => groups.includes(r.group) && !core(r) && !OUT.test(r.name) && r.group !== "router");
  const last = (/** @type {string[]} */ groups) => of((r) => groups.includes(r.group) && !core(r) && OUT.test(r.name));
  const step = (/** @type {Operator[]} */ list, kind = "step") => (list.length ? [{ kind, rows: list }] : []);
  const block = (/** @type {Step[]} */ steps) => (steps.length ? [...step(norms, "thin"), ...steps, ...step(talk, "thin"), ...step(sums, "sum")] : []);
  return {
    before: of((r) => r.group === "embedding"),
    blocks: [
      block([...step(first(MIX)), ...step(of(core)), ...step(last(MIX))]),
      block([...step(of((r) => r.group === "router")), ...step(first(FEED)), ...step(last(FEED))]),
    ].filter((steps) => steps.length),
    after: of((r) => r.group === "lm_head" || r.group === "other" || (r.group === "collective" && !inner(r))),
  };
}

/** @param {Operator} row @param {number} most width of the longest bar */
const box = (row, most) => h("li", { class: `op ${row.bound}` },
  h("span", { class: "op-name" }, say(row.name.split(".").at(-1) ?? ""), " ", h("small", {}, `× ${row.count}`)),
  h("span", { class: "op-time num" }, row.time, " ", h("small", {}, row.share)),
  h("span", { class: "op-bound" }, bound(row.bound)),
  h("i", { class: "op-bar", "aria-hidden": "true", style: { width: `${Math.max(1, (100 * row.width) / most)}%` } }));

/** @param {Operator} row */
const thin = (row) => h("li", { class: `op thin ${row.bound}` }, say(row.name), " ", h("small", {}, t("graph.together", { share: row.share })));

/** @param {Operator[]} rows of one phase @returns {HTMLElement} */
export function graph(rows) {
  const { before, blocks, after } = layer([...rows].sort((a, b) => a.order - b.order)), most = Math.max(...rows.map((r) => r.width)) || 1;
  const list = (/** @type {Operator[]} */ ops) => h("ul", { class: "ops" }, ops.map((row) => box(row, most)));
  // Groups that stand side by side (a dense MLP in some layers, experts and shared experts in others) are named; one alone needs no name.
  const row = (/** @type {Operator[]} */ ops) => {
    const groups = [...new Set(ops.map((r) => r.group))];
    return groups.length < 2 && !groups[0].endsWith("experts") ? list(ops) : h("div", { class: "side" }, groups.map((g) => h("div", {}, h("span", { class: "hint" }, named("group", g)), list(ops.filter((r) => r.group === g)))));
  };
  const steps = (/** @type {Step[]} */ all) => h("ol", { class: "flow" }, all.map(({ kind, rows: ops }) =>
    h("li", { class: kind }, kind === "step" ? row(ops) : h("ul", { class: "ops" }, ops.map(thin)))));
  const outer = (/** @type {Operator[]} */ ops, /** @type {string} */ key) => (ops.length ? h("section", { class: "outer" }, h("h3", {}, t(key)), list(ops)) : null);
  return h("div", { class: "layer-graph" },
    outer(before, "graph.before"),
    h("section", {}, h("h3", {}, t("graph.layer")), blocks.map((steps_) => h("div", { class: "block-box" }, steps(steps_)))),
    outer(after, "graph.after"));
}
