// @ts-check
// The question: every field of the form, built from one table, bound to the state. Values are text; Python reads the units.

import { $, h, fill, number, put, toast } from "./dom.mjs";
import { has, named, phrases, point, rich, say, t } from "./i18n.mjs";
import { data } from "./lazy.mjs";
import { pick } from "./picker.mjs";
import { PRESETS, presetOf } from "./presets.mjs";

/** @typedef {import("./state.mjs").State} State */

/** Sections of the form and their fields. kind: text, check, select, slider (log2 steps from, to), chip. */
const SECTIONS = /** @type {{id: string, fold?: boolean, fields: {name: string, kind: string, from?: number, to?: number, choices?: string}[]}[]} */ ([
  { id: "precision", fields: [{ name: "weights", kind: "select", choices: "weights" }, { name: "activations", kind: "select", choices: "activations" }, { name: "kv", kind: "select", choices: "kv" }] },
  { id: "load", fields: [{ name: "batch", kind: "slider", from: 0, to: 12 }, { name: "prompt", kind: "slider", from: 5, to: 20 }, { name: "output", kind: "slider", from: 0, to: 15 }] },
  { id: "layout", fields: [{ name: "tp", kind: "text" }, { name: "pp", kind: "text" }, { name: "ep", kind: "text" }, { name: "dp", kind: "text" }] },
  { id: "serving", fold: true, fields: ["cached", "chunk", "rate", "draft", "acceptance"].map((name) => ({ name, kind: "text" })).concat([{ name: "draft_model", kind: "model" }, { name: "prefill_hardware", kind: "chip" }, { name: "prefill_devices", kind: "text" }]) },
  { id: "space", fold: true, fields: ["utilisation", "overhead", "block", "offload", "offload_kv", "host"].map((name) => ({ name, kind: "text" })) },
  { id: "figures", fold: true, fields: ["peak", "bandwidth", "memory", "link", "network"].map((name) => ({ name, kind: "text" })) },
  { id: "behaviour", fold: true, fields: [{ name: "routing", kind: "text" }, { name: "imbalance", kind: "text" }, { name: "fused", kind: "check" }, { name: "sequence_parallel", kind: "check" }] },
  { id: "expectation", fold: true, fields: [{ name: "engine", kind: "select", choices: "engines" }, { name: "efficiency_compute", kind: "text" }, { name: "efficiency_bandwidth", kind: "text" }] },
  { id: "money", fold: true, fields: ["usd_per_hour", "purchase_usd", "years", "opex", "usd_per_kwh", "pue", "api_usd_per_million"].map((name) => ({ name, kind: "text" })) },
]);
/** What a field is when it is left empty, for placeholders. */
const EMPTY = /** @type {Record<string, string>} */ ({ batch: "1", prompt: "1024", output: "256", acceptance: "0.7", utilisation: "1", imbalance: "1", block: "1", years: "3", pue: "1", routing: "0", cached: "0", chunk: "0", draft: "0", overhead: "0", offload: "0", offload_kv: "0", opex: "0", usd_per_kwh: "0" });

/** "8k" as a number, only to place a slider; what it means is decided in Python. @param {string} text */
export function roughly(text) {
  const match = /^\s*([\d.]+)\s*(ki|mi|k|m)?/i.exec(text.replaceAll(",", ""));
  return match ? Number(match[1]) * ({ k: 1e3, m: 1e6, ki: 1024, mi: 1048576 }[(match[2] ?? "").toLowerCase()] ?? 1) : NaN;
}

export class Question {
  /** @param {State} state @param {any} catalogue choices, and the models and chips of the examples @param {string} whole address of all models and chips @param {() => void} openPaste */
  constructor(state, catalogue, whole, openPaste) {
    this.state = state;
    this.catalogue = catalogue;
    this.whole = whole;
    this.openPaste = openPaste;
    /** @type {Map<string, any>} */ this.inputs = new Map();
    /** @type {{field: string | null, message: string} | null} */ this.problem = null;
  }

