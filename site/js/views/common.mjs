// @ts-check
// What several views share: asking Python without a queue building up, fields bound to the question, figures and lists.

import { fill, h, put } from "../dom.mjs";
import { say, t } from "../i18n.mjs";

/**
 * A way to ask in which only the newest question counts: one is in flight, one waits, those between are dropped (null).
 * @param {import("../engine.mjs").Engine} engine @returns {(method: string, params: object) => Promise<any>}
 */
export function newest(engine) {
  let busy = false;
  /** @type {{method: string, params: object, done: Function, fail: Function} | null} */ let waiting = null;
  const run = async () => {
    while (waiting) {
      const { method, params, done, fail } = waiting;
      waiting = null;
      await engine.ask(method, params).then((result) => done(result), (error) => fail(error));
    }
    busy = false;
  };
  return (method, params) => new Promise((done, fail) => {
    waiting?.done(null);
    waiting = { method, params, done, fail };
    if (!busy) { busy = true; run(); }
  });
}

/** Fields of the question that a view shows a second time; each keeps what is being typed. @param {any} page */
export function fields(page) {
  /** @type {[string, any][]} */ const made = [];
  return {
    /** @param {string} name @param {string} [placeholder] */
    text(name, placeholder = "") {
      const id = `v-${name}`, input = h("input", { id, type: "text", class: "num", autocomplete: "off", spellcheck: "false", placeholder, "aria-describedby": `e-${name}`, oninput: () => page.state.set({ [name]: input.value.trim() }) });
      made.push([name, input]);
      return h("div", { class: "field small" }, h("label", { for: id, title: t(`field.${name}.gloss`) }, t(`field.${name}`)), input);
    },
    /** A button that chooses a chip or a model. @param {string} name @param {"hardware" | "model"} what */
    choice(name, what) {
      const input = h("button", { id: `v-${name}`, type: "button", class: "choice small", "aria-haspopup": "dialog", onclick: () => page.question.choose(name, what, true) });
      made.push([name, input]);
      return h("div", { class: "field small" }, h("label", { for: `v-${name}`, title: t(`field.${name}.gloss`) }, t(`field.${name}`)), input);
    },
    /** Show the state's values. */
    show() {
      for (const [name, input] of made) {
        const value = page.state.get(name);
        if (input.tagName === "BUTTON") input.textContent = value ? page.question.nameOf(name.endsWith("model") ? "models" : "chips", value) : t("none");
        else put(input, value);
      }
    },
  };
}

/** Characters that a text field takes without a stutter; a longer text is read without being shown. */
export const SHOWN = 300_000;

/** A long text pasted into a field is read at once: laid out in the field, it would hold the page up for seconds. @param {HTMLTextAreaElement} area @param {(text: string) => void} take */
export function takeLong(area, take) {
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (text.length <= SHOWN) return;
    event.preventDefault();
    take(text);
  });
}

/** A file's text: UTF-8, UTF-16 if it says so, else Latin-1. @param {ArrayBuffer} buffer */
export function decoded(buffer) {
  const [a, b] = new Uint8Array(buffer.slice(0, 2));
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return new TextDecoder(a === 0xff ? "utf-16le" : "utf-16be").decode(buffer);
  try { return new TextDecoder("utf-8", { fatal: true }).decode(buffer); } catch { return new TextDecoder("windows-1252").decode(buffer); }
}

/** Which part of a view is open: the one the link names, else the first. @param {any} page @param {string[]} names */
export const partOf = (page, names) => (names.includes(page.state.page.part) ? page.state.page.part : names[0]);

/** A list of facts: [label, value] pairs. @param {[any, any][]} rows */
export const facts = (rows) => h("dl", { class: "facts" }, rows.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", { class: "num" }, value))));

/** A chart with the sentence that says what it shows, and room for the table behind it. @param {string} id @param {string} [height] */
export function figure(id, height = "short") {
  const box = h("div", { id, class: `plot ${height}`, role: "img", "aria-labelledby": `${id}-finding` }), finding = h("figcaption", { id: `${id}-finding` }, t("view.loading"));
  return { box, finding, whole: h("figure", { class: "chart" }, box, finding) };
}

/** A bar of parts with its legend as a table beside it. @param {{key: string, width: number}[]} parts @param {(key: string) => string} name @param {string} kind class of the parts */
export const bar = (parts, name, kind) => h("div", { class: "stack tall", "aria-hidden": "true" }, parts.map((p) => h("i", { class: `${kind}-${p.key}`, style: { width: `${100 * p.width}%` } }, p.width > 0.09 ? name(p.key) : "")));

/** Save text as a file. @param {string} name @param {string} text @param {string} type */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A problem, said where the answer would stand. @param {Element} place @param {unknown} error */
export const failed = (place, error) => fill(place, h("p", { class: "error" }, say(/** @type {Error} */ (error).message)));
