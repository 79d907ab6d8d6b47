// @ts-check
// One line on every term of the field, on hover and on focus. The glossary is fetched when the first gloss is wanted. A field of the
// question has its own line as a title, which a pointer finds by itself; one who comes with the Tab key is shown it here.

import { h } from "./dom.mjs";
import { language } from "./i18n.mjs";

/** @typedef {{id: string, en: [string, string], zh: [string, string]}} Term */

/** @type {Promise<Term[]> | null} */ let soon = null;

/** All terms, in the order a newcomer meets them. @param {{views: string}} build @returns {Promise<Term[]>} */
export function glossary(build) {
  soon ??= fetch(new URL(`${build.views}glossary.json`, document.baseURI)).then((response) => (response.ok ? response.json() : Promise.reject(new Error(`glossary.json answered ${response.status}`)))).then((file) => file.terms);
  soon.catch(() => { soon = null; });
  return soon;
}

/** Show glosses for every element with class "term", now and later. @param {{views: string}} build */
export function showGlosses(build) {
  const box = h("div", { id: "gloss", class: "gloss", role: "tooltip", hidden: true });
  document.body.append(box);
  /** @type {any} */ let shown = null;
  let tabbed = false;
  const hide = () => { if (shown?.dataset.term) shown.removeAttribute("aria-describedby"); shown = null; box.hidden = true; };
  const show = async (/** @type {any} */ element) => {
    if (shown === element) return;
    hide();
    shown = element;
    const id = element.dataset.term, found = id && (await glossary(build).catch(() => [])).find((term) => term.id === id), text = id ? found?.[/** @type {"en" | "zh"} */ (language)][1] : element.title;
    if (shown !== element || !text) return;
    box.textContent = text;
    (element.closest("dialog") ?? document.body).append(box);
    box.hidden = false;
    place(element);
    if (id) element.setAttribute("aria-describedby", "gloss");
  };
  const place = (/** @type {HTMLElement} */ element) => {
    const at = element.getBoundingClientRect(), size = box.getBoundingClientRect(), above = at.bottom + size.height + 8 > innerHeight && at.top > size.height + 8;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
    box.style.top = `${above ? at.top - size.height - 4 : at.bottom + 4}px`;
  };
  const target = (/** @type {Event} */ event) => /** @type {any} */ (event.target)?.closest?.(tabbed && event.type.startsWith("focus") ? ".term, #question [title]" : ".term");
  document.addEventListener("keydown", (event) => { tabbed = event.key === "Tab"; if (!tabbed && shown && !shown.dataset.term) hide(); }, true);
  document.addEventListener("pointerdown", () => { tabbed = false; }, true);
  for (const event of ["pointerover", "focusin"]) document.addEventListener(event, (e) => { const element = target(e); if (element) show(element); });
  for (const event of ["pointerout", "focusout"]) document.addEventListener(event, (/** @type {any} */ e) => { if (shown && target(e) === shown && e.relatedTarget !== box && !(event === "pointerout" && shown === document.activeElement)) hide(); });
  document.addEventListener("language", hide);
  box.addEventListener("pointerleave", () => { if (shown !== document.activeElement) hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !box.hidden) { hide(); event.stopPropagation(); event.preventDefault(); } }, true);
  // Focus by keyboard may scroll its element into view; a gloss goes along with that and away with any other scrolling.
  addEventListener("scroll", () => { if (shown !== document.activeElement) hide(); else if (!box.hidden) place(shown); }, { passive: true, capture: true });
}
