// @ts-check
// What is being asked: a flat form of a Scenario's field names with the text typed in, its undo history, and the address.
// Pure of DOM but for the address bar; the address is the only place where state is kept.

/** @typedef {Record<string, string>} Form */

/** Keys of the address that belong to the page, not to the question. */
const PAGE_KEYS = ["view", "part", "lesson", "lang", "embed"];

/** What one view keeps is named after it ("sweep.axis=prompt"); Explore's is older and short ("x.tpot=33ms"). */
const VIEW_KEY = /^(x|operators|sweep|levers|compare|measured)\./;
const viewOf = (/** @type {string} */ name) => { const found = VIEW_KEY.exec(name)?.[1]; return found === "x" ? "explore" : found; };

/** A part of an address as text; one that is not well encoded stays as it is written. @param {string} text */
export function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Split an address's fragment into the question and the page's own keys. @param {string} hash */
export function splitFragment(hash) {
  const question = [], page = /** @type {Record<string, string>} */ ({});
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const name = part.split("=")[0];
    if (PAGE_KEYS.includes(name) || VIEW_KEY.test(name)) page[name] = decoded(part.slice(name.length + 1));
    else if (part !== "question") question.push(part); // where the skip link leads; not asked by anybody
  }
  return { question: question.join("&"), page };
}

/** @param {string} question @param {Record<string, string>} page */
export function joinFragment(question, page) {
  // What only one view reads stays out of the address of the others.
  const own = (/** @type {string} */ k) => (k === "lesson" ? page.view === "learn" : k === "part" ? ["serving", "explore", "measured", "learn"].includes(page.view) : VIEW_KEY.test(k) ? (page.view ?? "operators") === viewOf(k) : true);
  const extra = [...PAGE_KEYS, ...Object.keys(page).filter((k) => VIEW_KEY.test(k)).sort()].filter((k) => page[k] !== undefined && page[k] !== null && own(k)).map((k) => (page[k] === "" ? k : `${k}=${encodeURIComponent(page[k])}`));
  return [question, ...extra].filter(Boolean).join("&");
}

/** Drop empty fields. @param {Form} form */
const clean = (form) => Object.fromEntries(Object.entries(form).filter(([, v]) => v !== "" && v !== null && v !== undefined));

/** What a slider moves: while only that changes, the chart's points leave a trail. */
const LOAD = ["batch", "prompt", "output", "cached"];
/** Whether two questions are alike but for their load. @param {Record<string, string>} a @param {Record<string, string>} b */
export const alike = (a, b) => [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => a[key] === b[key] || LOAD.includes(key));

export class State extends EventTarget {
  /** @param {Form} form */
  constructor(form) {
    super();
    /** @type {Form} */ this.form = clean(form);
    this.default = { ...this.form };
    /** @type {{form: Form, key: string, at: number}[]} */ this.past = [];
    /** @type {Form[]} what undo took back */ this.future = [];
    /** @type {Record<string, string>} */ this.page = {};
    this.fragment = "";
  }

  /** @param {string} field */
  get(field) { return this.form[field] ?? ""; }

  /**
   * Change some fields. Quick changes of one field (a slider, typing) are one step of undo.
   * @param {Form} changes @param {{push?: boolean}} [how] push: a step of the browser's history too
   */
  set(changes, how = {}) {
    const next = clean({ ...this.form, ...changes });
    if (JSON.stringify(next) === JSON.stringify(this.form)) return;
    const key = Object.keys(changes).join(), last = this.past.at(-1), now = Date.now();
    if (last?.key === key && now - last.at < 1200) last.at = now;
    else this.past.push({ form: this.form, key, at: now });
    if (this.past.length > 200) this.past.shift();
    this.future = [];
    this.form = next;
    this.emit(how.push ?? false);
  }

  /** Replace the whole question. @param {Form} form @param {{push?: boolean, silent?: boolean}} [how] */
  replace(form, how = {}) {
    if (!how.silent) { this.past.push({ form: this.form, key: "*", at: 0 }); this.future = []; }
    this.form = clean(form);
    this.emit(how.push ?? false);
  }

  /** Keep something of a view in the address. @param {string} name @param {string} value "" is what it is without being said */
  keep(name, value) {
    if (value) this.page[name] = value;
    else delete this.page[name];
    this.writeAddress();
  }

  undo() {
    const last = this.past.pop();
    if (!last) return;
    this.future.push(this.form);
    this.form = last.form;
    this.emit(false);
  }

  redo() {
    const next = this.future.pop();
    if (!next) return;
    this.past.push({ form: this.form, key: "*", at: 0 });
    this.form = next;
    this.emit(false);
  }

  /** @param {boolean} push leave the address as it is to the Back button, and go on in a new one */
  emit(push) {
    if (push) { this.writeAddress(); history.pushState(null, "", location.href); }
    this.dispatchEvent(new Event("change"));
  }

  /** Write the answered question and the view into the address. @param {string} [fragment] */
  writeAddress(fragment = this.fragment) {
    this.fragment = fragment;
    const hash = joinFragment(fragment, this.page);
    if (location.hash.replace(/^#/, "") !== hash) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }
}
