// @ts-check
// The list of models or chips: a dialog with a search box over a listbox, by keyboard as well as by hand.

import { $, h, fill } from "./dom.mjs";
import { t } from "./i18n.mjs";

/** @typedef {{id: string, name: string, detail: string, group: string, words?: string}} Item */

/** Items whose name, id or group hold every word of the query, those that start with it first. @param {Item[]} items @param {string} query */
export function search(items, query) {
  const plain = (/** @type {string} */ s) => s.toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, " ");
  const wanted = plain(query).trim().split(" ").filter(Boolean);
  const scored = [];
  for (const item of items) {
    const text = plain(`${item.name} ${item.id} ${item.group} ${item.words ?? ""}`);
    if (!wanted.every((word) => text.includes(word) || text.replaceAll(" ", "").includes(word))) continue;
    scored.push({ item, score: wanted.length && text.startsWith(wanted[0]) ? 0 : 1 });
  }
  return wanted.length ? scored.sort((a, b) => a.score - b.score).map((s) => s.item) : items;
}

/**
 * Let the visitor choose. Resolves with an id, or null if the dialog is closed.
 * @param {() => {title: string, items: Item[], current: string, extra?: {label: string, id: string}[]}} options in the language of now @param {string} [query] @returns {Promise<string | null>}
 */
export function pick(options, query = "") {
  const { title, items, current, extra = [] } = options();
  return new Promise((resolve) => {
    let shown = /** @type {Item[]} */ ([]), active = 0;
    const list = h("ul", { id: "picker-list", role: "listbox", "aria-label": title, class: "options" });
    const input = h("input", {
      type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "picker-list", "aria-autocomplete": "list", "aria-label": title,
      placeholder: t("picker.search"), autocomplete: "off", spellcheck: "false", oninput: () => { active = 0; draw(); }, onkeydown: key,
    });
    const count = h("p", { class: "hint", role: "status" });
    const dialog = h("dialog", { class: "picker", "aria-label": title },
      h("div", { class: "picker-top" }, input, h("button", { type: "button", class: "quiet close", "aria-label": t("close"), onclick: () => close(null) }, "✕")),
      extra.length ? h("div", { class: "picker-extra" }, extra.map((e) => h("button", { type: "button", class: "quiet", onclick: () => close(e.id) }, e.label))) : null,
      list, count);
    const close = (/** @type {any} */ id) => { document.removeEventListener("language", anew); if (dialog.open) dialog.close(); dialog.remove(); resolve(id); };
    const anew = () => close(pick(options, input.value));
    document.addEventListener("language", anew);
    dialog.addEventListener("cancel", () => close(null));
    dialog.addEventListener("click", (/** @type {MouseEvent} */ event) => { if (event.target === dialog) close(null); });

    function draw() {
      shown = search(items, input.value);
      let group = "";
      fill(list, shown.flatMap((item, i) => {
        const head = item.group !== group ? h("li", { role: "presentation", class: "group" }, item.group) : null;
        group = item.group;
        return [head, h("li", {
          role: "option", id: `picker-${i}`, "aria-selected": String(item.id === current), class: i === active ? "active" : "", dataset: { i: String(i) }, onclick: () => close(item.id),
          onpointermove: () => { if (active !== i) { active = i; follow(false); } },
        }, h("span", { class: "option-name" }, item.name), h("span", { class: "option-detail" }, item.detail))];
      }));
      count.textContent = shown.length ? t("picker.count", { n: shown.length }) : t("picker.none");
      follow(true);
    }
    function follow(/** @type {boolean} */ scroll) {
      for (const option of list.querySelectorAll("[role=option]")) option.classList.toggle("active", option.dataset.i === String(active));
      const option = list.querySelector(`#picker-${active}`);
      if (scroll) option?.scrollIntoView({ block: "nearest" });
      if (option) input.setAttribute("aria-activedescendant", option.id);
      else input.removeAttribute("aria-activedescendant");
    }
    function key(/** @type {KeyboardEvent} */ event) {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
      if (step) active = Math.max(0, Math.min(shown.length - 1, active + step));
      else if (event.key === "Enter" && shown[active]) close(shown[active].id);
      else return;
      event.preventDefault();
      follow(true);
    }

    document.body.append(dialog);
    input.value = query;
    draw();
    active = Math.max(0, shown.findIndex((item) => item.id === current));
    dialog.showModal();
    input.focus();
    follow(true);
    $("picker-" + active)?.scrollIntoView({ block: "center" });
  });
}
