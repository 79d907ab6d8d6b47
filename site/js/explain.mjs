// @ts-check
// Numbers that open their working. The working itself (views/working.mjs) and its words come with the first one opened.

import { h, number, ofQuestion, sheet } from "./dom.mjs";
import { has, rich, say, t } from "./i18n.mjs";
import { lazyPart } from "./lazy.mjs";

/**
 * Of which question a number is, where that is not simply the form's: its form; basis "limit" or "expected"; than: the question it is
 * told to differ from; how: held against that one's figure as a "gain" or a "ratio"; title: what the number is called where it stands.
 * @typedef {{form?: Record<string, string>, basis?: string, than?: Record<string, string>, how?: string, title?: string}} Of
 */

/** Every element made by `number` opens its working; in a table the arrow keys lead from number to number. @param {any} page */
export function explainOnClick(page) {
  const found = (/** @type {Event} */ event) => /** @type {any} */ (event.target)?.closest?.("[data-explain]");
  document.addEventListener("click", (event) => {
    const button = found(event);
    if (button) openExplanation(page, button.dataset.explain, ofQuestion.get(button));
  });
  document.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0], cell = found(event)?.closest("tbody > tr > *");
    if (!cell || (!down && !right) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const rows = [...cell.parentElement.parentElement.rows];
    let row = rows.indexOf(cell.parentElement), column = cell.cellIndex, next = null;
    do { row += down; column += right; next = rows[row]?.cells[column]?.querySelector(".explain"); } while (!next && rows[row]?.cells[column]);
    next?.focus();
  });
}

/** A number with a working; one that is not known has none. @param {string | undefined} key @param {string} text @param {Of | (() => Promise<Of>)} [of] */
export const worked = (key, text, of) => (key && text && text !== "–" ? number(key, text, t("figure.open"), of) : text);

/** @param {any} page @param {string} key @param {Of | (() => Promise<Of>)} [of] @param {{name: string, go: () => void}} [back] to the working it was opened from */
export async function openExplanation(page, key, of = {}, back) {
  const place = h("div", {}, h("p", { class: "hint" }, t("waiting"))), name = `figure.${key.split(".")[0] === "op" ? "op" : key}`;
  sheet(() => openExplanation(page, key, of, back), has(name) ? t(name) : t("figure.open"), place);
  try {
    const { working } = await lazyPart(page.engine.build, "working");
    await working(page, place, key, of, back);
  } catch (error) {
    place.replaceChildren(h("p", { class: "error" }, ...rich("view.failed", { why: say(/** @type {Error} */ (error).message) })));
  }
}
