// @ts-check
// Capability against cost: published scores of models beside what they cost on the question's chip under its load.

import { fill, h } from "../dom.mjs";
import { phrases, rich, t } from "../i18n.mjs";
import { segmented, table } from "../tabs.mjs";
import { failed, figure, newest } from "./common.mjs";
import { Curve, apart, roomOf } from "./curve.mjs";

/** @param {any} page */
export function capability(page) {
  const { state, engine } = page, ask = newest(engine), place = h("div"), chart = figure("explore-capability", ""), curve = new Curve(page, chart.box, "capability");
  let against = "price";
  /** @type {any} */ let found = null;

  async function update() {
    try {
      const now = await ask("explore", { do: "capability", form: { ...state.form, config: "", read_as: "", draft: "", draft_model: "" } });
      if (now) { found = now; show(); }
    } catch (error) { failed(place, error); }
  }

  function show() {
    const key = against === "price" ? "x" : "z", shown = found.rows.filter((/** @type {any} */ r) => r[key]), xs = shown.map((/** @type {any} */ r) => r[key]), ys = shown.map((/** @type {any} */ r) => r.y);
    chart.whole.hidden = !shown.length;
    fill(chart.finding, ...rich(`capability.finding.${against}`, { benchmark: found.benchmark }));
    if (shown.length) {
      const range = { x0: Math.min(...xs) / 1.6, x1: Math.max(...xs) * 3, y0: Math.min(...ys) / 1.08, y1: Math.max(...ys) * 1.14 };
      curve.draw({ range, x: t(`capability.${against}`), y: found.benchmark, points: shown.map((/** @type {any} */ r) => ({ x: r[key], y: r.y, color: r.reasoning ? "network" : "compute", marker: r.reasoning ? "diamond" : "circle", size: r.frontier && against === "price" ? 12 : 8, title: r.name, tip: `${r.score}, ${r.price}, ${r.active}` })),
        labels: apart(shown.filter((/** @type {any} */ r) => r.frontier || against !== "price").map((/** @type {any} */ r) => ({ x: r[key], y: r.y, text: r.name.replace(/^Meta-|-Instruct$|-hf$/g, ""), color: r.reasoning ? "network" : "compute", dx: 9 })), range, roomOf(chart.box)) });
    }
    fill(place, table({ caption: t("explore.part.capability"), rows: found.rows.map((/** @type {any} */ r) => ({ ...r, className: r.frontier ? "here" : "" })),
      columns: [{ key: "name", label: t("measured.model") }, { key: "score", label: found.benchmark, num: true }, { key: "active", label: t("capability.active"), num: true }, { key: "devices", label: t("field.devices"), num: true }, { key: "price", label: t("capability.price.short"), num: true }, { key: "tpot", label: t("figure.tpot"), num: true }, { key: "source", label: t("fact.source") }],
      cell: (row, k) => (k === "name" ? h("span", { class: "wide" }, row.name, row.reasoning ? h("small", { class: "block" }, t("capability.reasons")) : null) : k === "source" ? h("a", { href: row.url, target: "_blank", rel: "noopener noreferrer", title: phrases(row.how) }, row.by) : k === "devices" ? row.devices ?? t("capability.none") : row[k]) }));
  }

  const build = () => [found ? show() : fill(chart.finding, t("view.loading")) && null, h("p", { class: "hint" }, t("capability.hint")), segmented(t("capability.against"), ["price", "active"].map((id) => ({ id, text: t(`capability.${id}`) })), against, (id) => { against = id; page.redraw(); }), chart.whole, place];
  return { build, update };
}
