// @ts-check
// The address bar: it holds the answered question, and what stands in it when the page opens or the visitor goes back is asked.

import { debounce } from "./dom.mjs";
import { t } from "./i18n.mjs";
import { PRESETS, presetOf } from "./presets.mjs";
import { decoded, splitFragment } from "./state.mjs";

/** @typedef {Record<string, string>} Form */

/** An example with changes beside its name ("p=chat&batch=3"), spelled out. @param {string} wanted */
const spelled = (wanted) => wanted.replace(/^p=([\w-]+)&/, (whole, id) => { const found = PRESETS.find((p) => p.id === id.toLowerCase()); return found ? `s=1&${new URLSearchParams(found.form)}&` : whole; });

/**
 * @typedef {object} Reader what the page does with an address
 * @property {(own: Record<string, string>) => Promise<void>} own  take over the page's own keys: language, view, embedding
 * @property {() => void} waiting  a link is being opened
 * @property {(fragment: string) => Promise<{form: Form, notices: string[]}>} open  let Python read a link
 * @property {(notices: string[]) => void} opened  a link was opened; these are its notices
 * @property {(why: string) => void} failed  a link could not be read
 */

export class Address {
  /** @param {import("./state.mjs").State} state @param {Reader} reader */
  constructor(state, reader) {
    this.state = state;
    this.reader = reader;
    /** @type {Form | null} the question that was answered last */ this.settled = state.form;
    this.turn = 0;
    this.opening = false;
    this.wrote = 0;
    this.later = debounce(() => { if (this.mine()) state.writeAddress(); }, 300);
  }

  /** Whether the question on the page is answered and none is being taken out of the address: only then is it written there. */
  mine() { return !this.opening && this.settled === this.state.form && this.state.fragment !== ""; }

  /** A question was answered: an example has a short link. @param {Form} form @param {string} fragment */
  answered(form, fragment) {
    const preset = presetOf(form);
    this.settled = form;
    this.state.fragment = preset ? `p=${preset.id}` : fragment;
  }

  /** Keep the address: at once, but not at every step of a slider, for which browsers slow a page down or refuse. */
  keep() {
    if (!this.mine()) return;
    if (performance.now() - this.wrote > 300) this.state.writeAddress();
    else this.later();
    this.wrote = performance.now();
  }

  /** Take the question out of the address. @param {boolean} first the page has just opened */
  async read(first) {
    const { question: wanted, page: own } = splitFragment(location.hash), turn = ++this.turn, { state, reader } = this, before = state.form;
    const { embed: _, ...kept } = state.page; // Back and Forward go through questions; language and view stay as they are
    state.page = own.view ? { ...(kept.lang && { lang: kept.lang }), ...own } : { ...kept, ...own };
    this.opening = true;
    try {
      await reader.own(own);
      if (turn !== this.turn) return; // the visitor has gone on
      if (first && !wanted) return;
      if (wanted === state.fragment && this.settled === state.form) { // it is on the page; its address takes over the language and the view of now
        this.opening = false;
        return this.keep();
      }
      state.fragment = wanted; // what is being opened stands in the address until it is answered
      const id = /^p=([^&]*)/.exec(wanted)?.[1].toLowerCase(), known = PRESETS.find((p) => p.id === id), preset = !wanted ? { form: state.default } : wanted.includes("&") ? undefined : known;
      if (id !== undefined && !known) throw new Error(t("link.example", { id: decoded(id).slice(0, 40), known: PRESETS.map((p) => p.id).join(", ") }));
      if (preset) return this.ask(preset.form, before);
      reader.waiting();
      const { form, notices } = await reader.open(spelled(wanted));
      if (turn !== this.turn) return;
      this.ask(form, before);
      reader.opened(notices);
    } catch (error) {
      if (turn !== this.turn) return;
      this.settled = null; // what could not be read stays in the address until something is answered
      reader.failed(/** @type {Error} */ (error).message);
    } finally {
      if (turn === this.turn) this.opening = false;
    }
  }

  /** Ask what the address asks, with what the visitor has changed since it began to open. @param {Form} form @param {Form} before */
  ask(form, before) {
    const now = this.state.form, changed = Object.keys({ ...before, ...now }).filter((name) => now[name] !== before[name]);
    this.opening = false;
    this.state.replace(changed.length && presetOf(now) ? now : { ...form, ...Object.fromEntries(changed.map((name) => [name, now[name] ?? ""])) }, { silent: true });
  }
}
