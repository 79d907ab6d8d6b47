// @ts-check
// A model of one's own: a config.json pasted, opened, dropped or fetched from the hub, the first megabytes of a .gguf file, or the index of a
// checkpoint to check the model's size with. Python reads them all; what it refuses is explained and nothing is lost.

import { $, h, fill, sheet, toast } from "../dom.mjs";
import { phrases, point, say, t } from "../i18n.mjs";
import { SHOWN, decoded, takeLong } from "./common.mjs";
import { ask, modelId } from "./hub.mjs";

const CONFIG_LIMIT = 8_000_000, INDEX_LIMIT = 48_000_000; // bytes; Python has the last word
const HEADER_STEPS = [1, 4, 16, 32].map((mb) => mb * 2 ** 20); // a .gguf file is read no further than its header needs: most of that is the tokenizer's words
/** What was typed and not yet used, for when the dialog is opened again. */
const draft = { text: "", family: "", id: "" };

/** A fault of ours, which can be said again in another language. @param {string} key @param {Record<string, any>} [values] */
const fault = (key, values) => Object.assign(new Error(t(key, values)), { again: () => t(key, values) });
/** @param {string} id @param {any} place @param {() => any} words */
const tell = (id, place, words) => { said[id] = words; fill(place, words()); };
/** @type {Record<string, () => any>} what the open dialog says: said again when it is opened anew */ let said = {};

/** @param {any} page @param {string | File | null} given null: open it anew, in another language */
export function open(page, given) {
  const area = h("textarea", { id: "paste-text", rows: 10, spellcheck: "false", placeholder: '{ "model_type": "llama", "hidden_size": 4096, … }', "aria-describedby": "paste-error", oninput: () => { draft.text = area.value; }, value: (typeof given === "string" && given) || draft.text });
  const error = h("p", { class: "error", id: "paste-error", role: "alert" }), finding = h("p", { id: "paste-finding", role: "status" });
  const file = h("input", { type: "file", id: "paste-file", accept: ".json,.gguf,application/json", onchange: () => { if (file.files[0]) attempt(() => takeFile(file.files[0])); } });
  const readAs = h("input", { type: "text", id: "paste-family", placeholder: t("paste.family.none"), spellcheck: "false", oninput: () => { draft.family = readAs.value; }, value: draft.family });

  /** Do something that may fail; what it says shows under the text, which stays. @param {() => Promise<void>} work */
  async function attempt(work) {
    said = {};
    fill(error);
    fill(finding);
    area.removeAttribute("aria-invalid");
    try {
      if (!page.engine.ready) throw fault("waiting");
      await work();
    } catch (problem) {
      area.setAttribute("aria-invalid", "true");
      tell(error.id, error, () => /** @type {any} */ (problem).again?.() ?? say(/** @type {Error} */ (problem).message));
    }
  }

  /** Let Python read a text; a config becomes the model, a saved answer the question, an index is compared with the model of now. @param {string} text */
  async function takeText(text, stay = false) {
    const result = await page.engine.ask("parse_config", { text, read_as: readAs.value.trim(), form: page.state.form });
    if (result.index) return tell("paste-finding", finding, () => [say(result.index.text), ...result.index.notes.flatMap((/** @type {string} */ note) => [point(""), say(note)])]);
    if (result.form) {
      page.state.replace(result.form, { push: true });
      toast(() => t("paste.saved"), () => t("undo"), () => page.state.undo());
    } else takeModel(page, result, text, readAs.value.trim());
    Object.assign(draft, { text: "", family: "", id: "" });
    if (!stay) $("sheet").close();
  }

  /** @param {File} chosen */
  async function takeFile(chosen) {
    if (/\.gguf$/i.test(chosen.name) || await startsLikeGguf(chosen)) {
      const result = await readGguf(page, chosen);
      takeModel(page, result, result.config);
      return $("sheet").close();
    }
    if (chosen.size > INDEX_LIMIT) throw fault("paste.large");
    const text = decoded(await chosen.arrayBuffer());
    if (text.includes("\0")) throw fault("paste.binary", { name: chosen.name });
    if (chosen.size > CONFIG_LIMIT && !text.includes('"weight_map"')) throw fault("paste.large");
    if (text.length <= SHOWN) area.value = text;
    await takeText(text);
  }

  const from = hubPart(page, (text) => { area.value = text.length <= SHOWN ? text : ""; }, takeText, finding);
  sheet(() => open(page, null), t("paste.title"), h("p", { class: "hint" }, t("paste.hint")), h("div", { class: "field" }, h("label", { for: "paste-text" }, t("paste.text")), area, error, finding),
    h("div", { class: "grid two" }, h("div", { class: "field" }, h("label", { for: "paste-file" }, t("paste.file")), file), h("div", { class: "field" }, h("label", { for: "paste-family" }, t("paste.family")), readAs)),
    h("div", { class: "row" }, h("button", { type: "button", class: "solid", id: "paste-use", onclick: () => attempt(() => takeText(area.value)) }, t("paste.use"))), from);
  if (given === null) for (const [id, words] of Object.entries(said)) fill($(id), words());
  else said = {};
  takeLong(area, (text) => attempt(() => takeText(text)));
  area.focus();
  if (given instanceof File) attempt(() => takeFile(given));
  else if (given) attempt(() => takeText(given));
}

