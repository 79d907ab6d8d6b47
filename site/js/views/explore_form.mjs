// @ts-check
// What an exploration asks: the same flat fields as on the command line, kept in the link (x.tpot=33ms), with sliders for the limits.

import { fill, h } from "../dom.mjs";
import { named, phrases, rich, t } from "../i18n.mjs";
import { pick } from "../picker.mjs";

const STOPS = /** @type {Record<string, string[]>} */ ({
  tpot: ["5 ms", "7 ms", "10 ms", "15 ms", "20 ms", "25 ms", "33 ms", "50 ms", "75 ms", "100 ms", "150 ms", "200 ms", "400 ms", ""],
  ttft_alone: ["50 ms", "100 ms", "200 ms", "350 ms", "500 ms", "1 s", "2 s", "3 s", "5 s", "10 s", "30 s", ""],
});
const CHOICES = /** @type {Record<string, string[]>} */ ({
  objective: ["cost", "output-cost", "throughput", "latency", "ttft-alone", "energy"],
  basis: ["expected", "limit"],
  weights: ["auto", "bf16", "fp8", "int4-g128", "nvfp4", "mxfp4"],
  kv: ["auto", "fp8", "int4"],
  devices: ["1", "2", "4", "8", "16", "32", "64"],
});
const HOLD = ["objective", "basis", "budget", "user"];
const SPEED = ["tpot", "ttft_alone"]; // next to the chart that they move
const USED = ["devices", "vendors", "kinds", "chips", "weights", "kv"];
const MORE = ["models", "batches", "prompts", "outputs", "hits", "activations", "drafts", "prefill", "levers", "prices"];
const LIMITS = ["most_chips", "ttft", "throughput", "requests", "usd_per_million", "memory_share", "joules"];
const DEFAULTS = /** @type {Record<string, string>} */ ({ devices: "8", weights: "auto,fp8", tpot: "33 ms", objective: "cost", basis: "expected" });

/** A time with the thin space that figures have. @param {string} v */
const thin = (v) => v.replace(" ", "\u2009");

