// @ts-check
// The tabs under the chart: a WAI-ARIA tablist; a panel draws only while it is open.

import { $, h, fill } from "./dom.mjs";
import { t } from "./i18n.mjs";

/** @typedef {{id: string, open: (panel: HTMLElement) => void, update?: (panel: HTMLElement) => void}} Tab */

export class Tabs {
  /** @param {Tab[]} tabs @param {(id: string) => void} changed */
  constructor(tabs, changed) {
    this.tabs = tabs;
    this.changed = changed;
    this.current = tabs[0].id;
    /** @type {Record<string, HTMLElement>} */ this.panels = {};
  }

  draw() {
    fill($("tabs"), this.tabs.map((tab) => h("button", {
      type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": `panel-${tab.id}`, onclick: () => this.select(tab.id), onkeydown: (/** @type {KeyboardEvent} */ e) => this.key(e),
    }, t(`tab.${tab.id}`))));
    for (const tab of this.tabs) {
      if (this.panels[tab.id]) continue;
      this.panels[tab.id] = h("div", { role: "tabpanel", id: `panel-${tab.id}`, "aria-labelledby": `tab-${tab.id}`, tabindex: "0", class: "panel" });
      $("panels").append(this.panels[tab.id]);
    }
    this.select(this.current, false);
  }

  /** @param {string} id @param {boolean} [tell] */
  select(id, tell = true) {
    if (!this.tabs.some((tab) => tab.id === id)) return;
    this.current = id;
    for (const tab of this.tabs) {
      const on = tab.id === id, button = $(`tab-${tab.id}`);
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
      this.panels[tab.id].hidden = !on;
      if (on) tab.open(this.panels[tab.id]);
      if (on && tell) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    if (tell) this.changed(id);
  }

  /** A new answer: the open panel shows it. */
  update() {
    const tab = this.tabs.find((each) => each.id === this.current);
    if (tab) (tab.update ?? tab.open)(this.panels[tab.id]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.tabs.findIndex((tab) => tab.id === this.current), last = this.tabs.length - 1;
    const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.select(this.tabs[next].id);
    $(`tab-${this.tabs[next].id}`).focus();
  }
}

/** A row of mutually exclusive buttons. @param {string} label @param {{id: string, text: string}[]} choices @param {string} current @param {(id: string) => void} choose */
export function segmented(label, choices, current, choose) {
  return h("div", { class: "segmented", role: "group", "aria-label": label }, choices.map((c) => h("button", { type: "button", "aria-pressed": String(c.id === current), onclick: () => choose(c.id) }, c.text)));
}

/**
 * A table whose columns sort.
 * @param {{caption: string, columns: {key: string, label: any, num?: boolean, sort?: number}[], rows: any[], cell?: (row: any, key: string) => any, sorted?: {by: number, up: boolean}, onsort?: (by: number) => void}} options
 */
export function table({ caption, columns, rows, cell = (row, key) => row[key], sorted, onsort }) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, h("caption", { class: "sr" }, caption),
    h("thead", {}, h("tr", {}, columns.map((c) => {
      const on = sorted && sorted.by === c.sort, sort = c.sort !== undefined && onsort;
      return h("th", { scope: "col", class: c.num ? "num" : "", "aria-sort": on ? (sorted.up ? "ascending" : "descending") : null },
        sort ? h("button", { type: "button", class: "sort", onclick: () => onsort(/** @type {number} */ (c.sort)) }, c.label, on ? h("span", { "aria-hidden": "true" }, sorted.up ? " ▲" : " ▼") : null) : c.label);
    }))),
    h("tbody", {}, rows.map((row) => oneStop(h("tr", { class: row.className ?? "" }, columns.map((c, i) => h(i ? "td" : "th", { class: c.num ? "num" : "", scope: i ? null : "row" }, cell(row, c.key)))))))));
}

/** The numbers of a row that open their working are one stop of Tab; arrow keys lead on (explain.mjs). @param {HTMLElement} row */
function oneStop(row) {
  const [first, ...more] = /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll(".explain"));
  if (more.length) first.title = t("figure.open.cell");
  for (const each of more) each.tabIndex = -1;
  return row;
}