/** Make what Python read the model of the question. @param {any} page @param {any} result @param {string} config @param {string} [readAs] */
function takeModel(page, result, config, readAs = "") {
  page.question.pastedName = `${result.title ?? result.model.family} · ${phrases(result.model.detail)}`;
  page.state.set({ config, model: "pasted", read_as: readAs, weights: "", activations: "", kv: "", tp: "", pp: "", ep: "", dp: "" }, { push: true });
  toast(() => [t("paste.done", { name: page.question.pastedName }), ...(result.notes ?? []).flatMap((/** @type {string} */ note) => [point(""), say(note)])], () => t("undo"), () => page.state.undo());
}

/** @param {File} file */
const startsLikeGguf = async (file) => (await file.slice(0, 4).text()) === "GGUF";

/** Read as much of a .gguf file as its header needs, never the weights. @param {any} page @param {File} file */
async function readGguf(page, file) {
  for (const size of HEADER_STEPS) {
    const last = size >= file.size || size === HEADER_STEPS.at(-1);
    const result = await page.engine.ask("read_gguf", { data: await base64(file.slice(0, size)), last, name: file.name });
    if (!result.more) return result;
  }
}

/** @param {Blob} blob @returns {Promise<string>} */
const base64 = (blob) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ""));
  reader.onerror = () => reject(reader.error ?? fault("paste.unreadable"));
  reader.readAsDataURL(blob);
});

/**
 * The part that asks the hub. Nothing leaves before its button is pressed, and what will leave is said beside it.
 * @param {any} page @param {(text: string) => void} show @param {(text: string, stay?: boolean) => Promise<void>} take @param {any} finding
 */
function hubPart(page, show, take, finding) {
  const { build } = page.engine;
  const error = h("p", { class: "error", id: "hub-error", role: "alert" }), what = h("p", { class: "hint", id: "hub-what" });
  const id = h("input", { type: "text", id: "hub-id", placeholder: "Qwen/Qwen3-8B", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "hub-what hub-error", value: draft.id, oninput: () => { draft.id = id.value; told(); }, onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); go(); } } });
  const also = h("input", { type: "checkbox", id: "hub-index", onchange: () => told() });
  const button = h("button", { type: "button", class: "solid", id: "hub-ask", onclick: () => go() }, t("hub.ask"));
  const told = () => { what.textContent = t(also.checked ? "hub.what.both" : "hub.what", { id: modelId(id.value) || t("hub.id.example") }); };

  /** @param {string} name @param {"config.json" | "model.safetensors.index.json"} file */
  async function fetched(name, file) {
    const answer = await ask(build, name, file);
    if (answer.text === undefined) throw fault(`hub.error.${answer.error}`, { id: name, file, status: answer.status ?? "" });
    return answer.text;
  }
  async function go() {
    said = {};
    fill(error);
    fill(finding);
    id.removeAttribute("aria-invalid");
    button.disabled = true;
    try {
      const name = modelId(id.value);
      if (!name) throw fault("hub.error.id");
      if (!page.engine.ready) throw fault("waiting");
      const config = await fetched(name, "config.json");
      show(config);
      await take(config, also.checked);
      page.question.pastedName = `${name.split("/")[1]} · ${page.question.pastedName.split(" · ").slice(1).join(" · ")}`;
      page.question.show();
      if (also.checked) await take(await fetched(name, "model.safetensors.index.json"), true);
    } catch (problem) {
      id.setAttribute("aria-invalid", "true");
      tell(error.id, error, () => /** @type {any} */ (problem).again?.() ?? say(/** @type {Error} */ (problem).message));
    }
    button.disabled = false;
  }
  told();
  return h("fieldset", { class: "hub" }, h("legend", {}, t("hub.title")), h("div", { class: "field" }, h("label", { for: "hub-id" }, t("hub.id")), id, what, error),
    h("div", { class: "row under" }, h("label", { for: "hub-index" }, also, ` ${t("hub.index")}`), button));
}
