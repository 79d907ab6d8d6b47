// @ts-check
// A fleet: chips and money for a mix of requests, from a preset or a small CSV.

import { fill, h } from "../dom.mjs";
import { rich, say, t } from "../i18n.mjs";
import { table } from "../tabs.mjs";
import { newest } from "./common.mjs";

/** @param {any} page @param {{fields: () => Record<string, string>}} asks */
export function fleet(page, asks) {
  const { state, engine } = page, ask = newest(engine), place = h("div"), problem = h("p", { class: "error", id: "fleet-error", role: "alert" });
  const given = /** @type {Record<string, string>} */ ({ mix: "chat", rate: "10", headroom: "0.2", tpot_s: "", ttft_s: "", objective: "cost" });
  /** @type {any[]} */ let mixes = [];
  let own = "", most = 12;

  async function update() {
    fill(problem);
    try {
      if (!mixes.length) { ({ mixes } = await engine.ask("explore", { do: "mixes" })); drawMix(); }
      const { devices, vendors, kinds, chips, weights, kv } = asks.fields(), fields = Object.fromEntries(Object.entries({ devices, vendors, kinds, chips, weights, kv }).filter(([, v]) => v));
      const found = await ask("explore", { do: "fleet", form: { ...state.form, draft: "", rate: "", prefill_hardware: "" }, fields, given: { ...given, mix: given.mix === "own" ? own : given.mix, headroom: Number(given.headroom) || 0 } });
      if (found) show(found);
    } catch (error) { fill(problem, say(/** @type {Error} */ (error).message)); }
  }

  /** @param {any} found */
  function show(found) {
    const keys = ["title", "layout", "replicas", "batch", "weights", "per_hour", "watts", "busy", "tpot", "ttft"], best = found.rows[0];
    fill(place, h("p", {}, ...(best ? rich("fleet.told", { title: h("strong", {}, best.text.title), per_hour: h("span", { class: "num" }, best.text.per_hour), rate: h("span", { class: "num" }, found.rate), headroom: h("span", { class: "num" }, found.headroom) }) : [t("explore.nothing")])),
      table({ caption: t("fleet.mix"), rows: found.mix, columns: [{ key: "name", label: t("fleet.class") }, { key: "rate", label: t("fleet.rate"), num: true }, { key: "prompt", label: t("field.prompt"), num: true }, { key: "output", label: t("field.output"), num: true }] }),
      h("h3", {}, t("explore.best")), table({ caption: t("explore.best"), rows: found.rows.slice(0, most), columns: [...keys.map((k) => ({ key: k, label: t(`fleet.column.${k}`), num: !["title", "layout", "weights"].includes(k) })), { key: "open", label: h("span", { class: "sr" }, t("explore.open")) }],
        cell: (row, k) => (k === "open" ? h("button", { type: "button", class: "quiet", "aria-label": `${t("explore.open")}: ${row.text.title}`, onclick: () => openScenario(row.fragment) }, t("measured.open.short")) : k === "title" ? h("span", { class: "name" }, row.text.title) : row.text[k]) }),
      found.rows.length > most ? h("button", { type: "button", class: "quiet", onclick: () => { most += 50; show(found); } }, t("measured.more", { n: found.rows.length - most })) : null,
      found.why_not.length ? h("details", { class: "fold" }, h("summary", {}, t("explore.why", { n: found.why_not.length })), table({ caption: t("explore.why", { n: found.why_not.length }), rows: found.why_not, columns: [{ key: "name", label: t("measured.chip") }, { key: "why", label: t("explore.reason") }], cell: (row, k) => (k === "why" ? h("span", { class: "wide" }, say(row.why)) : row[k]) })) : null);
  }

  /** @param {string} fragment */
  async function openScenario(fragment) {
    const { form } = await engine.ask("from_link", { fragment });
    state.replace(form, { push: true });
    document.getElementById("answer")?.scrollIntoView({ block: "start" });
  }

  const mixField = h("div", { class: "field" });
  function drawMix() {
    fill(mixField, h("label", { for: "fleet-mix" }, t("fleet.mix")), h("select", { id: "fleet-mix", onchange: (/** @type {any} */ e) => { given.mix = e.target.value; paste.hidden = given.mix !== "own"; if (given.mix !== "own" || own) update(); } },
      mixes.map((m) => h("option", { value: m.id, selected: given.mix === m.id }, say(m.name).textContent ?? say(m.name))), h("option", { value: "own", selected: given.mix === "own" }, t("fleet.own"))));
  }
  const area = h("textarea", { id: "fleet-csv", rows: 5, spellcheck: "false", placeholder: "name,prompt,output,requests_per_s\nchat,1000,300,8\nreports,12000,800,1", onchange: () => { own = area.value; update(); } }, own);
  const paste = h("div", { class: "field", hidden: true });

  function build() {
    fill(paste, h("label", { for: "fleet-csv" }, t("fleet.csv")), area);
    drawMix();
    const text = (/** @type {string} */ name, /** @type {string} */ empty) => h("div", { class: "field small" }, h("label", { for: `fleet-${name}` }, t(`fleet.${name}`)), h("input", { id: `fleet-${name}`, type: "text", class: "num", value: given[name], placeholder: empty, "aria-describedby": "fleet-error", onchange: (/** @type {any} */ e) => { given[name] = e.target.value.trim(); update(); } }));
    const goal = h("div", { class: "field small" }, h("label", { for: "fleet-objective" }, t("explore.objective")), h("select", { id: "fleet-objective", onchange: (/** @type {any} */ e) => { given.objective = e.target.value; update(); } }, ["cost", "chips", "power"].map((o) => h("option", { value: o, selected: given.objective === o }, t(`fleet.objective.${o}`)))));
    return h("div", {}, h("p", { class: "hint" }, t("fleet.hint")), h("div", { class: "row" }, mixField, text("rate", "10"), text("headroom", "0.2"), text("tpot_s", t("explore.off")), text("ttft_s", t("explore.off")), goal), paste, problem, place);
  }
  return { build, update };
}
