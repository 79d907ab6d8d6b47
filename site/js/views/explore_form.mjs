// @ts-check
// What an exploration asks: the same flat fields as on the command line, kept in the link (x.tpot=33ms), with sliders for the limits.

import { fill, h } from "../dom.mjs";
import { named, t } from "../i18n.mjs";
import { pick } from "../picker.mjs";

const TPOT = ["5 ms", "7 ms", "10 ms", "15 ms", "20 ms", "25 ms", "33 ms", "50 ms", "75 ms", "100 ms", "150 ms", "200 ms", "400 ms", ""];
const TTFT = ["50 ms", "100 ms", "200 ms", "350 ms", "500 ms", "1 s", "2 s", "3 s", "5 s", "10 s", "30 s", ""];
const OBJECTIVES = ["cost", "output-cost", "throughput", "latency", "ttft-alone", "energy"];
const WEIGHTS = ["auto", "bf16", "fp8", "int4-g128", "nvfp4", "mxfp4"], KV = ["auto", "fp8", "int4"];
const COUNTS = ["1", "2", "4", "8", "16", "32", "64"];
const MORE = ["batches", "prompts", "outputs", "hits", "drafts", "prefill", "levers", "usd_per_million", "requests", "most_chips"];
const DEFAULTS = /** @type {Record<string, string>} */ ({ devices: "8", weights: "auto,fp8", tpot: "33 ms", objective: "cost", basis: "limit" });

