// @ts-check
// Words of the page. English is in the HTML; another language is one JSON file with the same keys (a test compares them).

import { h } from "./dom.mjs";

/** @type {Record<string, string>} */ let words = {};
/** @type {Record<string, string>} */ let english = {};
/** Words that views bring along when they are first opened (lazy.mjs). @type {Record<string, Record<string, string>>} */ const more = { en: {}, zh: {} };
/** Patterns of the engine's sentences and what they are in the other language. @type {[RegExp, string][]} */ let sentences = [];
/** Its phrases and the clauses of its notes, by their wording; # stands for a number. @type {Map<string, string>} */ let notes = new Map();
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
    const [page, pairs, phrased] = await Promise.all([read("zh.json"), read("sentences-zh.json"), read("notes-zh.json")]);
    words = page;
    sentences = pairs.map((/** @type {[string, string]} */ [pattern, text]) => [new RegExp(`^${pattern}$`), text]);
    notes = new Map(Object.entries(phrased));
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

const NUMBER = /(^|[^A-Za-z0-9_.-])(\d+(?:[.,]\d+)*(?:e[+-]?\d+)?)/g;
const LIST = /, (?![^(]*\))/;
const CLAUSE = /(; (?![^(]*\))|\. (?=\S)|\.\s*$)/;
/** What is left in English, marked as such: a citation, or a sentence that lacks a translation, which a test looks for. @param {string} text @param {boolean} [cited] */
const foreign = (text, cited = false) => (/[A-Za-z]/.test(text) ? h("span", { lang: "en", class: cited ? null : "left" }, text) : text);

/** A phrase, clause or sentence that has a translation, as pieces; null for any other. @param {string} text @returns {any[] | null} */
function known(text) {
  const numbers = /** @type {string[]} */ ([]), shape = text.replace(NUMBER, (_, before, number) => { numbers.push(number); return `${before}#`; });
  const words = notes.get(text) ?? notes.get(shape);
  if (words !== undefined) return [words.replace(/\$(\d)/g, (_, n) => numbers[n - 1])];
  for (const [pattern, made] of sentences) {
    const found = pattern.exec(text);
    // What a pattern takes over as it stands is a name or a number; where it would take in a clause besides, the text is more than its sentence.
    if (found && !found.some((part, n) => n && part?.includes("; ") && made.includes(`$${n}`))) return made.split(/(~\d)/).map((piece) => (/^~\d$/.test(piece) ? cite(found[Number(piece[1])]) : piece.replace(/\$(\d)/g, (_, n) => found[n] ?? ""))); // ~3 is a part that is said in turn
  }
  return null;
}

/** A list of phrases; null where one of them is not known. @param {string} text @returns {any[] | null} */
function listed(text) {
  const said = text.split(LIST).map(known);
  return said.length > 1 && said.every(Boolean) ? said.flatMap((piece, i) => (i ? ["，", ...piece ?? []] : piece ?? [])) : null;
}

/** Clause by clause; null where none is known. @param {string} text @param {boolean} cited @returns {any[] | null} */
function clauses(text, cited) {
  let some = false;
  const said = /** @type {any[]} */ ([]);
  text.split(CLAUSE).forEach((part, i) => {
    if (i % 2) return /[。？]$/.test(said.at(-1)) || said.push(part[0] === ";" ? "；" : "。");
    const found = part ? known(part) ?? listed(part) : null;
    some ||= Boolean(found);
    said.push(...found ?? [foreign(part, cited)]);
  });
  return some ? said : null;
}

/** A refusal: a field, what was given for it (as Python quotes it, or in words), and the rule. */
const HEAD = /^([\w.]+)( '(?:[^'\\]|\\.)*'| "(?:[^"\\]|\\.)*"|(?:(?!; |\. ).){0,90}?)(?::|(?= is missing and )) (.+)$/s;
/** What was told in words has a translation. @param {string} value */
const given = (value) => { const said = /\S \S/.test(value) ? known(value.replace(/^ (['"]?)(.*)\1$/, "$2")) : null; return said ? [" ", ...said] : [value]; };
/** A field by the name it has on the page, if it stands there. @param {string} name */
const titled = (name) => { const key = ["field", "explore"].map((group) => `${group}.${name}`).find(has); return key ? t(key) : foreign(name, true); };
/** Clause by clause, or as a whole where that leaves something out. @param {string} rule @param {boolean} cited */
const ruling = (rule, cited) => { const said = clauses(rule, cited); return said?.every((piece) => typeof piece === "string") ? said : known(rule) ?? said; };

/** What the engine wrote, in the reader's language: a sentence, a note of several clauses, or a refusal ("batch 0: must be …"). What has no translation stays English and is marked as such. @param {string} text @param {boolean} [cited] @returns {any} */
export function say(text, cited = false) {
  if (language === "en" || !text || /^[\u4e00-\u9fff]/.test(text)) return text;
  const [, name, value, rule] = HEAD.exec(text) ?? [];
  const sentence = known(text), parts = sentence ?? clauses(text, cited);
  const ruled = !sentence && rule && (!parts || parts.some((piece) => typeof piece !== "string")) ? ruling(rule, cited) : null;
  const said = ruled ? [...known(name + value) ?? [titled(name), ...given(value)], "：", ...ruled] : parts ?? [foreign(text, cited)];
  return said.every((piece) => typeof piece === "string") ? said.join("") : said;
}

/** A source or a name: titles stay as they are, words of our own beside them are translated. @param {string} text */
export const cite = (text) => say(text, true);

/** The same as plain text, for a list of short phrases or where only text can stand. @param {string} text @returns {string} */
export function phrases(text) {
  if (language === "en") return text;
  const plain = (/** @type {any[]} */ pieces) => pieces.flat(9).map((piece) => piece.textContent ?? piece).join("");
  return plain(known(text) ?? [text.split(LIST).map((part) => plain(known(part) ?? [part])).join("，")]);
}

/** Makes a question that is answered yes where the language has changed since it was asked last. */
export const turning = () => { let last = language; return () => last !== (last = language); };

/** A mark of punctuation as the language has it, with the space that follows; no mark: what stands between two sentences. @param {":" | ";" | "," | ""} mark */
export const point = (mark) => (language === "en" ? `${mark} ` : { ":": "：", ";": "；", ",": "，", "": "" }[mark]);

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
    const glued = language === "zh" ? together(found) : found;
    return strong ? [h("strong", {}, ...glued)] : glued;
  });
}

const MARKS = /^[，。：；、）？！]+/, figure = (/** @type {any} */ piece) => Boolean(piece?.classList?.contains("num"));
/** A figure that opens its working is a box to the browser, which would begin a line with the mark after it. @param {any[]} pieces @returns {any[]} */
const together = (pieces) => pieces.map((piece, i) => {
  if (typeof piece === "string") return figure(pieces[i - 1]) ? piece.replace(MARKS, "") : piece;
  const mark = figure(piece) && typeof pieces[i + 1] === "string" && MARKS.exec(pieces[i + 1]);
  return mark ? h("span", { class: "nowrap" }, piece, mark[0]) : piece;
});

/** Put the words of the language into everything that carries a key. */
export function translatePage() {
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(/** @type {HTMLElement} */ (element).dataset.t ?? "");
  for (const element of document.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(/** @type {HTMLElement} */ (element).dataset.tLabel ?? ""));
  for (const element of document.querySelectorAll("[data-t-title]")) element.setAttribute("title", t(/** @type {HTMLElement} */ (element).dataset.tTitle ?? ""));
  document.title = t("title");
  document.querySelector("meta[name=description]")?.setAttribute("content", t("description"));
}
