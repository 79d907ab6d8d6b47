// @ts-check
// The answer as a sentence whose choices can be changed where they stand. The controls are made once, so that typing in one
// never loses its place; only the part that tells the answer is written anew.

import { $, h, fill, mark, number, put } from "./dom.mjs";
import { phrases, point, rich, t } from "./i18n.mjs";

/** @typedef {import("./state.mjs").State} State */

/** Which working a number of the sentence opens. */
const WORKING = /** @type {Record<string, string>} */ ({ user: "user", total: "total", utilisation: "utilisation", step: "tpot", bytes: "bytes", flops: "flops", need: "memory", have: "memory", min_devices: "memory" });

export class Sentence {
  /** @param {State} state @param {import("./fields.mjs").Question} question */
  constructor(state, question) {
    this.state = state;
    this.question = question;
    this.tell = h("span", { class: "tell", id: "tell" });
  }

  draw() {
    const { state, question } = this;
    const number = (/** @type {string} */ name, /** @type {string} */ empty) => {
      const input = h("input", { type: "text", class: "inline num", id: `s-${name}`, "aria-label": t(`field.${name}`), autocomplete: "off", spellcheck: "false", placeholder: empty,
        oninput: () => { this.fit(input); state.set({ [name]: input.value.trim() }); } });
      return input;
    };
    const button = (/** @type {"model" | "hardware"} */ name) => h("button", { type: "button", class: "inline", id: `s-${name}`, "aria-haspopup": "dialog", onclick: () => question.choose(name, name) });
    this.controls = { model: button("model"), hardware: button("hardware"), devices: number("devices", "1"), batch: number("batch", "1"), prompt: number("prompt", "1024"), output: number("output", "256") };
    // A select as wide as its choice: the text shows, the select lies over it.
    this.weightsText = h("span", { "aria-hidden": "true" });
    this.weights = h("select", { id: "s-weights", "aria-label": t("field.weights"), onchange: () => state.set({ weights: this.weights.value }) });
    this.requests = h("span");
    const weights = h("span", { class: "inline over" }, this.weightsText, this.weights);
    fill($("sentence"), h("span", { class: "ask" }, ...rich("sentence.question", { ...this.controls, devices: h("span", { class: "nowrap" }, this.controls.devices, "\u00a0×"), weights, requests: this.requests })), point(""), this.tell);
    this.show();
  }

  /** @param {any} input */
  fit(input) { input.style.width = `${Math.max(1, (input.value || input.placeholder).length) + 0.3}ch`; }

  /** Show the state's values. */
  show() {
    if (!this.controls) return;
    const { model, hardware, ...numbers } = this.controls;
    model.textContent = this.question.label("model");
    hardware.textContent = this.question.label("hardware");
    for (const [name, input] of Object.entries(numbers)) {
      put(input, this.state.get(name));
      this.fit(input);
    }
    this.requests.textContent = t((numbers.batch.value || numbers.batch.placeholder).trim() === "1" ? "sentence.request" : "sentence.requests");
    this.question.options(this.weights, "weights", this.state.get("weights"));
    this.weightsText.textContent = this.shownWeights(this.weights.selectedOptions[0]?.textContent ?? "");
  }

  /** What was answered is not of this question. */
  forget() { this.autoWeights = undefined; this.show(); }

  /** @param {string} label */
  shownWeights(label) { return this.state.get("weights") ? label.split(" · ")[0] : this.autoWeights ?? t("auto"); }

  /** Tell the answer. @param {any} result */
  answer(result) {
    const parts = result.view.headline;
    this.autoWeights = phrases(parts.weights);
    this.weightsText.textContent = this.shownWeights(this.weights.selectedOptions[0]?.textContent ?? "");
    const key = parts.bound ? `sentence.ok.${parts.bound}` : `sentence.${parts.state}`;
    const role = parts.bound ?? "misfit";
    const values = Object.fromEntries(Object.entries(parts).map(([k, v]) => [k, WORKING[k] ? number(WORKING[k], String(v), t("figure.open")) : h("span", { class: "num" }, String(v))]));
    const verdict = h("span", { class: `verdict ${role}` }, mark(role), point(""), t(`bound.${role}`));
    fill(this.tell, ...rich(parts.single && parts.bound ? `${key}.single` : key, { ...values, verdict }));
  }

  /** The same as plain text, for a screen reader's summary and for copying. */
  text() { return this.plain($("sentence")); }

  /** What is asked, as plain text: now, or by another form. @param {Record<string, string> | null} [form] */
  asked(form = null) {
    const { question } = this, choice = (/** @type {string} */ id) => question.catalogue.choices.weights.find((/** @type {any} */ c) => c.id.toLowerCase() === id.toLowerCase())?.label.split(" · ")[0] ?? id;
    const said = form === null ? this.plain($("sentence").firstElementChild) : t("sentence.question", { batch: "1", prompt: "1024", output: "256", ...form, devices: `${form.devices ?? 1} ×`, model: question.label("model", form), hardware: question.label("hardware", form),
      weights: form.weights ? choice(form.weights) : t("auto"), requests: t((form.batch ?? "1") === "1" ? "sentence.request" : "sentence.requests") });
    return said.replace(/\s*[:：]$/, "");
  }

  /** @param {HTMLElement} part */
  plain(part) {
    const copy = /** @type {HTMLElement} */ (part.cloneNode(true));
    for (const input of copy.querySelectorAll("input, select")) {
      const live = $(input.id);
      input.replaceWith(input.tagName === "SELECT" ? "" : live.value || live.placeholder);
    }
    return (copy.textContent ?? "").replace(/\s+/g, " ").trim();
  }
}
