// Draw the first answer with the page's own modules, on a small stand-in for a browser's DOM, so that the HTML holds it
// before any script runs and nothing moves when the scripts take over.
// usage: node paint.mjs PRERENDER.json EN.json > pieces.json

import { readFileSync } from "node:fs";

const CAMEL = /[A-Z]/g;
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

class Element {
  constructor(tag) {
    this.tag = tag;
    this.attributes = {};
    this.children = [];
    this.dataset = {};
    const rules = (this.rules = {});
    this.style = new Proxy({ setProperty: (name, value) => { rules[name] = value; } }, { set: (_, name, value) => { rules[name] = value; return true; } });
    this.classList = { add() {}, remove() {}, toggle() {}, contains: () => false };
    this.options = this.selectedOptions = [];
  }

  get textContent() { return this.children.map((c) => (c instanceof Element ? c.textContent : c)).join(""); }
  set textContent(text) { this.children = [String(text)]; }
  append(...nodes) { this.children.push(...nodes); }
  replaceChildren(...nodes) { this.children = nodes; }
  setAttribute(name, value) { this.attributes[name] = value; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener() {}
  querySelectorAll() { return []; }
  querySelector() { return null; }
  closest() { return null; }

  get inner() { return this.children.map((c) => (c instanceof Element ? c.outer : escaped(c))).join(""); }
  get outer() {
    const all = { ...this.attributes };
    for (const [name, value] of Object.entries(this.dataset)) all[`data-${name.replace(CAMEL, (c) => `-${c.toLowerCase()}`)}`] = value;
    if (Object.keys(this.rules).length) all.style = Object.entries(this.rules).map(([name, value]) => `${name}:${value}`).join(";");
    if (this.value !== undefined && this.tag === "input") all.value = this.value;
    if (this.hidden) all.hidden = "";
    const start = `<${this.tag}${Object.entries(all).map(([name, value]) => (value === "" ? ` ${name}` : ` ${name}="${escaped(value)}"`)).join("")}>`;
    return ["input", "br"].includes(this.tag) ? start : `${start}${this.inner}</${this.tag}>`;
  }
}

const ids = new Map();
const byId = (id) => { if (!ids.has(id)) ids.set(id, new Element("div")); return ids.get(id); };
globalThis.document = {
  getElementById: byId, createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag), querySelector: () => null, querySelectorAll: () => [],
  addEventListener() {}, documentElement: new Element("html"), body: new Element("body"), head: new Element("head"), baseURI: "http://localhost/", activeElement: null,
};
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.addEventListener = () => {};
globalThis.window = globalThis;

const [page, words] = process.argv.slice(2, 4).map((path) => JSON.parse(readFileSync(path, "utf-8")));
const { useEnglish } = await import("../js/i18n.mjs");
const { showFigures, showFinding } = await import("../js/answer.mjs");
const { Sentence } = await import("../js/sentence.mjs");
const { firstOf, showLever } = await import("../js/lever.mjs");
const { State } = await import("../js/state.mjs");

useEnglish(words);
const { view } = page.default, form = page.catalogue.default, lever = firstOf(page.levers);
const question = {
  label: (name) => (name === "model" ? view.headline.model : view.headline.hardware),
  options: (select, list, value) => { select.selectedOptions = [{ textContent: page.catalogue.choices[list].find((c) => c.id === value)?.label ?? "" }]; },
};
const sentence = new Sentence(new State(form), question);
sentence.draw();
sentence.answer(page.default);
showFigures(view, () => {});
showFinding(view);
showLever(lever, () => {});
const pieces = Object.fromEntries(["sentence", "figures", "finding", "legend", "lever"].map((id) => [id, byId(id).inner]));
process.stdout.write(JSON.stringify({ html: pieces, lever }));
