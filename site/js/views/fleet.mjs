// @ts-check
// A fleet: chips and money for a mix of requests, from a preset or a small CSV.

import { fill, h } from "../dom.mjs";
import { phrases, rich, say, t } from "../i18n.mjs";
import { table } from "../tabs.mjs";

const DEFAULTS = /** @type {Record<string, string>} */ ({ mix: "chat", rate: "10", headroom: "0.2", tpot_s: "", ttft_s: "", objective: "cost", csv: "" });

/**
 * @param {any} page @param {{fields: () => Record<string, string>, part: (title: string, names: string[]) => any}} asks @param {(name: string, value: string) => void} keep
 * @param {(asking: any) => Promise<any>} through asks step by step until there is an answer
 */
export function fleet(page, asks, keep, through) {
  const { state, engine } = page, place = h("div", { class: "found best" }), asked = h("p", { class: "asked" }), problem = h("p", { class: "error", id: "fleet-error", role: "alert" });
  /** What is asked is in the link, as x.fleet.rate=10. @param {string} name */
  const get = (name) => state.page[`x.fleet.${name}`] ?? DEFAULTS[name];
  /** @param {string} name @param {string} value */
  const set = (name, value) => { keep(`x.fleet.${name}`, value === DEFAULTS[name] ? "" : value); update(); };
  /** @type {any[]} */ let mixes = [];
  let most = 12, held = /** @type {any} */ (null);

  async function update() {
    fill(problem);
    fill(asked, ...rich("fleet.question", { model: h("strong", {}, page.question.label("model")), rate: h("span", { class: "num" }, get("rate") || "–") }));
    try {
      if (!mixes.length) { ({ mixes } = await engine.ask("explore", { do: "mixes" })); drawMix(); }
      if (get("mix") === "own" && !get("csv")) return;
      const { devices, vendors, kinds, chips, weights, kv } = asks.fields(), fields = Object.fromEntries(Object.entries({ devices, vendors, kinds, chips, weights, kv }).filter(([, v]) => v));
      const given = Object.fromEntries(["rate", "tpot_s", "ttft_s", "objective"].map((name) => [name, get(name)]));
      const found = await through({ do: "fleet", form: { ...state.form, draft: "", rate: "", prefill_hardware: "" }, fields, given: { ...given, mix: get("mix") === "own" ? get("csv") : get("mix"), headroom: get("headroom") } });
      if (found) show(found);
    } catch (error) { fill(problem, say(/** @type {Error} */ (error).message)); }
  }

  /** @param {any} found */
  function show(found) {
    held = found;
    const keys = ["title", "per_hour", "watts", "busy", "tpot", "ttft", "layout", "replicas", "batch", "weights"], best = found.rows[0];
    fill(place, h("p", { class: "lead" }, ...(best ? rich("fleet.told", { title: h("strong", {}, best.text.title), per_hour: h("span", { class: "num" }, best.text.per_hour), rate: h("span", { class: "num" }, found.rate), headroom: h("span", { class: "num" }, found.headroom) }) : [t("explore.nothing")])),
      table({ caption: t("fleet.mix"), rows: found.mix, columns: [{ key: "name", label: t("fleet.class") }, { key: "rate", label: t("fleet.rate"), num: true }, { key: "prompt", label: t("field.prompt"), num: true }, { key: "output", label: t("field.output"), num: true }], cell: (row, k) => (k === "name" && get("mix") !== "own" ? say(row.name) : row[k]) }),
      h("h3", {}, t("explore.best")), table({ caption: t("explore.best"), rows: found.rows.slice(0, most), columns: keys.map((k) => ({ key: k, label: t(`fleet.column.${k}`), num: !["title", "layout", "weights"].includes(k) })),
        cell: (row, k) => (k === "title" ? h("button", { type: "button", class: "link wide", title: t("explore.open"), "aria-label": `${t("explore.open")}: ${row.text.title}`, onclick: () => openScenario(row.fragment) }, row.text.title) : row.text[k]) }),
      found.rows.length > most ? h("button", { type: "button", class: "quiet", onclick: () => { most += 50; show(found); } }, t("measured.more", { n: found.rows.length - most })) : null,
      found.why_not.length ? h("details", { class: "fold" }, h("summary", {}, t("explore.why", { n: found.why_not.length })), table({ caption: t("explore.why", { n: found.why_not.length }), rows: found.why_not, columns: [{ key: "name", label: t("measured.chip") }, { key: "why", label: t("explore.reason") }], cell: (row, k) => (k === "why" ? h("span", { class: "wide" }, say(row.why)) : row[k]) })) : null);
  }

  /** @param {string} fragment */
  async function openScenario(fragment) {
    const { form } = await engine.ask("from_link", { fragment });
    state.replace(form, { push: true });
    document.getElementById("answer")?.scrollIntoView({ block: "start" });
  }

  const mixField = h("div", { class: "field whole" }), paste = h("div", { class: "field whole" });
  function drawMix() {
    paste.hidden = get("mix") !== "own";
    const choose = (/** @type {any} */ e) => { paste.hidden = e.target.value !== "own"; set("mix", e.target.value); };
    fill(mixField, h("label", { for: "fleet-mix" }, t("fleet.mix")), h("select", { id: "fleet-mix", onchange: choose },
      mixes.map((m) => h("option", { value: m.id, selected: get("mix") === m.id }, phrases(m.name))), h("option", { value: "own", selected: get("mix") === "own" }, t("fleet.own"))));
  }

  function build() {
    fill(paste, h("label", { for: "fleet-csv" }, t("fleet.csv")), h("textarea", { id: "fleet-csv", rows: 5, spellcheck: "false", maxlength: 4000, placeholder: "name,prompt,output,requests_per_s\nchat,1000,300,8\nreports,12000,800,1", onchange: (/** @type {any} */ e) => set("csv", e.target.value.trim()) }, get("csv")));
    drawMix();
    if (held) show(held);
    const text = (/** @type {string} */ name, /** @type {string} */ empty) => h("div", { class: "field small" }, h("label", { for: `fleet-${name}` }, t(`fleet.${name}`)), h("input", { id: `fleet-${name}`, type: "text", class: "num", value: get(name), placeholder: empty, "aria-describedby": "fleet-error", onchange: (/** @type {any} */ e) => set(name, e.target.value.trim()) }));
    const goal = h("div", { class: "field small" }, h("label", { for: "fleet-objective" }, t("explore.objective")), h("select", { id: "fleet-objective", onchange: (/** @type {any} */ e) => set("objective", e.target.value) }, ["cost", "chips", "power"].map((o) => h("option", { value: o, selected: get("objective") === o }, t(`fleet.objective.${o}`)))));
    return h("div", { class: "ask-space" }, asked, h("p", { class: "hint" }, t("fleet.hint")), h("div", { class: "two-sides" },
      h("fieldset", {}, h("legend", {}, t("explore.group.hold")), h("div", { class: "row" }, mixField, paste, text("rate", "10"), text("headroom", "0.2"), text("tpot_s", t("explore.off")), text("ttft_s", t("explore.off")), goal)),
      asks.part("explore.group.used", ["devices", "vendors", "kinds", "chips", "weights", "kv"])));
  }
  return { build, update, problem, place };
}
