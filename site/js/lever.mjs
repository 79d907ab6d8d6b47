// @ts-check
// One line under the sentence: the first change of software that helps, with a button that tries it.

import { $, fill, h } from "./dom.mjs";
import { rich, say, t } from "./i18n.mjs";

// Changes of software that leave the load and the chips alone.
const SOFT = /^(weights-fp8|weights-nvfp4|kv-fp8|fused|paged|ep|no-speculation)$/;

/** The first of them that gives more tokens to each user. @param {any[]} rows the levers, best first */
export const firstOf = (rows) => rows.find((r) => SOFT.test(r.id) && r.good.tpot > 0) ?? null;

/** What would fit instead of a question that does not, each a button that asks it. @param {{text: string, change: any}[]} ways @param {(way: any) => void} apply */
export function showWays(ways, apply) {
  fill($("lever"), `${t("lever.ways")} `, ways.map((way, i) => { const said = say(way.text); return [i ? " · " : null, h("button", { type: "button", class: "link", onclick: () => apply({ title: typeof said === "string" ? said : way.text, change: way.change }) }, said)]; }));
}

/** Say it, or nothing; the line keeps its place, so that nothing below it moves. @param {any} row @param {(row: any) => void} apply */
export function showLever(row, apply) {
  fill($("lever"), row ? [...rich("lever.first", { title: say(row.title), gain: h("span", { class: "num" }, row.gain.tpot) }), " ", h("button", { type: "button", class: "link", onclick: () => apply(row) }, t("lever.try"))] : "");
}
