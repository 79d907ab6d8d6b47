// @ts-check
// A model of one's own: paste, drop or open a config.json. Python reads it; a bad one is explained and nothing is lost.

import { $, h, fill, sheet, toast } from "./dom.mjs";
import { t } from "./i18n.mjs";

const LIMIT = 8_000_000; // bytes; Python has the last word

/** @param {any} page */
export function openPaste(page, text = "") {
  const area = h("textarea", { id: "paste-text", rows: 12, spellcheck: "false", placeholder: '{ "model_type": "llama", "hidden_size": 4096, … }', "aria-describedby": "paste-error" }, text);
  const error = h("p", { class: "error", id: "paste-error", role: "alert" });
  const file = h("input", { type: "file", id: "paste-file", accept: ".json,application/json", onchange: async () => { if (file.files[0]) area.value = await readFile(file.files[0]); } });
  const readAs = h("input", { type: "text", id: "paste-family", placeholder: t("paste.family.none"), spellcheck: "false" });
  const use = async () => {
    fill(error);
    area.removeAttribute("aria-invalid");
    try {
      await takeConfig(page, area.value, readAs.value.trim());
      $("sheet").close();
    } catch (problem) {
      area.setAttribute("aria-invalid", "true");
      fill(error, /** @type {Error} */ (problem).message);
    }
  };
  sheet(t("paste.title"), h("p", { class: "hint" }, t("paste.hint")), h("div", { class: "field" }, h("label", { for: "paste-text" }, t("paste.text")), area, error),
    h("div", { class: "grid two" }, h("div", { class: "field" }, h("label", { for: "paste-file" }, t("paste.file")), file), h("div", { class: "field" }, h("label", { for: "paste-family" }, t("paste.family")), readAs)),
    h("div", { class: "row" }, h("button", { type: "button", class: "solid", id: "paste-use", onclick: use }, t("paste.use"))));
  area.focus();
  if (text) use();
}

/** Let Python read a config; on success it becomes the model. @param {any} page @param {string} text @param {string} [readAs] */
async function takeConfig(page, text, readAs = "") {
  if (!page.engine.ready) throw new Error(t("waiting"));
  const result = await page.engine.ask("parse_config", { text, read_as: readAs });
  if (result.form) {
    page.state.replace(result.form, { push: true });
    return toast(t("paste.saved"), t("undo"), () => page.state.undo());
  }
  page.question.pastedName = `${result.model.family} · ${result.model.detail}`;
  page.state.set({ config: text, model: "pasted", read_as: readAs, weights: "", activations: "", kv: "", tp: "", pp: "", ep: "", dp: "" }, { push: true });
  toast(t("paste.done", { name: page.question.pastedName }), t("undo"), () => page.state.undo());
}

/** @param {File} file */
async function readFile(file) {
  if (file.size > LIMIT) throw new Error(t("paste.large"));
  return file.text();
}

/** Files dropped anywhere on the page, and JSON pasted outside a field. @param {any} page */
export function listenForConfigs(page) {
  addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) { event.preventDefault(); document.body.classList.add("dropping"); } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", async (event) => {
    const file = event.dataTransfer?.files[0];
    document.body.classList.remove("dropping");
    if (!file) return;
    event.preventDefault();
    try { openPaste(page, await readFile(file)); } catch (error) { toast(/** @type {Error} */ (error).message); }
  });
  addEventListener("paste", (event) => {
    const inField = /** @type {HTMLElement} */ (event.target)?.closest?.("input, textarea, select, dialog");
    const text = event.clipboardData?.getData("text") ?? "";
    if (!inField && /^\s*\{[\s\S]*"\w/.test(text)) openPaste(page, text);
  });
}