  /** Build (again, in the language of now). */
  draw() {
    this.inputs.clear();
    fill($("presets"), PRESETS.map((p) => h("button", { type: "button", class: "chip", dataset: { preset: p.id }, title: t(`preset.${p.id}.title`), onclick: () => this.state.replace(p.form, { push: true }) }, t(`preset.${p.id}`))));
    const folded = SECTIONS.filter((s) => s.fold), unfolded = [...document.querySelectorAll("#fields details[open]")].map((fold) => fold.id);
    fill($("fields"),
      this.section("model", [this.choice("model"), h("p", { class: "hint", id: "model-facts" }), h("button", { type: "button", class: "link small", id: "paste", onclick: this.openPaste }, t("paste.open"))]),
      this.section("hardware", [this.choice("hardware"), h("p", { class: "hint", id: "hardware-facts" }), h("div", { id: "custom", class: "grid two", hidden: true }), this.devices()]),
      SECTIONS.filter((s) => !s.fold).map((s) => this.section(s.id, h("div", { class: `grid ${s.id === "layout" ? "four" : "one"}` }, s.fields.map((f) => this.field(f))))),
      folded.map((s) => h("details", { class: "fold", id: `fold-${s.id}`, open: unfolded.includes(`fold-${s.id}`) }, h("summary", {}, t(`section.${s.id}`)), h("p", { class: "hint" }, t(`section.${s.id}.hint`)), h("div", { class: "grid two" }, s.fields.map((f) => this.field(f))))));
    this.show();
  }

  /** @param {string} id @param {any} content */
  section(id, content) {
    return h("fieldset", { id: `section-${id}` }, h("legend", {}, t(`section.${id}`)), content);
  }

