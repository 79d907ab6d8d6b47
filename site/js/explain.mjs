// @ts-check
// The working of a figure: formula, this scenario's values, and the constants with their sources. Its words come with the first one opened.

import { h, sheet } from "./dom.mjs";
import { cite, named, point, rich, say, t } from "./i18n.mjs";
import { viewWords } from "./lazy.mjs";
import { table } from "./tabs.mjs";

/** Every element made by `number` opens its working. @param {any} page */
export function explainOnClick(page) {
  document.addEventListener("click", (event) => {
    const key = /** @type {any} */ (event.target)?.closest?.("[data-explain]")?.dataset.explain;
    if (key) openExplanation(page, key);
  });
}

/** @param {any} page @param {string} key */
export async function openExplanation(page, key) {
  const place = h("div", {}, h("p", { class: "hint" }, t("waiting")));
  const name = key.startsWith("op.") ? "op" : key;
  sheet(() => openExplanation(page, key), t(`figure.${name}`), h("p", {}, t(`figure.${name}.gloss`)), place);
  try {
    const [{ steps, constants }] = await Promise.all([page.engine.ask("explain", { form: page.state.form, key }), viewWords(page.engine.build)]);
    place.replaceChildren(
      h("ol", { class: "steps" }, steps.map((/** @type {any} */ s) => h("li", { class: s.key.startsWith("head.") ? "head" : null }, ...rich(`explain.${s.key}`, Object.fromEntries(Object.entries(s.values).map(([k, v]) => [k, h("span", { class: "num" }, ["bound", "group", "kind"].includes(k) ? named(k, String(v)) : String(v))])))))),
      h("h3", {}, t("explain.constants")),
      table({
        caption: t("explain.constants"), rows: constants, columns: [{ key: "name", label: t("explain.name") }, { key: "value", label: t("explain.value"), num: true }, { key: "source", label: t("fact.source") }, { key: "grade", label: t("fact.grade") }],
        cell: (row, column) => (column === "source" ? h("span", {}, row.url ? h("a", { href: row.url, rel: "noopener noreferrer", target: "_blank" }, cite(row.source || row.url)) : row.source === "given" ? t("explain.given") : cite(row.source || "–"), row.date ? [point(","), h("span", { class: "num" }, row.date)] : "")
          : column === "name" ? (row.name.startsWith("peak ") ? t("fact.peak", { format: row.name.slice(5) }) : named("fact", row.name)) : column === "grade" ? `${named("grade", row.grade) || "–"}${row.unsure ? ` (${t("explain.unsure")})` : ""}` : row[column]),
      }),
      h("p", { class: "hint" }, t("explain.grades")));
  } catch (error) {
    place.replaceChildren(h("p", { class: "error" }, say(/** @type {Error} */ (error).message)));
  }
}
