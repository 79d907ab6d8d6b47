// @ts-check
// Words of the page. English is in the HTML; another language is one JSON file with the same keys (a test compares them).

import { h } from "./dom.mjs";

/** @type {Record<string, string>} */ let words = {};
/** @type {Record<string, string>} */ let english = {};
/** Words that views bring along when they are first opened (lazy.mjs). @type {Record<string, Record<string, string>>} */ const more = { en: {}, zh: {} };
/** Patterns of the engine's sentences and what they are in the other language. @type {[RegExp, string][]} */ let sentences = [];
export let language = "en";

/** @param {string} key */
const find = (key) => words[key] ?? more[language][key] ?? english[key] ?? more.en[key];

/** @param {string} name @param {Record<string, string>} brought */
export function addWords(name, brought) { Object.assign(more[name], brought); }

/** @param {Record<string, string>} base */
export function useEnglish(base) { english = base; words = base; }

/** @param {string} name @param {string} app folder of the page's files */
export async function useLanguage(name, app) {
  if (name === "zh" && language !== "zh") {
    const read = async (/** @type {string} */ file) => {
      const response = await fetch(new URL(`${app}i18n/${file}`, document.baseURI));
      if (!response.ok) throw new Error(`i18n/${file} answered ${response.status}`);
      return response.json();
    };
    const [page, pairs] = await Promise.all([read("zh.json"), read("sentences-zh.json")]);
    words = page;
    sentences = pairs.map((/** @type {[string, string]} */ [pattern, text]) => [new RegExp(`^${pattern}$`), text]);
  } else if (name !== "zh") words = english;
  language = name === "zh" ? "zh" : "en";
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  translatePage();
}

/** A text by key, with {names} filled in. A key that is missing shows itself. @param {string} key @param {Record<string, any>} [values] */
export function t(key, values = {}) {
  const text = (find(key) ?? key).replace(/\[\[\w+\|(.+?)\]\]/g, "$1");
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)).replaceAll("**", "");
}

/** @param {string} key */
export const has = (key) => find(key) !== undefined;

/** A sentence that the engine wrote, in the reader's language; one without a translation stays English and is marked as such. @param {string} text */
export function say(text) {
  if (language === "en") return text;
  const found = sentences.find(([pattern]) => pattern.test(text));
  return found ? text.replace(...found) : h("span", { lang: "en" }, text);
}

/** A list of short phrases of the engine, each in the reader's language where there is one. @param {string} text @returns {string} */
export const phrases = (text) => (language === "en" ? text : text.split(", ").map((part) => { const found = sentences.find(([pattern]) => pattern.test(part)); return found ? part.replace(...found) : part; }).join(", "));

/** A name the engine gives, in the reader's language where there is a word for it. @param {string} prefix @param {string} name */
export const named = (prefix, name) => (has(`${prefix}.${name}`) ? t(`${prefix}.${name}`) : name);

/**
 * A text by key as nodes: {names} may be elements, **words** are set strong, [[kv|KV cache]] is a term with a gloss.
 * @param {string} key @param {Record<string, any>} values
 */
export const rich = (key, values = {}) => nodes(find(key) ?? key, values);

/** A term of the field: its gloss shows on hover and focus (gloss.mjs). @param {string} id @param {string} text */
export const term = (id, text) => h("span", { class: "term", tabindex: "0", dataset: { term: id } }, text);

/** The same for a text that is already at hand. @param {string} text @param {Record<string, any>} values @returns {any[]} */
export function nodes(text, values = {}) {
  return text.split(/(\*\*.+?\*\*)/).flatMap((part) => {
    const strong = part.startsWith("**");
    const found = part.replaceAll("**", "").split(/(\{\w+\}|\[\[.+?\]\])/).filter(Boolean).map((piece) => {
      const name = /^\{(\w+)\}$/.exec(piece)?.[1], marked = /^\[\[(\w+)\|(.+)\]\]$/.exec(piece);
      return marked ? term(marked[1], marked[2]) : name && name in values ? values[name] : piece;
    });
    return strong ? [h("strong", {}, ...found)] : found;
  });
}

/** Put the words of the language into everything that carries a key. */
export function translatePage() {
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(/** @type {HTMLElement} */ (element).dataset.t ?? "");
  for (const element of document.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(/** @type {HTMLElement} */ (element).dataset.tLabel ?? ""));
  for (const element of document.querySelectorAll("[data-t-title]")) element.setAttribute("title", t(/** @type {HTMLElement} */ (element).dataset.tTitle ?? ""));
  document.title = t("title");
}