/** @param {any} page @param {() => void} changed */
export function form(page, changed) {
  const { state } = page;
  /** A field's text; what the link does not say is the default. @param {string} name */
  const get = (name) => state.page[`x.${name}`] ?? DEFAULTS[name] ?? "";
  /** @param {string} name @param {string} value */
  const set = (name, value) => {
    if (value === (DEFAULTS[name] ?? "")) delete state.page[`x.${name}`];
    else state.page[`x.${name}`] = value;
    state.writeAddress();
    changed();
  };
  /** @param {string} name */
  const list = (name) => get(name).split(",").map((/** @type {string} */ w) => w.trim()).filter(Boolean);

  /** The fields as Python takes them. */
  function fields() {
    const found = /** @type {Record<string, string>} */ ({});
    for (const name of ["vendors", "kinds", "chips", "weights", "kv", "tpot", "ttft_alone", "budget", "objective", "basis", ...MORE]) if (get(name)) found[name] = get(name);
    found.devices = COUNTS.slice(0, COUNTS.indexOf(get("devices")) + 1).join() || get("devices");
    return found;
  }

  const field = (/** @type {string} */ name, /** @type {any} */ input, kind = "small") => h("div", { class: `field ${kind}` }, h("label", { for: `x-${name}`, title: t(`explore.${name}.gloss`) }, t(`explore.${name}`)), input);
  const select = (/** @type {string} */ name, /** @type {string[]} */ choices, /** @type {(value: string) => string} */ label, kind = "small") => field(name, h("select", { id: `x-${name}`, onchange: (/** @type {any} */ e) => set(name, e.target.value) }, choices.map((c) => h("option", { value: c, selected: get(name) === c }, label(c)))), kind);
  const text = (/** @type {string} */ name) => field(name, h("input", { id: `x-${name}`, type: "text", class: "num", value: get(name), placeholder: t(`explore.${name}.empty`), autocomplete: "off", spellcheck: "false", onchange: (/** @type {any} */ e) => set(name, e.target.value.trim()) }));
  /** Buttons of which several may be on. @param {string} name @param {string[]} choices */
  const several = (name, choices) => h("div", { class: "field", role: "group", "aria-labelledby": `x-${name}-label` }, h("span", { id: `x-${name}-label`, class: "label" }, t(`explore.${name}`)), h("div", { class: "segmented" }, choices.map((c) => {
    const button = h("button", { type: "button", "aria-pressed": String(list(name).includes(c) || (c === "auto" && !list(name).length)), onclick: () => {
      const now = new Set(list(name).length ? list(name) : ["auto"]);
      if (!now.delete(c)) now.add(c);
      button.setAttribute("aria-pressed", String(now.has(c)));
      set(name, [...now].join() === "auto" ? "" : [...now].join());
    } }, c === "auto" ? t("auto") : c.toUpperCase());
    return button;
  })));
  /** A limit on a log scale, "off" at its loose end. @param {string} name @param {string[]} stops */
  const slider = (name, stops) => {
    const word = (/** @type {string} */ v) => v.replace(" ", "\u2009") || t("explore.off"), shown = h("output", { class: "num", for: `x-${name}` }, word(get(name)));
    const at = stops.indexOf(get(name)), input = h("input", { id: `x-${name}`, type: "range", min: 0, max: stops.length - 1, step: 1, value: String(at < 0 ? stops.length - 1 : at), "aria-valuetext": word(get(name)),
      oninput: () => { const v = stops[Number(input.value)]; fill(shown, word(v)); input.setAttribute("aria-valuetext", word(v)); set(name, v); } });
    return h("div", { class: "field limit" }, h("label", { for: `x-${name}`, title: t(`explore.${name}.gloss`) }, t(`explore.${name}`)), shown, input);
  };
  /** Chips picked one by one; none picked is all. */
  function chips() {
    const holder = h("div", { class: "row tight" });
    const draw = () => fill(holder, list("chips").map((/** @type {string} */ id) => h("button", { type: "button", class: "chip", "aria-label": t("explore.remove", { name: page.question.nameOf("chips", id) }), onclick: () => { set("chips", list("chips").filter((/** @type {string} */ c) => c !== id).join()); draw(); } }, `${page.question.nameOf("chips", id)} ✕`)),
      h("button", { type: "button", class: "quiet", id: "x-chips", onclick: async () => {
        const items = page.question.catalogue.chips.map((/** @type {any} */ r) => ({ id: r.id, name: r.name, detail: r.detail, group: r.vendor, words: r.kind }));
        const id = await pick({ title: t("picker.hardware"), items, current: "", extra: [] });
        if (id) { set("chips", [...new Set([...list("chips"), id])].join()); draw(); }
      } }, t("explore.chips.add")));
    draw();
    return h("div", { class: "field", role: "group", "aria-labelledby": "x-chips-label" }, h("span", { id: "x-chips-label", class: "label" }, t("explore.chips")), holder);
  }

  /** The form; `only` names the fields to show, all if left out. @param {string[]} [only] */
  function build(only) {
    const chipsKnown = page.question.catalogue.chips, of = (/** @type {string} */ key) => ["", ...new Set(chipsKnown.map((/** @type {any} */ c) => c[key]))];
    const made = /** @type {Record<string, () => any>} */ ({
      objective: () => select("objective", OBJECTIVES, (c) => t(`explore.objective.${c}`), ""), vendors: () => select("vendors", of("vendor"), (c) => c || t("measured.all")), kinds: () => select("kinds", of("kind"), (c) => (c ? named("explore.kind", c) : t("measured.all")), ""), devices: () => select("devices", COUNTS, (c) => c),
      weights: () => several("weights", WEIGHTS), kv: () => several("kv", KV), chips, basis: () => select("basis", ["limit", "expected"], (c) => t(`explore.basis.${c}`)), tpot: () => slider("tpot", TPOT), ttft_alone: () => slider("ttft_alone", TTFT), budget: () => text("budget"),
    });
    const names = only ?? Object.keys(made);
    return h("div", { class: "ask-space" }, h("p", { class: "hint" }, t("explore.hint")), h("div", { class: "row" }, names.map((name) => made[name]())),
      only ? null : h("details", { class: "fold", open: MORE.some((name) => get(name)) }, h("summary", {}, t("explore.more")), h("div", { class: "row" }, MORE.map(text))));
  }
  return { fields, build };
}
