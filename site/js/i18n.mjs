// @ts-check
// Words of the page. English is in the HTML; another language is one JSON file with the same keys (a test compares them).

import { h } from "./dom.mjs";

/** @type {Record<string, string>} */ let words = {};
/** @type {Record<string, string>} */ let english = {};
export let language = "en";

/** @param {Record<string, string>} base */
export function useEnglish(base) { english = base; words = base; }

/** @param {string} name @param {string} app folder of the page's files */
export async function useLanguage(name, app) {
  if (name === "zh" && language !== "zh") {
    const response = await fetch(new URL(`${app}i18n/zh.json`, document.baseURI));
    if (!response.ok) throw new Error(`i18n/zh.json answered ${response.status}`);
    words = await response.json();
  } else if (name !== "zh") words = english;
  language = name === "zh" ? "zh" : "en";
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  translatePage();
}

/** A text by key, with {names} filled in. A key that is missing shows itself. @param {string} key @param {Record<string, any>} [values] */
export function t(key, values = {}) {
  const text = words[key] ?? english[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)).replaceAll("**", "");
}

/** @param {string} key */
export const has = (key) => key in words || key in english;

/** A name the engine gives, in the reader's language where there is a word for it. @param {string} prefix @param {string} name */
export const named = (prefix, name) => (has(`${prefix}.${name}`) ? t(`${prefix}.${name}`) : name);

/**
 * A text by key as nodes: {names} may be elements, **words** are set strong.
 * @param {string} key @param {Record<string, any>} values @returns {any[]}
 */
export function rich(key, values = {}) {
  const text = words[key] ?? english[key] ?? key;
  return text.split(/(\*\*.+?\*\*)/).flatMap((part) => {
    const strong = part.startsWith("**");
    const nodes = part.replaceAll("**", "").split(/(\{\w+\})/).filter(Boolean).map((piece) => {
      const name = /^\{(\w+)\}$/.exec(piece)?.[1];
      return name && name in values ? values[name] : piece;
    });
    return strong ? [h("strong", {}, ...nodes)] : nodes;
  });
}

/** Put the words of the language into everything that carries a key. */
export function translatePage() {
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(/** @type {HTMLElement} */ (element).dataset.t ?? "");
  for (const element of document.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(/** @type {HTMLElement} */ (element).dataset.tLabel ?? ""));
  for (const element of document.querySelectorAll("[data-t-title]")) element.setAttribute("title", t(/** @type {HTMLElement} */ (element).dataset.tTitle ?? ""));
  document.title = t("title");
}
