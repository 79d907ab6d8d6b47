// @ts-check
// Small helpers to make and find elements. Text always goes in as text: nothing here takes HTML.

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/**
 * Make an element. `on…` attributes are listeners, `class`, `dataset` and booleans do what they say, null children are left out.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect", "circle", "line", "g", "text"].includes(tag);
  const element = /** @type {any} */ (svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag));
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style" && typeof value === "object") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else if (name === "value" && !svg) element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

const stops = (/** @type {Element} */ element) => /** @type {HTMLElement[]} */ ([...element.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]);

/** Replace an element's children; the focus stays at the control in the same place. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  const active = document.activeElement, at = active && active !== element && element.contains(active) ? stops(element).indexOf(/** @type {HTMLElement} */ (active)) : -1;
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  if (at >= 0 && !element.contains(document.activeElement)) stops(element)[at]?.focus({ preventScroll: true });
  return element;
}

/** Show a value in a field; what is being typed there and says the same is left alone. @param {any} input @param {string} value */
export const put = (input, value) => { if ((input.value ?? "").trim() !== value) input.value = value; };

/** Run after the last of many calls. @param {Function} work @param {number} ms */
export function debounce(work, ms) {
  let timer = 0;
  return (/** @type {any[]} */ ...args) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => work(...args), ms);
  };
}

/** A shape that goes with each bound, so that colour never stands alone. @param {string} role */
export function mark(role) {
  const shapes = {
    memory: h("circle", { cx: 6, cy: 6, r: 5 }), compute: h("rect", { x: 1.5, y: 1.5, width: 9, height: 9 }),
    network: h("path", { d: "M6 .5 11.500 6 6 11.500 .5 6Z" }), misfit: h("path", { d: "M1.500 3 3 1.500l3 3 3-3L10.500 3l-3 3 3 3L9 10.500l-3-3-3 3L1.500 9l3-3Z" }),
    host: h("path", { d: "M6 .8 11.600 10.800H.4Z" }),
  };
  const shape = /** @type {Record<string, any>} */ (shapes)[role];
  return shape ? h("svg", { class: `mark ${role}`, viewBox: "0 0 12 12", width: 11, height: 11, "aria-hidden": "true" }, shape) : null;
}

/** Of which question a number is, where it is not that of the form (explain.mjs). @type {WeakMap<Element, any>} */
export const ofQuestion = new WeakMap();

/** A number that opens its working (explain.mjs). @param {string} key @param {string} text @param {string} [title] @param {any} [of] */
export function number(key, text, title, of) {
  const made = h("button", { type: "button", class: "explain num", dataset: { explain: key }, title: title ?? null }, text);
  if (of) ofQuestion.set(made, of);
  return made;
}

let toastTimer = 0;
/** What is open says the same in another language: the toast, and the dialog by being opened anew. */
let told = () => {}, opened = () => {};
const retell = () => { if (!$("toast").hidden) told(); if ($("sheet").open) opened(); };
/** Say something for a few seconds, with an optional action. @param {any} text a text, or what makes it in the language of now @param {any} [action] @param {() => void} [run] @param {number} [ms] */
export function toast(text, action, run, ms = 6000) {
  const box = $("toast"), dialog = [...document.querySelectorAll("dialog[open]")].at(-1);
  // What is outside an open dialog lies under its veil, so the words stand in it while it is open.
  if (box.parentElement !== (dialog ?? document.body)) (dialog ?? document.body).append(box);
  dialog?.addEventListener("close", () => document.body.append(box), { once: true });
  const word = (/** @type {any} */ said) => (typeof said === "function" ? said() : said);
  told = () => { fill(box, h("span", {}, word(text)), action ? h("button", { type: "button", class: "quiet", onclick: () => { box.hidden = true; run?.(); } }, word(action)) : null); };
  told();
  document.addEventListener("language", retell);
  box.hidden = false;
  clearTimeout(toastTimer);
  if (ms) toastTimer = window.setTimeout(() => { box.hidden = true; }, ms);
}

/** Open the one dialog with a title and content. @param {() => void} again opens it anew, in another language @param {string} title @param {...any} content */
export function sheet(again, title, ...content) {
  opened = again;
  document.addEventListener("language", retell);
  $("sheet-title").textContent = title;
  fill($("sheet-body"), ...content);
  if (!$("sheet").open) $("sheet").showModal();
  return $("sheet");
}

export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