  /** A field with its label, gloss and place for an error. @param {{name: string, kind: string, from?: number, to?: number, choices?: string}} field */
  field({ name, kind, from = 0, to = 0, choices = "" }) {
    const id = `f-${name}`, label = t(`field.${name}`), set = (/** @type {string} */ value) => this.state.set({ [name]: value });
    const common = { id, name, "aria-describedby": `e-${name}`, title: t(`field.${name}.gloss`) };
    let input, more = null;
    if (kind === "select") input = h("select", { ...common, onchange: () => set(input.value === "auto" || input.value === "any" ? "" : input.value) });
    else if (kind === "check") input = h("input", { ...common, type: "checkbox", onchange: () => set(name === "fused" ? (input.checked ? "" : "false") : input.checked ? "true" : "") });
    else if (kind === "chip" || kind === "model") input = h("button", { ...common, type: "button", class: "choice small", onclick: () => this.choose(name, kind === "chip" ? "hardware" : "model", true) });
    else input = h("input", { ...common, type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false", placeholder: EMPTY[name] ?? t("auto"), oninput: () => set(input.value.trim()) });
    if (kind === "slider") more = h("input", {
      type: "range", min: from, max: to, step: 0.5, tabindex: "-1", "aria-label": label, class: "slide", dataset: { for: name },
      oninput: () => set(String(Math.round(2 ** Number(more.value)))),
    });
    this.inputs.set(name, { input, more, kind, choices });
    if (kind === "check") return h("div", { class: "field check" }, h("label", { for: id }, input, ` ${label}`), h("p", { class: "error", id: `e-${name}`, hidden: true }));
    return h("div", { class: `field ${kind}` }, h("label", { for: id, title: t(`field.${name}.gloss`) }, label), input, more, h("p", { class: "error", id: `e-${name}`, hidden: true }));
  }

  /** The button that opens the list of models or chips. @param {"model" | "hardware"} name */
  choice(name) {
    const button = h("button", { type: "button", class: "choice", id: `f-${name}`, "aria-haspopup": "dialog", "aria-describedby": `e-${name}`, onclick: () => this.choose(name, name) });
    this.inputs.set(name, { input: button, kind: "choice" });
    return h("div", { class: "field" }, button, h("p", { class: "error", id: `e-${name}`, hidden: true }));
  }

  devices() {
    const set = (/** @type {number} */ step) => this.state.set({ devices: String(Math.max(1, (Math.round(roughly(this.state.get("devices"))) || this.resolved || 1) + step)) });
    const input = h("input", { id: "f-devices", name: "devices", type: "text", inputmode: "numeric", "aria-describedby": "e-devices", placeholder: "1", oninput: () => this.state.set({ devices: input.value.trim() }) });
    this.inputs.set("devices", { input, kind: "text" });
    return h("div", { class: "field stepper" }, h("label", { for: "f-devices" }, t("field.devices")),
      h("button", { type: "button", class: "quiet", "aria-label": t("fewer"), onclick: () => set(-1) }, "−"), input,
      h("button", { type: "button", class: "quiet", "aria-label": t("more"), onclick: () => set(1) }, "+"), h("p", { class: "error", id: "e-devices", hidden: true }));
  }

  /** Let the visitor choose a model or chip for a field. @param {string} field @param {"model" | "hardware"} what @param {boolean} [optional] */
  async choose(field, what, optional = false) {
    try { await this.lists(); } catch (error) { return toast(() => phrases(/** @type {Error} */ (error).message)); }
    const rows = what === "model" ? this.catalogue.models : this.catalogue.chips;
    const items = () => rows.map((/** @type {any} */ r) => ({ id: r.id, name: r.name, detail: phrases(r.detail), group: what === "model" ? r.group : r.vendor, words: what === "model" ? r.family : r.kind }));
    const extra = () => optional ? [{ id: "", label: t("picker.none_of_them") }] : what === "model" ? [{ id: "\0paste", label: t("paste.open") }] : [{ id: "custom", label: t("custom.open") }];
    const id = await pick(() => ({ title: t(what === "model" ? "picker.model" : "picker.hardware"), items: items(), current: this.state.get(field), extra: extra() }));
    if (id === null) return;
    if (id === "\0paste") return this.openPaste();
    if (field === "model") this.state.set({ model: id, config: "", read_as: "" });
    else if (field === "hardware" && id === "custom") this.state.set({ hardware: "custom", peak: this.state.get("peak") || "1 PFLOP/s", bandwidth: this.state.get("bandwidth") || "4 TB/s", memory: this.state.get("memory") || "128 GB", link: this.state.get("link") || "400 GB/s" });
    else if (field === "hardware") this.state.set({ hardware: id, peak: "", bandwidth: "", memory: "", link: "", peak_format: "" });
    else this.state.set({ [field]: id });
    $(`f-${field}`)?.focus();
  }

  /** Bring in all models and chips. */
  async lists() {
    const whole = await data(this.whole);
    if (this.catalogue.models !== whole.models) Object.assign(this.catalogue, whole);
  }

  /** The name of a model or chip by id. @param {"models" | "chips"} list @param {string} id */
  nameOf(list, id) {
    return this.catalogue[list].find((/** @type {any} */ r) => r.id === id)?.name ?? this.answered?.[list].get(id) ?? id;
  }

  /** Show the state's values; what is being typed in is left alone. */
  show() {
    for (const [name, { input, more, kind, choices }] of this.inputs) {
      const value = this.state.get(name);
      if (kind === "select") this.options(input, choices, value);
      else if (kind === "check") input.checked = name === "fused" ? value !== "false" : value === "true";
      else if (kind === "chip" || kind === "model") input.textContent = value ? this.nameOf(kind === "chip" ? "chips" : "models", value) : t("none");
      else if (kind === "choice") fill(input, h("span", {}, this.label(name)), h("span", { class: "chevron", "aria-hidden": "true" }, "▾"));
      else put(input, value);
      if (more && String(Math.round(2 ** Number(more.value))) !== value) more.value = String(Math.log2(roughly(value || EMPTY[name]) || 1));
    }
    const custom = this.state.get("hardware") === "custom", fold = /** @type {any} */ ($("fold-figures"));
    if (custom && fold && !fold.open) fold.open = true;
    const preset = presetOf(this.state.form)?.id;
    for (const chip of $("presets").children) {
      chip.setAttribute("aria-pressed", String(chip.dataset.preset === preset));
    }
  }

  /** @param {"model" | "hardware"} name @param {Record<string, string>} [form] */
  label(name, form = this.state.form) {
    if (name === "model") return form.config ? this.pastedName ?? t("pasted") : this.nameOf("models", form.model ?? "");
    return form.hardware === "custom" ? t("custom") : this.nameOf("chips", form.hardware ?? "");
  }

  /** @param {any} select @param {string} list @param {string} value */
  options(select, list, value) {
    const key = `${list}|${value}|${document.documentElement.lang}`;
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      const known = [...(this.catalogue.choices[list] ?? [])], groups = new Map();
      if (value && !known.some((/** @type {any} */ c) => c.id.toLowerCase() === value.toLowerCase())) known.push({ id: value, label: value, group: "" });
      for (const c of known) groups.set(c.group, [...(groups.get(c.group) ?? []), h("option", { value: c.id }, has(`choice.${c.label}`) ? t(`choice.${c.label}`) : phrases(c.label))]);
      fill(select, [...groups].flatMap(([group, options]) => (group ? [h("optgroup", { label: named("choices", group) }, options)] : options)));
    }
    const found = [...select.options].find((o) => o.value.toLowerCase() === (value || select.options[0]?.value || "").toLowerCase());
    if (found) select.value = found.value;
  }

  /** What "auto" became, as placeholders and facts. @param {any} view */
  showResolved(view) {
    const { facts } = view;
    this.resolved = facts.chips;
    this.answered = { models: new Map([[facts.model.id, facts.model.name]]), chips: new Map([[facts.hardware.id, facts.hardware.name]]) }; // ids come out of links
    for (const axis of ["tp", "pp", "ep", "dp"]) { const input = this.inputs.get(axis)?.input; if (input) input.placeholder = String(facts.layout[axis]); }
    for (const name of ["weights", "activations", "kv"]) {
      const first = this.inputs.get(name)?.input?.options?.[0];
      if (first) first.textContent = this.state.get(name) ? t("auto") : `${t("auto")}${point(":")}${phrases(facts.formats[name])}`;
    }
    const m = facts.model, c = facts.hardware;
    const open = (/** @type {string} */ key, /** @type {string} */ text) => number(key, text, t("figure.open"));
    fill($("model-facts"), ...rich(m.moe ? "facts.model.moe" : "facts.model", { ...m, total: open("weights", m.total), kv: open("kv_token", m.kv) }),
      m.kv_bound ? [t("facts.and"), ...rich("facts.model.bound", { ...m.kv_bound, beyond: open("kv_token", m.kv_bound.beyond) })] : null, m.state ? [t("facts.and"), ...rich("facts.model.state", { state: open("kv_token", m.state) })] : null);
    fill($("hardware-facts"), ...rich("facts.hardware", { format: facts.formats.compute_roof, peak: open("ridge", facts.formats.peak), bandwidth: open("ridge", c.bandwidth), memory: open("memory", c.memory) }));
  }

  /** Take away what "auto" became for another question. */
  forget() {
    for (const axis of ["tp", "pp", "ep", "dp"]) this.inputs.get(axis).input.placeholder = t("auto");
    for (const name of ["weights", "activations", "kv"]) this.inputs.get(name).input.options[0].textContent = t("auto");
    for (const id of ["model-facts", "hardware-facts"]) fill($(id));
  }

  /** Say at the field what is wrong with it; null takes all errors away. @param {{field: string | null, message: string} | null} error */
  complain(error) {
    for (const place of document.querySelectorAll("#question .error")) { /** @type {HTMLElement} */ (place).hidden = true; place.textContent = ""; }
    for (const input of [...this.inputs.values()].map((entry) => entry.input).concat(...document.querySelectorAll("#sentence [aria-invalid]"))) input.removeAttribute("aria-invalid");
    this.problem = error;
    if (!error) return true;
    const said = ALIASES[error.field ?? ""] ?? error.field ?? "", typed = ["tp", "pp", "dp"].includes(said) && !this.state.get(said) && this.state.get("devices");
    const name = typed ? "devices" : said, place = $(`e-${name}`), entry = this.inputs.get(name);
    if (!place || !entry) return false;
    for (const input of [entry.input, $(`s-${name}`)]) input?.setAttribute("aria-invalid", "true");
    $(`s-${name}`)?.setAttribute("aria-describedby", `e-${name}`);
    fill(place, say(error.message));
    place.hidden = false;
    const fold = place.closest("details");
    if (fold) fold.open = true;
    return true;
  }
}

/** Fields whose name in an error is not the form's. */
const ALIASES = /** @type {Record<string, string>} */ ({ config: "model", model_type: "model", "heads": "tp", "layers": "pp", "experts": "ep", "peak bf16": "peak", "group size": "weights" });