/** @param {any} page @param {() => void} changed */
export function form(page, changed) {
  const { state, question } = page, asked = h("p", { class: "asked" });
  /** A field's text; what the link does not say is the default. @param {string} name */
  const get = (name) => state.page[`x.${name}`] ?? DEFAULTS[name] ?? "";
  /** @param {string} name @param {string} value */
  const set = (name, value) => {
    if (value === (DEFAULTS[name] ?? "")) delete state.page[`x.${name}`];
    else state.page[`x.${name}`] = value;
    delete state.page["x.cell"]; // another space has other models and loads
    state.writeAddress();
    tell();
    changed();
  };
  /** @param {string} name */
  const list = (name) => get(name).split(",").map((/** @type {string} */ w) => w.trim()).filter(Boolean);

  /** The fields as Python takes them. */
  function fields() {
    const found = /** @type {Record<string, string>} */ ({});
    for (const name of [...HOLD, ...SPEED, ...USED, ...MORE, ...LIMITS]) if (get(name)) found[name] = get(name);
    if (found.basis === DEFAULTS.basis) delete found.basis; // Python falls back to the limit where there is no expectation
    found.devices = CHOICES.devices.slice(0, CHOICES.devices.indexOf(get("devices")) + 1).join() || get("devices");
    return found;
  }

  /** The whole question as one sentence. */
  function tell() {
    const models = list("models").length ? list("models").map((/** @type {string} */ id) => question.nameOf("models", id)) : [question.label("model")];
    const limits = ["tpot", "ttft_alone", "user", "budget"].filter(get).map((name) => t(`explore.question.${name}`, { v: thin(get(name)) }));
    const strong = (/** @type {string} */ text) => h("strong", {}, text);
    fill(asked, ...rich("explore.question", {
      models: strong(models.join(", ")), prompt: list("prompts").join(", ") || state.get("prompt"), output: list("outputs").join(", ") || state.get("output"),
      goal: strong(t(`explore.ask.${get("objective")}`)), limits: limits.length ? t("explore.question.with", { list: limits.join(t("explore.question.and")) }) : "" }));
  }

  /** @param {string} name @param {any} input @param {string} [kind] */
  const field = (name, input, kind = "small") => h("div", { class: `field ${kind}` }, h("label", { for: `x-${name}`, title: t(`explore.${name}.gloss`) }, t(`explore.${name}`)), input);
  /** @param {string} name @param {string[]} choices @param {(value: string) => string} label */
  const select = (name, choices, label) => field(name, h("select", { id: `x-${name}`, onchange: (/** @type {any} */ e) => set(name, e.target.value) }, choices.map((c) => h("option", { value: c, selected: get(name) === c }, label(c)))));
  /** @param {string} name */
  const text = (name) => field(name, h("input", { id: `x-${name}`, type: "text", class: "num", value: get(name), placeholder: t(`explore.${name}.empty`), title: t(`explore.${name}.gloss`), autocomplete: "off", spellcheck: "false", onchange: (/** @type {any} */ e) => set(name, e.target.value.trim()) }));
  /** A group of buttons under its name. @param {string} name @param {any} holder @param {string} [kind] */
  const group = (name, holder, kind = "") => h("div", { class: `field group ${kind}`, role: "group", "aria-labelledby": `x-${name}-label` }, h("span", { id: `x-${name}-label`, class: "label", title: t(`explore.${name}.gloss`) }, t(`explore.${name}`)), holder);
  /** Buttons of which several may be on. @param {string} name */
  const several = (name) => group(name, h("div", { class: "segmented" }, CHOICES[name].map((c) => {
    const button = h("button", { type: "button", "aria-pressed": String(list(name).includes(c) || (c === "auto" && !list(name).length)), onclick: () => {
      const now = new Set(list(name).length ? list(name) : ["auto"]);
      if (!now.delete(c)) now.add(c);
      button.setAttribute("aria-pressed", String(now.has(c)));
      set(name, [...now].join() === "auto" ? "" : [...now].join());
    } }, c === "auto" ? t("auto") : c.toUpperCase());
    return button;
  })), "whole");
  /** A limit on a log scale, "off" at its loose end. @param {string} name */
  const slider = (name) => {
    const stops = STOPS[name], word = (/** @type {string} */ v) => thin(v) || t("explore.off"), shown = h("output", { class: "num", for: `x-${name}` }, word(get(name)));
    const at = stops.indexOf(get(name)), input = h("input", { id: `x-${name}`, type: "range", min: 0, max: stops.length - 1, step: 1, value: String(at < 0 ? stops.length - 1 : at), "aria-valuetext": word(get(name)),
      oninput: () => { const v = stops[Number(input.value)]; fill(shown, word(v)); input.setAttribute("aria-valuetext", word(v)); set(name, v); } });
    return h("div", { class: "field limit" }, h("label", { for: `x-${name}`, title: t(`explore.${name}.gloss`) }, t(`explore.${name}`)), shown, input);
  };
  /** Chips or models picked one by one; none picked is all chips, or the question's own model. @param {"chips" | "models"} name */
  function picked(name) {
    const holder = h("div", { class: "row tight" }), what = name === "chips" ? "hardware" : "model", nameOf = (/** @type {string} */ id) => question.nameOf(name, id);
    const remove = (/** @type {string} */ id) => { set(name, list(name).filter((/** @type {string} */ c) => c !== id).join()); draw(); };
    const add = async () => {
      await question.lists();
      const items = () => question.catalogue[name].map((/** @type {any} */ r) => ({ id: r.id, name: r.name, detail: phrases(r.detail), group: r.vendor ?? r.group, words: r.kind ?? r.family }));
      const id = await pick(() => ({ title: t(`picker.${what}`), items: items(), current: "" }));
      // The question's own model stays in when others are put beside it.
      const own = name === "models" && !state.get("config") && !list(name).length ? [state.get("model")] : [];
      if (id) { set(name, [...new Set([...own, ...list(name), id])].join()); draw(); }
    };
    const draw = () => fill(holder, list(name).map((/** @type {string} */ id) => h("button", { type: "button", class: "chip", "aria-label": t("explore.remove", { name: nameOf(id) }), onclick: () => remove(id) }, `${nameOf(id)} ✕`)),
      h("button", { type: "button", class: "chip", id: `x-${name}`, onclick: add }, `+ ${t(`explore.${name}.add`)}`));
    draw();
    return group(name, holder, list(name).length ? "whole" : "");
  }

  /** One field, by its kind. @param {string} name */
  function made(name) {
    if (STOPS[name]) return slider(name);
    if (name === "weights" || name === "kv") return several(name);
    if (name === "chips" || name === "models") return picked(name);
    const of = (/** @type {string} */ key) => ["", ...new Set(question.catalogue.chips.map((/** @type {any} */ c) => c[key]))];
    if (name === "vendors") return select(name, of("vendor"), (c) => c || t("measured.all"));
    if (name === "kinds") return select(name, of("kind"), (c) => (c ? named("explore.kind", c) : t("measured.all")));
    if (name === "devices") return select(name, CHOICES[name], (c) => c);
    return CHOICES[name] ? select(name, CHOICES[name], (c) => t(`explore.${name}.${c}`)) : text(name);
  }
  /** @param {string} title @param {string[]} names */
  const part = (title, names) => h("fieldset", {}, h("legend", {}, t(title)), h("div", { class: "row" }, names.map(made)));

  function build() {
    tell();
    return h("div", { class: "ask-space" }, asked, h("div", { class: "two-sides" }, part("explore.group.hold", HOLD), part("explore.group.used", USED)),
      h("details", { class: "fold", open: [...MORE, ...LIMITS].some((name) => get(name)) }, h("summary", {}, t("explore.more")), part("explore.group.more", MORE), part("explore.group.limits", LIMITS)),
      h("div", { class: "two-sides speed" }, SPEED.map(made)));
  }
  return { fields, build, part, tell };
}
