// @ts-check
// Views that are not needed for the first answer: their code, words, style and figures come when they are first opened.

import { readPalette } from "./charts.mjs";
import { fill, h } from "./dom.mjs";
import { addWords, language, rich, say, t } from "./i18n.mjs";

/** @param {string} path @returns {Promise<any>} */
async function json(path) {
  const response = await fetch(new URL(path, document.baseURI));
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

const once = /** @type {Map<string, Promise<any>>} */ (new Map());
/** Fetch a JSON file once; one that failed is asked for again next time. @param {string} path @returns {Promise<any>} */
export function data(path) {
  if (!once.has(path)) once.set(path, json(path).catch((error) => { once.delete(path); throw error; }));
  return /** @type {Promise<any>} */ (once.get(path));
}

let wanted = false;
/** The words of what has been loaded on demand, in another language. @param {any} build @param {string} chosen out of a link, so it may be anything */
export const wordsAgain = (build, chosen) => (wanted ? viewWords(build, chosen === "zh" ? chosen : "en") : null);

/** The words of what is loaded on demand. @param {any} build */
export async function viewWords(build, chosen = language) {
  wanted = true;
  for (const name of new Set(["en", chosen])) addWords(name, await data(`${build.app}i18n/views-${name}.json`));
}

/** @param {any} build */
function style(build) {
  const href = `${build.app}css/views.css`;
  if (document.querySelector(`link[href="${href}"]`)) return null;
  return new Promise((resolve, reject) => document.head.append(h("link", { rel: "stylesheet", href, onload: resolve, onerror: () => reject(new Error(`${href} did not load`)) })));
}

/** A part of a view that is loaded when asked for: its module, with the style and the words of the views. @param {any} build @param {string} name @returns {Promise<any>} */
export async function lazyPart(build, name) {
  const [module] = await Promise.all([import(`./views/${name}.mjs`), style(build)]);
  await viewWords(build);
  return module;
}

/**
 * A tab whose module (views/ID.mjs) exports `view(page)`, a Tab without its id.
 * @param {any} page @param {string} id @returns {import("./tabs.mjs").Tab}
 */
export function lazyTab(page, id) {
  const { build } = page.engine;
  /** @type {any} */ let made = null;
  /** @type {Promise<any> | null} */ let soon = null;
  const open = async (/** @type {HTMLElement} */ panel) => {
    if (!made) fill(panel, h("p", { class: "hint" }, t("view.loading")));
    try {
      soon ??= Promise.all([import(`./views/${id}.mjs`), data(`${build.views}figures.json`), style(build)]);
      const [module, figures] = await soon;
      readPalette(); // the views' own colours have just come
      await viewWords(build);
      made ??= module.view({ ...page, figures: { ...page.figures, ...figures } });
      panel.dataset.view = "ready";
      if (!panel.hidden) made.open(panel);
    } catch (error) {
      soon = null;
      fill(panel, h("p", { class: "error" }, ...rich("view.failed", { why: say(/** @type {Error} */ (error).message) })), h("button", { type: "button", class: "quiet", onclick: () => open(panel) }, t("retry")));
    }
  };
  return { id, open, update: (panel) => (made ? (made.update ?? made.open)(panel) : undefined) };
}
